"""Nodes as clients see them. Owns every gRPC call to a node: the pool of connections, deadlines,
the circuit breaker, the fence. Refuses to decide what is sent to a node.
"""
