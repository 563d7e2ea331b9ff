"""The present. Owns rates, stored bytes and the worst lag, each caller's part of them.
Refuses to keep history.
"""
