"""API keys. Owns their rules, and that every cluster knows the live ones alone. Refuses to
check a request.
"""
