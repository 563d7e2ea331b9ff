"""Clusters. Owns their rows, and which one is meant. Refuses to talk to nodes."""
