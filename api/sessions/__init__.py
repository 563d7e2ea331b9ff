"""Sessions of the console. Owns the password, signing in and out. Refuses to know what a key
may do.
"""
