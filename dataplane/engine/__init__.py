"""The door to the native engine: its frames, the ring that they cross, and gRPC calls on it.

Refuses to know what a call or a frame means.
"""
