"""Messages over REST from a real node: from every place, one partition and all, and a tail that
goes on where it was left."""

import base64
import json
import urllib.error
import urllib.request
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any, TypeAlias

import pytest

from tests.support.processes.platform import Platform

Body: TypeAlias = Any


@pytest.fixture(scope="module")
def platform(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Platform]:
    with Platform(tmp_path_factory.mktemp("pages")) as running:
        running.cli("topic", "create", "pages", "--partitions", "3")
        yield running


def ask(platform: Platform, path: str, body: Body = None, key: str = "") -> Body:
    profile = platform.profile()
    request = urllib.request.Request(
        profile.api_url + path,
        data=None if body is None else json.dumps(body).encode(),
        headers={
            "Authorization": f"Bearer {key or profile.key}",
            "Content-Type": "application/json",
        },
    )
    with urllib.request.urlopen(request, timeout=120) as answer:
        return json.load(answer)


def messages_path(platform: Platform) -> str:
    return f"/v1/topics/{ask(platform, '/v1/topics?name=pages')['items'][0]['id']}/messages"


def values(page: Body) -> list[str]:
    return [base64.b64decode(each["value"]).decode() for each in page["messages"]]


def publish(platform: Platform, path: str, text: str, partition: int = 0) -> Body:
    value = base64.b64encode(text.encode()).decode()
    return ask(platform, path, {"partition": partition, "value": value})


def test_a_page_begins_where_it_was_asked_to(platform: Platform) -> None:
    path = messages_path(platform)
    first = publish(platform, path, "one")
    publish(platform, path, "two")
    between = datetime.now(UTC).isoformat().replace("+00:00", "Z")
    publish(platform, path, "three")
    publish(platform, path, "other", partition=1)
    assert first == {"partition": 0, "offset": "0", "append_time": first["append_time"]}
    assert values(ask(platform, f"{path}?from=earliest")) == ["one", "two", "three", "other"]
    assert values(ask(platform, f"{path}?from=latest&limit=2")) == ["three", "other"]
    assert values(ask(platform, f"{path}?from=offset&offset=1&partition=0")) == ["two", "three"]
    assert values(ask(platform, f"{path}?from=time&time={between}&partition=0")) == ["three"]
    page = ask(platform, f"{path}?from=earliest&partition=0&limit=2")
    assert page["partitions"][0]["next_offset"] == "2"
    assert page["partitions"][0]["end_offset"] == "3"


def test_pages_of_all_partitions_lead_to_every_message_once(platform: Platform) -> None:
    path, large = messages_path(platform), "x" * 700_000
    large_from = datetime.now(UTC).isoformat().replace("+00:00", "Z")
    for text, partition in ((large, 0), (large, 1), ("last", 2)):
        publish(platform, path, text, partition)
    begin = ask(platform, f"{path}?from=earliest&limit=3")
    assert values(begin) == ["one", "two", "three"]
    rest: list[str] = []
    for place in begin["partitions"]:
        while place["next_offset"] != place["end_offset"]:
            at = f"partition={place['partition']}&offset={place['next_offset']}"
            page = ask(platform, f"{path}?from=offset&{at}")
            rest += values(page)
            (place,) = page["partitions"]
    assert rest == [large, "other", large, "last"]
    # Two of them fill a page: the third partition is left for the next one.
    full = ask(platform, f"{path}?from=time&time={large_from}")
    assert [each["next_offset"] for each in full["partitions"]] == ["4", "2", "0"]
    assert values(full) == [large, large]


def test_a_tail_that_comes_back_misses_nothing(platform: Platform) -> None:
    path = messages_path(platform)
    stored = publish(platform, path, "while away", partition=1)
    profile = platform.profile()
    request = urllib.request.Request(
        f"{profile.api_url}{path}/tail?partition=1",
        headers={
            "Authorization": f"Bearer {profile.key}",
            "Last-Event-ID": f"1:{stored['offset']}",
        },
    )
    with urllib.request.urlopen(request, timeout=120) as answer:
        assert answer.headers["content-type"].startswith("text/event-stream")
        lines = (line.decode().rstrip() for line in answer)
        found = next(line for line in lines if '"messages"' in line)
    assert values(json.loads(found.removeprefix("data: "))) == ["while away"]


def test_a_tail_beyond_the_end_is_refused_and_not_tried_again(platform: Platform) -> None:
    path = messages_path(platform)
    profile = platform.profile()
    for place in ("0:999999", "1:9999999999999999999"):
        request = urllib.request.Request(
            f"{profile.api_url}{path}/tail",
            headers={"Authorization": f"Bearer {profile.key}", "Last-Event-ID": place},
        )
        with pytest.raises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(request, timeout=120)
        problem = json.loads(refused.value.read())
        assert (refused.value.code, problem["code"]) == (400, "OFFSET_OUT_OF_RANGE")
        assert not problem["retriable"]


def test_a_viewer_reads_and_does_not_publish(platform: Platform) -> None:
    path = messages_path(platform)
    made = platform.cli("key", "create", "looker", "--role", "viewer", "-o", "json").stdout
    key = json.loads(made)["secret"]
    assert ask(platform, f"{path}?from=earliest", key=key)["messages"]
    with pytest.raises(urllib.error.HTTPError) as refused:
        ask(platform, path, {"value": ""}, key=key)
    assert refused.value.code == 403
    refused.value.close()
