"""Nodes as objects. Owns their registration and what they say of themselves. Refuses to
reconcile anything.
"""
