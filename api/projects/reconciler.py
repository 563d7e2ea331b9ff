"""Projects that shall go: gone once they hold no stream and every cluster forgot their keys."""

from typing import Final

from sqlalchemy.orm import Session

from api.db.database import Database
from api.db.tables.projects import Project
from api.deletion.parent import Parent, ParentReconciler
from api.projects.deletion import bury_project, keys_known, streams_of

KIND: Final = "project"


class ProjectReconciler(ParentReconciler[Project]):
    """Looks at one project that shall go."""

    def __init__(self, database: Database) -> None:
        super().__init__(database, Parent(Project, _inside, bury_project))


def _inside(session: Session, row: Project) -> list[str]:
    streams = [f"stream {each.name}" for each in streams_of(session, row)]
    return streams + [f"key {each.name}" for each in keys_known(session, row)]
