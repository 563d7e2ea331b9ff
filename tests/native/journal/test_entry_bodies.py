"""journal/entry_bodies: the bytes behind an entry's header, one golden file a kind."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from native._engine_sim import ffi, lib
from tests.support.builders.storage import name

if TYPE_CHECKING:
    from native._engine_sim import CData

DATA = Path(__file__).resolve().parents[2] / "data"
CHECKSUM, DIGEST = list(range(16)), list(range(16, 32))
MEMBERS = [(11, 12, 2, 0), (21, 22, 5, 0), (31, 32, 5, 1)]
VIEW_STATE: dict[str, object] = {
    "members_count": 3,
    "view": 9,
    "log_view": 8,
    "epoch": 5,
    "members": [
        {"node": node, "incarnation": incarnation, "tenure": tenure, "learner": learner}
        for node, incarnation, tenure, learner in MEMBERS
    ],
}
VIEW_STATE_BYTES = (
    struct.pack("<HHIQQ8x", 1, 3, 5, 9, 8)
    + b"".join(struct.pack("<QQII", *member) for member in MEMBERS)
    + bytes(4 * 24)
)
# Fields as C's struct has them, and the bytes that they are, written down here once more.
BODIES: dict[str, tuple[dict[str, object], bytes]] = {
    "view_state": (VIEW_STATE, VIEW_STATE_BYTES),
    "checkpoint": (
        {
            "view_state": VIEW_STATE,
            "checksum": CHECKSUM,
            "append_time_us": 1_700_000_000_000_000,
            "size": 70_000,
            "is_file": 1,
            "digest": DIGEST,
        },
        VIEW_STATE_BYTES
        + struct.pack(
            "<16sqII16s", bytes(CHECKSUM), 1_700_000_000_000_000, 2, 70_000, bytes(DIGEST)
        ),
    ),
    "tail_closed": ({"lsn_from": 7, "lsn_to": 11}, struct.pack("<QQ", 7, 11)),
    "abstain": ({"op_good": 41, "op_lost": 44}, struct.pack("<QQ8x", 41, 44)),
}


def filled(kind: str, fields: dict[str, object]) -> CData:
    return ffi.new(f"struct entry_{kind} *", fields)


def encoded(kind: str, body: CData, size: int) -> bytes:
    target = ffi.new("uint8_t[]", [0xEE] * size)
    getattr(lib, f"entry_{kind}_put")(target, body)
    return bytes(ffi.buffer(target, size))


def decoded(kind: str, data: bytes) -> tuple[str, CData]:
    body = ffi.new(f"struct entry_{kind} *")
    return name(getattr(lib, f"entry_{kind}_get")(data, len(data), body)), body


@pytest.mark.parametrize("kind", BODIES)
def test_a_body_is_written_as_its_golden_file_says(kind: str) -> None:
    fields, data = BODIES[kind]
    assert (DATA / f"entry_{kind}_v1.bin").read_bytes() == data
    assert encoded(kind, filled(kind, fields), len(data)) == data


@pytest.mark.parametrize("kind", BODIES)
def test_a_golden_body_is_read_and_written_again(kind: str) -> None:
    data = (DATA / f"entry_{kind}_v1.bin").read_bytes()
    status, body = decoded(kind, data)
    assert status == "OK"
    assert encoded(kind, body, len(data)) == data


def test_the_golden_floor_is_an_op() -> None:
    data = (DATA / "entry_metadata_floor_v1.bin").read_bytes()
    assert data == struct.pack("<Q", 12)
    op = ffi.new("uint64_t *")
    assert lib.entry_metadata_floor_get(data, len(data), op) == 0
    assert op[0] == 12
    target = ffi.new("uint8_t[8]")
    lib.entry_metadata_floor_put(target, 12)
    assert bytes(ffi.buffer(target)) == data


@pytest.mark.parametrize(
    ("kind", "refusal"),
    [
        ("prepare", "JOURNAL_DAMAGED"),
        ("view_state", "JOURNAL_DAMAGED"),
        ("checkpoint", "CHECKPOINT_DAMAGED"),
        ("tail_closed", "JOURNAL_DAMAGED"),
        ("abstain", "JOURNAL_DAMAGED"),
    ],
)
def test_a_body_too_short_for_its_kind_is_damage(kind: str, refusal: str) -> None:
    file = "prepare_v1.bin" if kind == "prepare" else f"entry_{kind}_v1.bin"
    data = (DATA / file).read_bytes()
    assert decoded(kind, data)[0] == "OK"
    assert decoded(kind, data[:-1])[0] == refusal


@pytest.mark.parametrize("kind", ["view_state", "checkpoint"])
def test_a_view_state_of_a_newer_release_is_told_from_damage(kind: str) -> None:
    assert decoded(kind, struct.pack("<H", 2) + BODIES[kind][1][2:])[0] == "OP_UNKNOWN"


@pytest.mark.parametrize(
    "change",
    [
        struct.pack("<H", 0),  # a version that never was
        VIEW_STATE_BYTES[:8] + struct.pack("<QQ", 8, 9),  # a log view beyond the view
        struct.pack("<HH", 1, 0),  # no member
        struct.pack("<HH", 1, 8),  # more than there can be
    ],
)
@pytest.mark.parametrize("kind", ["view_state", "checkpoint"])
def test_a_view_state_that_no_release_writes_is_not_gone_by(kind: str, change: bytes) -> None:
    data = change + BODIES[kind][1][len(change) :]
    assert decoded(kind, data)[0] == "JOURNAL_DAMAGED"


def test_the_golden_prepare_is_read_and_written_again() -> None:
    data = (DATA / "prepare_v1.bin").read_bytes()
    status, body = decoded("prepare", data)
    assert status == "OK"
    assert encoded("prepare", body, len(data)) == data
