"""The node: a Python host around the native engine.

The engine's shards serve all hot calls themselves. This package applies the metadata log of the
cluster, decides group assignments, answers cold calls, and publishes closed metering windows to
`_usage`. It never accesses the bytes of a partition and never blocks a shard.
"""
