"""Signs the manifest of a run and chains it to the run before, so that changes are detected.

    <uri>/evidence/key                   Ed25519 seed, 0600, made at first use
    <uri>/evidence/public.txt            its public key, to be kept elsewhere and pinned
    <uri>/evidence/KIND/NNNNNNNN-*.json  the ledger: every signed manifest, in order

Owns the key and the ledger; their form and every check are in headrace/evidence.py, so that a
customer needs nothing of the service to check. A manifest is in the ledger before its folder
appears: two runs never share a place, and a run that is killed in between leaves an entry that says
what would have been published. Signing the same content again gives the first signature: a run that
is repeated changes nothing. Refuses to go on from a ledger whose end was changed.
"""

import fcntl
import hashlib
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from headrace.errors import Invalid
from headrace.evidence import (
    DOMAIN,
    FIRST,
    LEDGER,
    canonical_json,
    content_of,
    digest_of,
    document_at,
    genuine,
    ledger_entries,
)
from reports.errors import PublishError
from reports.files import sync

KEY = "key"
PUBLIC_KEY = "public.txt"
SEED_BYTES = 32
_KIND = re.compile(r"[a-z][a-z_]{0,31}")


def sign_manifest(root: Path, kind: str, manifest: Mapping[str, object]) -> dict[str, object]:
    """The manifest with its place: sequence, previous, public_key, sha256, signature.

    root: the reports' folder. The manifest must be whole (files, and `sums` if totals shall be
    checked) and hold no float. Durable in the ledger when this returns.
    """
    assert _KIND.fullmatch(kind), kind
    assert manifest.get("kind") == kind
    folder = root / LEDGER / kind
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    content = content_of(manifest)
    mark = hashlib.sha256(canonical_json(content)).hexdigest()
    with _alone(folder):
        key = _signing_key(root / LEDGER)
        public = key.public_key().public_bytes_raw().hex()
        known = _known(folder, mark, content, public)
        if known is not None:
            return known
        head = _head(folder)
        sequence = int(str(head["sequence"])) + 1 if head else 1
        placed = {
            **content,
            "sequence": sequence,
            "previous": str(head["sha256"]) if head else FIRST,
            "public_key": public,
        }
        sha256 = digest_of(placed)
        signature = key.sign(DOMAIN + sha256.encode()).hex()
        signed = {**placed, "sha256": sha256, "signature": signature}
        _write(folder / f"{sequence:08d}-{mark[:16]}.json", canonical_json(signed), 0o640)
        return signed


def _known(
    folder: Path, mark: str, content: Mapping[str, object], public_key: str
) -> dict[str, object] | None:
    """The entry that says just this already, signed with the present key."""
    for path in folder.glob(f"*-{mark[:16]}.json"):
        entry = document_at(path)
        if content_of(entry) == content and entry["public_key"] == public_key and genuine(entry):
            return entry
    return None


def _head(folder: Path) -> dict[str, object] | None:
    """The last entry of the ledger. CHAIN_DAMAGED if it is not what was signed."""
    entries = ledger_entries(folder)
    if not entries:
        return None
    try:
        head = document_at(entries[-1])
    except Invalid:
        head = {}
    if head.get("sequence") != len(entries) or not genuine(head):
        raise PublishError(
            "CHAIN_DAMAGED",
            f"{entries[-1]} is not the entry {len(entries)} that was signed.",
            "Restore the folder evidence from a copy; `headrace report verify` names what differs.",
        )
    return head


def _signing_key(folder: Path) -> Ed25519PrivateKey:
    """The key of this folder; made at first use, for its owner's eyes alone."""
    path = folder / KEY
    if not path.exists():
        _write(path, Ed25519PrivateKey.generate().private_bytes_raw(), 0o600)
    seed = path.read_bytes()
    if len(seed) != SEED_BYTES:
        raise PublishError(
            "SIGNING_KEY_INVALID",
            f"{path} is no Ed25519 seed of {SEED_BYTES} bytes.",
            "Restore it from a copy; with another key the chain would begin anew.",
        )
    key = Ed25519PrivateKey.from_private_bytes(seed)
    if not (folder / PUBLIC_KEY).exists():
        public = key.public_key().public_bytes_raw().hex()
        _write(folder / PUBLIC_KEY, f"{public}\n".encode(), 0o644)
    return key


def _write(path: Path, content: bytes, mode: int) -> None:
    """A file that appears whole and durable, or not at all."""
    pending = path.with_name(f".pending-{path.name}")
    pending.unlink(missing_ok=True)
    descriptor = os.open(pending, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    os.rename(pending, path)
    sync(path.parent)


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """One signer at a time on this ledger, and on the key above it."""
    descriptor = os.open(folder.parent / ".lock", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
