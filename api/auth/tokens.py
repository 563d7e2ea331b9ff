"""Tokens: ``hr_<kind>_<public id>_<secret>_<check>``.

    hr_user_k3j9x0a2bc_<43 characters of base62: 256 random bits>_<6 of base62: CRC-32 of all
before>

The check lets a client or a scanner refuse a mistyped token without asking anybody. What is stored
is the SHA-256 of the secret's characters: a slow hash would protect nothing that 256 random bits
do not, and would be a lever to exhaust the server. This module refuses to know who a token belongs
to.
"""

import hashlib
import secrets
import zlib
from dataclasses import dataclass, field
from typing import Final

KINDS: Final = frozenset({"user", "node", "run"})
PUBLIC_ALPHABET: Final = "abcdefghijklmnopqrstuvwxyz0123456789"
BASE62: Final = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
PUBLIC_CHARACTERS: Final = 10
SECRET_CHARACTERS: Final = 43
CHECK_CHARACTERS: Final = 6


@dataclass(frozen=True, slots=True)
class Token:
    """A token in its parts; its text never shows in a repr."""

    kind: str
    public_id: str
    secret: str = field(repr=False)

    @property
    def text(self) -> str:
        """The whole token, as it is sent."""
        body = f"hr_{self.kind}_{self.public_id}_{self.secret}"
        return f"{body}_{_check(body)}"

    @property
    def secret_sha256(self) -> bytes:
        """What is stored: 32 bytes."""
        return hashlib.sha256(self.secret.encode("ascii")).digest()


def new_token(kind: str) -> Token:
    """A fresh token of a kind."""
    assert kind in KINDS
    public_id = "".join(secrets.choice(PUBLIC_ALPHABET) for _ in range(PUBLIC_CHARACTERS))
    return Token(kind, public_id, _base62(secrets.randbits(256), SECRET_CHARACTERS))


def parse_token(text: str) -> Token | None:
    """The token in its parts; None for text that cannot be one."""
    if not text.isascii():
        return None
    body, _, check = text.rpartition("_")
    parts = body.split("_")
    if len(parts) != 4 or not secrets.compare_digest(check, _check(body)):
        return None
    brand, kind, public_id, secret = parts
    if brand != "hr" or kind not in KINDS:
        return None
    if len(public_id) != PUBLIC_CHARACTERS or len(secret) != SECRET_CHARACTERS:
        return None
    return Token(kind, public_id, secret)


def _check(body: str) -> str:
    return _base62(zlib.crc32(body.encode("ascii")), CHECK_CHARACTERS)


def _base62(value: int, characters: int) -> str:
    digits = []
    for _ in range(characters):
        value, digit = divmod(value, 62)
        digits.append(BASE62[digit])
    return "".join(reversed(digits))
