"""Requests at random from the contract, to a real process: every answer is one that the contract
names, in the shape that it says; what the contract allows is refused by nothing that it could say.

Schemathesis makes the requests and holds the answers against the document. Half of them are about
objects that are there.
"""

import json
from collections.abc import Iterator
from typing import Any, Final, TypeAlias

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from schemathesis import Response
from schemathesis.checks import not_a_server_error
from schemathesis.core.result import Ok
from schemathesis.generation.modes import GenerationMode
from schemathesis.specs.openapi.checks import positive_data_acceptance

from tests.support.api_process import ApiProcess
from tests.support.source import ROOT

EXAMPLES: Final = 6
Case: TypeAlias = schemathesis.Case[Any]
Operation: TypeAlias = schemathesis.APIOperation[Any, Any, Any, Any]

SCHEMA: Final = schemathesis.openapi.from_dict(
    json.loads((ROOT / "openapi" / "control-plane.json").read_text())
)
# No body holds NUL or half of a surrogate pair: JSON Schema has no word for all of its texts.
SCHEMA.config.generation.allow_x00 = False
OPERATIONS: Final[list[Operation]] = [
    each.ok() for each in SCHEMA.get_all_operations() if isinstance(each, Ok)
]
# What an allowed request may be refused for with 400: rules between members, and of what is there.
BEYOND_SCHEMA: Final = frozenset(
    {
        "PAGE_TOKEN_INVALID",
        "FIELD_IMMUTABLE",
        "NO_SUCH_PARTITION",
        "NEEDS_PARTITION",
        "REPEATED",
        "METER_UNKNOWN",
    }
)


class Asked:
    """The process, and one object of each kind in it."""

    def __init__(self, api: ApiProcess) -> None:
        self.api = api
        self.ids: dict[str, str] = {}
        for path, body in (
            ("topics", {"name": "orders", "spec": {"partitions": 2}}),
            ("report-runs", {"kind": "usage"}),
        ):
            self.ids[path] = self._id(b"POST", path, json.dumps(body).encode())
        held = {"topic_id": self.ids["topics"], "case_id": "C-1", "reason": "a suit"}
        self.ids["legal-holds"] = self._id(b"POST", "legal-holds", json.dumps(held).encode())
        for path in ("orgs", "projects", "clusters", "streams", "api-keys", "operations"):
            self.ids[path] = self._id(b"GET", path)

    def _id(self, method: bytes, path: str, body: bytes = b"") -> str:
        answer = self.api.ask(method, f"/v1/{path}".encode(), body)
        found = json.loads(answer.body)
        return str((found["items"][0] if "items" in found else found)["id"])

    def of(self, path: str) -> str | None:
        """The object that a path with an id is about."""
        return self.ids.get(path.split("/")[2]) if "{object_id}" in path else None

    def answer(self, case: Case) -> Response:
        """What the process says to a request of the operator."""
        key = self.api.first.token.text
        return case.call(
            base_url=f"http://127.0.0.1:{self.api.port}",
            headers={"Authorization": f"Bearer {key}"},
            timeout=20,
        )


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Asked]:
    with ApiProcess(tmp_path_factory.mktemp("api")) as api:
        yield Asked(api)


def said(response: Response) -> set[str]:
    """Every code that a refusal names."""
    problem = response.json()
    return {problem["code"], *(each["code"] for each in problem.get("errors", ()))}


def can_be_wrong(operation: Operation) -> bool:
    """Whether a request has anything to be wrong about: a parameter or a body."""
    return bool({"parameters", "requestBody"} & operation.definition.raw.keys())


CASES: Final = [
    pytest.param(operation, mode, id=f"{operation.label}-{mode.value}")
    for operation in OPERATIONS
    for mode in GenerationMode
    if mode is GenerationMode.POSITIVE or can_be_wrong(operation)
]


@pytest.mark.parametrize(("operation", "mode"), CASES)
def test_every_answer_is_one_that_the_contract_names(
    operation: Operation, mode: GenerationMode, asked: Asked
) -> None:
    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(
        case=operation.as_strategy(generation_mode=mode),
        present=st.booleans(),
    )
    def ask(case: Case, present: bool) -> None:
        object_id = asked.of(operation.path)
        if present and object_id is not None:
            case.path_parameters["object_id"] = object_id
        response = asked.answer(case)
        request = case.as_curl_command()
        # 503 is documented: here no node answers. It says when to come again.
        if response.status_code == 503:
            assert "retry-after" in response.headers, request
        else:
            assert response.status_code < 500, request
        if response.status_code == 400 and mode is GenerationMode.POSITIVE:
            assert said(response) & BEYOND_SCHEMA, f"{response.text}\n{request}"
        case.validate_response(
            response, excluded_checks=[not_a_server_error, positive_data_acceptance]
        )

    ask()


def test_every_operation_of_the_contract_is_asked() -> None:
    document = json.loads((ROOT / "openapi" / "control-plane.json").read_text())
    named = {
        f"{method.upper()} {path}" for path, found in document["paths"].items() for method in found
    }
    assert {operation.label for operation in OPERATIONS} == named
