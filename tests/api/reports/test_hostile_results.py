"""Files of a report that say what cannot be: whatever they hold, a result is taken and can be
shown, or it is refused with what is wrong with it, and what was shown stays."""

import hashlib
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.api.reports.test_reports import BYTE_PRICE, row_of
from tests.api.reports.test_reports import publish as publish_usage
from tests.api.reports.test_reports import started as started_usage
from tests.api.retention.test_retention import publish, started, told
from tests.support.builders.control_plane import Body, Service

Edit = Callable[[str], str]


def edited(service: Service, manifest: Body, name: str, edit: Edit) -> Body:
    """The manifest of the same files, one of them edited."""
    path = Path(service.settings.reports.uri) / manifest["path"] / name
    content = edit(path.read_bytes().decode()).encode()
    path.write_bytes(content)
    sha256 = hashlib.sha256(content).hexdigest()
    entry = {"name": name, "bytes": len(content), "sha256": sha256}
    others = [one for one in manifest["files"] if one["name"] != name]
    return {**manifest, "files": [*others, entry]}


def cell(before: str, after: str) -> Edit:
    return lambda text: text.replace(before, after, 1)


def replaced_by(text: str) -> Edit:
    return lambda _: text


LINES: dict[str, Edit] = {
    "an empty count": cell(",1024,5,", ",1024,,"),
    "a partition that is none": cell(",0,topic,", ",99999999999,topic,"),
    "no partition": cell(",0,topic,", ",,topic,"),
    "an offset beyond 64 bits": cell(",0,9,", f",0,{1 << 63},"),
    "a negative offset": cell(",0,9,", ",-7,9,"),
    "a time that UTC has not": cell("2026-03-01T11:00:00.5Z", "0001-01-01T00:00:00+14:00"),
    "a text that is too long": cell("UNBOUNDED", "U" * 300),
    "a NUL": cell("UNBOUNDED", "U\0"),
    "a cell too many": cell("size,", "size,more,"),
    "a cell of megabytes": cell("UNBOUNDED", "U" * 200_000),
}
TOPICS: dict[str, Callable[[Body], object]] = {
    "no figures": lambda topic: {"topic_id": topic["id"]},
    "no id": lambda topic: {**told(topic), "topic_id": None},
    "a figure that is none": lambda topic: told(topic, live_bytes="many"),
    "a negative figure": lambda topic: told(topic, live_records="-1"),
    "a list that is none": lambda topic: told(topic, deleted={"cause": "size"}),
    "a day that is none": lambda topic: told(topic, schedule=[{"day": "x"}]),
    "half of a surrogate pair": lambda topic: told(topic, more="\ud800"),
    "a number that is none": lambda topic: told(topic, more=float("nan")),
}


def test_a_retention_result_that_cannot_be_shown_is_refused(service: Service) -> None:
    topic = service.topic("orders")
    run, header = started(service)
    good = publish(service, [topic])
    edits = [("retention.csv", name, edit) for name, edit in LINES.items()]
    for name, make in TOPICS.items():
        text = json.dumps({"topics": [make(topic)]})
        edits.append(("retention.json", name, replaced_by(text)))
    twice = json.dumps({"topics": [told(topic)] * 2})
    edits.append(("retention.json", "a topic twice", replaced_by(twice)))
    edits.append(("retention.json", "a deep list", replaced_by("[" * 100_000)))
    for file, name, edit in edits:
        manifest = edited(service, publish(service, [topic]), file, edit)
        answer = service.client.put(
            f"/v1/report-runs/{run['id']}/result", json=manifest, headers=header
        )
        assert answer.json().get("code") == "RESULT_REJECTED", (name, answer.text)
    path = f"/v1/report-runs/{run['id']}/result"
    manifest = publish(service, [topic])
    assert manifest == good
    assert service.client.put(path, json=manifest, headers=header).status_code == 200
    assert len(service.get("/v1/reports/retention")["items"]) == 2


@pytest.mark.parametrize("age", ["-1", "-86400000"])
def test_a_trim_of_a_clock_that_went_back_is_shown_with_its_age(service: Service, age: str) -> None:
    run, header = started(service)
    manifest = publish(service, [service.topic("orders")])
    skewed = edited(service, manifest, "retention.csv", cell(",60000,", f",{age},"))
    path = f"/v1/report-runs/{run['id']}/result"
    assert service.client.put(path, json=skewed, headers=header).status_code == 200
    assert service.get("/v1/reports/retention")["items"][0]["age_at_deletion_ms"] == age


def test_a_usage_result_that_no_table_holds_is_refused(service: Service) -> None:
    topic = service.topic("orders")
    run, header = started_usage(service)
    path = f"/v1/report-runs/{run['id']}/result"
    for number, (before, after) in enumerate(
        [
            ("ingress_bytes", "i" * 33),
            ("owner", "o" * 256),
            ("owner", "o" * 200_000),
            ("owner", "\0"),
            (BYTE_PRICE, "NaN"),
            (BYTE_PRICE, "1E999999"),
            ("false", "false,more"),
        ]
    ):
        manifest = publish_usage(service, [row_of(topic, str(number), "0")])
        if before == "ingress_bytes":
            manifest["totals"]["bytes_billed"] = "0"
        broken = edited(service, manifest, "usage.csv", cell(before, after))
        answer = service.client.put(path, json=broken, headers=header)
        assert answer.json().get("code") == "RESULT_REJECTED", (after[:40], answer.text)
    assert service.get("/v1/usage")["items"] == []
