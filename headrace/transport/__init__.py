"""Calls to nodes and to the REST API: connections, deadlines, retries, typed errors."""
