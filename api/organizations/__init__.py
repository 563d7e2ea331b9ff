"""Organizations. Owns tenants and what a new one begins with. Refuses to delete one."""
