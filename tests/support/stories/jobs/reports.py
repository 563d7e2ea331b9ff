"""Stands for `python -m reports` where a test scripts what a job does; Spark would take long.

It is started by the real worker with the real token, reads one line of orders from a named pipe
(and so waits until the test says how the run shall go on), and hands its result in over HTTP as
the job does. Refuses to compute anything.

    {"manifest": {...}}                        put it as the run's result
    {"failure": {"code", "message", "hint"}}   say so, and end with status 3
"""

import json
import os
import sys
import urllib.request
from pathlib import Path


def main(arguments: list[str]) -> int:
    """One run of the job; the exit status."""
    run, api = (arguments[arguments.index(name) + 1] for name in ("--run", "--api"))
    orders = json.loads(Path(os.environ["SCRIPTED_ORDERS"]).read_text())
    if "failure" in orders:
        sys.stdout.write(json.dumps({"run": run, "outcome": "failed", **orders["failure"]}) + "\n")
        return 3
    request = urllib.request.Request(
        f"{api}/v1/report-runs/{run}/result",
        data=json.dumps(orders["manifest"]).encode(),
        method="PUT",
        headers={
            "Authorization": f"Bearer {os.environ['HEADRACE_RUN_TOKEN']}",
            "Content-Type": "application/json",
        },
    )
    with urllib.request.urlopen(request, timeout=120) as answer:
        sys.stdout.write(f"{answer.status}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
