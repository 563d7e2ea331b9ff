"""The two REST calls of a run: what to bill with, and what came out.

Owns repeating while the control plane is away, and turning its problems into typed errors. Both
calls are idempotent: the run id names the result. Refuses every other route.
"""

import http.client
import json
import time
import urllib.error
import urllib.request
from dataclasses import dataclass, field

from headrace.errors import of_problem
from headrace.transport.retry import Backoff, Deadline
from reports.errors import ArgumentError, ControlError

CALL_SECONDS = 30.0
DEADLINE_SECONDS = 120.0


@dataclass(frozen=True, slots=True)
class RunClient:
    """One run as the control plane knows it.

    The token is good for this run only and stays out of repr.
    """

    api_url: str
    run_id: str
    token: str = field(repr=False)
    deadline_seconds: float = DEADLINE_SECONDS

    def inputs(self) -> object:
        """GET .../inputs: names and prices."""
        return json.loads(self._repeat("GET", "inputs", None))

    def put_result(self, manifest: dict[str, object]) -> None:
        """PUT .../result: the manifest. RESULT_REJECTED if the files are not what it says."""
        self._repeat("PUT", "result", json.dumps(manifest).encode())

    def _repeat(self, method: str, resource: str, body: bytes | None) -> bytes:
        deadline, backoff = Deadline(self.deadline_seconds), Backoff()
        while True:
            try:
                return self._call(method, resource, body)
            except ControlError as error:
                pause = backoff.pause()
                if not error.repeatable or deadline.remaining() <= pause:
                    raise
                time.sleep(pause)

    def _call(self, method: str, resource: str, body: bytes | None) -> bytes:
        url = f"{self.api_url.rstrip('/')}/v1/report-runs/{self.run_id}/{resource}"
        headers = {"Authorization": f"Bearer {self.token}", "Accept": "application/json"}
        if body is not None:
            headers["Content-Type"] = "application/json"
        request = urllib.request.Request(url, data=body, headers=headers, method=method)
        try:
            with urllib.request.urlopen(request, timeout=CALL_SECONDS) as answer:
                content: bytes = answer.read()
                return content
        except urllib.error.HTTPError as refusal:
            raise _refused(refusal) from None
        except (OSError, http.client.HTTPException) as failure:
            raise ControlError(
                "API_UNREACHABLE",
                f"{self.api_url} does not answer: {getattr(failure, 'reason', failure)}.",
                "Is the control plane running, and is --api its address?",
                repeatable=True,
            ) from None


def run_client(api_url: str, run_id: str, token: str | None) -> RunClient:
    """Checked arguments."""
    if not api_url.startswith(("http://", "https://")):
        raise ArgumentError(
            "API_URL_INVALID", f"--api is {api_url!r}.", "Example: http://127.0.0.1:8460."
        )
    if not token:
        raise ArgumentError(
            "RUN_TOKEN_MISSING",
            "HEADRACE_RUN_TOKEN is not set.",
            "The worker that starts a run sets it; by hand, use --export FILE instead.",
        )
    return RunClient(api_url, run_id, token)


def _refused(refusal: urllib.error.HTTPError) -> ControlError:
    try:
        problem = json.loads(refusal.read())
    except (ValueError, OSError):
        problem = {}
    error = of_problem(refusal.code, problem if isinstance(problem, dict) else {})
    return ControlError(
        error.code,
        error.message,
        error.hint or "See the control plane's log for the request.",
        repeatable=refusal.code in (429, 502, 503, 504),
    )
