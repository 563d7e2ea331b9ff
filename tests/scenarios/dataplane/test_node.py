"""One real node end to end: wishes, records, groups, usage, drain, restart, kill -9."""

import contextlib
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import grpc
import pytest

from dataplane.wire import node_pb2, node_pb2_grpc
from headrace.wire import stream_pb2
from tests.support.builders.node_objects import (
    EDITOR,
    VIEWER,
    furnish,
    topic_spec,
)
from tests.support.clients.usage_log import closes
from tests.support.processes.node_process import ROOT, NodeProcess, Session, refusal
from tests.support.processes.platform import wait_until

PARTITION_GROUPS_MAX = 64  # native/src/foundation/limits.h
FENCE = node_pb2.Fence(db_epoch=1, generation=1, lease_token=1)


@pytest.fixture(scope="module", params=[1, 3], ids="shards={}".format)
def node(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[NodeProcess]:
    """A node with two keys; each test makes its own topics."""
    with NodeProcess(tmp_path_factory.mktemp("node"), shards=request.param) as running:
        furnish(running)
        yield running


def test_a_wish_becomes_a_topic_that_takes_and_gives_records(node: NodeProcess) -> None:
    reply = node.admin().apply(topic_spec("clicks"))
    assert reply.changed
    assert node.admin().apply(topic_spec("clicks")).number == reply.number
    editor = node.client(EDITOR)
    topic = editor.topic("clicks")
    assert (topic.name, topic.number) == ("default/clicks", reply.number)
    assert topic.partitions[1].primary == "nd_test"
    produced = editor.produce(topic, 0, [b"a", b"b"])
    assert (produced.base_offset, produced.persisted, produced.replicas) == (0, 1, 1)
    assert editor.produce(topic, 0, [b"a", b"b"]).duplicate
    assert node.client(VIEWER).values(topic, 0) == [b"a", b"b"]
    described = next(
        found for found in node.admin().describe_node().topics if found.topic_id == "tp_clicks"
    )
    assert [p.state for p in described.partitions] == ["READY", "READY"]
    assert (described.partitions[0].log_end, described.partitions[1].log_end) == (2, 0)


def test_describe_shows_what_a_key_may_see_and_names_what_is_missing(node: NodeProcess) -> None:
    node.admin().apply(topic_spec("seen"))
    reply = node.client(VIEWER).describe("default/seen", "nothing", "_usage")
    assert reply.cluster_id == "cl_test"
    assert reply.nodes[0].address == f"127.0.0.1:{node.grpc_port}"
    assert [topic.error.code for topic in reply.topics] == [
        "",
        "TOPIC_NOT_FOUND",
        "TOPIC_NOT_FOUND",
    ]
    names = [topic.name for topic in node.client(VIEWER).describe().topics]
    assert "default/seen" in names
    assert "_usage" not in names
    assert node.admin().topic("_usage").number == 1


def test_who_may_not_call_is_refused_with_a_typed_error(node: NodeProcess) -> None:
    with pytest.raises(grpc.RpcError) as caught:
        node.client(EDITOR).apply(topic_spec("mine"))
    code, error = refusal(caught.value)
    assert (code, error.code) == (grpc.StatusCode.PERMISSION_DENIED, "PERMISSION_DENIED")
    assert error.hint
    with pytest.raises(grpc.RpcError) as caught:
        node.client(f"{EDITOR[:-9]}xx{EDITOR[-7:]}").describe()
    assert caught.value.code() == grpc.StatusCode.UNAUTHENTICATED


def test_a_stale_fence_is_aborted(node: NodeProcess) -> None:
    request = topic_spec("fenced")
    request.fence.generation = 5
    node.admin().apply(request)
    with pytest.raises(grpc.RpcError) as caught:
        node.admin().apply(topic_spec("fenced"))
    code, error = refusal(caught.value)
    assert (code, error.code) == (grpc.StatusCode.ABORTED, "COMMAND_FENCED")


@pytest.mark.parametrize(("limit", "name"), [("retention_ms", "none"), ("retention_bytes", "nil")])
def test_a_wish_with_a_limit_of_0_is_refused_before_it_is_in_the_log(
    node: NodeProcess, limit: str, name: str
) -> None:
    request = topic_spec(name)
    setattr(request.put_topic, limit, 0)
    before = node.admin().describe_node().metadata_op
    with pytest.raises(grpc.RpcError) as caught:
        node.admin().apply(request)
    code, error = refusal(caught.value)
    assert (code, error.code) == (grpc.StatusCode.INVALID_ARGUMENT, "INVALID_ARGUMENT")
    said = caught.value.details() or ""
    assert f"{limit} is 0; it must be 1 or more, or -1 for unlimited" in said
    assert node.admin().describe_node().metadata_op == before


def test_an_unknown_method_is_unimplemented(node: NodeProcess) -> None:
    call: grpc.UnaryUnaryMultiCallable[bytes, bytes] = node.channel.unary_unary(
        "/headrace.stream.v1.Cluster/Guess"
    )
    with pytest.raises(grpc.RpcError) as caught:
        call(b"", timeout=120, metadata=(("authorization", f"Bearer {EDITOR}"),))
    assert caught.value.code() == grpc.StatusCode.UNIMPLEMENTED


def test_a_message_of_another_kind_is_an_invalid_argument(node: NodeProcess) -> None:
    call: grpc.UnaryUnaryMultiCallable[bytes, bytes] = node.channel.unary_unary(
        "/headrace.stream.v1.Cluster/Describe"
    )
    with pytest.raises(grpc.RpcError) as caught:
        call(b"\xff\xff\xff", timeout=120, metadata=(("authorization", f"Bearer {EDITOR}"),))
    assert refusal(caught.value)[1].code == "INVALID_ARGUMENT"


def test_two_members_share_a_topic_and_go_on_where_the_first_committed(
    node: NodeProcess,
) -> None:
    node.admin().apply(topic_spec("shared"))
    client = node.client(EDITOR)
    topic = client.topic("shared")
    for partition in (0, 1):
        client.produce(topic, partition, [b"x", b"y", b"z"])

    first = client.join("first", "shared", group="sharing")
    alone = first.assigned(2)
    assert not any(assigned.has_committed for assigned in alone.assigned)
    for assigned in alone.assigned:
        reply = client.fetch(
            topic,
            assigned.partition,
            group=first.joined.group,
            generation=assigned.generation,
            wait_ms=2000,
        )
        assert reply.status == stream_pb2.OK
        client.commit(assigned, first.joined.group, 2)

    second = client.join("second", "shared", group="sharing")
    kept = first.assigned(1)
    taken = second.assigned(1)
    assert kept.members == taken.members == 2
    assert kept.assigned[0].partition != taken.assigned[0].partition
    assert (taken.assigned[0].has_committed, taken.assigned[0].committed) == (True, 2)
    assert taken.assigned[0].generation > alone.assigned[0].generation

    lost = next(a for a in alone.assigned if a.partition == taken.assigned[0].partition)
    with pytest.raises(grpc.RpcError) as caught:
        client.commit(lost, first.joined.group, 3)
    assert "FENCED" in refusal(caught.value)[1].code
    client.commit(taken.assigned[0], first.joined.group, 3)

    described = client.describe_group("sharing")
    assert (described.state, len(described.members)) == ("STABLE", 2)
    first.close()
    assert len(second.assigned(2).assigned) == 2
    second.close()
    wait_until(lambda: client.describe_group("sharing").state == "EMPTY", "the group is empty")


def test_a_silent_member_is_expired_and_its_partitions_move(node: NodeProcess) -> None:
    node.admin().apply(topic_spec("silence"))
    client = node.client(EDITOR)
    silent = client.join("silent", "silence", group="silence", timeout_ms=1500)
    silent.assigned(2)
    ended = silent.next_event().ended
    assert (ended.code, ended.kind) == ("SESSION_EXPIRED", stream_pb2.SESSION_EXPIRED)
    other = client.join("other", "silence", group="silence")
    other.assigned(2)
    other.close()


def test_a_second_session_of_a_name_ends_the_first(node: NodeProcess) -> None:
    node.admin().apply(topic_spec("twins"))
    client = node.client(EDITOR)
    first = client.join("twin", "twins", group="twins")
    before = first.assigned(2)
    second = client.join("twin", "twins", group="twins")
    after = second.assigned(2)
    assert first.next_event().ended.code == "SESSION_REPLACED"
    assert after.members == 1
    assert {a.generation for a in after.assigned}.isdisjoint(
        {a.generation for a in before.assigned}
    )
    second.close()


def test_an_owner_that_does_not_release_is_closed_after_its_time(node: NodeProcess) -> None:
    node.admin().apply(topic_spec("stubborn"))
    client = node.client(EDITOR)
    stubborn = client.join("stubborn", "stubborn", group="stubborn", timeout_ms=1000)
    beating = threading.Event()

    def beat() -> None:
        while not beating.wait(0.2):
            stubborn.send(heartbeat=stream_pb2.Heartbeat())

    heart = threading.Thread(target=beat)
    heart.start()
    try:
        stubborn.assigned(2)
        other = client.join("other", "stubborn", group="stubborn")
        assert len(other.assigned(1).assigned) == 1
    finally:
        beating.set()
        heart.join()
    other.close()
    stubborn.close()


def test_a_client_that_goes_away_leaves_the_group(node: NodeProcess) -> None:
    node.admin().apply(topic_spec("gone"))
    client = node.client(EDITOR)
    gone = client.join("gone", "gone", group="gone", timeout_ms=60_000)
    gone.assigned(2)
    gone.cancel()
    wait_until(lambda: client.describe_group("gone").state == "EMPTY", "the member has left")


def test_a_member_of_one_group_too_many_is_told_so_and_the_others_go_on(node: NodeProcess) -> None:
    desired = topic_spec("crowded")
    desired.put_topic.partitions = 1
    node.admin().apply(desired)
    client = node.client(EDITOR)
    for number in range(PARTITION_GROUPS_MAX):
        member = client.join("reader", "crowded", group=f"crowd-{number}")
        member.assigned(1)
        member.close()
    ended = _ended(client.join("reader", "crowded", group="one-too-many"))
    assert (ended.code, ended.kind) == ("TOO_MANY_GROUPS", stream_pb2.TERMINAL)
    assert "under the name of a group that has read this topic" in ended.hint
    wait_until(lambda: client.describe_group("one-too-many").state == "EMPTY", "it has left")
    again = client.join("reader", "crowded", group="crowd-0")
    again.assigned(1)
    again.close()


def _ended(session: Session) -> stream_pb2.Error:
    """How the node ends this session, whatever it says before."""
    while not (event := session.next_event()).HasField("ended"):
        pass
    return event.ended


@pytest.mark.xfail(
    strict=True,
    raises=AssertionError,
    reason="A commit takes a row of the partition's groups for ever, though no such group exists.",
)
def test_commits_of_groups_that_nobody_joined_leave_room_for_one_that_does(
    node: NodeProcess,
) -> None:
    node.admin().apply(topic_spec("guessed", partitions=1))
    viewer = node.client(VIEWER)
    topic = viewer.topic("guessed")
    place = stream_pb2.Assigned(topic=topic.number, created_revision=topic.created_revision)
    for number in range(PARTITION_GROUPS_MAX):
        with contextlib.suppress(grpc.RpcError):  # taken or refused
            viewer.commit(place, 10**9 + number, 0)
    member = node.client(EDITOR).join("reader", "guessed", group="honest")
    event = member.next_event()
    while not event.HasField("ended") and not event.assignment.assigned:
        event = member.next_event()
    member.cancel()
    assert event.ended.code == ""


def test_joining_a_topic_that_is_not_there_is_refused(node: NodeProcess) -> None:
    with pytest.raises(grpc.RpcError) as caught:
        node.client(EDITOR).join("a", "nowhere")
    assert refusal(caught.value)[1].code == "TOPIC_NOT_FOUND"


def test_flushed_usage_is_exactly_what_the_log_holds(node: NodeProcess) -> None:
    node.admin().apply(topic_spec("billed"))
    client = node.client(EDITOR)
    topic = client.topic("billed")
    client.produce(topic, 0, [b"one", b"two"])
    client.produce(topic, 0, [b"three"], sequence=2)
    client.produce(topic, 1, [b"four"])
    assert node.admin().flush_usage().outstanding == 0
    admin = node.admin()
    windows = [close for close in closes(node) if close.topic == topic.number]
    assert {close.partition for close in windows} == {0, 1}
    assert {
        (close.topic_id, close.topic_name, close.organization_id, close.project_id)
        for close in windows
    } == {("tp_billed", "default/billed", "org_1", "prj_1")}
    sums = [found for close in windows for found in close.sums]
    assert {found.principal_id for found in sums} == {"key_editor"}
    assert sum(found.records for found in sums) == 4
    described = next(t for t in admin.describe_node().topics if t.topic_id == "tp_billed")
    assert sum(found.ingress_bytes for found in sums) == sum(p.bytes for p in described.partitions)
    assert admin.flush_usage().outstanding == 0


def test_an_operator_vouches_for_the_clock(node: NodeProcess) -> None:
    def confirm(bearer: str) -> node_pb2.ConfirmClockReply:
        reply: node_pb2.ConfirmClockReply = node_pb2_grpc.AdminStub(node.channel).ConfirmClock(
            node_pb2.ConfirmClockRequest(),
            timeout=120,
            metadata=(("authorization", f"Bearer {bearer}"),),
        )
        return reply

    before_us = time.time_ns() // 1000
    assert before_us <= confirm(node.node_key).time_us <= time.time_ns() // 1000
    with pytest.raises(grpc.RpcError) as caught:
        confirm(EDITOR)
    assert refusal(caught.value)[1].code == "PERMISSION_DENIED"
    # The frame was taken: the node still answers.
    assert node.admin().describe_node().cluster_id == "cl_test"


def test_http_tells_health_readiness_and_metrics(node: NodeProcess) -> None:
    assert node.http("/healthz")[0] == 200
    assert node.http("/readyz") == (200, "ready\n")
    status, text = node.http("/metrics")
    assert status == 200
    assert 'headrace_host_calls_total{code="OK"}' in text
    assert EDITOR not in node.log()


def test_grpcio_is_never_loaded_in_the_node(node: NodeProcess) -> None:
    mapped = Path(f"/proc/{node.pid}/maps").read_text()
    assert "_engine" in mapped
    assert "grpc" not in mapped


# ---- ends and beginnings ----


def test_sigterm_drains_and_a_restart_keeps_everything(tmp_path: Path) -> None:
    with NodeProcess(tmp_path) as running:
        furnish(running, "kept")
        client = running.client(EDITOR)
        topic = client.topic("kept")
        client.produce(topic, 0, [b"a", b"b", b"c"])
        member = client.join("member", "kept")
        first = member.assigned(2)
        client.commit(next(a for a in first.assigned if a.partition == 0), member.joined.group, 2)
        running.begin_termination()
        assert member.next_event().ended.code == "STOPPING"
        assert running.terminate() == 0

        running.start()
        client = running.client(EDITOR)
        assert client.topic("kept") == topic
        assert client.values(topic, 0) == [b"a", b"b", b"c"]
        # The drain closed the window and published it.
        windows = closes(running)
        assert [(close.sequence, close.sums[0].records) for close in windows] == [(1, 3)]
        # The member goes on where it was, under a new fence.
        member = client.join("member", "kept")
        again = member.assigned(2)
        old, new = (next(a for a in seen.assigned if a.partition == 0) for seen in (first, again))
        assert (new.committed, new.has_committed) == (2, True)
        assert new.generation > old.generation
        member.close()
        assert running.terminate() == 0


def test_kill_9_loses_nothing_acknowledged_and_bills_nothing_twice(tmp_path: Path) -> None:
    with NodeProcess(tmp_path) as running:
        furnish(running, "crash")
        topic = running.client(EDITOR).topic("crash")
        for life in range(3):
            client = running.client(EDITOR)
            for batch in range(10):
                client.produce(topic, 0, [b"%d" % life], sequence=life * 10 + batch)
            # Every second life ends with its windows already on their way.
            flush = threading.Thread(target=_flush_until_killed, args=(running,))
            flush.start()
            running.kill()
            flush.join()
            running.start()
        client = running.client(EDITOR)
        assert client.values(topic, 0) == [b"0"] * 10 + [b"1"] * 10 + [b"2"] * 10
        admin = running.admin()
        assert admin.flush_usage().outstanding == 0
        windows = closes(running)
        # Contiguous, without a repetition: every window once.
        assert [close.sequence for close in windows] == list(range(1, len(windows) + 1))
        assert all(after.from_op == before.to_op + 1 for before, after in pairwise(windows))
        assert sum(found.records for close in windows for found in close.sums) == 30


def _flush_until_killed(running: NodeProcess) -> None:
    # The node is killed, or the channel closed, on the way.
    with contextlib.suppress(grpc.RpcError, ValueError):
        running.admin().flush_usage()


def _refused_start(folder: Path, config: str, node_key: str) -> str:
    """Start a node that cannot start; what it says."""
    (folder / "node.key").write_text(node_key)
    (folder / "headrace.toml").write_text(config)
    found = subprocess.run(
        [sys.executable, "-m", "dataplane", "--config", str(folder / "headrace.toml")],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert (found.returncode, found.stdout) == (2, "")
    assert found.stderr.startswith("dataplane: ")
    return found.stderr


def test_a_directory_in_use_is_refused_by_name(node: NodeProcess, tmp_path: Path) -> None:
    config = node.config().replace('"node-1"', f'"{node.folder}/node-1"')
    assert "node.lock" in _refused_start(tmp_path, config, node.node_key)


def test_a_misspelt_key_is_refused_before_anything_is_touched(
    node: NodeProcess, tmp_path: Path
) -> None:
    config = node.config().replace("port =", "prot =", 1)
    assert "did you mean port?" in _refused_start(tmp_path, config, node.node_key)
    assert not (tmp_path / "node-1").exists()


def test_a_directory_of_another_cluster_is_refused_by_name(tmp_path: Path) -> None:
    with NodeProcess(tmp_path) as running:
        assert running.terminate() == 0
        config = running.config().replace("cl_test", "cl_other")
        assert "cl_test" in _refused_start(tmp_path, config, running.node_key)
