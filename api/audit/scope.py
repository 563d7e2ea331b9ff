"""Which audit events a key may read.

A key of the organization reads all of them. A key of one project reads what happened in its
project: the events of the project and of what is or was in it, and whatever keys of the project
did or were refused. This module refuses to judge who may read the audit at all.
"""

from sqlalchemy import Select, or_, select

from api.auth.permissions import Caller
from api.db.tables.api_keys import ApiKey
from api.db.tables.audit import AuditEvent
from api.db.tables.holds import LegalHold
from api.db.tables.streams import Stream
from api.db.tables.topics import Topic


def visible_events(caller: Caller) -> Select[AuditEvent]:
    """The events that a caller may read.

    An event names its object and no project. The rows of objects that are gone stay, so their
    events are found as well; objects of the organization as a whole are in no project.
    """
    query = select(AuditEvent).where(AuditEvent.org_id == caller.org_id)
    if caller.project_id is None:
        return query
    keys = select(ApiKey.id).where(ApiKey.project_id == caller.project_id)
    inside = [
        select(model.id).where(model.project_id == caller.project_id)
        for model in (Stream, Topic, LegalHold)
    ]
    return query.where(
        or_(
            AuditEvent.target_id == caller.project_id,
            AuditEvent.principal_id.in_(keys),
            *(AuditEvent.target_id.in_(ids) for ids in (keys, *inside)),
        )
    )
