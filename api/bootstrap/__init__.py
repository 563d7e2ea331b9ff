"""The first run. Owns what an empty database is filled with, and what a node is told.
Refuses to start a process.
"""
