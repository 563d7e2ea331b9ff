"""The engine of reconcilers. Owns the queue, leases, passes, conditions, operations and
notifications. Refuses to know any kind of object.
"""
