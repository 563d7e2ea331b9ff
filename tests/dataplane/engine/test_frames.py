"""The host's view of engine.h against the header itself."""

from enum import IntEnum
from pathlib import Path

import pytest
from cffi import FFI

from dataplane.engine import frames
from dataplane.engine.frames import (
    EngineResult,
    FenceKind,
    Kind,
    Meter,
    TrimCause,
    Verb,
)
from dataplane.metadata import tables

HEADER = Path(__file__).parents[3] / "native" / "include" / "engine.h"


@pytest.fixture(scope="module")
def header() -> FFI:
    """engine.h as cffi reads it."""
    ffi = FFI()
    lines = HEADER.read_text().splitlines()
    ffi.cdef("\n".join(line for line in lines if not line.startswith("#")))
    return ffi


def test_every_structure_has_the_size_the_header_gives_it(header: FFI) -> None:
    expected = frames.sizes() | {
        "struct engine_row_topic": tables.TOPIC_ROW_SIZE,
        "struct engine_row_grant": tables.GRANT_ROW_SIZE,
        "struct engine_row_project": tables.PROJECT_ROW_SIZE,
    }
    assert {name: header.sizeof(name) for name in expected} == expected


@pytest.mark.parametrize(
    ("mirror", "enum", "prefix"),
    [
        (Kind, "enum engine_frame_kind", "ENGINE_"),
        (EngineResult, "enum engine_result", "ENGINE_RESULT_"),
        (FenceKind, "enum engine_fence_kind", "ENGINE_FENCE_"),
        (TrimCause, "enum engine_trim_cause", "ENGINE_TRIM_"),
        (Meter, "enum engine_meter", "ENGINE_METER_"),
        (Verb, "enum engine_verb", "ENGINE_VERB_"),
    ],
)
def test_every_number_is_the_header_s(
    header: FFI, mirror: type[IntEnum], enum: str, prefix: str
) -> None:
    declared = header.typeof(enum).relements
    assert {name.removeprefix(prefix): value for name, value in declared.items()} == {
        member.name: member.value for member in mirror
    }
