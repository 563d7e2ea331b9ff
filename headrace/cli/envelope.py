"""The lossless message envelope of `consume -o json|jsonl|yaml` and `produce -i jsonl`.

    {"topic","partition","offset","ts","key","value","headers":[["name","value"],..]}

Bytes that are not UTF-8 stand as base64 in `key_b64` or `value_b64`, and a header's as ["name",
"..", "b64"]. null stays null. So `consume -o jsonl | produce -i jsonl` copies keys, values, headers
and timestamps byte for byte.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Mapping
from datetime import datetime

from headrace.codec import Record
from headrace.errors import Invalid
from headrace.messages import Message, header_pairs, timestamp_us, value_bytes


def envelope_of(message: Message) -> dict[str, object]:
    """The envelope of a message."""
    body: dict[str, object] = {
        "topic": message.topic,
        "partition": message.partition,
        "offset": message.offset,
        "ts": _written(message),
    }
    _put(body, "key", message.key)
    _put(body, "value", message.value)
    body["headers"] = [_header(name, value) for name, value in message.headers]
    return body


def _written(message: Message) -> str | int:
    """RFC 3339; what no year from 1 to 9999 holds stands in microseconds since 1970."""
    moment = message.timestamp
    if timestamp_us(moment) != message.timestamp_us:
        return message.timestamp_us
    return f"{moment.replace(tzinfo=None).isoformat(timespec='microseconds')}Z"


def _put(body: dict[str, object], name: str, data: bytes | None) -> None:
    text = _decoded(data)
    if data is not None and text is None:
        body[f"{name}_b64"] = base64.b64encode(data).decode()
    else:
        body[name] = text


def _decoded(data: bytes | None) -> str | None:
    if data is None:
        return None
    try:
        return data.decode()
    except UnicodeDecodeError:
        return None


def _header(name: str, value: bytes | None) -> list[str | None]:
    text = _decoded(value)
    if value is not None and text is None:
        return [name, base64.b64encode(value).decode(), "b64"]
    return [name, text]


def record_of_line(line: bytes) -> Record:
    """The record of one line of jsonl. Raises Invalid for a line that is no envelope."""
    try:
        body = json.loads(line)
    except UnicodeDecodeError as error:
        raise Invalid(f"Not UTF-8 at byte {error.start}") from None
    except json.JSONDecodeError as error:
        # The parser counts lines and characters; here is one line, and of bytes.
        at = len(error.doc[: error.pos].encode("utf-8", "surrogatepass"))
        raise Invalid(f"Not JSON at byte {at}: {error.msg}") from None
    except (RecursionError, ValueError):
        # Thousands of brackets, or of digits: Python reads neither.
        raise Invalid("Not an envelope: nested too deeply, or a number is too long") from None
    if not isinstance(body, dict) or not ("value" in body or "value_b64" in body):
        raise Invalid(
            "Not an envelope: it has neither value nor value_b64",
            hint='Each line must be {"key":..,"value":..}. For plain lines, omit -i.',
        )
    return Record(
        _get(body, "key"), _get(body, "value"), _timestamp(body.get("ts")), _headers(body)
    )


def _get(body: Mapping[str, object], name: str) -> bytes | None:
    encoded = body.get(f"{name}_b64")
    if encoded is not None:
        return _from_base64(encoded)
    value = body.get(name)
    if isinstance(value, (bool, int, float)):
        return json.dumps(value).encode()
    if value is None or isinstance(value, (str, dict, list)):
        return value_bytes(value)
    raise Invalid(f"{name} has a type that JSON does not have")


def _from_base64(encoded: object) -> bytes:
    try:
        return base64.b64decode(str(encoded), validate=True)
    except binascii.Error as error:
        raise Invalid(f"Not base64: {error}") from None


def _timestamp(text: object) -> int:
    if text is None:
        return timestamp_us(None)
    if isinstance(text, int) and not isinstance(text, bool):
        return timestamp_us(text)
    try:
        return timestamp_us(datetime.fromisoformat(str(text)))
    except ValueError:
        raise Invalid(f"ts {text!r} is not an RFC 3339 time") from None


def _headers(body: Mapping[str, object]) -> tuple[tuple[str, bytes | None], ...]:
    pairs = body.get("headers") or []
    if not isinstance(pairs, list):
        raise Invalid('headers is not a list of ["name", "value"]')
    found: list[tuple[str, bytes | None]] = []
    for pair in pairs:
        if not isinstance(pair, list) or not 2 <= len(pair) <= 3:
            raise Invalid(f'A header is ["name", "value"], not {pair!r}')
        name, value = str(pair[0]), pair[1]
        if len(pair) == 3:
            found.append((name, _from_base64(value)))
        else:
            found.append((name, None if value is None else value_bytes(str(value))))
    return header_pairs(found)
