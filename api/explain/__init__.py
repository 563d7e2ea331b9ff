"""Explanations. Owns one object's state, history and next action in words. Refuses to change
anything.
"""
