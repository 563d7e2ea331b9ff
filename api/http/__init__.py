"""HTTP. Owns connections, limits, JSON, errors, pages, idempotency keys and the finished
contract. Refuses to know who asks and what an object means.
"""
