"""The REST API as Python calls."""
