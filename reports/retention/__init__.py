"""The retention report: past deletions and their causes, upcoming deletions, and violations.

Owns the records of `_retention`, policies and holds as exported by the control plane, and the rules
of violations. Refuses to handle money: the usage report does.
"""
