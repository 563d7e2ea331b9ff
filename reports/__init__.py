"""Spark batch: what was committed becomes usage reports.

Owns reading the cluster's logs into Spark, the frozen inputs of a run, the arithmetic of the bill
and the files that are published. Refuses to know the control plane's tables or the node's services:
names come from the REST export, records from the public wire.
"""
