"""The retention report: what was deleted and why, what will be, and what breaks its promise.

Owns the records of `_retention`, policies and holds as the control plane exported them, the rules
of violations, and the files `retention.*`. Refuses money: that is the usage report's.
"""
