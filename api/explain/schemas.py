"""What of an explanation crosses HTTP."""

from pydantic import BaseModel

from api.http.resource import ConditionBody, Timestamp
from api.operations.schemas import OperationBody


class ExplainedObject(BaseModel):
    """The object that is explained."""

    kind: str
    id: str
    name: str


class Step(BaseModel):
    """A past or future event of the object: what happens, why, and what follows."""

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
