"""Every list is read by an index, whoever asks: no table is read as a whole for a page of it."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import pytest
from sqlalchemy import event

from api.app import routes
from api.db.tables import Base
from tests.support.builders.control_plane import Body, Service, bearer

Parameters = tuple[object, ...]

LISTS: Final = sorted(
    route.path
    for route in routes()
    if route.methods == {"GET"} and route.path.startswith("/v1/") and "{" not in route.path
)
FILTERED: Final = (
    "/v1/api-keys?sessions=true&name=ci",
    "/v1/audit-events?target_id=tp_1&principal_id=key_1",
    "/v1/explain?object=key/ci",
    "/v1/explain?object=topic/default/orders",
    "/v1/legal-holds?topic_id=tp_1&case_id=C-1",
    "/v1/operations?target_id=tp_1&newest_first=true",
    "/v1/orgs?name=default",
    "/v1/projects?name=default",
    "/v1/streams?name=default&cluster_id=cl_1",
    "/v1/topics?name=orders&stream=default",
)
# What a stream of events reads it reads as long as somebody looks.
ENDLESS: Final = ("/v1/live",)


@contextmanager
def statements(service: Service) -> Iterator[list[tuple[str, Parameters]]]:
    """What is asked of the database meanwhile, and with which parameters."""
    asked: list[tuple[str, Parameters]] = []

    def see(_c: object, _k: object, sql: str, parameters: Parameters, *_: object) -> None:
        asked.append((sql, parameters))

    event.listen(service.database.reader, "before_cursor_execute", see)
    yield asked
    event.remove(service.database.reader, "before_cursor_execute", see)


def scanned(service: Service, sql: str, parameters: Parameters) -> set[str]:
    """The tables that a statement reads as a whole."""
    with service.database.reader.connect() as connection:
        plan = connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {sql}", parameters).all()
    steps = {str(step[3]) for step in plan}
    return {table for table in Base.metadata.tables if f"SCAN {table}" in steps}


@pytest.mark.parametrize("installation", ["sqlite"], indirect=True)
@pytest.mark.parametrize("who", ["operator", "owner", "confined"])
def test_no_list_reads_a_table_as_a_whole(
    service: Service, other: tuple[str, dict[str, str]], who: str
) -> None:
    project = service.post("/v1/projects", {"name": "sales"}, other[1])
    body: Body = {"name": "own", "project_id": project["id"], "spec": {"role": "owner"}}
    confined = bearer(service.post("/v1/api-keys", body, other[1])["secret"])
    service.post("/v1/topics", {"name": "orders"}, confined)
    header = {"operator": service.owner, "owner": other[1], "confined": confined}[who]
    found, selects = dict[str, set[str]](), 0
    for path in {*LISTS, *FILTERED} - {*ENDLESS}:
        with statements(service) as asked:
            service.client.get(path, headers=header)
        reads = [each for each in asked if re.match(r"\s*SELECT", each[0])]
        selects += len(reads)
        found[path] = {table for each in reads for table in scanned(service, *each)}
    assert selects > 50
    assert {path: tables for path, tables in found.items() if tables} == {}
