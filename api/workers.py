"""The reconcilers of one process, put together: what `serve` runs inside and `reconcile` runs
alone."""

from typing import Final

from api.database import Database
from api.reconcile import holds, keys, parents, reports, topics
from api.reconcile.holds import HoldReconciler
from api.reconcile.keys import KeyReconciler
from api.reconcile.loop import Loop
from api.reconcile.node_client import NodeClients
from api.reconcile.parents import ParentReconciler
from api.reconcile.reports import ReportReconciler
from api.reconcile.topics import TopicReconciler
from api.settings import Settings

USER_FACING: Final = (topics.KIND, holds.KIND, keys.KIND, parents.STREAM, parents.PROJECT)
BACKGROUND: Final = (reports.KIND,)


class Workers:
    """Two pools, so that a report of minutes never keeps a topic waiting.

    :param api_url: where the jobs that are started here find the control plane.
    """

    def __init__(self, settings: Settings, database: Database, api_url: str) -> None:
        self._nodes = NodeClients(settings.node.admin_key_file)
        self._reports = ReportReconciler(database, self._nodes, settings.reports, api_url)
        parent = ParentReconciler(database)
        self.loop = Loop(
            database,
            {
                topics.KIND: TopicReconciler(database, self._nodes),
                holds.KIND: HoldReconciler(database, self._nodes),
                keys.KIND: KeyReconciler(database, self._nodes),
                parents.STREAM: parent,
                parents.PROJECT: parent,
                reports.KIND: self._reports,
            },
            pools=((USER_FACING, settings.api.workers), (BACKGROUND, 1)),
        )

    def start(self) -> None:
        """Starts the threads."""
        self.loop.start()

    def stop(self) -> None:
        """Ends the running job, lets the other passes end, and closes the channels."""
        self._reports.stop()
        self.loop.stop()
        self._nodes.close()
