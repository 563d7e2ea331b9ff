"""Whether a published report is what was signed: files, sums, signature and chain, offline.

Owns the form of the evidence, which the report jobs write and anybody may check:

    <uri>/KIND/<sha256>/manifest.json      one run: what it lists, `sequence`, `previous`,
                                           `public_key`, `sha256`, `signature`
    <uri>/evidence/KIND/NNNNNNNN-*.json    every manifest that was ever signed, in order
    <uri>/inputs/<sha256>/inputs.json      what a run was computed from; its own SHA-256 is the name

`sha256` is that of the canonical manifest without `sha256` and `signature`; the signature (Ed25519)
is over DOMAIN and those 64 hexadecimal digits; `previous` is the `sha256` of the manifest before.
Money and whole numbers are strings, so that no reader's floats change a byte. Refuses to sign, and
to trust a key or an end of the ledger by itself: a caller may pin those that it knows.
"""

from __future__ import annotations

import csv
import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Context, Decimal
from pathlib import Path

from headrace.errors import HeadraceError, Invalid

MANIFEST = "manifest.json"
LEDGER = "evidence"
INPUTS = "inputs"
INDEX = "inputs.json"
FIRST = "0" * 64
DOMAIN = b"headrace report 1\n"
SEALED = ("sha256", "signature")
PLACED = ("sequence", "previous", "public_key", *SEALED)
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")
_KIND = re.compile(r"[a-z][a-z_]{0,31}")
_SHA256 = re.compile(r"[0-9a-f]{64}")
_EXACT = Context(prec=120)
# What a file or a stated sum of another form than ours raises.
_UNREADABLE = (
    OSError, KeyError, ValueError, TypeError, AttributeError, ArithmeticError, csv.Error
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Check:
    """One question and its answer. `ok` is None where there was nothing to compare with."""

    name: str
    ok: bool | None
    detail: str

    def row(self) -> dict[str, object]:
        """As the command line prints it."""
        state = {True: "OK", False: "FAILED", None: "NOT_CHECKED"}[self.ok]
        return {"name": self.name, "state": state, "detail": self.detail}


class SignatureUnsupported(HeadraceError):
    """Ed25519 needs the package `cryptography`, which the client alone does not install."""

    code = "SIGNATURE_UNSUPPORTED"
    hint = "Install it: pip install 'headrace[verify]'."


class NotAsPublished(HeadraceError):
    """Some check of a report failed: a file, a sum, the signature or the chain."""

    code = "EVIDENCE_FAILED"
    hint = "The listed items were changed after they were signed. Get another copy."


def canonical_json(document: object) -> bytes:
    """One byte sequence per document: sorted keys, no spaces, UTF-8, a final newline."""
    text = json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return text.encode() + b"\n"


def digest_of(manifest: Mapping[str, object]) -> str:
    """The SHA-256 that a manifest must carry."""
    bare = {name: value for name, value in manifest.items() if name not in SEALED}
    return hashlib.sha256(canonical_json(bare)).hexdigest()


def content_of(manifest: Mapping[str, object]) -> dict[str, object]:
    """What a manifest says of its run, without its place in the chain."""
    return {name: value for name, value in manifest.items() if name not in PLACED}


def genuine(manifest: Mapping[str, object]) -> bool:
    """Whether a manifest carries its own digest and a signature of it by its own key.

    Raises SIGNATURE_UNSUPPORTED without the package `cryptography`.
    """
    try:
        from cryptography.exceptions import InvalidSignature
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    except ImportError:
        raise SignatureUnsupported(
            "The signature cannot be checked: cryptography is not installed."
        ) from None
    if manifest.get("sha256") != digest_of(manifest):
        return False
    try:
        key = Ed25519PublicKey.from_public_bytes(bytes.fromhex(str(manifest["public_key"])))
        signature = bytes.fromhex(str(manifest["signature"]))
        key.verify(signature, DOMAIN + str(manifest["sha256"]).encode())
    except (KeyError, ValueError, InvalidSignature):
        return False
    return True


def ledger_entries(folder: Path) -> list[Path]:
    """The signed manifests of a kind, first one first."""
    return sorted(folder.glob("[0-9]*.json"))


def document_at(path: Path) -> dict[str, object]:
    """A JSON object from a file. EVIDENCE_INVALID if it is none."""
    try:
        document = json.loads(path.read_bytes())
        # Half of a surrogate pair is found here: of such a document there is no digest.
        canonical_json(document)
    except (OSError, ValueError, RecursionError) as failure:
        raise Invalid(
            f"{path} cannot be read as JSON: {failure}",
            code="EVIDENCE_INVALID",
            hint="Pass the folder of one run, or the reports folder, as published.",
        ) from None
    if not isinstance(document, dict):
        raise Invalid(f"{path} does not contain a JSON object", code="EVIDENCE_INVALID")
    return document


def verify(folder: Path, public_key: str = "", heads: Sequence[str] = ()) -> list[Check]:
    """Every check of a run's folder, or of all runs below a reports' folder.

    public_key: 64 hexadecimal digits that every manifest must be signed with; empty: any key, as
    long as it is one and the same. heads: the `sha256` of manifests that a ledger must hold: of an
    end that was taken from it nothing is left to see. Raises EVIDENCE_INVALID where there is no
    report at all.
    """
    if (folder / MANIFEST).is_file() or not (folder / LEDGER).is_dir():
        _check_depth(folder)
        run_checks = _run_checks(folder, public_key)
        return [*run_checks, *_head_checks([_ledger_of(folder)], heads)]
    checks: list[Check] = []
    kinds = {path.name for path in (folder / LEDGER).iterdir() if path.is_dir()}
    kinds |= {path.parent.parent.name for path in folder.glob(f"*/*/{MANIFEST}")} - {LEDGER}
    signer = public_key
    for kind in sorted(kinds):
        ledger = folder / LEDGER / kind
        whole = [_chain_check(ledger, None, signer), _present_check(ledger, folder / kind)]
        checks += [Check(f"{kind} {check.name}", check.ok, check.detail) for check in whole]
        signer = signer or _signer_of(ledger)
        for run in _runs(folder / kind):
            if not (run / MANIFEST).is_file():
                checks.append(Check(f"{kind}/{run.name[:12]} files", False, f"no {MANIFEST}"))
                continue
            checks += [
                Check(f"{kind}/{run.name[:12]} {check.name}", check.ok, check.detail)
                for check in _run_checks(run, signer)
                if check.name != "chain" or check.ok is not True
            ]
    return [*checks, *_head_checks([folder / LEDGER / kind for kind in sorted(kinds)], heads)]


def _check_depth(folder: Path) -> None:
    """Raises EVIDENCE_INVALID for the folder of a kind, between the reports' folder and runs."""
    above = folder.resolve().parent
    if not (folder / MANIFEST).is_file() and folder.is_dir() and (above / LEDGER).is_dir():
        raise Invalid(
            f"{folder} is one folder too deep: it contains the runs of one kind, but not their "
            "ledger",
            code="EVIDENCE_INVALID",
            hint=f"Pass the reports folder, {above}, or the folder of one run.",
        )


def _runs(folder: Path) -> list[Path]:
    """The folders of runs of a kind, without those that are being written."""
    paths = folder.iterdir() if folder.is_dir() else ()
    return sorted(path for path in paths if path.is_dir() and not path.name.startswith("."))


def _signer_of(ledger: Path) -> str:
    """Whose key the first entry names: every other of a reports' folder must name the same."""
    entries = ledger_entries(ledger)
    return str(document_at(entries[0]).get("public_key", "")) if entries else ""


def _present_check(ledger: Path, folder: Path) -> Check:
    """Which signed runs are there. A run that was killed has an entry and no folder."""
    found = {_digest_in(run) for run in _runs(folder)}
    entries = ledger_entries(ledger)
    if found and not entries:
        return Check("runs", False, f"no ledger {LEDGER}/{ledger.name} holds them")
    away = [path.stem for path in entries if str(document_at(path).get("sha256")) not in found]
    if away:
        return Check("runs", None, f"no folder holds {', '.join(away)}")
    return Check("runs", True, f"all {len(entries)} signed runs are there")


def _digest_in(run: Path) -> object:
    path = run / MANIFEST
    return str(document_at(path).get("sha256")) if path.is_file() else None


def _run_checks(folder: Path, public_key: str) -> list[Check]:
    manifest = document_at(folder / MANIFEST)
    ledger = _ledger_of(folder)
    return [
        _files_check(folder, manifest),
        _sums_check(folder, manifest),
        *_inputs_check(folder, manifest),
        _signature_check(folder, manifest, public_key),
        _chain_check(ledger, manifest, public_key)
        if ledger.is_dir()
        else Check("chain", None, f"the ledger {LEDGER}/ is not beside this folder"),
    ]


def _ledger_of(folder: Path) -> Path:
    """Where the ledger of a run's folder is, if it is beside it."""
    kind = str(document_at(folder / MANIFEST).get("kind", ""))
    if not _KIND.fullmatch(kind):
        raise Invalid(f"{folder / MANIFEST} names no kind of report", code="EVIDENCE_INVALID")
    return folder.resolve().parent.parent / LEDGER / kind


def _head_checks(ledgers: Iterable[Path], heads: Iterable[str]) -> Iterator[Check]:
    """Whether entries that somebody else knows of are there: a ledger has no end of its own."""
    held = {
        str(document_at(path).get("sha256")): f"{ledger.name}/{path.stem}"
        for ledger in ledgers
        for path in ledger_entries(ledger)
    }
    for head in heads:
        place = held.get(head.lower())
        words = (
            f"{place} is {head}" if place else f"no ledger here holds {head}: its end is missing"
        )
        yield Check("head", place is not None, words)


def _files_check(folder: Path, manifest: Mapping[str, object]) -> Check:
    """Every listed file with its size and digest, and nothing else in the folder."""
    entries = _listed(manifest)
    wrong = _differing(folder, entries, MANIFEST)
    if wrong or not entries:
        return Check("files", False, "; ".join(wrong) or "no file is listed")
    return Check("files", True, f"{len(entries)} files have the listed sizes and SHA-256")


def _inputs_check(folder: Path, manifest: Mapping[str, object]) -> Iterator[Check]:
    """The archive that the figures were computed from, if the manifest names one."""
    name = manifest.get("input_sha256")
    if name is None:
        return
    archive = folder.resolve().parent.parent / INPUTS / str(name)
    if not _SHA256.fullmatch(str(name)) or not archive.is_dir():
        yield Check("inputs", None, f"no archive {INPUTS}/{str(name)[:64]} is beside this folder")
        return
    index = archive / INDEX
    if not index.is_file() or hashlib.sha256(index.read_bytes()).hexdigest() != name:
        yield Check("inputs", False, f"{INDEX} of {name} is not what was frozen")
        return
    entries = _listed(document_at(index))
    wrong = _differing(archive, entries, INDEX)
    words = f"{len(entries)} files are what the run was computed from"
    yield Check("inputs", not wrong, "; ".join(wrong) or words)


def _listed(document: Mapping[str, object]) -> list[Mapping[str, object]]:
    """The files that a manifest or an index of inputs lists."""
    listed = document.get("files")
    return [one for one in listed if isinstance(one, dict)] if isinstance(listed, list) else []


def _differing(folder: Path, entries: Sequence[Mapping[str, object]], index: str) -> list[str]:
    """What a folder holds that is not as listed; `index` is the file that lists it."""
    wrong, names = [], {index}
    for entry in entries:
        name = str(entry.get("name"))
        names.add(name)
        if not _NAME.fullmatch(name) or not (folder / name).is_file():
            wrong.append(f"{name} is missing")
            continue
        with (folder / name).open("rb") as file:
            found = hashlib.file_digest(file, "sha256").hexdigest(), str(file.tell())
        if found != (entry.get("sha256"), str(entry.get("bytes"))):
            wrong.append(f"{name} was changed")
    return wrong + [
        f"{path.name} is not listed" for path in sorted(folder.iterdir()) if path.name not in names
    ]


def _sums_check(folder: Path, manifest: Mapping[str, object]) -> Check:
    """Each of `sums`: {file, rows, columns: {name: total}} against the lines of that CSV."""
    sums = manifest.get("sums")
    if not isinstance(sums, list) or not sums:
        return Check("totals", None, "the manifest states no sums")
    wrong: list[str] = []
    for stated in sums:
        try:
            wrong += _differences(folder, stated)
        except _UNREADABLE as failure:
            wrong.append(f"a sum cannot be checked: {type(failure).__name__} {failure}")
    if wrong:
        return Check("totals", False, "; ".join(wrong))
    return Check("totals", True, f"{len(sums)} files add up to the stated totals")


def _differences(folder: Path, stated: Mapping[str, object]) -> Iterator[str]:
    name, columns = str(stated["file"]), stated["columns"]
    if not _NAME.fullmatch(name) or not isinstance(columns, dict):
        raise ValueError(f"no sum of a file: {name}")
    totals, rows = dict.fromkeys(columns, Decimal(0)), 0
    with (folder / name).open(newline="", encoding="utf-8") as file:
        for line in csv.DictReader(file):
            rows += 1
            for column in columns:
                totals[column] = _EXACT.add(totals[column], Decimal(line[column]))
    if str(rows) != str(stated["rows"]):
        yield f"{name} has {rows} rows, not {stated['rows']}"
    for column, total in totals.items():
        if total != Decimal(str(columns[column])):
            yield f"{column} of {name} adds up to {total}, not {columns[column]}"


def _signature_check(folder: Path, manifest: Mapping[str, object], public_key: str) -> Check:
    if (folder / MANIFEST).read_bytes() != canonical_json(manifest):
        return Check("signature", False, f"{MANIFEST} is not written as it was signed")
    signer = str(manifest.get("public_key", ""))
    if public_key and signer != public_key.lower():
        return Check("signature", False, f"signed with another key: {signer or 'none'}")
    if not genuine(manifest):
        return Check("signature", False, "the manifest is not what was signed")
    return Check("signature", True, f"Ed25519 by {signer}")


def _chain_check(ledger: Path, manifest: Mapping[str, object] | None, public_key: str) -> Check:
    """The ledger from its first entry to its last; `manifest`, if given, must be one of them."""
    previous, member, signers = FIRST, manifest is None, {public_key.lower()} - {""}
    entries = ledger_entries(ledger)
    for number, path in enumerate(entries, start=1):
        entry = document_at(path)
        if path.read_bytes() != canonical_json(entry):
            return Check("chain", False, f"{path.name} is not written as it was signed")
        if (entry.get("sequence"), entry.get("previous")) != (number, previous):
            return Check("chain", False, f"{path.name} does not follow the entry before it")
        signers.add(str(entry.get("public_key")))
        if len(signers) > 1:
            return Check("chain", False, f"{path.name} is signed with another key")
        if not genuine(entry):
            return Check("chain", False, f"{path.name} is not what was signed")
        previous = str(entry["sha256"])
        member = member or entry == manifest
    if not member:
        return Check("chain", False, "the ledger does not hold this manifest")
    words = f"{len(entries)} signed runs, each naming the one before; the last is {previous}"
    return Check("chain", True, words)
