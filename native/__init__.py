"""The engine: C11 on nghttp2 and OpenSSL, which serves gRPC, keeps the journal and replicates.

Owns the compiled modules and their one Python face, `native.engine`. Importing this package loads
nothing compiled; it refuses to know the wire, metadata or anything else of the node.
"""
