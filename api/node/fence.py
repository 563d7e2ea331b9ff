"""The fence of a command: who holds an object's lease, and of which database."""

from dataclasses import dataclass

from dataplane.wire import node_pb2


@dataclass(frozen=True, slots=True)
class Fence:
    """What orders commands about one object; the cluster refuses lower ones."""

    db_epoch: int
    generation: int
    lease_token: int

    def message(self) -> node_pb2.Fence:
        """The fence on the wire."""
        return node_pb2.Fence(
            db_epoch=self.db_epoch, generation=self.generation, lease_token=self.lease_token
        )
