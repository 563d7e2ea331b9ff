"""meter.c against a small model: windows are contiguous and exact, whatever is acked or late."""

from __future__ import annotations

from dataclasses import dataclass, field

from hypothesis import given, settings
from hypothesis import strategies as st

from native._engine_sim import ffi, lib
from tests.support.builders.storage import METER_CLOSE, Partition, client_part, name, words

SECOND = 1_000_000
MINUTE = 60 * SECOND
CLOSES_MAX, SUMS_MAX = 8, 128

Sums = dict[int, tuple[int, int, int]]


@dataclass
class Model:
    """Open sums, and the closes that wait for an ack."""

    open: Sums = field(default_factory=dict)
    closes: dict[int, tuple[int, int, Sums]] = field(default_factory=dict)
    sequence: int = 0
    from_op: int = 1

    def add(self, principal: int, size: int, records: int) -> str:
        kept = len(self.open) + sum(len(sums) for _, _, sums in self.closes.values())
        if principal not in self.open and kept == SUMS_MAX:
            return "METER_FULL"
        before = self.open.get(principal, (0, 0, 0))
        self.open[principal] = (before[0] + size, before[1] + records, before[2] + 1)
        return "OK"

    def close(self, op: int, sequence: int, acked: int) -> str:
        self.closes = {s: close for s, close in self.closes.items() if s > acked}
        if sequence != self.sequence + 1:
            return "METER_SEQUENCE"
        if not self.open:
            return "METER_EMPTY"
        if len(self.closes) == CLOSES_MAX:
            return "METER_FULL"
        self.closes[sequence] = (self.from_op, op, dict(sorted(self.open.items())))
        self.sequence, self.from_op, self.open = sequence, op + 1, {}
        return "OK"


class Meter:
    """The meter in C."""

    def __init__(self) -> None:
        self.meter = ffi.new("struct meter *")
        lib.meter_init(self.meter)

    def closes(self) -> dict[int, tuple[int, int, Sums]]:
        found: dict[int, tuple[int, int, Sums]] = {}
        sums = ffi.new("struct meter_sum **")
        after = 0
        while close := lib.meter_next(self.meter, after, sums):
            after = close.sequence
            found[after] = (
                close.from_op,
                close.to_op,
                {
                    sums[0][i].principal: (
                        sums[0][i].ingress_bytes,
                        sums[0][i].records,
                        sums[0][i].batches,
                    )
                    for i in range(close.sums_count)
                },
            )
        return found


steps = st.one_of(
    st.tuples(st.just("add"), st.integers(1, 40), st.integers(1, 1000)),
    st.tuples(st.just("close"), st.integers(-1, 2), st.integers(0, 3)),
)


@settings(max_examples=150)
@given(st.lists(steps, max_size=120))
def test_closes_follow_the_model(history: list[tuple[str, int, int]]) -> None:
    model, meter = Model(), Meter()
    now_us = MINUTE * 1000
    for op, (step, first, second) in enumerate(history, start=1):
        now_us += SECOND
        if step == "add":
            expected = model.add(first, second, 2)
            assert name(lib.meter_add(meter.meter, first, second, 2, now_us)) == expected
        else:
            sequence = max(0, model.sequence + 1 + (first if first != 2 else 0))
            acked = max(0, model.sequence - second)
            expected = model.close(op, sequence, acked)
            status = lib.meter_close(meter.meter, op, sequence, now_us + SECOND, acked)
            assert name(status) == expected
        assert meter.closes() == model.closes


def due(meter: Meter, now_us: int, *, force: bool = False) -> tuple[int, int, int] | None:
    sequence, end, acked = (ffi.new("uint64_t *"), ffi.new("int64_t *"), ffi.new("uint64_t *"))
    if lib.meter_due(meter.meter, now_us, MINUTE, force, sequence, end, acked):
        return sequence[0], end[0], acked[0]
    return None


def test_a_window_is_due_when_its_minute_is_over_and_only_if_something_was_appended() -> None:
    meter = Meter()
    start = MINUTE * 1000
    assert due(meter, start + 5 * MINUTE) is None
    assert due(meter, start, force=True) is None
    lib.meter_add(meter.meter, 16, 100, 1, start + 10 * SECOND)
    assert due(meter, start + 59 * SECOND) is None
    assert due(meter, start + 61 * SECOND) == (1, start + MINUTE, 0)
    assert due(meter, start + 200 * SECOND) == (1, start + 3 * MINUTE, 0)
    assert due(meter, start + 30 * SECOND, force=True) == (1, start + 30 * SECOND, 0)


def test_windows_never_overlap() -> None:
    meter = Meter()
    start = MINUTE * 1000
    lib.meter_add(meter.meter, 16, 100, 1, start + SECOND // 2)
    sequence, end, acked = due(meter, start + 2 * SECOND + 5, force=True) or (0, 0, 0)
    assert lib.meter_close(meter.meter, 5, sequence, end, acked) == 0
    lib.meter_add(meter.meter, 16, 100, 1, start + 2 * SECOND + 7)
    sequence, end, acked = due(meter, start + MINUTE + 1) or (0, 0, 0)
    assert lib.meter_close(meter.meter, 9, sequence, end, acked) == 0
    first, second = meter.meter.closes[0], meter.meter.closes[1]
    assert (first.window_start_us, first.window_end_us) == (start, start + 2 * SECOND + 5)
    assert (second.window_start_us, second.window_end_us) == (first.window_end_us, start + MINUTE)
    assert (first.from_op, first.to_op, second.from_op, second.to_op) == (1, 5, 6, 9)


def test_at_the_maximum_of_unacknowledged_closes_the_window_is_extended() -> None:
    meter = Meter()
    now_us = MINUTE * 1000
    for op in range(1, CLOSES_MAX + 1):
        now_us += MINUTE
        lib.meter_add(meter.meter, 16, 10, 1, now_us - SECOND)
        sequence, end, acked = due(meter, now_us) or (0, 0, 0)
        assert lib.meter_close(meter.meter, op, sequence, end, acked) == 0
    lib.meter_add(meter.meter, 16, 10, 1, now_us + SECOND)
    assert due(meter, now_us + 2 * MINUTE) is None
    assert name(lib.meter_close(meter.meter, 100, 9, now_us + MINUTE, 0)) == "METER_FULL"
    lib.meter_ack(meter.meter, 3)
    assert due(meter, now_us + 2 * MINUTE) == (9, now_us + 2 * MINUTE, 3)
    assert min(meter.closes()) == 4
    assert lib.meter_close(meter.meter, 101, 9, now_us + 2 * MINUTE, 3) == 0
    assert sorted(meter.closes()) == [4, 5, 6, 7, 8, 9]


def test_what_is_metered_is_what_is_stored() -> None:
    partition = Partition()
    bytes_by: dict[int, int] = {}
    for index in range(20):
        principal = 16 + index % 3
        applied = partition.append(client_part(3, size=index * 10), principal=principal)
        bytes_by[principal] = bytes_by.get(principal, 0) + len(applied.body)
    end = partition.now_us + MINUTE
    assert partition.apply(METER_CLOSE, words(1, end, 0)).meter_closed
    sums = ffi.new("struct meter_sum **")
    close = lib.partition_meter_next(partition.struct, 0, sums)
    found = {sums[0][i].principal: sums[0][i].ingress_bytes for i in range(close.sums_count)}
    assert found == bytes_by
    assert sum(found.values()) == partition.struct.cumulative_bytes
    assert sum(len(file) for file in partition.log.files.values()) == sum(found.values())


def test_a_repeated_batch_costs_nothing() -> None:
    partition = Partition()
    part = client_part(3, producer=b"p" * 16)
    partition.append(part)
    bytes_before = partition.struct.cumulative_bytes
    assert partition.append(part).duplicate
    assert partition.struct.cumulative_bytes == bytes_before
    assert partition.struct.meter.sums[0].batches == 1


def test_a_system_topic_is_never_metered() -> None:
    partition = Partition(metered=False)
    partition.append(client_part(3))
    assert partition.apply(METER_CLOSE, words(1, partition.now_us + 1, 0)).status == "METER_EMPTY"


def test_a_new_principal_waits_when_the_sums_are_full_and_its_sequence_stays_free() -> None:
    partition = Partition()
    for principal in range(SUMS_MAX):
        partition.append(client_part(1), principal=100 + principal)
    part = client_part(1, producer=b"p" * 16)
    assert partition.append(part, principal=5).status == "METER_FULL"
    assert partition.append(part, principal=100).status == "OK"
    closed = partition.apply(METER_CLOSE, words(1, partition.now_us + MINUTE, 0))
    assert closed.meter_closed
    assert partition.append(client_part(1), principal=100).status == "METER_FULL"
    partition.apply(METER_CLOSE, words(2, partition.now_us + MINUTE, 1))
    assert partition.append(client_part(1), principal=5).status == "OK"
