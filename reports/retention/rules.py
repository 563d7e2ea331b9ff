"""The seven rules of retention, each with its reason in words.

Owns the judgement of one partition, from its figures alone: pure, no Spark, no clock. A rule says
nothing where it does not know (a partition without an inventory, a group that never committed).
Refuses to excuse: what a hold keeps is not OVER_RETAINED, everything else is reported.

Segments go whole, and only when their youngest record may go. So bytes that outlived their policy
by no more than one segment (and the batch that crossed its end) are what the policy promises; a log
that holds more of them, or nothing else, should have let some go.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from reports.retention.export import UNLIMITED, Policy
from reports.retention.figures import GRACE_US
from reports.retention.offsets import Commit

OVER_RETAINED = "OVER_RETAINED"
UNDER_RETAINED = "UNDER_RETAINED"
POLICY_MISMATCH = "POLICY_MISMATCH"
UNBOUNDED = "UNBOUNDED"
CLOCK_SKEW = "CLOCK_SKEW"
UNREAD_DELETED = "UNREAD_DELETED"
UNREAD_AT_RISK = "UNREAD_AT_RISK"

RULES: Mapping[str, str] = {
    OVER_RETAINED: (
        "More than one segment of data is older than the policy allows, by more than five minutes, "
        "and no legal hold keeps it. A segment is deleted once its youngest record is due, so up "
        "to one segment of older records is normal. A policy is evaluated five minutes after its "
        "last change."
    ),
    UNDER_RETAINED: (
        "A record was deleted before it reached the age that the policy in effect guarantees: the "
        "minimum age for deletion by size, the retention age for deletion by time. Purges are "
        "requested and never counted."
    ),
    POLICY_MISMATCH: (
        "More than five minutes after the last change, the node applies other limits than the "
        "control plane specifies."
    ),
    UNBOUNDED: "Neither age nor size limits the topic: nothing is ever deleted.",
    CLOCK_SKEW: (
        "Records are dated more than five minutes in the future, or were deleted before the time "
        "of their append. Their age and expiry cannot be trusted."
    ),
    UNREAD_DELETED: (
        "The committed offset of a group is before the log start: the group will never read the "
        "records in between."
    ),
    UNREAD_AT_RISK: (
        "Records that a group has not read yet are due for deletion within the next 24 hours."
    ),
}


@dataclass(frozen=True, slots=True)
class Seen:
    """What the last inventory of a partition says, as the node had it at `at_us`."""

    at_us: int
    retention_ms: int
    retention_bytes: int
    retention_ms_min: int
    newest_us: int


@dataclass(frozen=True, slots=True)
class Standing:
    """One partition as the rules look at it; the figures are those of figures.logs."""

    policy: Policy | None
    """None: the control plane does not know the topic."""
    live_bytes: int
    largest_batch: int
    expired_bytes: int
    aged_bytes: int
    held_bytes: int
    future_bytes: int
    log_start: int
    log_end: int
    end_due_24h: int
    as_of_us: int
    seen: Seen | None = None
    commits: Sequence[Commit] = ()


@dataclass(frozen=True, slots=True)
class Violation:
    """One rule that one partition breaks; `detail` names the figures."""

    code: str
    detail: str
    group: str = ""


def violations_of(standing: Standing) -> list[Violation]:
    """Every rule that the partition breaks now, in the order of RULES."""
    found: list[Violation] = []
    if standing.policy is not None:
        found += _over_retained(standing, standing.policy)
        found += _mismatch(standing, standing.policy)
        if not standing.policy.bounded:
            found.append(Violation(UNBOUNDED, f"{standing.live_bytes:,} bytes stored"))
    found += _skew(standing)
    found += _unread(standing)
    return found


def _over_retained(standing: Standing, policy: Policy) -> list[Violation]:
    if standing.as_of_us < policy.changed_us + GRACE_US:
        return []  # What a new policy no longer keeps has its time to go.
    segment = policy.segment_bytes + standing.largest_batch
    expired = standing.expired_bytes
    all_of_it = expired > 0 and expired == standing.live_bytes
    if policy.retention_ms != UNLIMITED and (expired > segment or all_of_it):
        words = f"{expired:,} bytes are older than {policy.retention_ms} ms"
        return [Violation(OVER_RETAINED, f"{words}; a segment has at most {segment:,}")]
    if policy.retention_bytes == UNLIMITED:
        return []
    beyond = standing.live_bytes - policy.retention_bytes
    if beyond > segment and standing.aged_bytes > segment:
        words = f"{beyond:,} bytes beyond {policy.retention_bytes:,}"
        return [Violation(OVER_RETAINED, f"{words}; a segment has at most {segment:,}")]
    return []


def _mismatch(standing: Standing, policy: Policy) -> list[Violation]:
    seen = standing.seen
    if seen is None or seen.at_us < policy.changed_us + GRACE_US:
        return []
    pairs = (
        ("retention_ms", seen.retention_ms, policy.retention_ms),
        ("retention_bytes", seen.retention_bytes, policy.retention_bytes),
        ("min_retention_ms", seen.retention_ms_min, policy.min_retention_ms),
    )
    wrong = [f"{name} {node}, not {desired}" for name, node, desired in pairs if node != desired]
    return [Violation(POLICY_MISMATCH, f"the node has {'; '.join(wrong)}")] if wrong else []


def _skew(standing: Standing) -> list[Violation]:
    seen = standing.seen
    if standing.future_bytes > 0:
        return [Violation(CLOCK_SKEW, f"{standing.future_bytes:,} bytes are dated in the future")]
    if seen is not None and seen.newest_us > seen.at_us + GRACE_US:
        ahead_s = (seen.newest_us - seen.at_us) // 1_000_000
        return [Violation(CLOCK_SKEW, f"the newest record was {ahead_s} s ahead of its inventory")]
    return []


def _unread(standing: Standing) -> list[Violation]:
    found = []
    for commit in standing.commits:
        gone = standing.log_start - commit.offset
        if gone > 0:
            words = f"{gone:,} records before offset {standing.log_start}"
            found.append(Violation(UNREAD_DELETED, words, commit.group))
    for commit in standing.commits:
        due = standing.end_due_24h - max(commit.offset, standing.log_start)
        if due > 0:
            words = f"{due:,} records before offset {standing.end_due_24h}"
            found.append(Violation(UNREAD_AT_RISK, words, commit.group))
    return found
