"""Spark jobs that turn committed data into usage and retention reports.

Owns reading the logs of a cluster into Spark, the frozen inputs of a run, the arithmetic of the
bill and the published files. Refuses to know the tables of the control plane or the services of a
node: names come from the REST export, records from the public protocol.
"""
