"""Which requests are read at all, judged by their heads alone.

Two readers of one request must agree where it ends and what it says: what proxies, parsers and
people could read in two ways is refused. Bodies are plain JSON in UTF-8. This module refuses to
look at a body, a route or a key.
"""

import re
from collections import Counter
from collections.abc import Mapping
from typing import Final
from urllib.parse import unquote_to_bytes

from starlette.datastructures import Headers

from api.http.errors import (
    DomainError,
    InvalidRequestError,
    PayloadTooLargeError,
    UnsupportedMediaTypeError,
    Violation,
)
from api.http.json_body import BODY_BYTES_MAX

# A second one would mean another request to a program that reads the last instead of the first.
SINGLE: Final = frozenset(
    {"authorization", "content-encoding", "content-length", "content-type", "host",
     "idempotency-key", "transfer-encoding", "x-request-id"}
)  # fmt: skip
CHARSET_PATTERN: Final = re.compile(r";\s*charset\s*=\s*\"?([^\s\";]*)", re.IGNORECASE)
CONTROL_PATTERN: Final = re.compile(rb"[\x00-\x1f\x7f]")
DIGITS_PATTERN: Final = re.compile(r"[0-9]{1,15}")


def refusal(scope: Mapping[str, object], headers: Headers) -> DomainError | None:
    """Why a request is not read any further; None if it is."""
    return _ambiguous(headers) or _unprintable(scope) or _unreadable_body(headers)


def _ambiguous(headers: Headers) -> DomainError | None:
    counts = Counter(headers.keys())
    twice = sorted(name for name in SINGLE & counts.keys() if counts[name] > 1)
    if twice:
        return _invalid(twice[0], "REPEATED", f"The request has more than one {twice[0]}.")
    coding = headers.get("transfer-encoding")
    if coding is not None and coding.strip().lower() != "chunked":
        return _invalid(
            "transfer-encoding", "BAD_FORMAT", "The only transfer-encoding taken is chunked."
        )
    if coding is not None and "content-length" in headers:
        return _invalid(
            "content-length", "AMBIGUOUS", "The request has a content-length and is chunked too."
        )
    length = headers.get("content-length")
    if length is not None and not DIGITS_PATTERN.fullmatch(length):
        return _invalid("content-length", "BAD_FORMAT", "The content-length is no length.")
    return None


def _unprintable(scope: Mapping[str, object]) -> DomainError | None:
    """No id, no name and no parameter holds such a character; no log and no database gets one."""
    path, query = scope["raw_path"], scope["query_string"]
    assert isinstance(path, bytes)
    assert isinstance(query, bytes)
    for part in (path, *query.split(b"&")):
        if CONTROL_PATTERN.search(unquote_to_bytes(part)):
            name = part.partition(b"=")[0].decode("ascii", "replace")
            pointer = "path" if part is path else f"?{name}"
            return _invalid(
                pointer, "BAD_FORMAT", "The address holds a character that cannot be printed."
            )
    return None


def _unreadable_body(headers: Headers) -> DomainError | None:
    length = headers.get("content-length", "0")
    if int(length) > BODY_BYTES_MAX:
        return PayloadTooLargeError(
            f"The body has {length} bytes; at most {BODY_BYTES_MAX} may be."
        )
    if int(length) == 0 and "transfer-encoding" not in headers:
        return None
    content_type = headers.get("content-type", "")
    media_type = content_type.partition(";")[0].strip().lower()
    if not (media_type == "application/json" or media_type.endswith("+json")):
        return UnsupportedMediaTypeError(
            f"The body is {media_type[:100] or 'of no declared type'}.",
            hint="Send Content-Type: application/json.",
        )
    charset = CHARSET_PATTERN.search(content_type)
    if charset is not None and charset[1].lower() not in ("utf-8", "utf8"):
        return UnsupportedMediaTypeError(
            f"The body is in {charset[1][:100]}.", hint="JSON is sent as UTF-8."
        )
    encoding = headers.get("content-encoding", "identity").strip().lower()
    if encoding != "identity":
        return UnsupportedMediaTypeError(
            f"The body is compressed ({encoding[:100]}).", hint="Send it uncompressed."
        )
    return None


def _invalid(pointer: str, code: str, detail: str) -> InvalidRequestError:
    return InvalidRequestError(
        detail,
        hint="Most clients never send such a request; look at what made it, or at a proxy.",
        violations=[Violation(pointer, code, detail)],
    )
