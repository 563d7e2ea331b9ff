"""HTTP. Owns connections, limits, JSON, errors, pages, idempotency keys and the finished contract.
Refuses to know callers or the meaning of an object.
"""
