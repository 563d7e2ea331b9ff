"""The loop: claim what is due, look at it, record what was found, decide when to look again.

One bad object never stops the others: a pass that raises is caught here, counted, and backed off.
A lease is renewed for as long as its pass really runs. A pass that lost its lease is discarded:
its status, its operations, everything; and the nodes refuse its commands by the fence.
"""

import os
import random
import secrets
import socket
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from typing import Final, Protocol

import structlog
from sqlalchemy.orm import Session

from api.db.database import Database
from api.db.tables.work import ResourceStatus
from api.node.failure import FailureKind, NodeFailure
from api.reconcile.backoff import backoff
from api.reconcile.commands import DETAIL, with_commands
from api.reconcile.conditions import merge
from api.reconcile.failures import failure_conditions
from api.reconcile.notify import Listener
from api.reconcile.operations import fail_operations, settle_operations
from api.reconcile.outcome import Converged, Failed, Outcome, RequeueAfter
from api.reconcile.queue import Claim, claim, finish, renew, spread_all
from api.reconcile.status import write_status

RESYNC: Final = timedelta(minutes=10)
RESYNC_JITTER: Final = 0.2
PARKED: Final = timedelta(seconds=1)
POLL_SECONDS: Final = 1.0
RENEW_SECONDS: Final = 10.0
START_SPREAD: Final = timedelta(seconds=2)

log = structlog.get_logger()


class Reconciler(Protocol):
    """One kind of object."""

    def reconcile(self, item: Claim) -> Outcome:
        """One pass over one object; may raise :class:`NodeFailure`."""

    def generation(self, object_id: str) -> int:
        """The object's present generation."""


@dataclass(slots=True)
class Counters:
    """What the loop did since it started."""

    passes: int = 0
    failures: int = 0
    leases_lost: int = 0
    exceptions: int = 0


@dataclass(slots=True)
class _Held:
    """The claims that passes of this process hold right now."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    claims: set[Claim] = field(default_factory=set)


class Loop:
    """Workers over the queue.

    :param pools: for each pool, the kinds it serves and how many threads it has.
    """

    def __init__(
        self,
        database: Database,
        reconcilers: Mapping[str, Reconciler],
        *,
        pools: Sequence[tuple[Sequence[str], int]] = (),
        dice: random.Random | None = None,
    ) -> None:
        self.counters = Counters()
        self._database = database
        self._reconcilers = reconcilers
        self._pools = pools
        self._dice = dice or random.Random()
        self._owner = f"{socket.gethostname()[:40]}-{os.getpid()}-{secrets.token_hex(4)}"
        self._held = _Held()
        self._stop = threading.Event()
        self._threads: list[threading.Thread] = []
        self._listener = Listener(database)

    def start(self) -> None:
        """Starts the threads, after making everything due soon: what changed while no worker
        ran is found now and not at the next resync."""
        with self._database.write() as session:
            spread_all(session, self._database.now(session), START_SPREAD, self._dice)
        for kinds, count in self._pools:
            for number in range(count):
                # One thread of several stays free for the objects of other organizations.
                name = f"reconcile-{kinds[0]}-{number}"
                self._spawn(name, partial(self._work, kinds, max(1, count - 1)))
        self._spawn("reconcile-renew", self._renew)
        self._listener.start()

    def stop(self) -> None:
        """Lets every pass end and returns when all threads have."""
        self._stop.set()
        self._database.wake_workers()
        for thread in self._threads:
            thread.join()
        self._threads.clear()
        self._listener.stop()

    def run_once(self, kinds: Sequence[str] | None = None, in_flight_max: int | None = None) -> int:
        """Claims one due object and looks at it; how many there were, 0 or 1."""
        chosen = tuple(kinds or self._reconcilers)
        with self._database.write() as session:
            now = self._database.now(session)
            claims = claim(
                session, kinds=chosen, owner=self._owner, now=now, in_flight_max=in_flight_max
            )
        for item in claims:
            self.run(item)
        return len(claims)

    def run(self, item: Claim) -> bool:
        """One pass over a claimed object; False if its lease was lost meanwhile."""
        with self._holding(item), structlog.contextvars.bound_contextvars(object_id=item.object_id):
            outcome = self._pass(item)
            return self._record(item, outcome)

    def renew_held(self) -> None:
        """Extends the lease of every pass that runs."""
        with self._held.lock:
            held = tuple(self._held.claims)
        if not held:
            return
        with self._database.write() as session:
            now = self._database.now(session)
            ordered = sorted(held, key=lambda each: (each.kind, each.object_id))
            lost = [item for item in ordered if not renew(session, item, now)]
        with self._held.lock:
            # A pass that ended meanwhile gave its lease back: it has not lost it.
            lost = [item for item in lost if item in self._held.claims]
        for item in lost:
            log.warning("lease_lost", object_id=item.object_id, kind=item.kind)

    def _pass(self, item: Claim) -> Outcome:
        self.counters.passes += 1
        reconciler = self._reconcilers[item.kind]
        try:
            return reconciler.reconcile(item)
        except NodeFailure as failure:
            self.counters.failures += 1
            return self._failed(reconciler, item, failure)
        except Exception as error:
            self.counters.exceptions += 1
            log.error("pass_raised", kind=item.kind, exc_info=error)
            message = f"The pass raised {type(error).__name__}."
            raised = NodeFailure(FailureKind.TRANSIENT, "INTERNAL", message)
            return self._failed(reconciler, item, raised)

    def _failed(self, reconciler: Reconciler, item: Claim, failure: NodeFailure) -> Failed:
        try:
            generation = reconciler.generation(item.object_id)
        except LookupError:
            generation = item.requested_generation
        return Failed(failure.kind, failure.code, failure.message, generation, after=failure.after)

    def _record(self, item: Claim, outcome: Outcome) -> bool:
        with self._database.write() as session:
            now = self._database.now(session)
            if not self._finish(session, item, outcome, now):
                self.counters.leases_lost += 1
                log.warning("lease_lost", kind=item.kind)
                return False
            status = session.get(ResourceStatus, item.object_id)
            previous = status.conditions if status else []
            detail = dict(status.detail) if status else {}
            if isinstance(outcome, Failed):
                generation = outcome.observed_generation
                found = failure_conditions(previous, outcome, now)
            else:
                generation = outcome.observation.observed_generation
                found = outcome.observation.conditions
                detail.update(outcome.observation.detail)
                if outcome.observation.commands:
                    detail[DETAIL] = with_commands(
                        detail.get(DETAIL), outcome.observation.commands, now
                    )
            write_status(
                session,
                item.object_id,
                observed_generation=generation,
                conditions=merge(previous, found, generation, now),
                detail=detail,
                now=now,
            )
            if isinstance(outcome, Converged):
                if outcome.observation.ended is not None:
                    ended = dict(outcome.observation.ended)
                    fail_operations(session, item.object_id, ended, now, generation=generation)
                if outcome.observation.ready:
                    settle_operations(session, item.object_id, generation, now)
        return True

    def _finish(self, session: Session, item: Claim, outcome: Outcome, now: datetime) -> bool:
        after, attempts = self._next(item, outcome)
        error = None
        if isinstance(outcome, Failed):
            error = f"{outcome.code}: {outcome.message}"
        elif isinstance(outcome, RequeueAfter):
            error = outcome.reason
        final = isinstance(outcome, Converged) and outcome.final
        finished = finish(
            session, item, now=now, after=after, attempts=attempts, error=error, final=final
        )
        # Before the commit: a worker that finds the lease returned finds no pass that holds it.
        self._let_go(item)
        return finished

    def _next(self, item: Claim, outcome: Outcome) -> tuple[timedelta, int]:
        """After how long the object is due again, and its count of failures."""
        if isinstance(outcome, Converged):
            return self._jittered(RESYNC), 0
        if isinstance(outcome, RequeueAfter):
            return outcome.after, 0
        match outcome.kind:
            case FailureKind.UNREACHABLE:
                return self._jittered(PARKED), item.attempts
            case FailureKind.INVALID:
                return self._jittered(RESYNC), item.attempts + 1
            case FailureKind.CONFLICT if item.attempts == 0:
                return timedelta(0), 1
            case FailureKind.THROTTLED if outcome.after is not None:
                return outcome.after, item.attempts + 1
        return backoff(item.attempts, self._dice), item.attempts + 1

    def _jittered(self, period: timedelta) -> timedelta:
        return period * (1 + RESYNC_JITTER * (2 * self._dice.random() - 1))

    @contextmanager
    def _holding(self, item: Claim) -> Iterator[None]:
        with self._held.lock:
            self._held.claims.add(item)
        try:
            yield
        finally:
            self._let_go(item)

    def _let_go(self, item: Claim) -> None:
        with self._held.lock:
            self._held.claims.discard(item)

    def _spawn(self, name: str, target: Callable[[], None]) -> None:
        thread = threading.Thread(target=target, name=name, daemon=True)
        thread.start()
        self._threads.append(thread)

    def _work(self, kinds: Sequence[str], in_flight_max: int) -> None:
        while not self._stop.is_set():
            seen = self._database.wakes
            try:
                if self.run_once(kinds, in_flight_max):
                    continue
            except Exception as error:
                log.error("loop_raised", exc_info=error)
            self._database.wait_for_work(seen, POLL_SECONDS * (0.8 + 0.4 * self._dice.random()))

    def _renew(self) -> None:
        while not self._stop.wait(RENEW_SECONDS):
            try:
                self.renew_held()
            except Exception as error:
                log.error("renew_raised", exc_info=error)
