"""Identifiers: a type prefix and a UUIDv7 in Crockford base32. Made here, by the server, and never
reused."""

import secrets
import time
from typing import Final

ALPHABET: Final = "0123456789abcdefghjkmnpqrstvwxyz"


def new_id(prefix: str) -> str:
    """A fresh identifier such as ``tp_06f2...``: 26 characters that sort by the time of
    creation."""
    milliseconds = time.time_ns() // 1_000_000
    value = (milliseconds & (1 << 48) - 1) << 80
    value |= 0x7 << 76 | secrets.randbits(12) << 64
    value |= 0b10 << 62 | secrets.randbits(62)
    return f"{prefix}_{encode_base32(value)}"


def encode_base32(value: int) -> str:
    """128 bits as 26 characters, most significant first, so that text order is number order."""
    digits = [ALPHABET[(value >> shift) & 31] for shift in range(125, -1, -5)]
    return "".join(digits)
