"""Requests at random from the contract, to real processes: every answer is one that the contract
names, in the shape that it says; what the contract allows is refused by nothing that it could say.

Schemathesis makes the requests and holds the answers against the document. Half of them are about
objects that are there. Making one takes longer than answering it, so each goes to both processes:
one over SQLite, one over PostgreSQL.
"""

import json
from collections.abc import Iterator
from contextlib import ExitStack
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

from tests.support.builders.control_plane import Installation
from tests.support.processes.api_process import ApiProcess
from tests.support.source import ROOT

EXAMPLES: Final = 4
NOBODY: Final = "nd_nobody"
# Parsed JSON, bytes, or nothing at all.
Body: TypeAlias = Any
Case: TypeAlias = schemathesis.Case[Any]
Operation: TypeAlias = schemathesis.APIOperation[Any, Any, Any, Any]

SCHEMA: Final = schemathesis.openapi.from_dict(
    json.loads((ROOT / "openapi" / "control-plane.json").read_text())
)
# No body holds NUL or half of a surrogate pair: JSON Schema has no word for all of its texts.
SCHEMA.config.generation.allow_x00 = False
# Who asks is the test's to say.
SCHEMA.config.generation.with_security_parameters = False
OPERATIONS: Final[list[Operation]] = [
    each.ok() for each in SCHEMA.get_all_operations() if isinstance(each, Ok)
]
# What an allowed request may be refused for with 400: rules between members, and of what is there.
BEYOND_SCHEMA: Final = frozenset(
    {
        "AMBIGUOUS",
        "BELOW_MINIMUM",
        "FIELD_IMMUTABLE",
        "FORCE_AND_REASON",
        "METER_UNKNOWN",
        "MISSING",  # another member makes it necessary: time for from=time
        "NEEDS_PARTITION",
        "NOT_ENOUGH_NODES",
        "NO_SUCH_PARTITION",
        "PAGE_TOKEN_INVALID",
        "PARTITIONS_DECREASE",
        "REPEATED",
        "REQUIRED",  # of several clusters one must be named
        "UNKNOWN_PATH",
        "WEAK_TAG",
    }
)
# And the bounds of a whole number that is written as text: a pattern has no word for them.
BOUNDS: Final = frozenset({"GREATER_THAN_EQUAL", "LESS_THAN_EQUAL"})


class Asked:
    """A process, and one object of each kind in it."""

    def __init__(self, database: str, api: ApiProcess) -> None:
        self.database = database
        self.api = api
        self.ids: dict[str, str] = {}
        for path, body in (
            ("topics", {"name": "orders", "spec": {"partitions": 2}}),
            ("report-runs", {"kind": "usage"}),
        ):
            self.ids[path] = self._id(b"POST", path, json.dumps(body).encode())
        for path in ("orgs", "projects", "clusters", "streams", "api-keys", "operations"):
            self.ids[path] = self._id(b"GET", path)

    def _id(self, method: bytes, path: str, body: bytes = b"") -> str:
        answer = self.api.ask(method, f"/v1/{path}".encode(), body)
        found = json.loads(answer.body)
        return str((found["items"][0] if "items" in found else found)["id"])

    def there(self, operation: Operation) -> str:
        """The id of the object of an operation's kind."""
        return self.ids.get("".join(operation.path.split("/")[2:3]), NOBODY)

    def answer(self, case: Case) -> Response:
        """What the process says to a request of the operator."""
        key = self.api.first.token.text
        return case.call(
            base_url=f"http://127.0.0.1:{self.api.port}",
            headers={"Authorization": f"Bearer {key}"},
            timeout=120,
        )


@pytest.fixture(scope="module")
def both(
    tmp_path_factory: pytest.TempPathFactory, sqlite: Installation, postgresql: Installation
) -> Iterator[list[Asked]]:
    with ExitStack() as stack:
        found = []
        for stored in (sqlite, postgresql):
            folder = tmp_path_factory.mktemp("api")
            process = ApiProcess(folder, stored.another(folder), stored.first)
            name = stored.database.writer.name
            found.append(Asked(name, stack.enter_context(process)))
        yield found


def requests(operation: Operation, mode: GenerationMode, object_id: str) -> st.SearchStrategy[Case]:
    """About any object, and as often about one that is there; not if nothing else than its id can
    be wrong."""
    anything = operation.as_strategy(generation_mode=mode)
    if "{object_id}" not in operation.path:
        return anything
    alone = not operation.query and not operation.body
    if mode is GenerationMode.NEGATIVE and alone:
        return anything
    place = {each.name: NOBODY for each in operation.path_parameters}
    place["object_id"] = object_id
    return anything | operation.as_strategy(generation_mode=mode, path_parameters=place)


def whole(value: Body) -> Body:
    """4.0 is an integer to JSON Schema, and refused by us on purpose."""
    if isinstance(value, dict):
        return {name: whole(each) for name, each in value.items()}
    if isinstance(value, list):
        return [whole(each) for each in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def said(response: Response) -> set[str]:
    """Every code that a refusal names."""
    problem = response.json()
    return {problem["code"], *(each["code"] for each in problem.get("errors", ()))}


def is_number_as_text(body: Body, pointer: str) -> bool:
    """Whether a pointer of a refusal is to digits in quotes."""
    for name in pointer.removeprefix("#/").split("/"):
        body = body.get(name) if isinstance(body, dict) else None
    return isinstance(body, str) and body.isdecimal()


def is_beyond_schema(case: Case, response: Response) -> bool:
    """Whether an allowed request is refused for something that the contract cannot say."""
    return bool(said(response) & BEYOND_SCHEMA) or any(
        each["code"] in BOUNDS and is_number_as_text(case.body, each["pointer"])
        for each in response.json().get("errors", ())
    )


def can_be_wrong(operation: Operation) -> bool:
    """Whether a request has anything to be wrong about: a parameter or a body."""
    return bool({"parameters", "requestBody"} & operation.definition.raw.keys())


CASES: Final = [
    pytest.param(operation, mode, id=f"{operation.label}-{mode.value}")
    for operation in OPERATIONS
    for mode in GenerationMode
    if mode is GenerationMode.POSITIVE or can_be_wrong(operation)
]


def evaluate(case: Case, response: Response, mode: GenerationMode, database: str) -> None:
    """Holds an answer against the contract."""
    request = f"{database}: {case.as_curl_command()}"
    # 503 is documented: here no node answers. It says when to come again.
    if response.status_code == 503:
        assert "retry-after" in response.headers, request
    else:
        assert response.status_code < 500, request
    if response.status_code == 400 and mode is GenerationMode.POSITIVE:
        assert is_beyond_schema(case, response), f"{response.text}\n{request}"
    case.validate_response(response, excluded_checks=[not_a_server_error, positive_data_acceptance])


@pytest.mark.check
@pytest.mark.parametrize(("operation", "mode"), CASES)
def test_every_answer_is_one_that_the_contract_names(
    operation: Operation, mode: GenerationMode, both: list[Asked]
) -> None:
    there = both[0].there(operation)

    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=requests(operation, mode, there))
    def ask(case: Case) -> None:
        if mode is GenerationMode.POSITIVE:
            case.body = whole(case.body)
        if "looks" in {each.name for each in operation.query}:
            # A stream that ends after so many events, and else in minutes.
            case.query = {**(case.query or {}), "looks": 1}
        is_there = case.path_parameters.get("object_id") == there
        for asked in both:
            if is_there:
                object_id = asked.there(operation)
                case.path_parameters = {**case.path_parameters, "object_id": object_id}
            evaluate(case, asked.answer(case), mode, asked.database)

    ask()


def test_every_operation_of_the_contract_is_asked() -> None:
    document = json.loads((ROOT / "openapi" / "control-plane.json").read_text())
    named = {
        f"{method.upper()} {path}" for path, found in document["paths"].items() for method in found
    }
    assert {operation.label for operation in OPERATIONS} == named


def test_the_bounds_of_digits_in_quotes_are_all_that_the_contract_cannot_say() -> None:
    body = {"spec": {"segment_bytes": "1073741825", "partitions": 0}}
    assert is_number_as_text(body, "#/spec/segment_bytes")
    assert not is_number_as_text(body, "#/spec/partitions")
    assert not is_number_as_text(body, "#/spec/nothing/there")
