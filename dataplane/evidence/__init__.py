"""Evidence of usage and deletions, until it is in a system topic: `_usage` or `_retention`.

Owns the spool, its publishing and the inventory. Refuses to price or evaluate usage.
"""
