"""Columns that every resource's row shares, and those of rows that are deleted in steps."""

from datetime import datetime

from sqlalchemy import JSON, String
from sqlalchemy.orm import Mapped, mapped_column

from api.db.database import Instant


class ResourceColumns:
    """What every resource's row holds besides its own columns."""

    id: Mapped[str] = mapped_column(String(40), primary_key=True)
    org_id: Mapped[str] = mapped_column(String(40), index=True)
    name: Mapped[str] = mapped_column(String(255))
    display_name: Mapped[str] = mapped_column(String(63), default="")
    labels: Mapped[dict[str, str]] = mapped_column(JSON, default=dict)
    annotations: Mapped[dict[str, str]] = mapped_column(JSON, default=dict)
    generation: Mapped[int] = mapped_column(default=1)
    revision: Mapped[int] = mapped_column(default=1)
    created_at: Mapped[datetime] = mapped_column(Instant)
    updated_at: Mapped[datetime] = mapped_column(Instant)
    created_by: Mapped[str] = mapped_column(String(40))


class DeletableColumns(ResourceColumns):
    """What a row holds besides, if data or money hangs on the object.

    ``deleted_at``: when its deletion was requested. It is gone at ``purged_at``, once every
    finalizer is off; the finalizers are there from the creation on, so that a delete can never slip
    in between and leak. The row stays as the tombstone: its name is free again, its id never is.
    """

    finalizers: Mapped[list[str]] = mapped_column(JSON)
    deleted_at: Mapped[datetime | None] = mapped_column(Instant)
    deleted_by: Mapped[str | None] = mapped_column(String(40))
    deletion_confirmed: Mapped[bool] = mapped_column(default=False)
    force_reason: Mapped[str | None] = mapped_column(String(255))
    purged_at: Mapped[datetime | None] = mapped_column(Instant)
