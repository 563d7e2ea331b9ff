"""Streams. Owns their rules, and deletion with everything inside. Refuses to talk to nodes."""
