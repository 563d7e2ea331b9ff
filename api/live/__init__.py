"""Live figures. Owns rates, stored bytes and the highest lag, limited to the scope of the caller.
Refuses to keep history.
"""
