"""Nodes as objects of the API. Owns the registration of nodes, and their own status. Refuses to
reconcile anything.
"""
