"""What of an explanation crosses HTTP."""

from pydantic import BaseModel

from api.http.resource import ConditionBody, Timestamp
from api.operations.schemas import OperationBody


class ExplainedObject(BaseModel):
    """Which object it is about. ``name`` is what people call it."""

    kind: str
    id: str
    name: str


class Step(BaseModel):
    """Something that happened to the object or will: what, why, and what follows from it."""

    at: Timestamp
    what: str
    why: str
    next: str


class ExplanationBody(BaseModel):
    """The state of an object and its reasons. ``steps`` are in chronological order; the last may be
    in the future."""

    object: ExplainedObject
    summary: str
    steps: list[Step]
    conditions: list[ConditionBody]
    operations: list[OperationBody]
