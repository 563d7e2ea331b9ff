"""The database. Owns engines, sessions, the clock, ids, the schema and all tables. Refuses to apply
the rules of a table: they belong to its domain.
"""
