"""Plans of dry runs: which records a shorter retention or a deletion removes, and what more
partitions change.

A shorter retention is planned with the node. A figure that the node did not give in time is the
word `unknown`, and never 0; nothing here fails a dry run. What goes by time is exact for the moment
it was asked, what goes by size an estimate. No node is called about a topic that is paused. A
deletion is planned from the figures of the last observation.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Literal

from pydantic import JsonValue as Json
from sqlalchemy import select
from sqlalchemy.orm import Session

from api.db.database import microseconds
from api.db.tables.holds import LegalHold
from api.db.tables.topics import Topic
from api.http.resource import format_instant
from api.node.addresses import addresses
from api.node.client import NodeClient
from api.node.failure import NodeFailure
from api.node.messages import instant
from api.node.pool import NodePool
from api.reconcile.status import statuses
from api.topics.spec import EffectiveSpec, loses_data, shrinks
from dataplane.wire import node_pb2
from headrace.wire import stream_pb2

DEADLINE_SECONDS: Final = 1.0
HOLDS_NAMED_MAX: Final = 20
UNKNOWN: Final = "unknown"
ANSWERING: Final = ("READY", "SEALED")
WHOLE_SEGMENTS: Final = (
    "Records are deleted in whole segments: some are kept until the newest record of their segment "
    "has expired."
)
BY_SIZE: Final = (
    "The number of records deleted by size is an estimate from the mean record size of each "
    "partition."
)

KEYS_MOVE: Final = (
    "New records of a key may go to another partition than before, so the order of a key's records "
    "is kept before and after the change but not across it."
)
GROUPS_GROW: Final = (
    "Every consumer group of the topic is assigned the new partitions; a group that starts at "
    "latest skips records written to them before the assignment."
)
UNREAD: Final = (
    "A group that has not read them continues at the new start; its consumers get an error, unless "
    "they use on_expired=skip."
)
GROWTH_WARNINGS: Final = (KEYS_MOVE, GROUPS_GROW)

Limit = Literal["age", "promise"]


@dataclass(frozen=True, slots=True)
class Hold:
    """What keeps a partition, or all of them, from an offset on."""

    id: str
    case_id: str
    partition: int | None
    from_offset: int


@dataclass(frozen=True, slots=True)
class Shortening:
    """A change that lets data go, and what was known of the topic when it was planned."""

    topic_id: str
    addresses: tuple[str, ...]
    before: EffectiveSpec
    after: EffectiveSpec
    holds: tuple[Hold, ...]
    now: datetime

    def times(self) -> dict[Limit, int]:
        """What the node is asked for: the moments before which records are too old to be kept, and
        old enough to go by size. Microseconds since 1970."""
        wanted: dict[Limit, int] = {}
        if shrinks(self.before.retention_ms, self.after.retention_ms):
            wanted["age"] = self._before(self.after.retention_ms or 0)
        if self.by_size is not None and self.after.min_retention_ms:
            wanted["promise"] = self._before(self.after.min_retention_ms)
        return wanted

    @property
    def by_size(self) -> int | None:
        """The bytes that a partition keeps from now on, if they are fewer than before."""
        shrunk = shrinks(self.before.retention_bytes, self.after.retention_bytes)
        return self.after.retention_bytes if shrunk else None

    def _before(self, milliseconds: int) -> int:
        return max(0, microseconds(self.now) - milliseconds * 1000)


@dataclass(frozen=True, slots=True)
class Going:
    """What goes of one partition. ``cut``: before which offset the policy lets go; ``held``: how
    many of those records holds keep. Times: of the oldest record
    that goes and of the oldest that stays; None where there is none, or it is unknown."""

    index: int
    records: int
    size: int
    cut: int
    held: int
    oldest_us: int | None
    kept_us: int | None
    is_estimate: bool


def shortening_of(
    session: Session, row: Topic, before: EffectiveSpec, after: EffectiveSpec, now: datetime
) -> Shortening | None:
    """What has to be known before the node is asked; None of a change that lets nothing go."""
    if not loses_data(before, after):
        return None
    query = select(LegalHold).where(LegalHold.topic_id == row.id, LegalHold.state != "RELEASED")
    holds = tuple(
        Hold(each.id, each.case_id, each.partition, each.from_offset or 0)
        for each in session.scalars(query.order_by(LegalHold.id))
    )
    places = () if after.paused else tuple(addresses(session, row.cluster_id))
    return Shortening(row.id, places, before, after, holds, now)


def shortening_plan(nodes: NodePool, change: Shortening) -> dict[str, Json]:
    """The plan of a shorter retention. Asks the node, for some seconds at most."""
    rows = _asked(nodes, change)
    known = [each for each in rows.values() if each is not None]
    losing = [each for each in known if each.records]
    everything = bool(rows) and len(known) == len(rows)
    oldest = min((each.oldest_us for each in losing if each.oldest_us), default=None)
    loss: dict[str, Json] = {
        "records": str(sum(each.records for each in losing)),
        "bytes_estimate": str(sum(each.size for each in losing)),
        "partitions": len(losing),
        "oldest_at": _text(oldest),
    }
    if not everything:
        loss = dict.fromkeys(loss, UNKNOWN)
    keeping = _keeping(change, rows)
    return {
        "data_loss": loss,
        "retention": {
            "partitions": [_row(index, each) for index, each in sorted(rows.items())],
            "holds": [each.id for each in keeping[:HOLDS_NAMED_MAX]],
        },
        "warnings": _warnings(change, rows, keeping),
    }


def _asked(nodes: NodePool, change: Shortening) -> dict[int, Going | None]:
    """By partition what is deleted; None for one without an answer. Empty if no node answered."""
    client = NodeClient(nodes, deadline_seconds=DEADLINE_SECONDS)
    try:
        reply = client.describe(change.addresses[:1], topic_ids=[change.topic_id])
        found = next((each for each in reply.topics if each.topic_id == change.topic_id), None)
        if found is None:
            return {}
        answering = [each for each in found.partitions if each.state in ANSWERING]
        questions = [(each.index, limit) for limit in change.times() for each in answering]
        offsets = client.offsets_at(
            change.addresses[0],
            [
                stream_pb2.ListOffsetsRequest(
                    topic=found.number,
                    created_revision=found.created_revision,
                    partition=index,
                    time_us=change.times()[limit],
                )
                for index, limit in questions
            ],
        )
    except NodeFailure:
        return {}
    answered = dict(zip(questions, offsets, strict=True))
    rows: dict[int, Going | None] = {each.index: None for each in found.partitions}
    for each in answering:
        limits = {limit: answered[each.index, limit] for limit in change.times()}
        rows[each.index] = going_of(change, each, limits)
    return rows


def going_of(
    change: Shortening,
    found: node_pb2.PartitionStatus,
    limits: dict[Limit, stream_pb2.ListOffsetsReply | None],
) -> Going | None:
    """What goes of a partition as it was described; None if a time that counts was not answered."""
    replies = {limit: reply for limit, reply in limits.items() if reply is not None}
    if len(replies) < len(limits):
        return None
    start = max([found.log_start, *(reply.log_start for reply in replies.values())])
    stored = max(0, found.log_end - start)
    age, promise = replies.get("age"), replies.get("promise")
    by_age = age.offset if age is not None else start
    by_size = start
    if change.by_size is not None and found.bytes > change.by_size:
        by_size = start + stored * (found.bytes - change.by_size) // found.bytes
        by_size = min(by_size, promise.offset) if promise is not None else by_size
    cut = max(start, by_age, by_size)
    fence = min((each.from_offset for each in _of(change, found.index)), default=cut)
    records = max(0, min(cut, fence) - start)
    kept = None
    if records == 0:
        kept = found.oldest_us or None
    elif age is not None and age.found and age.offset == start + records:
        kept = age.append_time_us
    return Going(
        index=found.index,
        records=records,
        size=found.bytes * min(records, stored) // max(1, stored),
        cut=cut,
        held=cut - max(start, min(cut, fence)),
        oldest_us=(found.oldest_us or None) if records else None,
        kept_us=kept,
        is_estimate=records > 0 and by_size > by_age,
    )


def _of(change: Shortening, index: int) -> list[Hold]:
    return [each for each in change.holds if each.partition in (None, index)]


def _keeping(change: Shortening, rows: dict[int, Going | None]) -> list[Hold]:
    """The holds that keep some of the records, or may: of a partition without an answer."""

    def keeps(hold: Hold) -> bool:
        mine = [
            each
            for index, each in rows.items()
            if hold.partition is None or hold.partition == index
        ]
        return not rows or any(each is None or _reaches(hold, each) for each in mine)

    return [each for each in change.holds if keeps(each)]


def _reaches(hold: Hold, going: Going) -> bool:
    return going.held > 0 and hold.from_offset < going.cut


def _row(index: int, going: Going | None) -> dict[str, Json]:
    if going is None:
        figures = ("records", "bytes_estimate", "held_records", "oldest_at", "oldest_kept_at")
        return {"index": index, **dict.fromkeys(figures, UNKNOWN)}
    return {
        "index": index,
        "records": str(going.records),
        "bytes_estimate": str(going.size),
        "held_records": str(going.held),
        "oldest_at": _text(going.oldest_us),
        "oldest_kept_at": _text(going.kept_us),
    }


def _warnings(
    change: Shortening, rows: dict[int, Going | None], keeping: Sequence[Hold]
) -> list[Json]:
    known = [each for each in rows.values() if each is not None]
    said: list[Json] = []
    if change.after.paused:
        said.append(
            "The number of records to delete is unknown: the topic is paused, so its node is not "
            "queried."
        )
    elif not rows:
        said.append("The number of records to delete is unknown: no node answered in time.")
    elif len(known) < len(rows):
        silent = f"{len(rows) - len(known)} of {len(rows)} partitions"
        said.append(f"The number of records to delete is unknown: {silent} did not answer in time.")
    if len(known) < len(rows) or not rows or any(each.records for each in known):
        said += [WHOLE_SEGMENTS, UNREAD]
    if any(each.is_estimate for each in known):
        said.append(BY_SIZE)
    if keeping:
        held = sum(each.held for each in known)
        names = ", ".join(f"{each.id} (case {each.case_id})" for each in keeping[:HOLDS_NAMED_MAX])
        more = len(keeping) - HOLDS_NAMED_MAX
        names += f" and {more} more" if more > 0 else ""
        what = f"{held} records" if rows and len(known) == len(rows) else "records"
        said.append(f"Legal holds keep {what} that would otherwise be deleted: {names}.")
    return said


def _text(time_us: int | None) -> str | None:
    return None if time_us is None else format_instant(instant(time_us))


def loss_of(session: Session, rows: Sequence[Topic]) -> dict[str, Json]:
    """The plan of a delete: how much of how many topics goes."""
    found = statuses(session, [row.id for row in rows])
    partitions = [
        each
        for status in found.values()
        for each in _list(status.detail.get("partitions"))
        if isinstance(each, dict)
    ]
    size = sum(int(str(each["bytes"])) for each in partitions)
    records = sum(
        int(str(each["end_offset"])) - int(str(each["start_offset"])) for each in partitions
    )
    return {
        "topics": len(rows),
        "data_loss": {"bytes": str(size), "records": str(records)},
        "warnings": [],
    }


def growth_of(before: int, after: int) -> dict[str, Json] | None:
    """The plan of a patch that adds partitions; None for any other."""
    if after <= before:
        return None
    return {
        "partitions": {"before": before, "after": after},
        "warnings": list(GROWTH_WARNINGS),
    }


def together(first: Mapping[str, Json], second: Mapping[str, Json]) -> dict[str, Json]:
    """One plan of two; both may warn."""
    warnings = [*_list(first.get("warnings")), *_list(second.get("warnings"))]
    return {**first, **second, "warnings": warnings}


def _list(value: Json | None) -> list[Json]:
    return value if isinstance(value, list) else []
