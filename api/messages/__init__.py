"""Messages as a browser reads and writes them. Owns pages, one publish and the tail. Refuses
to grant what the key cannot reach.
"""
