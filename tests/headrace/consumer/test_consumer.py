"""Reading over real gRPC: by partition and by group, positions and commits."""

import threading
from collections import Counter
from datetime import UTC, datetime, timedelta

import pytest

from headrace.client import Client
from headrace.consumer.consumer import Consumer
from headrace.errors import (
    Closed,
    CorruptPartition,
    Invalid,
    OffsetExpired,
    StartRequired,
    TopicNotFound,
    TopicRecreated,
)
from headrace.messages import TopicPartition, record_of
from headrace.settings import Settings
from headrace.wire import stream_pb2 as wire
from tests.headrace.scripted_errors import refusal
from tests.headrace.scripted_node import ScriptedNode


def fill(client: Client, topic: str, count: int, **options: int) -> list[bytes]:
    values = [f"{i:05d}".encode() for i in range(count)]
    client.topic(topic).send_many(values, **options)
    return values


def values_of(consumer: Consumer) -> list[bytes | None]:
    return [message.value for message in consumer]


def committed(node: ScriptedNode, topic: str) -> dict[int, int]:
    return {
        partition: offset
        for (name, partition), log in node.logs.items()
        for offset in log.committed.values()
        if name == topic
    }


def test_a_partition_is_read_in_order_to_its_end(client: Client) -> None:
    values = fill(client, "single", 100)
    assert values_of(client.topic("single").consume(partition=0, until="end")) == values


def test_a_topic_without_a_group_is_read_in_all_partitions(client: Client) -> None:
    for partition in range(4):
        client.topic("orders").send_many([bytes([partition])] * 10, partition=partition)
    found = Counter(values_of(client.topic("orders").consume(until="end")))
    assert found == {bytes([partition]): 10 for partition in range(4)}


@pytest.mark.parametrize(("start", "first"), [("earliest", 0), (7, 7), (99, 99)])
def test_reading_begins_where_it_is_told(client: Client, start: str | int, first: int) -> None:
    fill(client, "single", 100)
    consumer = client.topic("single").consume(start=start, until="end")  # type: ignore[arg-type]
    assert [message.offset for message in consumer] == list(range(first, 100))


def test_reading_begins_at_a_time(client: Client) -> None:
    topic = client.topic("single")
    topic.send_many([b"old"] * 5)
    between = datetime.now(UTC)
    topic.send_many([b"new"] * 3)
    assert values_of(topic.consume(start=between, until="end")) == [b"new"] * 3
    assert len(values_of(topic.consume(start=timedelta(hours=1), until="end"))) == 8
    assert values_of(topic.consume(start=timedelta(0), until="end")) == []
    assert topic.offsets_at(between) == {0: 5}
    assert topic.offsets_at(timedelta(0)) == {0: 8}


@pytest.mark.parametrize("start", [datetime(2026, 1, 1), timedelta(hours=-1)])  # noqa: DTZ001
def test_a_time_that_is_none_is_refused(client: Client, start: datetime | timedelta) -> None:
    with pytest.raises(Invalid):
        client.topic("single").consume(start=start)


def test_latest_reads_only_what_comes_from_now_on(client: Client) -> None:
    fill(client, "single", 10)
    with client.topic("single").consume(start="latest") as consumer:
        client.topic("single").send(b"new")
        message = consumer.poll("10s")
    assert message is not None
    assert (message.offset, message.value) == (10, b"new")


def test_a_message_is_what_was_sent(client: Client) -> None:
    sent = record_of(b"\xff\x00", b"key", [("h", "1"), ("h", None)], 1_700_000_000_123_456)
    client.topic("single").send_many([sent])
    (message,) = client.topic("single").consume(until="end")
    assert (message.topic, message.partition, message.offset) == ("single", 0, 0)
    assert (message.key, message.value, message.timestamp_us) == (sent[0], sent[1], sent[2])
    assert message.headers == (("h", b"1"), ("h", None))
    assert message.append_time_us > 1_700_000_000_000_000


def test_batches_are_the_same_rows_as_columns(client: Client) -> None:
    values = fill(client, "single", 50)
    batches = list(client.topic("single").consume(start=20, until="end").batches())
    assert [v for batch in batches for v in batch.values] == values[20:]
    assert [o for batch in batches for o in batch.offsets] == list(range(20, 50))
    assert sum(len(batch) for batch in batches) == 30


def test_nothing_new_is_none_and_no_exception(client: Client) -> None:
    with client.topic("single").consume() as consumer:
        assert consumer.poll("20ms") is None


def test_an_empty_topic_ends_at_once(client: Client) -> None:
    assert list(client.topic("orders").consume(until="end")) == []


def test_reading_goes_on_after_a_restart(client: Client, node: ScriptedNode) -> None:
    values = fill(client, "single", 10)
    with client.topic("single").consume() as consumer:
        first = [consumer.poll("10s") for _ in range(10)]
        node.stop()
        node.start()
        client.topic("single").send(b"after")
        last = consumer.poll("20s")
    assert [m.value for m in first if m is not None] == values
    assert last is not None
    assert last.value == b"after"


def test_records_that_retention_removed_are_named(client: Client, node: ScriptedNode) -> None:
    fill(client, "single", 10)
    node.logs["single", 0].start = 4
    node.logs["single", 0].stored.clear()
    node.append("single", 0, b"kept")
    with pytest.raises(OffsetExpired, match="4 records") as caught:
        list(client.topic("single").consume(start=0, until="end"))
    assert caught.value.expected == 4
    skipping = client.topic("single").consume(start=0, until="end", on_expired="skip")
    assert values_of(skipping) == [b"kept"]


def test_a_damaged_batch_is_never_handed_out(client: Client, node: ScriptedNode) -> None:
    fill(client, "single", 3)
    base, count, stored = node.logs["single", 0].stored[0]
    node.logs["single", 0].stored[0] = (base, count, stored[:-1] + bytes([stored[-1] ^ 1]))
    with pytest.raises(CorruptPartition):
        list(client.topic("single").consume(until="end"))


def test_what_cannot_be_read_is_refused(client: Client) -> None:
    topic = client.topic("orders")
    with pytest.raises(Invalid, match="no partition 9"):
        topic.consume(partition=9).open()
    with pytest.raises(Invalid, match="not both"):
        topic.consume(partition=1, group="g")
    with pytest.raises(Invalid, match="ack"):
        topic.consume(ack="sometimes")  # type: ignore[arg-type]
    with pytest.raises(TopicNotFound):
        client.topic("nope").consume().open()


def test_a_topic_that_was_made_again_is_told_and_then_found(
    client: Client, node: ScriptedNode
) -> None:
    fill(client, "single", 3)
    with client.topic("single").consume() as consumer:
        assert [next(consumer).offset for _ in range(3)] == [0, 1, 2]
        node.recreate("single")
        client.topic("single").send(b"new")
        with pytest.raises(TopicRecreated):
            next(consumer)
    found = values_of(client.topic("single").consume(until="end"))
    assert found == [b"new"]


def test_a_partition_that_the_topic_made_again_does_not_have_is_told_so(
    client: Client, node: ScriptedNode
) -> None:
    with client.topic("orders").consume(partition=3) as consumer:
        consumer.open()
        node.recreate("orders", partitions=1)
        with pytest.raises(TopicRecreated, match=r"orders\[3\] no longer exists"):
            consumer.lag()


def test_a_closed_consumer_says_so(client: Client) -> None:
    consumer = client.topic("single").consume().open()
    consumer.close()
    with pytest.raises(Closed):
        consumer.commit()


@pytest.mark.parametrize("rows_read", [0, 1])
def test_reading_on_after_the_client_was_closed_is_no_end_but_an_error(
    settings: Settings, rows_read: int
) -> None:
    with Client(settings) as client:
        fill(client, "single", 3)
        consumer = client.topic("single").consume(until="end")
        assert [next(consumer).offset for _ in range(rows_read)] == list(range(rows_read))
    for read in (lambda: next(consumer), lambda: consumer.poll("1s"), lambda: list(consumer)):
        with pytest.raises(Closed):
            read()
    with pytest.raises(Closed):
        next(consumer.batches())


def test_an_iteration_that_ended_by_itself_stays_ended(client: Client) -> None:
    fill(client, "single", 2)
    consumer = client.topic("single").consume(until="end")
    assert len(values_of(consumer)) == 2
    assert list(consumer) == []
    assert consumer.poll("1s") is None


# ---- groups ----


def test_a_new_group_must_say_where_it_begins(client: Client) -> None:
    with (
        pytest.raises(StartRequired, match=r"start='earliest'"),
        client.topic("single").consume(group="g") as consumer,
    ):
        consumer.poll("10s")


def test_a_group_goes_on_where_it_committed(client: Client, node: ScriptedNode) -> None:
    fill(client, "single", 20)
    first = client.topic("single").consume(group="g", start="earliest", until="end")
    assert [m.offset for m in first] == list(range(20))
    assert committed(node, "single") == {0: 20}
    fill(client, "single", 5)
    second = client.topic("single").consume(group="g", until="end")
    assert [m.offset for m in second] == list(range(20, 25))


def test_a_row_whose_body_raised_comes_again(client: Client) -> None:
    fill(client, "single", 5)
    handled = 0

    def work() -> None:
        nonlocal handled
        with client.topic("single").consume(group="g", start="earliest") as consumer:
            for message in consumer:
                if message.offset == 3:
                    raise RuntimeError("handler")
                handled += 1

    with pytest.raises(RuntimeError, match="handler"):
        work()
    assert handled == 3
    again = client.topic("single").consume(group="g", until="end")
    assert [m.offset for m in again] == [3, 4]


def test_leaving_the_block_in_peace_commits_the_row_in_hand(
    client: Client, node: ScriptedNode
) -> None:
    fill(client, "single", 5)
    with client.topic("single").consume(group="g", start="earliest") as consumer:
        for message in consumer:
            if message.offset == 2:
                break
    assert committed(node, "single") == {0: 3}


def test_manual_commits_only_when_told(client: Client, node: ScriptedNode) -> None:
    fill(client, "single", 5)
    with client.topic("single").consume(group="g", start="earliest", ack="manual") as consumer:
        for message in consumer:
            if message.offset == 1:
                consumer.commit()
            if message.offset == 3:
                break
    assert committed(node, "single") == {0: 2}


def test_before_commits_what_was_not_yet_handled(client: Client, node: ScriptedNode) -> None:
    fill(client, "single", 5)
    with client.topic("single").consume(group="g", start="earliest", ack="before") as consumer:
        next(consumer)
        assert committed(node, "single") == {0: 5}


def test_lag_counts_what_is_not_handled(client: Client) -> None:
    fill(client, "single", 10)
    with client.topic("single").consume(group="g", start="earliest") as consumer:
        for _ in range(4):
            next(consumer)
        assert consumer.lag() == {TopicPartition("single", 0): 7}
        assert consumer.positions == {TopicPartition("single", 0): 3}


def test_heartbeats_do_not_depend_on_the_handler(client: Client, node: ScriptedNode) -> None:
    fill(client, "single", 2)
    with client.topic("single").consume(group="g", start="earliest") as consumer:
        next(consumer)
        # This thread handles its row and asks for nothing; the member stays alive.
        with node.changed:
            (member,) = node.groups["g"].members
            seen = member.heartbeats
            assert node.changed.wait_for(lambda: member.heartbeats >= seen + 3, 10)


def test_two_members_share_the_partitions_and_every_record_is_handled_once(
    client: Client, settings: Settings
) -> None:
    for partition in range(4):
        client.topic("orders").send_many(
            [f"{partition}-{i}" for i in range(50)], partition=partition
        )
    handled: list[bytes | None] = []
    together = threading.Barrier(2)

    def work() -> None:
        with Client(settings) as mine:
            consumer = mine.topic("orders").consume(group="g", start="earliest", until="end")
            consumer.open()
            together.wait(120)
            handled.extend(message.value for message in consumer)

    workers = [threading.Thread(target=work) for _ in range(2)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(120)
    assert Counter(handled) == {f"{p}-{i}".encode(): 1 for p in range(4) for i in range(50)}


def test_a_member_that_leaves_hands_its_partitions_over_where_it_stopped(
    client: Client, settings: Settings, node: ScriptedNode
) -> None:
    for partition in range(4):
        client.topic("orders").send_many([b"x"] * 10, partition=partition)
    seen: list[tuple[int, int]] = []
    with client.topic("orders").consume(group="g", start="earliest") as first:
        for _ in range(12):
            message = next(first)
            seen.append((message.partition, message.offset))
    with Client(settings) as other:
        rest = other.topic("orders").consume(group="g", until="end")
        seen += [(m.partition, m.offset) for m in rest]
    assert sorted(seen) == [(p, o) for p in range(4) for o in range(10)]


def test_a_member_survives_a_restart_of_the_node(client: Client, node: ScriptedNode) -> None:
    fill(client, "single", 3)
    with client.topic("single").consume(group="g", start="earliest") as consumer:
        assert [next(consumer).offset for _ in range(3)] == [0, 1, 2]
        node.stop()
        node.groups.clear()
        node.start()
        client.topic("single").send(b"after")
        assert any(message.value == b"after" for message in consumer)


def test_a_member_that_cannot_commit_what_it_loses_goes_on_with_the_rest(
    client: Client, settings: Settings, node: ScriptedNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("headrace.consumer.subscription.COMMIT_SECONDS", 3600.0)
    monkeypatch.setattr("headrace.consumer.subscription.RELEASE_WAIT", 0.1)
    monkeypatch.setattr("headrace.consumer.subscription.CALL_TIMEOUT", 0.2)
    for partition in range(4):
        client.topic("orders").send_many([b"x"] * 10, partition=partition)
    with client.topic("orders").consume(group="g", start="earliest") as first:
        seen = {m.partition for _ in range(40) if (m := first.poll("10s"))}
        assert seen == {0, 1, 2, 3}
        stopped = refusal("STOPPING", wire.RETRY_OTHER_NODE, "The node is stopping")
        node.faults.refuse_commits = [stopped] * 1000
        with Client(settings) as other:
            consumer = other.topic("orders").consume(group="g", start="earliest").open()
            with node.changed:
                members = node.groups["g"].members
                assert node.changed.wait_for(lambda: [len(m.owns) for m in members] == [2, 2], 10)
                node.faults.refuse_commits = []
            taken_over = {m.partition for _ in range(20) if (m := consumer.poll("10s"))}
            assert taken_over == {1, 3}
            client.topic("orders").send_many([b"after"], partition=0)
            message = first.poll("10s")
            assert message is not None
            assert message.value == b"after"


def test_a_loop_left_by_break_leaves_the_group(client: Client, node: ScriptedNode) -> None:
    fill(client, "single", 5)
    for message in client.topic("single").consume(group="g", start="earliest"):
        if message.offset == 2:
            break
    with node.changed:
        assert node.changed.wait_for(lambda: not node.groups["g"].members, 10)
    assert committed(node, "single") == {0: 2}


@pytest.mark.xfail(
    strict=True,
    raises=AssertionError,
    reason="a partition is released while its handler still has a row, so two members have it",
)
def test_a_row_in_hand_is_given_to_no_other_member_while_its_session_lives(
    client: Client, settings: Settings, node: ScriptedNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("headrace.consumer.subscription.RELEASE_WAIT", 0.1)
    node.append("orders", 1, b"in hand", b"next")
    slow = client.topic("orders").consume(group="g", start="earliest", session_timeout="30s")
    with Client(settings) as elsewhere, slow:
        next(slow)
        other = elsewhere.topic("orders").consume(group="g", start="earliest")
        with other:
            assert other.poll("1s") is None
            # The next row is asked for: the one in hand is done.
            slow.poll("100ms")
            assert next(other).offset == 1
