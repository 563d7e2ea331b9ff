"""Nodes as clients see them. Owns every gRPC call to a node: channels, deadlines, the
circuit breaker, the fence. Refuses to decide what a node is told.
"""
