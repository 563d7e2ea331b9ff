"""What a node says of a topic's partitions, as a status keeps it. Pure."""

from collections.abc import Iterable

from pydantic import JsonValue as Json

from dataplane.wire import node_pb2


def partition_details(partitions: Iterable[node_pb2.PartitionStatus]) -> list[Json]:
    """One object a partition; 64-bit numbers are decimal strings."""
    return [
        {
            "index": each.index,
            "primary": each.primary,
            "replicas": list(each.replicas),
            "start_offset": str(each.log_start),
            "end_offset": str(each.log_end),
            "bytes": str(each.bytes),
            "state": each.state,
            "reason": each.reason,
        }
        for each in partitions
    ]
