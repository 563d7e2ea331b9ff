"""The replicated metadata of a cluster: objects, permissions and consumer groups.

A pure machine over committed commands. Refuses to act on a partition.
"""
