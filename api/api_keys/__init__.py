"""API keys. Owns the rules of keys, and their distribution: every cluster knows the live keys only.
Refuses to check a request.
"""
