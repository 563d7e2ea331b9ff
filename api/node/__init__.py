"""Connections to nodes. Owns all gRPC calls to nodes: the pool of connections, deadlines, the
circuit breaker, the fence. Refuses to decide what is sent to a node.
"""
