"""Pages: each object once, whatever is inserted meanwhile, and a token that opens nothing else."""

import pytest
from sqlalchemy import event

from tests.support.builders.control_plane import Service

# As drivers take them: by place or by name.
Parameters = tuple[object, ...] | dict[str, object]


def test_pages_show_every_object_once_and_end_without_a_token(service: Service) -> None:
    names = [f"t{number}" for number in range(7)]
    for name in names:
        service.topic(name)
    seen, token = [], ""
    for expected in (3, 3, 1):
        page = service.get(f"/v1/topics?page_size=3&page_token={token}")
        seen += [each["name"] for each in page["items"]]
        token = page.get("next_page_token", "")
        assert len(page["items"]) == expected
    assert token == ""
    assert sorted(seen) == names


def test_an_object_that_is_inserted_between_pages_moves_nothing(service: Service) -> None:
    for number in range(4):
        service.topic(f"t{number}")
    first = service.get("/v1/topics?page_size=2")
    service.topic("late")
    second = service.get(f"/v1/topics?page_size=9&page_token={first['next_page_token']}")
    ids = [each["id"] for each in first["items"] + second["items"]]
    assert len(ids) == len(set(ids)) == 5


@pytest.mark.parametrize("change", ["&name=t1", "&stream=default"])
def test_a_token_serves_its_own_query_only(service: Service, change: str) -> None:
    for number in range(3):
        service.topic(f"t{number}")
    token = service.get("/v1/topics?page_size=1")["next_page_token"]
    path = f"/v1/topics?page_size=1&page_token={token}"
    response = service.client.get(path + change, headers=service.owner)
    assert (response.status_code, response.json()["code"]) == (400, "PAGE_TOKEN_INVALID")


def test_a_token_of_another_organization_or_another_time_opens_nothing(
    service: Service, other: tuple[str, dict[str, str]]
) -> None:
    for number in range(3):
        service.topic(f"t{number}")
    token = service.get("/v1/topics?page_size=1")["next_page_token"]
    path = f"/v1/topics?page_token={token}"
    assert service.client.get(path, headers=other[1]).status_code == 400
    service.clock.advance(3 * 24 * 3600 + 1)
    assert service.client.get(path, headers=service.owner).status_code == 400


@pytest.mark.parametrize("position", [0, 10, -1])
def test_a_changed_token_is_refused(service: Service, position: int) -> None:
    for number in range(3):
        service.topic(f"t{number}")
    token = list(service.get("/v1/topics?page_size=1")["next_page_token"])
    token[position] = "A" if token[position] != "A" else "B"
    path = f"/v1/topics?page_token={''.join(token)}"
    assert service.client.get(path, headers=service.owner).status_code == 400


def test_a_page_is_at_most_a_thousand(service: Service) -> None:
    service.topic("orders")
    limits: list[object] = []

    def see(_c: object, _k: object, sql: str, parameters: Parameters, *_: object) -> None:
        given = parameters.values() if isinstance(parameters, dict) else parameters
        limits.extend(value for value in given if isinstance(value, int))

    event.listen(service.database.reader, "before_cursor_execute", see)
    service.get("/v1/topics?page_size=100000")
    event.remove(service.database.reader, "before_cursor_execute", see)
    assert 1001 in limits
    assert 100001 not in limits


def test_lists_are_filtered_by_name_and_parent(service: Service) -> None:
    stream = service.post("/v1/streams", {"name": "sales"})
    service.topic("orders")
    service.post("/v1/topics", {"name": "orders", "stream": "sales"})
    assert len(service.get("/v1/topics?name=orders")["items"]) == 2
    assert len(service.get("/v1/topics?name=orders&stream=sales")["items"]) == 1
    by_id = service.get(f"/v1/topics?stream_id={stream['id']}")["items"]
    assert [each["stream"] for each in by_id] == ["sales"]
    assert service.get("/v1/topics?name=Orders")["items"] == []
