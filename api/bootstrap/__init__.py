"""The first run. Owns the initial contents of an empty database, and the configuration of a node.
Refuses to start a process.
"""
