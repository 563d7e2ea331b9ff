"""The contract: generated, committed, and complete."""

import json
import re
from pathlib import Path

from fastapi import FastAPI

from api.app import routes

CONTRACT = Path(__file__).parents[3] / "openapi" / "control-plane.json"
DOCUMENT = json.loads(CONTRACT.read_text())
OPERATIONS = [
    (path, method, operation)
    for path, methods in DOCUMENT["paths"].items()
    for method, operation in methods.items()
]


def test_the_committed_contract_is_what_the_application_serves(application: FastAPI) -> None:
    served = application.openapi()
    assert json.loads(json.dumps(served)) == DOCUMENT, (
        "run: python -m api openapi --output openapi/control-plane.json"
    )


def test_every_operation_has_a_name_of_verb_and_noun_and_a_tag_and_a_description() -> None:
    names = [operation["operationId"] for _, _, operation in OPERATIONS]
    assert len(set(names)) == len(names)
    for _, _, operation in OPERATIONS:
        assert re.fullmatch(
            r"(get|list|create|update|delete|revoke|register|publish)[A-Z][A-Za-z]+",
            operation["operationId"],
        )
        assert operation["tags"]
        assert operation["description"]


def test_every_operation_documents_its_problems_and_never_fastapis_own() -> None:
    text = json.dumps(DOCUMENT)
    assert "HTTPValidationError" not in text
    for path, method, operation in OPERATIONS:
        if path.startswith("/v1/"):
            assert {"400", "401", "403", "404"} <= operation["responses"].keys(), (path, method)
            for status, response in operation["responses"].items():
                if int(status) >= 400:
                    assert list(response["content"]) == ["application/problem+json"]


def test_every_served_route_is_in_the_contract() -> None:
    served = {(route.path, method.lower()) for route in routes() for method in route.methods or ()}
    assert served == {(path, method) for path, method, _ in OPERATIONS}


def test_every_reference_leads_somewhere() -> None:
    names = set(re.findall(r"#/components/schemas/([A-Za-z0-9_]+)", json.dumps(DOCUMENT)))
    assert names <= DOCUMENT["components"]["schemas"].keys()
