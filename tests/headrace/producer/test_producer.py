"""Producing over real gRPC to a scripted node that loses answers, cuts streams, refuses and
restarts."""

import contextlib
import threading
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from headrace.client import Client
from headrace.codec import Record
from headrace.errors import (
    BufferFull,
    Closed,
    DeadlineExceeded,
    HeadraceError,
    Invalid,
    OutcomeUnknown,
    RecordTooLarge,
    TopicNotFound,
    Unauthenticated,
)
from headrace.messages import Value, record_of
from headrace.producer.accumulator import Delivery
from headrace.producer.producer import Producer
from headrace.settings import Settings
from headrace.wire import stream_pb2 as wire
from tests.headrace.scripted_errors import refusal
from tests.headrace.scripted_node import ScriptedNode

HEADERS_MAX = 256  # native/src/limits.h


@pytest.fixture
def producer(client: Client) -> Iterator[Producer]:
    with client.producer(linger="1ms", batch_bytes=2000) as producer:
        yield producer


def numbered(count: int) -> list[bytes]:
    return [f"{i:05d}".encode() for i in range(count)]


def test_an_ack_says_where_the_record_is_and_what_was_reached(
    client: Client, node: ScriptedNode
) -> None:
    first = client.topic("single").send("one")
    second = client.topic("single").send({"two": 2}, key="k", headers={"h": "1"})
    assert (first.partition, first.offset, second.offset) == (0, 0, 1)
    assert (first.persisted, first.replicas) == (1, 1)
    assert node.values("single") == [b"one", b'{"two":2}']


def test_a_lost_answer_does_not_store_a_record_twice(
    producer: Producer, node: ScriptedNode
) -> None:
    node.faults.cut_after_append = 2
    ack = producer.send("single", b"once")
    assert ack.offset == 0
    assert node.values("single") == [b"once"]


def test_a_stream_that_is_cut_again_and_again_loses_nothing_and_doubles_nothing(
    producer: Producer, node: ScriptedNode
) -> None:
    node.faults.cut_every = 7
    deliveries = [producer.send_nowait("orders", value) for value in numbered(2000)]
    acks = [delivery.result(120) for delivery in deliveries]
    assert len({(ack.partition, ack.offset) for ack in acks}) == 2000
    assert Counter(node.values("orders")) == Counter(numbered(2000))


def test_records_of_a_partition_keep_their_order_through_cuts_and_refusals(
    producer: Producer, node: ScriptedNode
) -> None:
    producer.send("single", b"first")
    node.faults.cut_every = 5
    busy = refusal("RESOURCE_EXHAUSTED", wire.RETRY_SAME_NODE, "The journal is full")
    node.faults.refuse = [busy] * 3
    for value in numbered(1000):
        producer.send_nowait("single", value)
    producer.flush(30)
    assert node.values("single") == [b"first", *numbered(1000)]


def test_a_restart_of_the_node_is_survived(client: Client, node: ScriptedNode) -> None:
    producer = client.producer(linger="1ms", batch_bytes=4000)
    half = threading.Event()

    def restart() -> None:
        half.wait(120)
        node.stop()
        node.start()

    with ThreadPoolExecutor(1) as pool:
        restarted = pool.submit(restart)
        deliveries = []
        for i, value in enumerate(numbered(4000)):
            deliveries.append(producer.send_nowait("orders", value))
            if i == 2000:
                half.set()
        acks = [delivery.result(120) for delivery in deliveries]
        restarted.result(120)
    assert len(acks) == 4000
    assert Counter(node.values("orders")) == Counter(numbered(4000))


def test_a_batch_that_is_refused_for_good_fails_alone(
    producer: Producer, node: ScriptedNode
) -> None:
    node.faults.refuse = [refusal("BATCH_MALFORMED", wire.TERMINAL, "The batch is malformed")]
    poisoned = producer.send_nowait("single", bytes(1900))
    healthy = [producer.send_nowait("single", bytes([i]) * 1900) for i in range(1, 6)]
    with pytest.raises(HeadraceError, match="malformed"):
        poisoned.result(120)
    assert [delivery.result(120).offset for delivery in healthy] == [0, 1, 2, 3, 4]
    assert node.values("single") == [bytes([i]) * 1900 for i in range(1, 6)]


MALFORMED = refusal("MALFORMED_REQUEST", wire.TERMINAL, "The message cannot be read")


def test_a_stream_that_ends_for_good_after_an_append_loses_nothing_and_doubles_nothing(
    producer: Producer, node: ScriptedNode
) -> None:
    node.faults.cut_with = MALFORMED
    node.faults.cut_after_append = 1
    # Were the first one taken for refused, the second would be answered as its duplicate.
    acks = [producer.send("single", value) for value in (b"first", b"second")]
    assert [ack.offset for ack in acks] == [0, 1]
    node.faults.cut_every = 7
    deliveries = [producer.send_nowait("orders", value) for value in numbered(2000)]
    assert len({(ack.partition, ack.offset) for ack in (d.result(120) for d in deliveries)}) == 2000
    assert Counter(node.values("orders")) == Counter(numbered(2000))
    assert node.values("single") == [b"first", b"second"]


def test_a_node_that_ends_every_stream_for_good_leaves_the_fate_unknown_at_once(
    producer: Producer, node: ScriptedNode
) -> None:
    node.faults.cut_with = MALFORMED
    node.faults.cut_every = 1
    with pytest.raises(OutcomeUnknown, match="cannot be read"):
        producer.send("single", b"stored and not answered", timeout="20s")
    node.faults.cut_every = 0
    assert producer.send("single", b"after").offset == 1
    assert node.values("single") == [b"stored and not answered", b"after"]


def test_an_answer_that_cannot_be_read_ends_the_stream_and_not_the_producer(
    producer: Producer, node: ScriptedNode
) -> None:
    node.faults.garble_replies = 1
    assert producer.send("single", b"once", timeout="10s").offset == 0
    assert node.values("single") == [b"once"]


def fates_around(client: Client, headers: object) -> list[str]:
    """What becomes of two records when the one between them, in one batch, has these headers."""
    producer = client.producer(linger="10s", delivery_timeout="10s")
    try:
        before = producer.send_nowait("single", b"before")
        # To refuse it at once is one way to hold.
        with contextlib.suppress(Invalid):
            producer.send_nowait("single", b"bad", headers=headers)  # type: ignore[arg-type]
        after = producer.send_nowait("single", b"after")
        with contextlib.suppress(HeadraceError):
            producer.flush("5s")
        return [fate_of(before), fate_of(after)]
    finally:
        producer.close("100ms")


def fate_of(delivery: Delivery) -> str:
    """Where the record is stored, or why it is not."""
    try:
        return f"stored at {delivery.result(120).offset}"
    except HeadraceError as error:
        return error.code


@pytest.mark.xfail(
    strict=True,
    raises=AssertionError,
    reason="a record with more headers than a batch may hold fails every record of its batch",
)
def test_a_record_with_too_many_headers_fails_alone(client: Client) -> None:
    headers = [(f"h{i}", "x") for i in range(HEADERS_MAX + 1)]
    assert fates_around(client, headers) == ["stored at 0", "stored at 1"]


@pytest.mark.xfail(
    strict=True,
    raises=TypeError,
    reason="a header of a wrong type breaks the sender, and its whole batch is never sent",
)
def test_a_record_with_a_header_of_a_wrong_type_fails_alone(client: Client) -> None:
    assert fates_around(client, {"h": ["no", "text"]}) == ["stored at 0", "stored at 1"]


def test_an_expired_producer_goes_on_under_a_new_id(producer: Producer, node: ScriptedNode) -> None:
    producer.send("single", b"before")
    node.logs["single", 0].producers.clear()
    assert producer.send("single", b"after").offset == 1
    assert node.values("single") == [b"before", b"after"]


def test_a_topic_that_was_made_again_is_found_again(producer: Producer, node: ScriptedNode) -> None:
    producer.send("single", b"before")
    node.recreate("single")
    assert producer.send("single", b"after").offset == 0


def test_a_missing_topic_is_an_error_that_says_how_to_create_it(client: Client) -> None:
    with pytest.raises(TopicNotFound, match="headrace topic create nope"):
        client.topic("nope").send(b"x")


def test_a_wrong_key_is_told_at_once(node: ScriptedNode, settings: Settings) -> None:
    node.token = "hr_user_right"
    with Client(settings) as client, pytest.raises(Unauthenticated):
        client.topic("single").send(b"x")


def test_the_deadline_of_a_delivery_says_that_its_fate_is_unknown(
    client: Client, node: ScriptedNode
) -> None:
    producer = client.producer(delivery_timeout="300ms")
    producer.send("single", b"warm")
    node.faults.hold_replies = True
    with pytest.raises(OutcomeUnknown, match=r"within 0\.3 s"):
        producer.send("single", b"x")
    node.faults.hold_replies = False
    with node.changed:
        node.changed.notify_all()
    assert producer.send("single", b"y").offset == 2


def test_without_a_node_the_deadline_is_what_fails(settings: Settings, node: ScriptedNode) -> None:
    with Client(settings) as client:
        producer = client.producer(delivery_timeout="300ms")
        producer.send("single", b"x")
        node.stop()
        with pytest.raises((DeadlineExceeded, OutcomeUnknown)):
            producer.send("single", b"y")


def test_send_waits_no_longer_than_its_timeout(client: Client, node: ScriptedNode) -> None:
    client.topic("single").send(b"warm")
    node.faults.hold_replies = True
    with pytest.raises(DeadlineExceeded):
        client.topic("single").send(b"x", timeout="50ms")
    node.faults.hold_replies = False
    with node.changed:
        node.changed.notify_all()


def test_a_full_producer_raises_when_asked_to(client: Client, node: ScriptedNode) -> None:
    producer = client.producer(buffer_bytes=3000, on_full="raise", batch_bytes=1000)
    producer.send("single", b"warm")
    node.faults.hold_replies = True
    for _ in range(3):
        producer.send_nowait("single", bytes(900))
    with pytest.raises(BufferFull, match="of 3000 bytes"):
        producer.send_nowait("single", bytes(900))
    node.faults.hold_replies = False
    with node.changed:
        node.changed.notify_all()
    producer.flush(10)
    assert producer.pending_bytes == 0


def test_a_full_producer_waits_by_default(client: Client, node: ScriptedNode) -> None:
    producer = client.producer(buffer_bytes=3000, batch_bytes=1000)
    for value in numbered(500):
        producer.send_nowait("single", value * 100)
    producer.flush(30)
    assert len(node.values("single")) == 500


def test_send_many_stores_every_item_with_one_ack_per_batch(
    client: Client, node: ScriptedNode
) -> None:
    items: list[Value | Record] = [*numbered(3000), "text", {"a": 1}, record_of(b"keyed", key="k")]
    acks = client.topic("orders").send_many(items)
    assert sum(ack.count for ack in acks) == 3003
    assert len(acks) < 10
    assert sorted(v or b"" for v in node.values("orders")) == sorted(
        [*numbered(3000), b"text", b'{"a":1}', b"keyed"]
    )


def test_send_batch_is_exactly_one_batch(producer: Producer, node: ScriptedNode) -> None:
    ack = producer.send_batch("orders", numbered(20), partition=3).result(120)
    assert (ack.partition, ack.base_offset, ack.count) == (3, 0, 20)
    with pytest.raises(RecordTooLarge, match="batches"):
        producer.send_batch("orders", [bytes(1500)] * 5)


def test_arguments_that_cannot_be_right_are_refused_before_sending(client: Client) -> None:
    topic = client.topic("orders")
    with pytest.raises(Invalid, match="no partition 9"):
        topic.send(b"x", partition=9)
    with pytest.raises(RecordTooLarge):
        topic.send(bytes(2 << 20))
    with pytest.raises(Invalid, match="on_full"):
        client.producer(on_full="ignore")  # type: ignore[arg-type]


def test_the_same_key_goes_to_the_same_partition(client: Client) -> None:
    topic = client.topic("orders")
    assert len({topic.send(b"x", key="cust-42").partition for _ in range(5)}) == 1


def test_flush_raises_a_failure_that_nobody_has_seen(
    producer: Producer, node: ScriptedNode
) -> None:
    node.faults.refuse = [refusal("BATCH_MALFORMED", wire.TERMINAL, "The batch is malformed")]
    producer.send_nowait("single", b"x")
    with pytest.raises(HeadraceError, match="malformed") as caught:
        producer.flush(10)
    assert caught.value.context["records_lost"] == "1"
    producer.flush(10)


def test_leaving_the_block_flushes(client: Client, node: ScriptedNode) -> None:
    with client.producer(linger="10s") as producer:
        producer.send_nowait("single", b"x")
    assert node.values("single") == [b"x"]
    with pytest.raises(Closed):
        producer.send("single", b"y")


def test_callbacks_are_called_with_the_delivery(client: Client) -> None:
    called = threading.Event()
    delivery = client.topic("single").send_nowait(b"x")
    delivery.add_done_callback(lambda done: called.set() if done.done() else None)
    assert called.wait(120)
    assert delivery.exception() is None


def test_without_idempotence_a_lost_answer_is_reported(client: Client, node: ScriptedNode) -> None:
    producer = client.producer(idempotent=False)
    producer.send("single", b"warm")
    node.faults.cut_after_append = 1
    with pytest.raises(OutcomeUnknown):
        producer.send("single", b"x")
    assert producer.send("single", b"y").offset == 2
