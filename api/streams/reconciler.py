"""Streams that shall go: gone once they hold no topic."""

from typing import Final

from sqlalchemy.orm import Session

from api.db.database import Database
from api.db.tables.streams import Stream
from api.deletion.parent import Parent, ParentReconciler
from api.streams.deletion import bury_stream, topics_of

KIND: Final = "stream"


class StreamReconciler(ParentReconciler[Stream]):
    """Looks at one stream that shall go."""

    def __init__(self, database: Database) -> None:
        super().__init__(database, Parent(Stream, _inside, bury_stream))


def _inside(session: Session, row: Stream) -> list[str]:
    return [f"topic {each.name}" for each in topics_of(session, row)]
