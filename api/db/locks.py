"""Locks on rows. SQLite has one writer and needs none; there they are plain reads."""

from typing import TypeVar

from sqlalchemy import select
from sqlalchemy.orm import Session

from api.db.columns import ResourceColumns

Row = TypeVar("Row", bound=ResourceColumns)


def locked(session: Session, model: type[Row], object_id: str, *, shared: bool = False) -> Row:
    """A row as it is now, locked until this transaction ends. Who creates something inside an
    object locks it shared; who marks it for deletion locks it alone, so that nothing is created
    behind the mark."""
    query = select(model).where(model.id == object_id)
    query = query.with_for_update(read=shared, key_share=shared)
    return session.scalars(query.execution_options(populate_existing=True)).one()
