"""The replicated metadata of a cluster: what exists, who may, who reads what.

A pure machine over committed commands.
"""
