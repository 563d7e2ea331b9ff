"""The order of one partition's batches on their way to the node. Pure: no clock, no network.

Exactly once rests on three rules that this file keeps (P1 and P3 of docs/internals/rules.md):

1. A batch is repeated with the sequence it was first sent with, and batches are sent in order of
   their sequences. After a refusal or a lost connection nothing new leaves until everything in
   flight is resolved; then the oldest unresolved batch goes first again.
2. A sequence is used for other records only if it certainly is not in the log: behind a batch that
   the node refused, the following ones were refused as a gap, so they take over its place.
   Only an answer to the batch itself is such a refusal. The status of a stream is none.
3. When it is not certain (no answer, and the deadline passed, the session expired, or the node ends
   every stream), the partition goes on under a new producer id, and every batch whose fate is
   unknown is reported as OutcomeUnknown, never repeated.

    WAITING --take--> SENT --acked--> (gone)
       ^               |--refused, lost--> REFUSED --all resolved--> WAITING
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from enum import IntEnum

from headrace.errors import HeadraceError, Kind, OutcomeUnknown, OutOfSequence
from headrace.producer.accumulator import Batch

IN_FLIGHT_MAX = 5
"""The node resolves at most 8 batches of a producer and partition at a time; fewer leave room for
repetitions."""


class State(IntEnum):
    """Where a batch is."""

    WAITING = 0
    SENT = 1
    REFUSED = 2


class PartitionQueue:
    """Unresolved batches of one partition, oldest first, and the identity they are numbered
    under."""

    def __init__(
        self,
        producer_id: bytes,
        fresh_id: Callable[[], bytes],
        *,
        idempotent: bool = True,
        in_flight_max: int = IN_FLIGHT_MAX,
    ) -> None:
        self.producer_id = producer_id
        self._fresh_id = fresh_id
        self._idempotent = idempotent
        # Without sequences only one batch in flight keeps the order through a repetition.
        self._in_flight_max = in_flight_max if idempotent else 1
        self._batches: deque[Batch] = deque()
        self._in_flight = 0
        self._next_sequence = 0
        self._rewinding = False
        self._renumber_from: int | None = None
        self._expired = False

    def __len__(self) -> int:
        return len(self._batches)

    @property
    def idle(self) -> bool:
        """Nothing is unresolved."""
        return not self._batches

    @property
    def in_flight(self) -> int:
        """Batches sent and not answered."""
        return self._in_flight

    @property
    def oldest(self) -> Batch | None:
        """The oldest unresolved batch."""
        return self._batches[0] if self._batches else None

    def add(self, batch: Batch) -> None:
        """Queue a batch behind the others."""
        batch.state = State.WAITING
        self._batches.append(batch)

    def take(self) -> Batch | None:
        """The next batch to send, numbered; None when none may leave now. Ask for `casualties`
        first."""
        if self._rewinding:
            if self._in_flight:
                return None
            self._settle()
        if self._in_flight >= self._in_flight_max:
            return None
        for batch in self._batches:
            if batch.state == State.WAITING:
                if batch.sequence is None:
                    batch.sequence = self._next_sequence
                    if self._idempotent:
                        self._next_sequence += len(batch.records)
                batch.state = State.SENT
                self._in_flight += 1
                return batch
        return None

    def holds(self, batch: Batch) -> bool:
        """Whether the batch is still unresolved here and an answer is expected."""
        return batch.state == State.SENT and batch in self._batches

    def acked(self, batch: Batch) -> None:
        """The node stored it."""
        self._in_flight -= 1
        self._batches.remove(batch)

    def refused(self, batch: Batch, error: HeadraceError) -> HeadraceError | None:
        """The node did not store it. Returns the error when the batch is given up, None when it
        goes again."""
        self._in_flight -= 1
        batch.state = State.REFUSED
        if error.kind is Kind.COMMITTED_UNKNOWN:
            batch.unknown = True
        expired = error.kind is Kind.SESSION_EXPIRED
        if expired or isinstance(error, OutOfSequence):
            # Only the oldest tells: behind one that was refused, a gap is what the node must see,
            # and above sequence 0 a producer whose first batch was refused is one it never met.
            if self._rewinding or self._batches[0] is not batch:
                self._rewinding = True
                return None
            if not expired:
                return self._drop(batch, error)
            self._rewinding = self._expired = True
            return None
        if error.kind is Kind.TERMINAL or (batch.unknown and not self._idempotent):
            return self._drop(batch, _unknown(batch, error) if batch.unknown else error)
        self._rewinding = True
        return None

    def lost(self, batch: Batch, *, written: bool = True) -> HeadraceError | None:
        """The stream ended before the answer, whatever its status said: a status judges the
        stream, and what was written before it may be in the log. Returns the error when the batch
        is given up, None when it goes again."""
        self._in_flight -= 1
        batch.state = State.REFUSED
        batch.unknown = batch.unknown or written
        self._rewinding = True
        if self._idempotent or not batch.unknown:
            return None
        return self._drop(batch, _unknown(batch))

    def give_up(self, batch: Batch, cause: HeadraceError) -> HeadraceError:
        """The deadline of the batch passed."""
        if batch.state == State.SENT:
            self._in_flight -= 1
            batch.unknown = True
        return self._drop(batch, _unknown(batch, cause) if batch.unknown else cause)

    def casualties(self) -> list[tuple[Batch, HeadraceError]]:
        """Batches whose fate became unknowable because the identity ended; they are gone from
        here."""
        if not self._expired or self._in_flight:
            return []
        dead = [b for b in self._batches if b.unknown]
        for batch in dead:
            self._batches.remove(batch)
        return [(batch, _unknown(batch)) for batch in dead]

    def _drop(self, batch: Batch, error: HeadraceError) -> HeadraceError:
        self._batches.remove(batch)
        if batch.unknown:
            self._rewinding = self._expired = True
        elif batch.sequence is not None and self._idempotent:
            self._rewinding = True
            first = self._renumber_from
            self._renumber_from = batch.sequence if first is None else min(first, batch.sequence)
        return error

    def _settle(self) -> None:
        """Nothing is in flight: start again from the oldest unresolved batch."""
        assert self._in_flight == 0
        self._rewinding = False
        start = self._renumber_from
        if self._expired:
            assert not any(batch.unknown for batch in self._batches)
            self.producer_id, start = self._fresh_id(), 0
        for batch in self._batches:
            batch.state = State.WAITING
            if start is not None and (self._expired or (batch.sequence or 0) >= start):
                batch.sequence = batch.encoded = None
                batch.unknown = False
        if start is not None:
            self._next_sequence = start
        self._expired, self._renumber_from = False, None


def _unknown(batch: Batch, cause: HeadraceError | None = None) -> OutcomeUnknown:
    why = f": {cause.message}" if cause is not None else ""
    return OutcomeUnknown(
        f"{len(batch.records)} records for {batch.topic}[{batch.partition}] were sent "
        f"and not acknowledged{why}"
    )
