"""Error codes are a contract across C, Python and REST: documented, and typed in the SDK."""

import re

import pytest

from dataplane.errors import STATUS_OF_CODE
from headrace import errors as sdk
from tests.support.source import ROOT, below

ASSIGNED = re.compile(r'\bcode(?:: ?[^=,()]+)?\s*=\s*"([A-Z][A-Z0-9_]+)"')
ENTRY = re.compile(r"ENTRY\((\w+),\s*(\w+),\s*(\w+),")


def engine_entries() -> list[tuple[str, str, str]]:
    """Code, gRPC status and kind of each row in the engine's table."""
    table = (ROOT / "native" / "src" / "grpc/error.c").read_text().partition("entries[")[2]
    return ENTRY.findall(table)


def codes_in_python() -> set[str]:
    """Every `code = "X"` and `code="X"` in the packages."""
    return {
        code
        for folder in ("api", "dataplane", "headrace", "reports")
        for path in below(ROOT / folder, "*.py")
        for code in ASSIGNED.findall(path.read_text())
    }


def every_code() -> set[str]:
    """All codes that some part of the product answers."""
    engine = {code for code, _, _ in engine_entries()}
    return engine | set(STATUS_OF_CODE) | codes_in_python()


def test_every_code_is_documented_and_nothing_else_is() -> None:
    body = (ROOT / "docs" / "errors.md").read_text()
    documented = set(re.findall(r"^### (\w+)$", body, flags=re.M))
    assert every_code() - documented == set()
    assert documented - every_code() == set()


@pytest.mark.parametrize("code", sorted(every_code()))
def test_a_code_is_upper_snake_case(code: str) -> None:
    assert re.fullmatch(r"[A-Z][A-Z0-9]*(_[A-Z0-9]+)*", code)


@pytest.mark.parametrize(("code", "status", "kind"), engine_entries())
def test_the_sdk_gives_a_refusal_of_the_engine_the_fitting_class(
    code: str, status: str, kind: str
) -> None:
    expected = {
        "UNAUTHENTICATED": sdk.Unauthenticated,
        "PERMISSION_DENIED": sdk.AccessDenied,
    }.get(status, sdk.HeadraceError)
    assert issubclass(sdk.class_of(code, sdk.Kind[kind]), expected)


def test_engine_and_host_use_one_status_for_one_code() -> None:
    engine = {code: status for code, status, _ in engine_entries()}
    both = engine.keys() & STATUS_OF_CODE.keys()
    differ = {c: (engine[c], STATUS_OF_CODE[c].name) for c in both}
    assert {c: pair for c, pair in differ.items() if pair[0] != pair[1]} == {}
