"""Authentication and authorization. Owns tokens, cookies, roles, rates, the guard of every route,
the scope of a caller and the audit chain. Refuses to create or revoke a key.
"""
