"""The settings of a topic's spec: one table for `--set`, its help, `describe` and dry runs.

Checks names and kinds, so that a typing error is found before a request is sent; limits that depend
on the service, such as the number of nodes, are checked by the API alone.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable
from dataclasses import dataclass

from headrace.cli.messages import duration_of, offset_of
from headrace.cli.output import Column, Row, path
from headrace.errors import Invalid

Parser = Callable[[str], object]


def _number(text: str) -> object:
    return offset_of(text)


def _int64(text: str) -> object:
    # REST writes 64-bit numbers as strings.
    return None if offset_of(text) is None else text


def _limit(text: str) -> object:
    return text if text == "unlimited" else _int64(text)


def _flag(text: str) -> object:
    return {"true": True, "false": False}.get(text)


def _codec(text: str) -> object:
    return text if text in ("none", "lz4", "zstd") else None


@dataclass(frozen=True, slots=True)
class Setting:
    """A member of the spec. `parse` returns its value in JSON, or None for what is invalid."""

    name: str
    values: str
    default: str
    parse: Parser

    def shown(self, topic: Row) -> object:
        """Its effective value in a topic, for people."""
        value = path("status", "effective", self.name)(topic)
        return duration_of(value) if self.name.endswith("_ms") else value


SETTINGS = (
    Setting("partitions", "1 to 1024; can only increase", "1", _number),
    Setting("replication_factor", "1, 3 or 5; fixed at creation", "1", _number),
    Setting("retention_ms", "milliseconds from 1, or unlimited", "604800000", _limit),
    Setting("retention_bytes", "bytes per partition from 1, or unlimited", "unlimited", _limit),
    Setting("min_retention_ms", "milliseconds, at most retention_ms", "0", _int64),
    Setting("segment_bytes", "bytes, 1048576 to 1073741824", "134217728", _int64),
    Setting("codec", "none, lz4 or zstd", "none", _codec),
    Setting("max_message_bytes", "bytes of a batch, 1024 to 8388608", "1048576", _number),
    Setting("deletion_protection", "true or false", "false", _flag),
    Setting("paused", "true or false", "false", _flag),
    Setting("managed", "true or false", "true", _flag),
)
_BY_NAME = {each.name: each for each in SETTINGS}

# Click keeps the lines of a paragraph that begins with \b.
HELP = "\b\nSettings for --set:\n" + "\n".join(
    f"  {each.name:20} {each.values} [default: {each.default}]" for each in SETTINGS
)
COLUMNS = tuple(Column(each.name, each.shown) for each in SETTINGS)


def member(text: str) -> tuple[str, object]:
    """The member of a spec that `--set` names; None removes it."""
    key, equals, value = text.partition("=")
    if not equals:
        raise Invalid(f"{text!r} is not KEY=VALUE", hint="Example: --set segment_bytes=16777216")
    setting = _BY_NAME.get(key)
    if setting is None:
        near = difflib.get_close_matches(key, _BY_NAME, n=1)
        hint = f"Did you mean {near[0]}?" if near else f"Use one of: {', '.join(_BY_NAME)}."
        raise Invalid(f"--set {key}: no such setting", hint=hint)
    if not value:
        return key, None
    parsed = setting.parse(value)
    if parsed is None:
        raise Invalid(f"--set {text}: the value must be {setting.values}")
    return key, parsed


def differences(before: Row, after: Row) -> list[dict[str, object]]:
    """The settings that a change gives another effective value, one row each."""
    return [
        {"setting": each.name, "before": each.shown(before), "after": each.shown(after)}
        for each in SETTINGS
        if each.shown(before) != each.shown(after)
    ]
