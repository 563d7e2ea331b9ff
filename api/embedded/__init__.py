"""`headrace up`. Owns the folder, ports, processes and supervisor of an embedded service. Refuses
to serve a request.
"""
