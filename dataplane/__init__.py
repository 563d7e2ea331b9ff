"""The node: a Python host around the native engine.

The engine's shards serve every hot call by themselves. This package serves what is rare: it applies
the cluster's metadata log, decides group assignments, answers cold calls, and carries closed
metering windows into `_usage`. It never touches a partition's bytes and never blocks a shard.
"""
