"""Calls to nodes and to the REST API: connections, deadlines, repetition, typed errors."""
