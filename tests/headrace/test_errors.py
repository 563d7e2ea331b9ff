"""Errors say what, why and next; codes choose classes; REST and gRPC meet in one tree."""

import pytest

from headrace import errors
from headrace.errors import HeadraceError, Kind, class_of, of_problem
from headrace.transport.grpc_errors import error_of
from headrace.wire import stream_pb2 as wire


def test_an_error_is_a_sentence_with_what_next_and_a_code() -> None:
    error = errors.TopicNotFound(
        'Topic "ordres" does not exist', hint="Create it: headrace topic create ordres"
    )
    assert str(error) == (
        'Topic "ordres" does not exist. Create it: headrace topic create ordres. (TOPIC_NOT_FOUND)'
    )


@pytest.mark.parametrize(
    ("code", "kind", "cls"),
    [
        ("TOPIC_NOT_FOUND", Kind.TERMINAL, errors.TopicNotFound),
        ("PROJECT_NOT_FOUND", Kind.TERMINAL, errors.NotFound),
        ("INVALID_ARGUMENT", Kind.TERMINAL, errors.Invalid),
        ("GENERATION_FENCED", Kind.TERMINAL, errors.Fenced),
        ("NEVER_HEARD_OF", Kind.TERMINAL, errors.Fatal),
        ("NEVER_HEARD_OF", Kind.RETRY_SAME_NODE, errors.Retryable),
        ("NEVER_HEARD_OF", Kind.RETRY_OTHER_NODE, errors.NotHere),
        ("NEVER_HEARD_OF", Kind.COMMITTED_UNKNOWN, errors.OutcomeUnknown),
        ("NEVER_HEARD_OF", Kind.SESSION_EXPIRED, errors.SessionExpired),
    ],
)
def test_a_code_or_else_its_kind_chooses_the_class(
    code: str, kind: Kind, cls: type[HeadraceError]
) -> None:
    assert class_of(code, kind) is cls


def test_a_wire_error_keeps_all_that_it_says() -> None:
    found = error_of(
        wire.Error(
            code="OUT_OF_SEQUENCE",
            kind=wire.TERMINAL,
            message="expected 7",
            hint="begin anew",
            retry_after_ms=1500,
            expected=7,
        )
    )
    assert isinstance(found, errors.OutOfSequence)
    assert (found.expected, found.retry_after, found.hint) == (7, 1.5, "Begin anew")
    # The node begins small, as gRPC does; people read sentences.
    assert str(found) == "Expected 7. Begin anew. (OUT_OF_SEQUENCE)"
    assert not found.retryable


def test_a_fault_that_follows_a_sentence_is_part_of_it() -> None:
    fault = {"pointer": "#/spec/partitions", "detail": "must be at least 4"}
    found = of_problem(400, {"detail": "It cannot have 2.", "errors": [fault]})
    assert found.message == "It cannot have 2; #/spec/partitions: must be at least 4"


def test_a_problem_document_becomes_a_typed_error_with_its_faults() -> None:
    found = of_problem(
        400,
        {
            "code": "INVALID_REQUEST",
            "detail": "The request is not valid",
            "request_id": "req_1",
            "errors": [{"pointer": "#/spec/partitions", "code": "TOO_LARGE", "detail": "max 1024"}],
        },
    )
    assert isinstance(found, errors.Invalid)
    assert "#/spec/partitions: max 1024" in str(found)
    assert "INVALID_REQUEST, request req_1" in str(found)


def test_what_the_detail_says_already_is_not_said_again() -> None:
    fault = {"pointer": "#/name", "code": "X", "detail": "letters only"}
    found = of_problem(400, {"detail": "name: letters only.", "errors": [fault]})
    assert found.message == "name: letters only."
    assert found.violations == (("#/name", "letters only"),)


@pytest.mark.parametrize(
    ("status", "cls"),
    [
        (401, errors.Unauthenticated),
        (403, errors.AccessDenied),
        (404, errors.NotFound),
        (409, errors.Conflict),
        (412, errors.Conflict),
        (429, errors.Throttled),
        (500, errors.Retryable),
        (503, errors.Unreachable),
    ],
)
def test_http_statuses_have_classes(status: int, cls: type[HeadraceError]) -> None:
    assert type(of_problem(status, {})) is cls


def test_every_class_below_the_branches_has_a_code_of_its_own() -> None:
    def leaves(cls: type[HeadraceError]) -> list[type[HeadraceError]]:
        below = cls.__subclasses__()
        return [cls, *(leaf for child in below for leaf in leaves(child))]

    named = [cls for cls in leaves(HeadraceError) if cls.__module__ == "headrace.errors"]
    without = {c.__name__ for c in named if "code" not in vars(c)}
    assert without == {"Retryable", "Fatal"}
