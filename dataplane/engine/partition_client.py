"""Requests to partitions: a partition id in, the answer of the shard that owns it out.

Owns the placement of partitions: no other module of the host knows how many shards there are or
which of them owns a partition, so a partition whose primary is another node will be reached from
here too. A body is what follows the partition id in the frame. A batch is one frame, however many
records it has, and frames of one turn of the event loop cross to the engine together. Refuses to
interpret bodies and results, and to repeat a request.
"""

from dataplane.engine.frames import Kind, PartitionId, pack_partition
from dataplane.engine.ring import Reply, Ring
from native.engine import Frame


class PartitionClient:
    """Requests from this node's host to partitions. Runs on the event loop."""

    def __init__(self, ring: Ring, *, shards: int) -> None:
        self._ring = ring
        self._shards = shards

    async def request(
        self, kind: Kind, partition: PartitionId, body: bytes = b"", *, timeout_s: float
    ) -> Reply:
        """Send a request to a partition and wait for its reply.

        Raises TimeoutError; the request may still be done.
        """
        frame = self._frame(kind, partition, body)
        return await self._ring.request(frame, timeout_s=timeout_s)

    def post(self, kind: Kind, partition: PartitionId, *, arg1: int = 0) -> None:
        """Send a message to a partition that has no reply."""
        self._ring.post(self._frame(kind, partition, b"")._replace(arg1=arg1))

    def shards(self) -> range:
        """The shards of this node, for what each of them keeps beside its partitions."""
        return range(self._shards)

    async def request_shard(self, kind: Kind, shard: int, *, timeout_s: float) -> Reply:
        """Send a request to one shard and wait for its reply. Raises TimeoutError."""
        return await self._ring.request(Frame(kind, shard=shard), timeout_s=timeout_s)

    def _frame(self, kind: Kind, partition: PartitionId, body: bytes) -> Frame:
        shard = owner_of(partition, self._shards)
        return Frame(kind, shard=shard, body=pack_partition(partition) + body)


def owner_of(partition: PartitionId, shards_count: int) -> int:
    """The shard that owns a partition: the same pure function as `native/src/catalog/owner.h`."""
    mixed = (partition.topic * 0x9E3779B97F4A7C15) & 0xFFFF_FFFF_FFFF_FFFF
    mixed ^= mixed >> 32
    return (mixed % shards_count + partition.partition) % shards_count
