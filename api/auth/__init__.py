"""Who may do what. Owns tokens, cookies, roles, rates, the guard of every route, the scope
of a caller and the audit chain. Refuses to make or end a key.
"""
