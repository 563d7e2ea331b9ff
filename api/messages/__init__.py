"""Messages for browsers. Owns pages, publishing of one message, and the tail. Refuses to grant
access that the key does not have.
"""
