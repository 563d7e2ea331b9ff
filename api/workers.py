"""The reconcilers of one process, put together: what `serve` runs inside and `reconcile` runs
alone."""

from typing import Final

from api.api_keys.reconciler import KIND as KEY
from api.api_keys.reconciler import KeyReconciler
from api.db.database import Database
from api.holds.reconciler import KIND as HOLD
from api.holds.reconciler import HoldReconciler
from api.node.client import NodeClient
from api.node.pool import NodePool
from api.projects.reconciler import KIND as PROJECT
from api.projects.reconciler import ProjectReconciler
from api.reconcile.loop import Loop
from api.reports.reconciler import KIND as REPORT
from api.reports.reconciler import ReportReconciler
from api.settings import Settings
from api.streams.reconciler import KIND as STREAM
from api.streams.reconciler import StreamReconciler
from api.topics.reconciler import KIND as TOPIC
from api.topics.reconciler import TopicReconciler

USER_FACING: Final = (TOPIC, HOLD, KEY, STREAM, PROJECT)
BACKGROUND: Final = (REPORT,)


class Workers:
    """Two pools, so that a report of minutes never keeps a topic waiting.

    :param api_url: where the jobs that are started here find the control plane.
    """

    def __init__(
        self, settings: Settings, database: Database, nodes: NodePool, api_url: str
    ) -> None:
        client = NodeClient(nodes, limited=False)
        self._reports = ReportReconciler(database, client, settings.reports, api_url)
        self.loop = Loop(
            database,
            {
                TOPIC: TopicReconciler(database, client),
                HOLD: HoldReconciler(database, client),
                KEY: KeyReconciler(database, client),
                STREAM: StreamReconciler(database),
                PROJECT: ProjectReconciler(database),
                REPORT: self._reports,
            },
            pools=((USER_FACING, settings.api.workers), (BACKGROUND, 1)),
        )

    def start(self) -> None:
        """Starts the threads."""
        self.loop.start()

    def stop(self) -> None:
        """Ends the running job, and lets the other passes end."""
        self._reports.stop()
        self.loop.stop()
