"""Projects. Owns the rules of projects, and their deletion with all contents. Refuses to call
nodes.
"""
