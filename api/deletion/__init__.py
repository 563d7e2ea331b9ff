"""Deletion, common to all kinds of objects. Owns the deletion mark, the breaker, finalizers and
objects that are removed once they are empty. Refuses to know any kind of object.
"""
