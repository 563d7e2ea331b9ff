"""Organizations. Owns tenants, and the initial contents of a new one. Refuses to delete an
organization.
"""
