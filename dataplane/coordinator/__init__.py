"""The consumer groups of this node at work: live sessions, and partitions that change hands.

Owns what is remembered of connections; who gets what is decided in `dataplane.groups`.
"""
