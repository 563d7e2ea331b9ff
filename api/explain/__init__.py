"""Explanations. Owns state, history and next action of one object, in words. Refuses to change
anything.
"""
