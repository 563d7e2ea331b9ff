"""A topic's spec with its defaults: pure. What the user did not set is decided here, in one
place."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from pydantic import JsonValue as Json

SEGMENT_BYTES_MIN: Final = 1 << 20
SEGMENT_BYTES_MAX: Final = 1 << 30
LIMITS: Final = ("retention_ms", "retention_bytes")
DAY_MS: Final = 24 * 60 * 60 * 1000


@dataclass(frozen=True, slots=True)
class EffectiveSpec:
    """Every choice made. ``None`` is unlimited; times in milliseconds, sizes in bytes."""

    partitions: int = 1
    replication_factor: int = 1
    retention_ms: int | None = 7 * DAY_MS
    retention_bytes: int | None = None
    min_retention_ms: int = 0
    segment_bytes: int = 128 << 20
    codec: str = "none"
    max_message_bytes: int = 1 << 20
    deletion_protection: bool = False
    paused: bool = False
    managed: bool = True


DEFAULTS: Final = EffectiveSpec()


def effective(spec: Mapping[str, Json]) -> EffectiveSpec:
    """The stored spec with defaults for what it leaves out. A limit of 0, which an earlier release
    took, is none: so nodes have always kept it."""
    return EffectiveSpec(
        partitions=_number(spec, "partitions", DEFAULTS.partitions),
        replication_factor=_number(spec, "replication_factor", DEFAULTS.replication_factor),
        retention_ms=_limit(spec, "retention_ms", DEFAULTS.retention_ms),
        retention_bytes=_limit(spec, "retention_bytes", DEFAULTS.retention_bytes),
        min_retention_ms=_number(spec, "min_retention_ms", DEFAULTS.min_retention_ms),
        segment_bytes=_number(spec, "segment_bytes", DEFAULTS.segment_bytes),
        codec=str(spec.get("codec", DEFAULTS.codec)),
        max_message_bytes=_number(spec, "max_message_bytes", DEFAULTS.max_message_bytes),
        deletion_protection=_choice(spec, "deletion_protection", DEFAULTS.deletion_protection),
        paused=_choice(spec, "paused", DEFAULTS.paused),
        managed=_choice(spec, "managed", DEFAULTS.managed),
    )


def in_words_of_today(spec: Mapping[str, Json]) -> dict[str, Json]:
    """A stored spec as it would be given now. An earlier release took a limit of 0, which nodes
    have always kept as no limit at all."""
    zeros = {name: "unlimited" for name in LIMITS if str(spec.get(name)) == "0"}
    return {**spec, **zeros}


def loses_data(before: EffectiveSpec, after: EffectiveSpec) -> bool:
    """Whether the change lets data go that would have stayed."""
    return shrinks(before.retention_ms, after.retention_ms) or shrinks(
        before.retention_bytes, after.retention_bytes
    )


def only_ours(before: Mapping[str, Json], after: Mapping[str, Json]) -> bool:
    """Whether a change is of members alone that are sent to no node."""
    sent = [
        replace(effective(each), paused=False, managed=True, deletion_protection=False)
        for each in (before, after)
    ]
    return sent[0] == sent[1]


def shrinks(before: int | None, after: int | None) -> bool:
    """Whether a limit is stricter than it was; None is unlimited."""
    return after is not None and (before is None or after < before)


def _number(spec: Mapping[str, Json], name: str, default: int) -> int:
    value = spec.get(name)
    return default if value is None else int(str(value))


def _choice(spec: Mapping[str, Json], name: str, default: bool) -> bool:
    value = spec.get(name)
    return default if value is None else bool(value)


def _limit(spec: Mapping[str, Json], name: str, default: int | None) -> int | None:
    value = spec.get(name)
    if value is None:
        return default
    return None if value == "unlimited" else int(str(value)) or None
