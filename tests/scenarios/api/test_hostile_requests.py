"""Hostile requests over real sockets (X13-X16, X25, X26): whatever the bytes, a typed refusal that
teaches, at once and cheaply, while others are answered; and nothing in the log but JSON lines.
"""

import json
import re
import select
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from tests.support.builders.control_plane import Installation
from tests.support.processes.api_process import Answer, ApiProcess
from tests.support.processes.platform import wait_until

CPU_SECONDS_MAX = 0.05
ANSWER_BYTES_MAX = 8192
TRIES = 3
MEBIBYTE = 1 << 20
JSON = b"Content-Type: application/json"
TOPICS = b"/v1/topics"
MANY = range(90_000)


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory, stored: Installation) -> Iterator[ApiProcess]:
    folder = tmp_path_factory.mktemp("api")
    with ApiProcess(folder, stored.another(folder), stored.first) as running:
        # The first request of every kind pays for what is made once.
        assert running.ask(b"POST", TOPICS, b'{"name": "there"}').status == 202
        assert running.ask(b"GET", TOPICS).status == 200
        yield running


def refused(api: ApiProcess, data: bytes, status: int, code: str) -> Answer:
    """The refusal of bytes: typed, small, cheap, and in nobody's way."""
    spent = []
    for _ in range(TRIES):
        before = api.cpu_seconds()
        answer = api.said(data)
        spent.append(api.cpu_seconds() - before)
        assert api.ask(b"GET", b"/healthz").status == 200
        # The workers inside may have had their turn just now.
        if spent[-1] < CPU_SECONDS_MAX:
            break
    assert min(spent) < CPU_SECONDS_MAX, spent
    problem = answer.problem()
    assert (answer.status, problem["status"], problem["code"]) == (status, status, code), problem
    assert problem["detail"]
    # What is missing or taken is said in one sentence; a fault is pointed at, or told how to mend.
    assert status in (404, 409) or problem.get("hint") or problem.get("errors"), problem
    assert len(answer.body) < ANSWER_BYTES_MAX
    assert "Traceback" not in str(problem)
    assert 'File "' not in str(problem)
    return answer


def post(api: ApiProcess, body: bytes, *fields: bytes) -> bytes:
    return api.request(b"POST", TOPICS, body, *fields)


# --- where a request ends ------------------------------------------------------------------------

FRAMING = {
    "a length and chunks": (b"Content-Length: 5", b"Transfer-Encoding: chunked"),
    "chunks and a length": (b"Transfer-Encoding: chunked", b"Content-Length: 5"),
    "a negative length": (b"Content-Length: -1",),
    "a length with a sign": (b"Content-Length: +5",),
    "a length in words": (b"Content-Length: five",),
    "a length of 5000 digits": (b"Content-Length: " + b"9" * 5000,),
    "two lengths": (b"Content-Length: 5", b"Content-Length: 6"),
    "an unknown coding": (b"Transfer-Encoding: xchunked",),
    "a coding without an end": (b"Transfer-Encoding: identity",),
    "a compressing coding": (b"Transfer-Encoding: gzip, chunked",),
    "a blank before a colon": (b"X-Trace : a",),
    "a folded field": (b"X-Trace: a\r\n b",),
    "two hosts": (b"Host: other",),
    "two keys": (b"Authorization: Bearer other",),
    "two types": (b"Content-Type: text/plain",),
}


@pytest.mark.parametrize("case", FRAMING)
def test_a_request_that_two_readers_may_read_in_two_ways_is_refused(
    api: ApiProcess, case: str
) -> None:
    data = api.head(b"POST", TOPICS, JSON, *FRAMING[case]) + b"\r\n0\r\n\r\n"
    refused(api, data, 400, "INVALID_REQUEST")


@pytest.mark.parametrize("chunk", [b"FFFFFFFFFFFFFFFFF\r\n", b"-1\r\n{}\r\n", b"2\r\n{}x\r\n"])
def test_a_chunk_whose_size_lies_is_refused(api: ApiProcess, chunk: bytes) -> None:
    head = api.head(b"POST", TOPICS, JSON, b"Transfer-Encoding: chunked") + b"\r\n"
    refused(api, head + chunk, 400, "INVALID_REQUEST")


STRANGERS = {
    "another version": b"GET / HTTP/9.9\r\n\r\n",
    "HTTP/2": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "TLS": bytes.fromhex("160301020001000001fc0303") + bytes(64),
    "noise": bytes(range(256)),
    "lines without CR": b"GET /healthz HTTP/1.1\nHost: a\n\n",
    "a tunnel": b"CONNECT node:8461 HTTP/1.1\r\nHost: a\r\n\r\n",
    "bytes above ASCII in the path": b"GET /v1/topics/\xff HTTP/1.1\r\nHost: a\r\n\r\n",
    "bytes above ASCII in the query": b"GET /v1/topics?name=\xff HTTP/1.1\r\nHost: a\r\n\r\n",
}


@pytest.mark.parametrize("stranger", STRANGERS)
def test_what_is_no_http_is_told_so_and_closed(api: ApiProcess, stranger: str) -> None:
    answer = refused(api, STRANGERS[stranger], 400, "INVALID_REQUEST")
    assert answer.fields["connection"] == "close"


@pytest.mark.parametrize("protocol", [b"h2c", b"websocket", b"TLS/1.0"])
def test_another_protocol_is_not_changed_to(api: ApiProcess, protocol: bytes) -> None:
    fields = (b"Connection: Upgrade", b"Upgrade: " + protocol)
    assert api.ask(b"GET", TOPICS, b"", *fields).status == 200


HEADS = {
    "one long field": (TOPICS, [b"X-Long: " + b"a" * 2 * MEBIBYTE]),
    "many fields": (TOPICS, [b"X-%d: 1" % number for number in range(20_000)]),
    "a long path": (TOPICS + b"/" + b"a" * 60_000, []),
    "many parameters": (TOPICS + b"?" + b"&".join(b"p%d=1" % n for n in range(9000)), []),
}


@pytest.mark.parametrize("case", HEADS)
def test_a_head_above_its_limit_is_refused_before_it_is_kept(api: ApiProcess, case: str) -> None:
    path, fields = HEADS[case]
    refused(api, api.request(b"GET", path, b"", *fields), 431, "HEADERS_TOO_LARGE")


# --- what a body is ------------------------------------------------------------------------------

FORMS = {
    "a form with many parts": (b"multipart/form-data; boundary=x", b"--x\r\n\r\n\r\n" * 90_000),
    "a giant boundary": (b"multipart/form-data; boundary=" + b"x" * 20_000, b"--x"),
    "a form with many fields": (b"application/x-www-form-urlencoded", b"a=1&" * 250_000),
    "a form with semicolons": (b"application/x-www-form-urlencoded", b"a=1;" * 250_000),
    "no type at all": (b"", b"{}"),
    "a type of backslashes": (b"a/" + b"\\" * 1024, b"{}"),
    "another charset": (b'application/json; charset="utf-7"', b"{}"),
}


@pytest.mark.parametrize("form", FORMS)
def test_a_body_that_is_no_json_is_refused_unread(api: ApiProcess, form: str) -> None:
    media_type, body = FORMS[form]
    data = post(api, body, b"Content-Type: " + media_type)
    refused(api, data, 415, "UNSUPPORTED_MEDIA_TYPE")


@pytest.mark.parametrize("boundary", [b'"' + b"\\" * 1024, b"a;" * 500, b'"' + b'\\"' * 500])
def test_parameters_of_a_type_cost_nothing(api: ApiProcess, boundary: bytes) -> None:
    body = b'{"name": "there"}'
    data = post(api, body, b"Content-Type: application/json; boundary=" + boundary)
    answer = api.said(data)
    assert answer.status == 409


@pytest.mark.parametrize("encoding", [b"gzip", b"br", b"zstd", b"gzip, gzip", b"deflate"])
def test_a_compressed_body_is_never_opened(api: ApiProcess, encoding: bytes) -> None:
    data = post(api, b"\x1f\x8b" + b"\0" * 1000, b"Content-Encoding: " + encoding)
    refused(api, data, 415, "UNSUPPORTED_MEDIA_TYPE")


BODIES = {
    "a list 100,000 deep": (b"[" * 100_000, "JSON_TOO_WIDE"),
    "objects 100,000 deep": (b'{"a":' * 100_000 + b"1" + b"}" * 100_000, "JSON_TOO_WIDE"),
    "a list 5,000 deep": (b"[" * 5000 + b"]" * 5000, "JSON_TOO_DEEP"),
    "a list 40 deep": (b"[" * 40 + b"]" * 40, "JSON_TOO_DEEP"),
    "90,000 members": (b"{" + b",".join(b'"k%d":1' % n for n in MANY) + b"}", "JSON_TOO_WIDE"),
    "members with blanks": (b"{" + b'"" : 1,' * 140_000 + b'"":1}', "JSON_TOO_WIDE"),
    "300 members": (b"{" + b",".join(b'"k%d":1' % n for n in range(300)) + b"}", "JSON_TOO_WIDE"),
    "500,000 numbers": (b"[" + b"1," * 500_000 + b"1]", "JSON_TOO_WIDE"),
    "340,000 lists": (b"[" + b"[]," * 340_000 + b"[]]", "JSON_TOO_WIDE"),
    "a member twice": (b'{"name": "a", "name": "b"}', "JSON_DUPLICATE_MEMBER"),
    "a member twice below": (b'{"name":"a","spec":{"codec":"lz4","codec":"zstd"}}',
                             "JSON_DUPLICATE_MEMBER"),
    "NaN": (b'{"name": "a", "spec": {"partitions": NaN}}', "JSON_NUMBER"),
    "minus infinity": (b'{"name": "a", "spec": {"partitions": -Infinity}}', "JSON_NUMBER"),
    "a number beyond doubles": (b'{"name": "a", "spec": {"partitions": 1e999}}', "JSON_NUMBER"),
    "5,000 digits": (b'{"name":"a","spec":{"partitions":' + b"9" * 5000 + b"}}", "JSON_NUMBER"),
    "a million digits": (b"9" * 1_000_000, "JSON_NUMBER"),
    "UTF-16": ('{"name": "a"}'.encode("utf-16"), "NOT_UTF8"),
    "UTF-32": ('{"name": "a"}'.encode("utf-32-le"), "JSON_INVALID"),
    "Latin-1": ('{"name": "\xe9"}'.encode("latin-1"), "NOT_UTF8"),
    "a byte order mark": (b"\xef\xbb\xbf{}", "JSON_INVALID"),
    "an overlong NUL": (b'{"name": "\xc0\x80"}', "NOT_UTF8"),
    "half of a pair": (b'{"name": "a", "display_name": "\\ud800"}', "JSON_TEXT"),
    "half of a pair as a name": (b'{"\\udfff": 1}', "JSON_TEXT"),
    "NUL": (b'{"name": "a", "display_name": "a\\u0000b"}', "JSON_TEXT"),
    "blanks": (b" " * 1000, "JSON_INVALID"),
    "a comment": (b"/* */ {}", "JSON_INVALID"),
}  # fmt: skip


@pytest.mark.parametrize("case", BODIES)
def test_a_body_that_is_not_plain_json_is_refused_by_name(api: ApiProcess, case: str) -> None:
    body, fault = BODIES[case]
    answer = refused(api, post(api, body), 400, "INVALID_REQUEST")
    assert faults(answer) == [("#", fault)]


def faults(answer: Answer) -> list[tuple[str, str]]:
    errors = answer.problem()["errors"]
    assert isinstance(errors, list)
    return [(str(each["pointer"]), str(each["code"])) for each in errors if isinstance(each, dict)]


def test_a_body_of_a_delete_is_read_by_the_same_rules(api: ApiProcess) -> None:
    listed = json.loads(api.ask(b"GET", TOPICS).body)
    path = f"/v1/topics/{listed['items'][0]['id']}".encode()
    for body, fault in (BODIES["a list 5,000 deep"], BODIES["NaN"], BODIES["NUL"]):
        answer = refused(api, api.request(b"DELETE", path, body), 400, "INVALID_REQUEST")
        assert faults(answer) == [("#", fault)]


WRONG = {
    "a number": (b"1", "#"),
    "null": (b"null", "#"),
    "a list": (b"[]", "#"),
    "a flag for a number": (b'{"name":"a","spec":{"partitions":true}}', "#/spec/partitions"),
    "text for a number": (b'{"name":"a","spec":{"partitions":"3"}}', "#/spec/partitions"),
    "64 bits and more": (b'{"name":"a","spec":{"retention_ms":"' + b"9" * 20 + b'"}}',
                         "#/spec/retention_ms"),
    "5,000 digits as text": (b'{"name":"a","spec":{"retention_ms":"' + b"9" * 5000 + b'"}}',
                             "#/spec/retention_ms"),
    "a digit of another script": ('{"name":"a","spec":{"retention_ms":"²"}}'.encode(),
                                  "#/spec/retention_ms"),
    "an unknown member": (b'{"name":"a","nane":"b"}', "#/nane"),
    "a list for an object": (b'{"name":"a","spec":[]}', "#/spec"),
}  # fmt: skip


@pytest.mark.parametrize("case", WRONG)
def test_a_wrong_type_is_pointed_at_in_plain_words(api: ApiProcess, case: str) -> None:
    body, pointer = WRONG[case]
    answer = refused(api, post(api, body), 400, "INVALID_REQUEST")
    assert {place for place, _ in faults(answer)} == {pointer}
    assert not re.search(r"int\(\)|sys\.|pydantic|parse|pattern", answer.body.decode())


def test_many_faults_are_answered_with_the_first_of_them(api: ApiProcess) -> None:
    wrong = b",".join(b'"k%d":{}' % number for number in range(200))
    body = b'{"labels":{' + wrong + b'},"annotations":{' + wrong + b'},"spec":{' + wrong + b"}}"
    answer = refused(api, post(api, body), 400, "INVALID_REQUEST")
    assert len(faults(answer)) == 20
    parameters = b"&".join(b"p%d=1" % number for number in range(3000))
    data = api.request(b"GET", TOPICS + b"?" + parameters)
    assert len(faults(refused(api, data, 400, "INVALID_REQUEST"))) == 20


# --- names, addresses and pages ------------------------------------------------------------------

NAMES = {
    "a path": "../../etc/passwd",
    "dots": "..",
    "a slash": "a/b",
    "a newline": "a\nb",
    "a newline at the end": "ab\n",
    "an escape": "a\x1b[31mb",
    "right to left": "a\u202eb",
    "a homoglyph": "\u043erders",
    "a full-width letter": "\uff41",
    "a percent sign": "a%00b",
    "nothing": "",
    "10 KiB": "a" * 10_240,
    "the system's": "_usage",
    "the system's too": "sys.usage",
}


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("path", ["orgs", "projects", "streams", "topics", "api-keys", "clusters"])
def test_a_name_off_the_list_of_characters_makes_nothing(
    api: ApiProcess, path: str, name: str
) -> None:
    body = {"name": NAMES[name], **({"spec": {"role": "viewer"}} if path == "api-keys" else {})}
    data = api.request(b"POST", f"/v1/{path}".encode(), json.dumps(body).encode())
    answer = refused(api, data, 400, "INVALID_REQUEST")
    assert {place for place, _ in faults(answer)} == {"#/name"}


def test_names_of_devices_are_only_names_and_names_differ_by_more_than_case(
    api: ApiProcess,
) -> None:
    assert api.ask(b"POST", TOPICS, b'{"name": "CON"}').status == 202
    refused(api, post(api, b'{"name": "con"}'), 409, "NAME_TAKEN")


@pytest.mark.parametrize("text", ["a\nb", "a\x1b[2Jb", "a\x9bb", "a\u202eb", "a\u2028b"])
def test_words_for_people_hold_nothing_that_leads_a_terminal_astray(
    api: ApiProcess, text: str
) -> None:
    for member in ({"display_name": text}, {"labels": {"k": text}}):
        body = json.dumps({"name": "a", **member}).encode()
        refused(api, post(api, body), 400, "INVALID_REQUEST")
    note = {"name": f"note-{ord(text[1])}", "annotations": {"k": "two\nlines"}}
    assert api.ask(b"POST", TOPICS, json.dumps(note).encode()).status == 202


ADDRESSES = {
    "NUL": (b"/v1/topics/%00", 400, "INVALID_REQUEST"),
    "a line": (b"/v1/topics/%0d%0aSet-Cookie:%20a", 400, "INVALID_REQUEST"),
    "an escape": (b"/v1/topics/%1b%5b2J", 400, "INVALID_REQUEST"),
    "NUL in a parameter": (b"/v1/topics?name=%00", 400, "INVALID_REQUEST"),
    "a line in a parameter": (b"/v1/topics?page_token=a%0ab", 400, "INVALID_REQUEST"),
    "dots": (b"/v1/topics/../../etc/passwd", 404, "PATH_NOT_FOUND"),
    "hidden dots": (b"/v1/topics/%2e%2e%2f%2e%2e%2fetc", 404, "PATH_NOT_FOUND"),
    "a long id": (b"/v1/topics/" + b"a" * 10_240, 404, "NOT_FOUND"),
    "a parameter twice": (b"/v1/topics?page_size=1&page_size=2", 400, "INVALID_REQUEST"),
    "an unknown parameter": (b"/v1/topics?sort=name;drop", 400, "INVALID_REQUEST"),
    "a long name": (b"/v1/topics?name=" + b"a" * 10_240, 400, "INVALID_REQUEST"),
    "a page of 1e9": (b"/v1/topics?page_size=1e9", 400, "INVALID_REQUEST"),
    "a page of NaN": (b"/v1/topics?page_size=NaN", 400, "INVALID_REQUEST"),
    "a page below nothing": (b"/v1/topics?page_size=-1", 400, "INVALID_REQUEST"),
    "a page of 5,000 digits": (b"/v1/topics?page_size=" + b"9" * 5000, 400, "INVALID_REQUEST"),
    "a page in another script": (b"/v1/topics?page_size=%D9%A3", 400, "INVALID_REQUEST"),
    "a forged page": (b"/v1/topics?page_token=" + b"QUFB" * 20, 400, "PAGE_TOKEN_INVALID"),
    "a page above ASCII": (b"/v1/topics?page_token=%C3%A9", 400, "PAGE_TOKEN_INVALID"),
    "a time before time": (b"/v1/usage?from=0001-01-01T00:00:00%2B23:59", 400, "INVALID_REQUEST"),
    "a time after time": (b"/v1/usage?to=9999-12-31T23:59:59-23:59", 400, "INVALID_REQUEST"),
    "SQL": (b"/v1/explain?object=%27%3B+DROP+TABLE+topics", 400, "INVALID_REQUEST"),
}  # fmt: skip


@pytest.mark.parametrize("address", ADDRESSES)
def test_a_hostile_address_is_refused(api: ApiProcess, address: str) -> None:
    path, status, code = ADDRESSES[address]
    refused(api, api.request(b"GET", path), status, code)


@pytest.mark.parametrize("text", [b"%25", b"_here", b"there%25", b"%27+OR+1=1--", b"%5Bt%5Dhere"])
def test_a_filter_is_a_name_and_no_pattern(api: ApiProcess, text: bytes) -> None:
    answer = api.ask(b"GET", TOPICS + b"?name=" + text)
    assert (answer.status, json.loads(answer.body)["items"]) == (200, [])
    assert json.loads(api.ask(b"GET", TOPICS + b"?name=there").body)["items"]


def test_a_page_of_a_billion_is_a_page(api: ApiProcess) -> None:
    assert api.ask(b"GET", TOPICS + b"?page_size=1000000000").status == 200


@pytest.mark.parametrize("until", ["9999-12-31T23:59:59-23:00", "0001-01-01T00:00:00+23:00"])
def test_a_key_cannot_end_outside_of_time(api: ApiProcess, until: str) -> None:
    body = json.dumps({"name": "k", "spec": {"role": "viewer", "expires_at": until}}).encode()
    refused(api, api.request(b"POST", b"/v1/api-keys", body), 400, "INVALID_REQUEST")


def test_the_host_of_a_request_changes_nothing(api: ApiProcess) -> None:
    for host in (b"[::1", b"a/b?c", b"a:99999", b"\xff"):
        answer = api.said(b"GET /v1/none HTTP/1.1\r\nHost: " + host + b"\r\n\r\n")
        assert (answer.status, answer.problem()["code"]) == (404, "PATH_NOT_FOUND")
        assert "/v1/none " in str(answer.problem()["detail"])


# --- all at once ---------------------------------------------------------------------------------


def test_large_bodies_share_a_budget_and_small_ones_need_none(api: ApiProcess) -> None:
    before = api.resident_bytes()
    head = api.head(b"POST", TOPICS, JSON, b"Content-Length: 1048576") + b"\r\n"
    with ExitStack() as stack:
        peers = [stack.enter_context(api.peer()) for _ in range(90)]
        for peer in peers:
            peer.send(head + b" " * (MEBIBYTE - 1))
        assert api.ask(b"POST", TOPICS, b'{"name": "there"}').status == 409
        told: list[Answer | None] = []
        while len(told) < 20:
            ready, _, _ = select.select(peers, [], [], 20)
            assert ready, "nobody else is refused"
            told += [each.answer() for each in ready]
            peers = [each for each in peers if each not in ready]
        assert api.resident_bytes() - before < 200 * MEBIBYTE
    busy = [answer for answer in told if answer is not None]
    assert {(each.status, each.problem()["code"]) for each in busy} == {(503, "UNAVAILABLE")}
    assert busy[0].fields["retry-after"] == "1"
    # What they held is given back.
    wait_until(
        lambda: api.ask(b"POST", TOPICS, b" " * MEBIBYTE).status == 400, "there is room again"
    )


# --- what is left behind -------------------------------------------------------------------------


def test_the_log_is_json_lines_without_control_characters_and_without_our_faults(
    api: ApiProcess,
) -> None:
    api.ask(b"GET", b"/v1/topics/%C2%9B2J%E2%80%AE")
    api.ask(b"GET", TOPICS, b"", b"X-Request-Id: \x1b[2J")
    api.ask(b"POST", TOPICS, b'{"name": "%s%n\\u001b"}')
    lines = api.log().rstrip("\n").split("\n")
    for line in lines:
        assert not re.search(r"[\x00-\x1f\x7f-\x9f\u2028\u202e]", line), line
        event = json.loads(line)
        assert event["event"] != "unexpected_error", event
        assert "exception" not in event
