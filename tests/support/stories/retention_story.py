"""A retention report to look at: what a run would say of topics that live, lose and break rules.

Owns entries of `topics` in retention.json and lines of retention.csv that fit each other. Refuses
chance: the same arguments tell the same story.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

AGES = (
    "<1h", "1-6h", "6-24h", "1-7d", "7-30d", "30-90d", "90-365d", ">365d", "future", "unknown",
)  # fmt: skip
HORIZONS = ("now", "1h", "24h", "7d")
CAUSES = ("time", "size", "purge")


@dataclass(frozen=True, slots=True)
class Told:
    """The figures of a topic. ages: stored bytes by bucket; gone: deleted bytes by cause for each
    of the last days, today last; due: bytes to be deleted on each of the next days, today first.
    """

    topic: str
    topic_id: str
    ages: Sequence[int]
    gone: Sequence[Mapping[str, int]] = ()
    due: Sequence[int] = ()
    blocked: int = 0
    violations: Sequence[Mapping[str, str | None]] = ()
    policy: Mapping[str, str] = field(default_factory=dict)

    def entry(self, as_of: datetime) -> dict[str, object]:
        """The entry of retention.json."""
        live = str(sum(self.ages))
        policy = {
            "generation": "1", "changed_at": text(as_of - timedelta(days=40)), "by": "key_owner",
            "retention_ms": "604800000", "retention_bytes": "-1", "min_retention_ms": "0",
            "sources": {"retention_ms": "topic", "retention_bytes": "default"}, **self.policy,
        }  # fmt: skip
        first = {**policy, "generation": "0", "by": "key_first"}
        return {
            "topic": self.topic,
            "topic_id": self.topic_id,
            "exists": True,
            "policy": policy,
            "history": [first, policy],
            "partitions": "2",
            "live_bytes": live,
            "live_records": str(sum(self.ages) // 200),
            "held_bytes": str(self.blocked),
            "hold_blocked_bytes": str(self.blocked),
            "oldest_at": text(as_of - timedelta(days=6, hours=23)),
            "newest_at": text(as_of),
            "deleted": [self._deleted(cause) for cause in CAUSES if self._gone(cause)],
            "ranges": [],
            "upcoming": {
                name: {"bytes": str(sum(self.due[:days])), "records": "0", "oldest_after": None}
                for name, days in zip(HORIZONS, (0, 0, 1, 7), strict=True)
            },
            "ages": [
                {"bucket": bucket, "bytes": str(size), "records": str(size // 200)}
                for bucket, size in zip(AGES, self.ages, strict=True)
            ],
            "schedule": [
                {"day": day, "bytes": str(size), "records": str(size // 200)}
                for day, size in enumerate(self.due)
            ],
            "holds": [],
            "violations": list(self.violations),
        }

    def rows(self, as_of: datetime) -> list[dict[str, str]]:
        """The rows of retention.csv: one for each day and cause, and one for the stored data."""
        trims = [
            self._row(
                cause=cause,
                deleted_bytes=str(size),
                deleted_records=str(size // 200),
                deleted_at=text(as_of - timedelta(days=len(self.gone) - 1 - day)),
                age_at_deletion_ms="604800000",
            )
            for day, causes in enumerate(self.gone)
            for cause, size in causes.items()
        ]
        return [*trims, self._row(live_bytes=str(sum(self.ages)))]

    def _row(self, **cells: str) -> dict[str, str]:
        return {
            "topic": self.topic, "topic_id": self.topic_id, "partition": "0",
            "policy_source": "topic", "retention_ms": "604800000", "retention_bytes": "-1",
            "live_bytes": "0", "oldest_at": "", "deleted_bytes": "0", "deleted_records": "0",
            "first_offset": "0", "last_offset": "9", "cause": "", "deleted_at": "",
            "age_at_deletion_ms": "", "next_deletion_at": "", "hold_id": "", "violation": "",
            **cells,
        }  # fmt: skip

    def _gone(self, cause: str) -> int:
        return sum(day.get(cause, 0) for day in self.gone)

    def _deleted(self, cause: str) -> dict[str, object]:
        size = self._gone(cause)
        return {
            "cause": cause,
            "trims": str(sum(cause in day for day in self.gone)),
            "bytes": str(size),
            "records": str(size // 200),
            "oldest_at": None,
            "newest_at": None,
            "age_min_ms": "604800000",
            "age_p50_ms": "606000000",
            "age_max_ms": "612000000",
        }


def text(moment: datetime) -> str:
    """RFC 3339 to the microsecond."""
    return f"{moment:%Y-%m-%dT%H:%M:%S.%fZ}"
