"""Finishes the OpenAPI document: what FastAPI cannot know of our middleware, or says otherwise.

Owns what holds for every operation: problems, security, the answer of a dry run, which characters
an address may hold. What one route alone says stands at the route. A rule that is enforced and not
written here, where a schema could say it, is found by the tests that ask at random.
"""

from collections.abc import Callable, Iterator
from typing import Final, TypeAlias

from pydantic import JsonValue

from api.http.routing import Problem

Members: TypeAlias = dict[str, JsonValue]

# What validation.py refuses elsewhere than in a body.
PRINTABLE_PATTERN: Final = "^[^\\u0000-\\u001f\\u007f]*$"
# The verbs of summaries, where a route's function has another.
VERBS: Final = {"Post": "Create", "Put": "Submit", "Remove": "Delete", "Follow": "Stream"}
REFERENCES: Final = "#/components/schemas/{model}"


def finish(document: Members) -> None:
    """Changes the document that FastAPI made, in place."""
    components = _members(document["components"])
    schemas = _members(components["schemas"])
    problem = Problem.model_json_schema(ref_template=REFERENCES)
    schemas.update(problem.pop("$defs", {}))
    schemas["Problem"] = problem
    # FastAPI's own 422: we never send that.
    for name in ("HTTPValidationError", "ValidationError"):
        schemas.pop(name, None)
    components["securitySchemes"] = {"key": {"type": "http", "scheme": "bearer"}}
    document["security"] = [{"key": []}]
    for path, operation in _operations(document):
        responses = _members(operation["responses"])
        if "HTTPValidationError" in str(responses.get("422", "")):
            del responses["422"]
        if not path.startswith("/v1/"):
            operation["security"] = []
        _say_summary(operation)
        _say_events(responses)
        _say_dry_run(operation, responses)
        _say_printable(operation)
    _walk(document, _say_keys)


def _operations(document: Members) -> Iterator[tuple[str, Members]]:
    for path, methods in _members(document["paths"]).items():
        for operation in _members(methods).values():
            yield path, _members(operation)


def _say_summary(operation: Members) -> None:
    """FastAPI makes "Post Api Key" of a function's name: here it is "Create API key"."""
    verb, *words = str(operation["summary"]).split()
    rest = " ".join(words).lower().replace("api key", "API key")
    operation["summary"] = f"{VERBS.get(verb, verb)} {rest}"


def _say_events(responses: Members) -> None:
    """A stream is events, and not the one text that a schema of it would speak of."""
    content = _members(_members(responses.get("200", {})).get("content", {}))
    if "text/event-stream" in content:
        content["text/event-stream"] = {}


def _say_dry_run(operation: Members, responses: Members) -> None:
    """A trial answers 200 with the body that the real thing would have, but for ids and secrets of
    what was not made."""
    names = {str(_members(each)["name"]) for each in _list(operation.get("parameters"))}
    if "dry_run" not in names or "200" in responses:
        return
    # Without a schema: a generated client would have every answer as one of two types.
    responses["200"] = {
        "description": "With `dry_run`: the result without applying it. New objects have no id."
    }
    ordered = dict(sorted(responses.items()))
    responses.clear()
    responses.update(ordered)


def _say_printable(operation: Members) -> None:
    for parameter in map(_members, _list(operation.get("parameters"))):
        if parameter["in"] not in ("path", "query"):
            continue
        schema = _members(parameter["schema"])
        for each in [schema, *map(_members, _list(schema.get("anyOf")))]:
            free = not {"pattern", "enum", "const", "format"} & each.keys()
            if each.get("type") == "string" and free:
                each["pattern"] = PRINTABLE_PATTERN


def _say_keys(schema: Members) -> None:
    """Labels: pydantic says what keys of the pattern hold, and leaves all other keys free."""
    patterns = schema.get("patternProperties")
    if not isinstance(patterns, dict) or len(patterns) != 1:
        return
    ((pattern, value),) = patterns.items()
    del schema["patternProperties"]
    schema["propertyNames"] = {**_members(schema.get("propertyNames", {})), "pattern": pattern}
    schema["additionalProperties"] = value
    schema["maxProperties"] = schema.pop("maxLength")


def _walk(value: JsonValue, visit: Callable[[Members], None]) -> None:
    if isinstance(value, dict):
        visit(value)
    for each in value.values() if isinstance(value, dict) else _list(value):
        _walk(each, visit)


def _members(value: JsonValue) -> Members:
    assert isinstance(value, dict)
    return value


def _list(value: JsonValue) -> list[JsonValue]:
    return value if isinstance(value, list) else []
