"""Reconciling against a scripted node: whatever is lost, late or refused, the spec is applied."""

import threading

import grpc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from api.db.tables.work import ResourceStatus, Work
from api.reconcile.backoff import BACKOFF_FIRST, BACKOFF_MAX, backoff
from api.reconcile.conditions import Condition, merge
from api.reconcile.loop import Loop
from api.reconcile.outcome import Converged, Observation, Outcome
from api.reconcile.queue import LEASE, Claim
from api.topics.reconciler import TopicReconciler, plan
from dataplane.wire import node_pb2
from tests.support.builders.control_plane import Body, Clock, Service
from tests.support.processes.platform import wait_until
from tests.support.processes.scripted_node import refuse, vanish


@given(st.integers(1, 100), st.integers(-1, 1 << 40), st.booleans())
def test_a_plan_carried_out_leaves_nothing_to_do(
    partitions: int, retention_ms: int, exists: bool
) -> None:
    desired = node_pb2.PutTopic(topic_id="tp_1", partitions=partitions, retention_ms=retention_ms)
    before = node_pb2.PutTopic(topic_id="tp_1", partitions=partitions, retention_ms=5)
    observed = node_pb2.TopicStatus(topic_id="tp_1", spec=before) if exists else None
    for action in plan(desired, observed):
        assert action.reason
        observed = node_pb2.TopicStatus(topic_id="tp_1", spec=action.topic)
    assert plan(desired, observed) == []


def test_a_node_gets_the_whole_wish_with_its_fence_and_the_node_key(service: Service) -> None:
    topic = service.topic("orders", partitions=2, retention_bytes="unlimited", codec="lz4")
    service.settle()
    spec = service.node.topics[topic["id"]].spec
    assert (spec.project, spec.stream, spec.topic) == ("default", "default", "orders")
    assert (spec.partitions, spec.retention_bytes, spec.codec) == (2, -1, "lz4")
    fence = service.node.topics[topic["id"]].fence
    assert (fence.db_epoch, fence.generation, fence.lease_token) == (1, 1, 1)
    key = service.settings.node.admin_key_file.read_text()
    assert service.node.tokens == {f"Bearer {key}"}


def test_a_second_pass_finds_the_topic_and_sends_nothing(service: Service) -> None:
    topic = service.topic("orders")
    service.settle()
    sent = len(service.node.applied)
    service.clock.advance(3600)
    assert service.settle() > 0
    assert len(service.node.applied) == sent
    assert _condition(service, topic, "Ready") == "True"


def test_a_create_whose_answer_was_lost_is_found_and_made_once(service: Service) -> None:
    service.settle()
    topic = service.topic("orders")
    sent = len(service.node.applied)
    service.node.after.append(vanish)
    service.settle()
    assert _condition(service, topic, "Ready") == "Unknown"
    service.clock.advance(5)
    service.settle()
    assert _condition(service, topic, "Ready") == "True"
    assert len(service.node.applied) == sent + 1


def test_a_node_that_is_away_is_unknown_first_and_unreachable_after_half_a_minute(
    service: Service,
) -> None:
    service.settle()
    topic = service.topic("orders")
    service.node.describe.extend([vanish] * 100)
    service.settle()
    assert _condition(service, topic, "Reachable") == "Unknown"
    for _ in range(25):
        service.clock.advance(1.5)
        service.settle()
    assert _condition(service, topic, "Reachable") == "False"
    assert _work(service, topic).attempts == 0
    service.node.describe.clear()
    service.clock.advance(1.5)
    service.settle()
    assert _condition(service, topic, "Reachable") == "True"
    assert _condition(service, topic, "Ready") == "True"


def test_a_wish_the_cluster_cannot_take_stalls_until_it_changes(service: Service) -> None:
    service.settle()
    topic = service.topic("orders")
    service.node.before.append(refuse(grpc.StatusCode.FAILED_PRECONDITION, "NODES_TOO_FEW"))
    service.settle()
    assert _condition(service, topic, "Stalled") == "True"
    assert _reason(service, topic, "Stalled") == "NodesTooFew"
    service.clock.advance(60)
    assert service.settle() == 0
    service.client.patch(
        f"/v1/topics/{topic['id']}", json={"spec": {"codec": "zstd"}}, headers=service.owner
    )
    service.settle()
    assert _condition(service, topic, "Ready") == "True"
    assert _condition(service, topic, "Stalled") == "False"


def test_a_throttled_pass_comes_again_when_the_node_said(service: Service) -> None:
    service.settle()
    topic = service.topic("orders")
    service.node.before.append(
        refuse(grpc.StatusCode.RESOURCE_EXHAUSTED, "RESOURCE_EXHAUSTED", retry_after_ms=7000)
    )
    service.settle()
    service.clock.advance(6.9)
    assert service.settle() == 0
    service.clock.advance(0.2)
    service.settle()
    assert _condition(service, topic, "Ready") == "True"


def test_a_failing_pass_observes_the_generation_and_is_not_ready_for_it(service: Service) -> None:
    topic = service.topic("orders")
    service.settle()
    service.client.patch(
        f"/v1/topics/{topic['id']}", json={"spec": {"codec": "zstd"}}, headers=service.owner
    )
    service.node.before.append(refuse(grpc.StatusCode.INTERNAL, "INTERNAL"))
    service.settle(passes=1_000)
    body = service.get(f"/v1/topics/{topic['id']}")
    assert body["status"]["observed_generation"] == body["generation"] == 2
    ready = next(each for each in body["status"]["conditions"] if each["type"] == "Ready")
    assert (ready["status"], ready["observed_generation"]) == ("False", 2)


def test_a_change_that_the_node_need_not_hear_of_is_observed_all_the_same(
    service: Service,
) -> None:
    topic = service.topic("orders")
    service.settle()
    sent = len(service.node.applied)
    spec: Body = {"deletion_protection": True}
    path = f"/v1/topics/{topic['id']}"
    patched = service.client.patch(path, json={"spec": spec}, headers=service.owner)
    status = patched.json()["status"]
    assert (patched.json()["generation"], status["observed_generation"]) == (2, 1)
    service.settle()
    body = service.get(path)
    assert body["status"]["observed_generation"] == 2
    assert {each["observed_generation"] for each in body["status"]["conditions"]} == {2}
    assert len(service.node.applied) == sent
    operation = service.get(f"/v1/operations/{patched.headers['Operation-Id']}")
    assert operation["state"] == "SUCCEEDED"


def test_ready_of_an_older_generation_is_not_ready_of_the_new_one(service: Service) -> None:
    topic = service.topic("orders")
    service.settle()
    patched = service.client.patch(
        f"/v1/topics/{topic['id']}", json={"spec": {"codec": "zstd"}}, headers=service.owner
    ).json()
    assert patched["status"]["observed_generation"] < patched["generation"]
    ready = next(each for each in patched["status"]["conditions"] if each["type"] == "Ready")
    assert ready["observed_generation"] < patched["generation"]


def test_a_hundred_failing_passes_grow_the_backoff_and_hardly_write_the_status(
    service: Service,
) -> None:
    service.settle()
    topic = service.topic("orders")
    service.node.before.extend([refuse(grpc.StatusCode.INTERNAL, "INTERNAL")] * 100)
    written = set()
    for _ in range(100):
        service.clock.advance(BACKOFF_MAX.total_seconds() + 1)
        service.loop.run_once(["topic"])
        with service.database.read() as session:
            written.add(session.get_one(ResourceStatus, topic["id"]).updated_at)
    assert _work(service, topic).attempts == 100
    assert len(written) <= 2


def test_a_success_forgets_the_failures_before_it(service: Service) -> None:
    service.settle()
    topic = service.topic("orders")
    fault = refuse(grpc.StatusCode.INTERNAL, "INTERNAL")
    service.node.before.extend([fault] * 5)
    for _ in range(5):
        service.clock.advance(400)
        service.loop.run_once(["topic"])
    assert _work(service, topic).attempts == 5
    service.clock.advance(400)
    service.loop.run_once(["topic"])
    assert _work(service, topic).attempts == 0
    # The next failure is the first again: at most one base delay.
    service.clock.advance(3600)
    service.node.describe.append(fault)
    service.loop.run_once(["topic"])
    work = _work(service, topic)
    assert work.attempts == 1
    assert work.run_after <= service.clock() + BACKOFF_FIRST


def test_a_new_generation_forgets_the_failures_of_the_last(service: Service) -> None:
    service.settle()
    topic = service.topic("orders")
    service.node.before.append(refuse(grpc.StatusCode.INTERNAL, "INTERNAL"))
    service.loop.run_once(["topic"])
    service.client.patch(
        f"/v1/topics/{topic['id']}", json={"spec": {"codec": "zstd"}}, headers=service.owner
    )
    assert _work(service, topic).attempts == 0
    assert service.loop.run_once(["topic"]) == 1


def test_one_object_that_raises_does_not_stop_the_others(service: Service) -> None:
    service.settle()

    class Broken(TopicReconciler):
        def reconcile(self, item: Claim) -> Outcome:
            if item.object_id == bad["id"]:
                raise RuntimeError("one bad object")
            return super().reconcile(item)

    bad, good = service.topic("bad"), service.topic("good")
    inner = service.loop._reconcilers["topic"]
    assert isinstance(inner, TopicReconciler)
    loop = Loop(service.database, {"topic": Broken(service.database, inner._nodes)})
    while loop.run_once(["topic"]):
        assert loop.counters.passes < 10
    assert _condition(service, good, "Ready") == "True"
    assert _condition(service, bad, "Ready") == "False"
    assert loop.counters.exceptions >= 1


@pytest.mark.parametrize(
    ("state", "reason"),
    [("DAMAGED", "PartitionDamaged"), ("OP_UNKNOWN", "PartitionOpUnknown")],
)
def test_a_stopped_partition_is_named_not_ready_and_not_asked_again_at_once(
    service: Service, state: str, reason: str
) -> None:
    service.node.partition_state = state
    topic = service.topic("orders", partitions=2)
    service.settle()
    assert _condition(service, topic, "Ready") == "False"
    assert _reason(service, topic, "Ready") == reason
    assert _reason(service, topic, "Stalled") == reason
    service.clock.advance(60)
    assert service.loop.run_once() == 0


def test_a_partition_that_takes_long_to_start_is_asked_ever_less_often(service: Service) -> None:
    service.node.partition_state = "RECOVERING"
    service.topic("orders", partitions=2)
    for _ in range(100):
        service.loop.run_once()
        service.clock.advance(1)
    passes = service.loop.counters.passes
    for _ in range(100):
        service.loop.run_once()
        service.clock.advance(1)
    assert 5 <= service.loop.counters.passes - passes <= 15


def test_a_pass_that_runs_long_keeps_its_lease_and_is_made_once(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("api.reconcile.loop.RENEW_SECONDS", 0.01)
    through = threading.Event()

    class Slow:
        effects = 0

        def reconcile(self, item: Claim) -> Outcome:
            self.effects += 1
            for _ in range(4):
                service.clock.advance(25)
                wait_until(lambda: _lasts(service, topic), "the lease is renewed")
            through.set()
            return Converged(Observation(1))

        def generation(self, object_id: str) -> int:
            return 1

    service.settle()
    topic = service.topic("orders")
    slow = Slow()
    # The second thread looks for work all the time.
    loop = Loop(service.database, {"topic": slow}, pools=((("topic",), 2),))
    loop.start()
    try:
        assert through.wait(120)
    finally:
        loop.stop()
    assert slow.effects == 1
    assert loop.counters.leases_lost == 0


@pytest.mark.parametrize("attempts", [0, 3, 50])
def test_the_backoff_is_jittered_and_bounded(attempts: int) -> None:
    class Highest:
        def random(self) -> float:
            return 1.0

    most = backoff(attempts, Highest())  # type: ignore[arg-type]
    assert most == min(BACKOFF_MAX, BACKOFF_FIRST * 2 ** min(attempts, 16))


def test_a_condition_keeps_its_time_until_its_status_flips(clock: Clock) -> None:
    first = merge([], [Condition("Ready", "False", "Waiting")], 1, clock())
    clock.advance(10)
    second = merge(first, [Condition("Ready", "False", "StillWaiting")], 1, clock())
    third = merge(second, [Condition("Ready", "True", "Done")], 1, clock())
    found: list[Body] = [first[0], second[0], third[0]]
    times = [each["last_transition_at"] for each in found]
    assert times[0] == times[1] < times[2]


def _lasts(service: Service, topic: Body) -> bool:
    """Whether the lease on a topic ends a whole lease from now."""
    return _work(service, topic).lease_until == service.clock() + LEASE


def _condition(service: Service, topic: Body, type_: str) -> str:
    return str(_observation(service, topic, type_)["status"])


def _reason(service: Service, topic: Body, type_: str) -> str:
    return str(_observation(service, topic, type_)["reason"])


def _observation(service: Service, topic: Body, type_: str) -> Body:
    conditions = service.get(f"/v1/topics/{topic['id']}")["status"]["conditions"]
    return next(each for each in conditions if each["type"] == type_)


def _work(service: Service, topic: Body) -> Work:
    with service.database.read() as session:
        return session.get_one(Work, ("topic", topic["id"]))
