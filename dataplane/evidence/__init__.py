"""What was counted and deleted, until it is in a system topic: `_usage` and `_retention`.

Owns the spool, its publishing and the inventory. Refuses to price or to judge.
"""
