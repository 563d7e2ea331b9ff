"""Clusters. Owns the rows of clusters, and the choice of a cluster. Refuses to call nodes."""
