"""Sessions of the console. Owns the password, signing in and out. Refuses to know the permissions
of a key.
"""
