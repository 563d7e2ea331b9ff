"""The REST API in one file, on real HTTP, with faults on demand. Bodies have the control plane's
shapes."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qsl, urlsplit

Body = dict[str, object]
Answer = tuple[int, Body]
NOW = "2026-11-27T12:00:00.000000Z"
SEEN = {"state": "READY", "bytes": "96", "start_offset": "0", "end_offset": "3"}
EFFECTIVE: dict[str, object] = {
    "partitions": 1,
    "replication_factor": 1,
    "retention_ms": "604800000",
    "retention_bytes": "unlimited",
    "min_retention_ms": "0",
    "segment_bytes": "134217728",
    "codec": "none",
    "max_message_bytes": 1048576,
    "deletion_protection": False,
    "paused": False,
    "managed": True,
}


@dataclass
class Seen:
    """One request that arrived."""

    method: str
    path: str
    query: dict[str, str]
    body: Body
    headers: dict[str, str]


@dataclass
class ScriptedApi:
    """Everything that one organization has."""

    topics: list[Body] = field(default_factory=list)
    streams: list[Body] = field(default_factory=list)
    runs: list[Body] = field(default_factory=list)
    keys: list[Body] = field(default_factory=list)
    holds: list[Body] = field(default_factory=list)
    projects: list[Body] = field(default_factory=lambda: [named("prj_1", "team")])
    orgs: list[Body] = field(default_factory=lambda: [named("org_1", "default")])
    operations: list[Body] = field(default_factory=list)
    loss: Body = field(default_factory=dict)
    """What a shorter retention lets go, by its dry run."""
    purge_ends: Body = field(default_factory=lambda: {"state": "SUCCEEDED"})
    reads_until_gone: int = 1
    seen: list[Seen] = field(default_factory=list)
    answers: list[Answer] = field(default_factory=list)
    reads_until_ready: int = 1
    is_seen: bool = True
    """Whether a node has described the partitions of topics."""
    page_size: int = 1000
    url: str = ""
    by_key: dict[str, Answer] = field(default_factory=dict)
    lose_answers: int = 0
    _server: ThreadingHTTPServer | None = None

    def start(self) -> ScriptedApi:
        api = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def handle_any(self) -> None:
                size = int(self.headers.get("content-length") or 0)
                body = json.loads(self.rfile.read(size)) if size else {}
                parts = urlsplit(self.path)
                seen = Seen(
                    self.command,
                    parts.path.removeprefix("/v1"),
                    dict(parse_qsl(parts.query)),
                    body,
                    {k.lower(): v for k, v in self.headers.items()},
                )
                answer = api.answer(seen)
                if answer is None:
                    self.close_connection = True
                    return
                status, content = answer
                data = json.dumps(content).encode()
                self.send_response(status)
                kind = "application/problem+json" if status >= 400 else "application/json"
                self.send_header("content-type", kind)
                self.send_header("content-length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            do_GET = do_POST = do_PATCH = do_DELETE = handle_any  # noqa: N815 - http.server's names

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002
                """Nothing on stderr."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def stop(self) -> None:
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()

    def answer(self, seen: Seen) -> Answer | None:
        self.seen.append(seen)
        if self.answers:
            return self.answers.pop(0)
        key = seen.headers.get("idempotency-key", "")
        if key not in self.by_key or not key:
            self.by_key[key] = self._route(seen)
        if self.lose_answers:
            self.lose_answers -= 1
            return None
        return self.by_key[key]

    def _route(self, seen: Seen) -> Answer:
        routes: dict[tuple[str, str], Callable[[Seen], Answer]] = {
            ("GET", "topics"): self._topics,
            ("POST", "topics"): self._create_topic,
            ("PATCH", "topics"): self._alter_topic,
            ("GET", "streams"): lambda seen: listed(self.streams, seen),
            ("POST", "streams"): self._create_stream,
            ("GET", "usage"): self._usage,
            ("GET", "invoices"): lambda seen: listed(INVOICES, seen),
            ("GET", "reports"): lambda seen: (200, retention(seen.query)),
            ("GET", "report-runs"): self._runs,
            ("POST", "report-runs"): self._create_run,
            ("GET", "projects"): lambda seen: listed(self.projects, seen),
            ("POST", "projects"): lambda seen: self._create(self.projects, "prj", seen),
            ("GET", "orgs"): lambda seen: listed(self.orgs, seen),
            ("POST", "orgs"): lambda seen: self._create(self.orgs, "org", seen),
            ("GET", "api-keys"): lambda seen: listed(self.keys, seen),
            ("POST", "api-keys"): self._create_key,
            ("GET", "operations"): lambda seen: listed(self.operations, seen),
            ("GET", "legal-holds"): lambda seen: listed(self.holds, seen),
            ("POST", "legal-holds"): self._create_hold,
            ("GET", "clusters"): self._clusters,
            ("GET", "explain"): self._explain,
        }
        if seen.method == "DELETE":
            return self._delete(seen)
        collection = seen.path.strip("/").split("/")[0]
        found = routes.get((seen.method, collection))
        return found(seen) if found is not None else problem(404, "NOT_FOUND", seen.path)

    def _topics(self, seen: Seen) -> Answer:
        _, _, topic_id = seen.path.strip("/").partition("/")
        if topic_id:
            topic = next((t for t in self.topics if t["id"] == topic_id), None)
            if topic is None:
                return problem(404, "TOPIC_NOT_FOUND", topic_id)
            self.reads_until_ready -= 1
            if topic.get("deleted_at"):
                self._forget(topic)
            return 200, self._as_found(topic)
        wanted = [
            t
            for t in self.topics
            if seen.query.get("name", t["name"]) == t["name"]
            and seen.query.get("stream", t["stream"]) == t["stream"]
        ]
        begin = int(seen.query.get("page_token", "0"))
        page = wanted[begin : begin + self.page_size]
        body: Body = {"items": [self._as_found(t) for t in page]}
        if begin + self.page_size < len(wanted):
            body["next_page_token"] = str(begin + self.page_size)
        return 200, body

    def _as_found(self, topic: Body) -> Body:
        ready = self.reads_until_ready <= 0
        spec = topic["spec"]
        assert isinstance(spec, dict)
        paused = spec.get("paused") is True
        reason = "Paused" if paused else "RECONCILED"
        return {
            **topic,
            "status": {
                "conditions": [
                    {
                        "type": "Ready",
                        "status": "True" if ready and not paused else "Unknown",
                        "reason": reason if ready else "PENDING",
                        "message": "",
                    },
                    {
                        "type": "RetentionEnforced",
                        "status": "True",
                        "reason": "Enforced",
                        "message": "whole segments go",
                    },
                ],
                "observed_generation": topic["generation"] if ready else 0,
                "effective": EFFECTIVE | {key: value for key, value in spec.items() if value},
                "partitions": [{**SEEN, "index": 0, "primary": "nd_1"}] if self.is_seen else [],
            },
        }

    def _purge(self, seen: Seen) -> Answer:
        found = seen.path.rpartition("/")[2].removesuffix(":purge")
        topic = next(each for each in self.topics if each["id"] == found)
        if seen.headers.get("if-match") != topic["etag"]:
            return problem(412, "ETAG_MISMATCH", "It was changed meanwhile")
        if seen.query.get("dry_run"):
            loss = {"records": "3", "bytes_estimate": "96"}
            return 200, {**self._as_found(topic), "plan": {"data_loss": loss, "warnings": []}}
        generation = int(str(topic["generation"])) + 1
        topic |= {"generation": generation, "etag": f"r{generation}"}
        target = {"kind": "topic", "id": found, "generation": generation}
        operation: Body = {"id": "op_1", "kind": "delete_topic_records", "target": target}
        self.operations.append(operation | self.purge_ends)
        return 202, self._as_found(topic)

    def _create_topic(self, seen: Seen) -> Answer:
        if seen.path.endswith(":purge"):
            return self._purge(seen)
        stream = seen.body.get("stream", "default")
        if any((t["name"], t["stream"]) == (seen.body["name"], stream) for t in self.topics):
            return problem(409, "NAME_TAKEN", f"{seen.body['name']} exists")
        topic: Body = {
            "id": f"tp_{len(self.topics)}",
            "name": seen.body["name"],
            "stream": stream,
            "spec": seen.body["spec"],
            "generation": 1,
            "etag": "r1",
            "created_at": NOW,
        }
        self.topics.append(topic)
        return 202, self._as_found(topic)

    def _alter_topic(self, seen: Seen) -> Answer:
        topic = next(t for t in self.topics if t["id"] == seen.path.rpartition("/")[2])
        if seen.headers.get("if-match") != topic["etag"]:
            return problem(412, "ETAG_MISMATCH", "It was changed meanwhile")
        spec, desired = topic["spec"], seen.body["spec"]
        assert isinstance(spec, dict)
        assert isinstance(desired, dict)
        if seen.query.get("dry_run"):
            plan = {"plan": {"data_loss": self.loss, "warnings": ["Whole segments go."]}}
            planned = {**topic, "spec": {**spec, **desired}}
            return 200, {**self._as_found(planned), **(plan if self.loss else {})}
        topic |= {"spec": {**spec, **desired}, "generation": 2, "etag": "r2"}
        return 202, self._as_found(topic)

    def _create_stream(self, seen: Seen) -> Answer:
        return self._create(self.streams, "st", seen)

    def _create(self, rows: list[Body], prefix: str, seen: Seen) -> Answer:
        rows.append(named(f"{prefix}_{len(rows) + 1}", str(seen.body["name"])))
        return 201, rows[-1]

    def _create_key(self, seen: Seen) -> Answer:
        key = named(f"key_{len(self.keys) + 1}", str(seen.body["name"])) | {
            "spec": {"role": "editor"}
        }
        self.keys.append(key)
        return 202, {**key, "secret": "hr_user_new"}

    def _create_hold(self, seen: Seen) -> Answer:
        hold = {**named(f"hold_{len(self.holds) + 1}", ""), **seen.body}
        del hold["name"]  # A hold has none.
        topic = next(each for each in self.topics if each["id"] == seen.body["topic_id"])
        hold |= {"topic": f"{topic['stream']}/{topic['name']}", "created_by": "key_1"}
        self.holds.append(hold | _held("ACTIVE", 1))
        return 202, hold | _held("PROPAGATING", 1)

    def _release(self, hold: Body) -> Answer:
        hold |= {"generation": 2, "etag": "r2", "released_by": "key_1"} | _held("RELEASED", 2)
        return 202, hold | _held("RELEASING", 2)

    def _clusters(self, seen: Seen) -> Answer:
        if seen.path.endswith("/nodes"):
            node = named("nd_1", "node-1") | {"spec": {"address": "127.0.0.1:8461"}}
            return 200, {"items": [{**node, "cluster_id": "cl_1"}]}
        return 200, {"items": [named("cl_1", "local")]}

    def _delete(self, seen: Seen) -> Answer:
        rows = (self.topics, self.streams, self.projects, self.keys, self.holds)
        wanted = seen.path.rpartition("/")[2]
        row = next(row for each in rows for row in each if row["id"] == wanted)
        if seen.headers.get("if-match") != row["etag"]:
            return problem(412, "ETAG_MISMATCH", "It was changed meanwhile")
        if row in self.holds:
            return self._release(row)
        row["deleted_at"] = NOW
        if row not in self.topics:
            self._forget(row)
        return 202, row

    def _forget(self, row: Body) -> None:
        self.reads_until_gone -= 1
        if self.reads_until_gone <= 0:
            for rows in (self.topics, self.streams, self.projects, self.keys):
                rows[:] = [each for each in rows if each is not row]

    def _explain(self, seen: Seen) -> Answer:
        kind, _, name = seen.query["object"].partition("/")
        step = {"at": NOW, "what": "claimed", "why": "generation 1", "next": "apply"}
        condition = {"type": "Ready", "status": "True", "reason": "RECONCILED", "message": ""}
        return 200, {
            "object": {"kind": kind, "id": "tp_0", "name": name},
            "summary": f"{name} is ready: generation 1 is in effect.",
            "steps": [step],
            "conditions": [condition],
            "operations": [{"id": "op_1", "kind": "create_topic", "state": "SUCCEEDED"}],
        }

    def _usage(self, seen: Seen) -> Answer:
        cost = {"amount": "0.000000047", "currency": "EUR"}
        line = {"meter": "ingress_bytes", "unit": "B", "quantity": "1024", "cost": cost}
        return 200, {
            "run_id": "run_1",
            "computed_at": NOW,
            "group_by": seen.query["group_by"],
            "items": [{"group": "2026-11-27", **line}],
            "totals": [line],
            "cost": [cost],
        }

    def _create_run(self, seen: Seen) -> Answer:
        run: Body = {"id": "run_1", "kind": seen.body["kind"], "state": "QUEUED", "created_at": NOW}
        self.runs.append(run)
        return 202, run

    def _runs(self, seen: Seen) -> Answer:
        _, _, run_id = seen.path.strip("/").partition("/")
        if not run_id:
            return 200, {"items": self.runs}
        totals = {"rows": "3", "amount_exact": "0.000000047", "currency": "EUR"}
        files = [{"name": name} for name in ("usage.csv", "usage.html")]
        result = {"totals": totals, "path": "/reports/usage/abc", "files": files}
        done = {"state": "SUCCEEDED", "finished_at": NOW, "result": result}
        return 200, {**self.runs[0], **done}


def _held(state: str, generation: int) -> Body:
    """The state of a hold, and what was found of it."""
    done = state in ("ACTIVE", "RELEASED")
    ready = {
        "type": "Ready",
        "status": "True" if done else "False",
        "reason": "Confirmed" if done else "Propagating",
        "message": "" if done else "waits for the logs of partitions 0",
    }
    partition = {"index": 0, "missing": not done, "held_from": "0", "held_bytes": "4096"}
    return {
        "state": state,
        "status": {
            "conditions": [ready],
            "observed_generation": generation,
            "missing_partitions": [] if done else [0],
            "partitions": [partition],
        },
    }


INVOICES: list[Body] = [
    {
        "id": f"inv_{period}" if own else f"inv_other_{period}",
        "name": f"inv_{period}" if own else f"inv_other_{period}",
        "organization_id": "org_1" if own else "org_2",
        "organization": "acme" if own else "birch",
        "own": own,
        "run_id": "run_1",
        "state": "DRAFT",
        "blocked": blocked,
        "period": period,
        "as_of": NOW,
        "currency": "EUR",
        "total": "5.00",
        **({"amount_per_month": "7.500000000", "rate_from": NOW} if own else {}),
        "lines": [
            {
                "line": 1,
                "sku": "ingress_bytes",
                "quantity": "1024",
                "unit": "B",
                "unit_price": "0.05",
                "amount_exact": "4.996000000",
                "amount": "5.00",
                "currency": "EUR",
                "description": "Ingress",
            }
        ],
        "reconciliation": [
            {
                "name": "log",
                "title": "Billed bytes match the log",
                "state": "RED" if blocked else "GREEN",
                "detail": "2 bytes differ.",
            }
        ],
    }
    for period, blocked, own in (
        ("2026-10", False, True),
        ("2026-11", True, True),
        ("2026-11", False, False),
        ("2026-12", False, False),
    )
]


def named(object_id: str, name: str) -> Body:
    """An object as every list has it."""
    head = {"id": object_id, "name": name, "generation": 1, "etag": "r1", "created_at": NOW}
    return {**head, "status": {"conditions": [], "observed_generation": 1}}


def listed(rows: list[Body], seen: Seen) -> Answer:
    """A list, or one of its objects."""
    _, _, wanted = seen.path.strip("/").partition("/")
    if wanted:
        found = next((row for row in rows if row["id"] == wanted), None)
        return (200, found) if found is not None else problem(404, "NOT_FOUND", wanted)
    name = seen.query.get("name")
    return 200, {"items": [row for row in rows if name in (None, row.get("name"))]}


def retention(query: dict[str, str]) -> Body:
    """A trim and a partition of one topic, and what is due of it."""
    topic = {"topic": "default/known", "topic_id": "tp_0", "partition": 0, "policy_source": "topic"}
    offsets = {"first_offset": "0", "last_offset": "9", "hold_id": "", "violation": ""}
    went: Body = {"deleted_bytes": "1024", "deleted_records": "10", "live_bytes": "0"}
    lives: Body = {"deleted_bytes": "0", "deleted_records": "0", "live_bytes": "4096"}
    went |= {"cause": "size", "deleted_at": NOW, "age_at_deletion_ms": "60000"}
    lives |= {"cause": "", "next_deletion_at": NOW}
    told: Body = {
        **topic,
        "live_bytes": "4096",
        "hold_blocked_bytes": "512",
        "schedule": [
            {"day": day, "bytes": str(100 * (day + 1)), "records": "1"} for day in (0, 1, 9)
        ],
    }
    return {
        "run_id": "run_1",
        "as_of": NOW,
        "summary": {
            "deleted": [{"cause": "size", "trims": "1", "bytes": "1024", "records": "10"}],
            "violations": {"UNBOUNDED": 2},
        },
        "items": [{**topic, **offsets, **went}, {**topic, **offsets, **lives}],
        **({"topic": told} if "topic_id" in query else {}),
    }


def problem(status: int, code: str, detail: str) -> Answer:
    """An application/problem+json answer."""
    return status, {
        "type": "about:blank",
        "title": code,
        "status": status,
        "detail": detail,
        "code": code,
        "request_id": "req_1",
        "retriable": status >= 500,
    }
