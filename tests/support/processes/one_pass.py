"""A worker's process that looks at one topic: `one_pass DATABASE_URL NODE_KEY_FILE NOW`, with the
time as ISO 8601. Whoever starts it ends it, in the middle of its pass.
"""

import sys
from datetime import datetime
from pathlib import Path

from api.db.database import Database
from api.node.client import NodeClient
from api.node.pool import NodePool
from api.reconcile.loop import Loop
from api.topics.reconciler import TopicReconciler

DEADLINE_SECONDS = 60.0

url, key_file, now = sys.argv[1:]
database = Database(url, clock=lambda: datetime.fromisoformat(now))
client = NodeClient(NodePool(Path(key_file)), deadline_seconds=DEADLINE_SECONDS)
Loop(database, {"topic": TopicReconciler(database, client)}).run_once()
