"""The interface to the native engine: its frames, the ring that they cross, and gRPC calls on it.

Refuses to know the meaning of a call or a frame.
"""
