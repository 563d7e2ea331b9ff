"""Streams. Owns the rules of streams, and their deletion with all contents. Refuses to call
nodes.
"""
