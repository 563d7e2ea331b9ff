"""Deletion, as far as it is the same for every kind. Owns the mark, the breaker, finalizers
and objects that go once they are empty. Refuses to know any kind of object.
"""
