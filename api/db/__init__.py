"""The database. Owns engines, sessions, the clock, ids, the schema and every table: a row is
shared, its rules are its domain's. Refuses to know any rule of a table.
"""
