"""One node: builds every part, starts them in order, drains them.

Owns the order. Start: the engine recovers its shards, the metadata log is replayed, the cluster
gets its name (once), groups and evidence begin, the HTTP port opens, and only then one line of JSON
on stdout says so. End: no new calls, sessions ended, calls finished, windows closed and published,
engine stopped. Every step has a time limit. Refuses to go on after a defect: a failed shard or
machine ends the process, and the journal decides what was done.
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Final, NamedTuple

from dataplane.coordinator.handover import Handover
from dataplane.data_dir import (
    NodeUnusable,
    Spools,
    open_boot,
    read_incarnation,
)
from dataplane.engine.frames import Kind
from dataplane.engine.partition_client import PartitionClient
from dataplane.engine.ring import Ring
from dataplane.engine.rpc import Access, Bridge, Method, bidirectional, unary
from dataplane.errors import Refused
from dataplane.evidence.channel import RETENTION, USAGE, Channel
from dataplane.evidence.counters import Counters
from dataplane.evidence.inventory import Inventory
from dataplane.evidence.publisher import EvidencePublisher
from dataplane.evidence.spool import Spool
from dataplane.metadata.replica import MetadataReplica
from dataplane.observability import host_metrics
from dataplane.observability.node_status import Conditions, NodeStatus
from dataplane.observability.telemetry import Telemetry
from dataplane.services.admin import AdminService
from dataplane.services.cluster import ClusterService
from dataplane.services.groups import GroupService
from dataplane.services.reflection import (
    PATHS,
    ReflectionService,
    catalogue_of_node,
)
from dataplane.settings import NodeSettings
from dataplane.wire import node_pb2 as node
from dataplane.wire import reflection_pb2 as reflection
from dataplane.workflows.delete_topic import DeleteTopicWorkflow
from dataplane.workflows.legal_holds import LegalHoldWorkflow
from dataplane.workflows.purge import PurgeWorkflow
from headrace.wire import stream_pb2 as stream
from native.engine import Engine, EngineError, Frame

BEAT_S: Final = 1.0
BOOTSTRAP_RETRY_S: Final = 0.1

log = logging.getLogger("dataplane.node")


class NodeFailed(Exception):
    """A part of the node failed while it ran; the process must end."""


class Ready(NamedTuple):
    """Where a node serves."""

    grpc_port: int
    http_port: int


class Node:
    """One running node: every part, wired."""

    def __init__(
        self,
        settings: NodeSettings,
        engine: Engine,
        spools: Spools,
        tasks: asyncio.TaskGroup,
        announce: Callable[[Ready], None],
    ) -> None:
        self._announce = announce
        self._settings = settings
        self._engine = engine
        self._tasks = tasks
        self._background: list[asyncio.Task[None]] = []
        self._failure: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._ready = False
        self._ring = Ring(engine)
        self._partitions = PartitionClient(self._ring, shards=settings.node.shards)
        self._ring.handle((Kind.STOPPED,), self._on_stopped)
        self._ring.handle_failure(self._fail)
        self._replica = MetadataReplica(self._ring, self._fail)
        boot = open_boot(settings.node.data_dir)
        self._counters = Counters(self._ring, boot, node_id=settings.node.node_id)
        self._usage = self._publisher(spools.usage, USAGE, self._counters)
        self._retention = self._publisher(spools.retention, RETENTION)
        self._inventory = Inventory(self._partitions, reading=self._replica.reading)
        self._handover = Handover(self._partitions, self._replica)
        self._groups = GroupService(
            self._replica, self._handover, tasks, clock=asyncio.get_running_loop().time
        )
        self._replica.handle_group_changes(self._groups.group_changed)
        self._deletion = DeleteTopicWorkflow(
            self._partitions, self._replica, self._usage, tasks, retention=self._retention
        )
        self._replica.handle_closing_topics(self._topic_closing)
        self._legal_holds = LegalHoldWorkflow(self._partitions, self._replica, tasks)
        self._replica.handle_held_topics(self._legal_holds.topic_held)
        self._conditions = Conditions(engine.metric_total)
        self._admin = self._make_admin()

    def _make_admin(self) -> AdminService:
        section = self._settings.node
        status = NodeStatus(section.shards, total=self._engine.metric_total, warning=self._warning)
        return AdminService(
            self._ring,
            self._partitions,
            self._replica,
            self._usage,
            self._inventory,
            node_id=section.node_id,
            incarnation=read_incarnation(section.data_dir),
            status=status.message,
        )

    def _topic_closing(self, number: int) -> None:
        self._remember(number)
        self._deletion.topic_closing(number)

    def _remember(self, number: int) -> None:
        """What the topic is called, before it is gone."""
        with self._replica.reading() as state:
            topic = state.topic_numbered(number)
        if topic is not None:
            self._counters.remember(topic)

    def _remember_closing(self) -> None:
        with self._replica.reading() as state:
            closing = [topic.number for topic in state.topics_by_number() if topic.is_closing()]
        for number in closing:
            self._remember(number)

    def _publisher(
        self, spool: Spool, channel: Channel, counters: Counters | None = None
    ) -> EvidencePublisher:
        return EvidencePublisher(
            self._ring,
            self._partitions,
            spool,
            reading=self._replica.reading,
            channel=channel,
            counters=counters,
        )

    async def serve(self, stop: asyncio.Event) -> bool:
        """Start, serve until `stop`, drain. True if everything ended within its time."""
        try:
            address = self._start_engine()
            bridge = Bridge(self._ring, self._methods(address), self._tasks)
            telemetry = self._telemetry(bridge)
            self._replica.start()
            self._ring.open(asyncio.get_running_loop())
            self._spawn(self._beat())
            await self._unless_failed(self._replica.recovered.wait())
            self._usage.check_spool()
            self._retention.check_spool()
            await self._unless_failed(self._bootstrap(address))
            self._groups.start()
            self._spawn(self._groups.run())
            self._spawn(self._usage.run())
            self._spawn(self._retention.run())
            self._spawn(self._inventory.run())
            self._remember_closing()
            self._deletion.start()
            self._legal_holds.start()
            self._spawn(self._conditions.run())
            http_port = await self._open_http(telemetry)
            self._ready = True
            self._say_ready(http_port)
            await self._unless_failed(stop.wait())
            self._ready = False
            drained = await self._drain(bridge)
            await telemetry.close()
            return drained
        finally:
            for task in self._background:
                task.cancel()
            self._groups.stop()
            self._deletion.stop()
            self._legal_holds.stop()
            self._ring.close()
            await asyncio.to_thread(self._replica.stop)

    # ---- start ----

    def _start_engine(self) -> str:
        try:
            self._engine.start()
        except EngineError as error:
            raise NodeUnusable(f"the node cannot serve: {error}") from error
        return self._settings.node.address(self._engine.port)

    async def _bootstrap(self, address: str) -> None:
        """Give the cluster its name, once; later starts only repeat the address."""
        section = self._settings.node
        with self._replica.reading() as state:
            known = state.nodes.get(section.node_id)
            if known is not None and known.address == address:
                return
        command = node.Command(
            bootstrap=node.Bootstrap(
                cluster_id=section.cluster_id,
                system_organization_id=section.system_organization_id,
                system_project_id=section.system_project_id,
                node_id=section.node_id,
                address=address,
            )
        )
        while True:
            try:
                await self._replica.submit(command)
                return
            except Refused as refusal:
                if refusal.code == "ALREADY_BOOTSTRAPPED":
                    raise NodeUnusable(refusal.message) from refusal
                log.warning("the cluster has no name yet: %s", refusal)
            except TimeoutError:
                log.warning("the cluster has no name yet: the metadata log does not answer")
            await asyncio.sleep(BOOTSTRAP_RETRY_S)

    async def _open_http(self, telemetry: Telemetry) -> int:
        section = self._settings.node
        try:
            return await telemetry.start(section.host, section.http_port)
        except OSError as error:
            raise NodeUnusable(
                f"cannot listen on {section.host}:{section.http_port} (node.http_port): "
                f"{error.strerror}"
            ) from error

    def _say_ready(self, http_port: int) -> None:
        try:
            self._announce(Ready(self._engine.port, http_port))
        except OSError as error:
            # The reader is gone, or writes to a full disk: clients are served all the same.
            log.warning("the ready line could not be written: %s", error.strerror)
        log.info("serving gRPC on port %d, HTTP on port %d", self._engine.port, http_port)

    def _methods(self, address: str) -> dict[str, Method]:
        cluster = ClusterService(
            reading=self._replica.reading,
            node_id=self._settings.node.node_id,
            address=address,
        )
        groups, admin = self._groups, self._admin
        reflected = bidirectional(
            reflection.ServerReflectionRequest,
            ReflectionService(catalogue_of_node()).info,
            access=Access.ANY_KEY,
        )
        purge = PurgeWorkflow(self._partitions, self._replica)
        return {
            **dict.fromkeys(PATHS, reflected),
            "/headrace.stream.v1.Cluster/Describe": unary(
                stream.DescribeRequest, cluster.describe, access=Access.ANY_KEY
            ),
            "/headrace.stream.v1.Groups/Session": bidirectional(
                stream.SessionRequest, groups.session, access=Access.CONSUME
            ),
            "/headrace.stream.v1.Groups/DescribeGroup": unary(
                stream.DescribeGroupRequest, groups.describe_group, access=Access.CONSUME
            ),
            "/headrace.stream.v1.Groups/ListGroups": unary(
                stream.ListGroupsRequest, groups.list_groups, access=Access.CONSUME
            ),
            "/headrace.node.v1.Admin/Apply": unary(
                node.ApplyRequest, admin.apply, access=Access.NODE_KEY
            ),
            "/headrace.node.v1.Admin/Describe": unary(
                node.DescribeRequest, admin.describe, access=Access.NODE_KEY
            ),
            "/headrace.node.v1.Admin/Purge": unary(
                node.PurgeRequest, purge.purge, access=Access.NODE_KEY
            ),
            "/headrace.node.v1.Admin/FlushUsage": unary(
                node.FlushUsageRequest, admin.flush_usage, access=Access.NODE_KEY
            ),
            "/headrace.node.v1.Admin/ConfirmClock": unary(
                node.ConfirmClockRequest, admin.confirm_clock, access=Access.NODE_KEY
            ),
        }

    def _telemetry(self, bridge: Bridge) -> Telemetry:
        return Telemetry(
            (
                *host_metrics.of_calls(self._ring, bridge),
                *host_metrics.of_groups(self._replica, self._groups, self._handover),
                *host_metrics.of_usage(self._usage, self._counters),
                *host_metrics.of_retention(self._retention, self._inventory),
                *host_metrics.of_deletions(self._deletion),
                *host_metrics.of_holds(self._legal_holds),
            ),
            engine_metrics=self._engine.metrics,
            ready=lambda: self._ready,
            warning=self._warning,
        )

    def _warning(self) -> str:
        warnings = (self._replica.warning(), self._conditions.warning())
        return "; ".join(found for found in warnings if found)

    # ---- start and stop ----

    def _spawn(self, work: Coroutine[None, None, None]) -> None:
        self._background.append(self._tasks.create_task(work))

    async def _beat(self) -> None:
        """Tell every shard that the host is alive; without beats health says NOT_SERVING."""
        while True:
            self._ring.post(Frame(Kind.HOST_BEAT))
            await asyncio.sleep(BEAT_S)

    def _on_stopped(self, frame: Frame) -> None:
        self._fail(NodeFailed(f"a shard failed: {EngineError(-frame.arg1, '')}"))

    def _fail(self, error: BaseException) -> None:
        if not self._failure.done():
            self._failure.set_exception(error)

    async def _unless_failed(self, work: Coroutine[object, object, object]) -> None:
        """Wait for `work`, or raise what ended the node."""
        task = asyncio.ensure_future(work)
        try:
            await asyncio.wait((task, self._failure), return_when=asyncio.FIRST_COMPLETED)
            if self._failure.done():
                self._failure.result()
            await task
        finally:
            task.cancel()

    # ---- end ----

    async def _drain(self, bridge: Bridge) -> bool:
        """End everything in order. What does not end in its time is left to the journal."""
        log.info("draining")
        total_s = self._settings.node.drain_seconds
        self._groups.drain()
        calls_done = await bridge.drain(total_s / 4)
        usage_done = await self._drain_usage(total_s / 4)
        self._usage.stop_publishing()
        self._retention.stop_publishing()
        engine_done = await asyncio.to_thread(self._engine.stop, int(total_s * 3 / 8 * 1000))
        last_done = await self._spool_last(total_s / 8)
        log.info(
            "drained: calls %s, usage %s, engine %s, last counters %s",
            calls_done,
            usage_done,
            engine_done,
            last_done,
        )
        return engine_done

    async def _drain_usage(self, timeout_s: float) -> bool:
        """Close the open windows and publish them; the spool keeps the rest for the next start."""
        try:
            async with asyncio.timeout(timeout_s):
                await self._admin.flush_everything(timeout_s)
                await self._usage.wait_idle()
                await self._retention.wait_idle()
        except TimeoutError:
            return False
        return True

    async def _spool_last(self, timeout_s: float) -> bool:
        """What the shards said as they stopped: durable here, published by the next start."""
        self._ring.drain()
        try:
            async with asyncio.timeout(timeout_s):
                await self._usage.wait_spooled()
        except TimeoutError:
            return False
        return True
