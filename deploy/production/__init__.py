"""The layout of production on one machine, without containers: `make up PRODUCTION=1`.

PostgreSQL, two APIs, two worker processes and one node, each a process of its own, as the compose
file and the systemd units run them elsewhere. Refuses to be more than that: what keeps a service
running for years is systemd.
"""
