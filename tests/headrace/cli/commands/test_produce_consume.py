"""Records through the command line: lossless, counted, committed."""

import base64
import json
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.cli.envelope import envelope_of, record_of_line
from headrace.client import Client
from headrace.errors import Invalid
from headrace.messages import Message, record_of
from headrace.wire import stream_pb2 as wire
from tests.headrace.cli.conftest import Run
from tests.headrace.scripted_errors import refusal
from tests.headrace.scripted_node import ScriptedNode

data = st.none() | st.binary(max_size=40) | st.text(max_size=20).map(str.encode)


@given(key=data, value=data, headers=st.lists(st.tuples(st.text(max_size=8), data), max_size=3))
def test_an_envelope_is_lossless(
    key: bytes | None, value: bytes | None, headers: list[tuple[str, bytes | None]]
) -> None:
    message = Message("t", 0, 1, 1_700_000_000_123_456, 0, key, value, tuple(headers))
    line = json.dumps(envelope_of(message), ensure_ascii=False).encode("utf-8", "surrogatepass")
    found = record_of_line(line)
    assert (found.key, found.value, tuple(found.headers)) == (key, value, tuple(headers))
    assert found.timestamp_us == message.timestamp_us


def test_consume_into_produce_copies_byte_for_byte(
    headrace: Run, client: Client, node: ScriptedNode
) -> None:
    records = [
        record_of(b"\xff\x00\n", b"\xfe", [("h", b"\x80"), ("h", None), ("h", "x")], 1_000_001),
        record_of("line\u2028one\ntwo\r", "schlüssel", None, 1_000_002),
        record_of(None, None, None, 1_000_003),
        record_of(b"", b"", None, 1_000_004),
    ]
    client.topic("single").send_many(records, partition=0)
    copied = headrace("consume", "single", "-e", "-o", "jsonl").out
    done = headrace("produce", "orders", "-i", "jsonl", "-p", "1", stdin=copied.encode())
    assert done.code == 0, done.err
    found = list(client.topic("orders").consume(partition=1, until="end"))
    assert [(m.key, m.value, m.headers, m.timestamp_us) for m in found] == [
        (r.key, r.value, tuple(r.headers), r.timestamp_us) for r in records
    ]


def test_lines_become_values_with_key_and_headers(headrace: Run, client: Client) -> None:
    done = headrace(
        "produce", "orders", "-k", "cust", "-H", "source:cli", stdin=b"one\ntwo words\n\nlast"
    )
    assert done.code == 0
    found = list(client.topic("orders").consume(until="end"))
    assert [m.value for m in found] == [b"one", b"two words", b"", b"last"]
    assert {(m.key, m.headers) for m in found} == {(b"cust", (("source", b"cli"),))}


def test_files_are_read_like_stdin(headrace: Run, node: ScriptedNode, tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).write_text(f"{name}1\n{name}2\n")
    headrace("produce", "single", str(tmp_path / "a"), str(tmp_path / "b"))
    assert node.values("single") == [b"a1", b"a2", b"b1", b"b2"]


def test_json_values_of_an_envelope_stay_json(headrace: Run, node: ScriptedNode) -> None:
    lines = b'{"value": {"id": 7}}\n{"value": 5}\n{"value_b64": "/w=="}\n'
    assert headrace("produce", "single", "-i", "jsonl", stdin=lines).code == 0
    assert node.values("single") == [b'{"id":7}', b"5", base64.b64decode("/w==")]


@pytest.mark.parametrize(
    "line", [b"nope", b"[]", b"{}", b'{"value_b64": "*"}', b'{"value":1,"ts":"x"}']
)
def test_a_line_that_is_no_envelope_is_named(headrace: Run, line: bytes) -> None:
    done = headrace("produce", "single", "-i", "jsonl", stdin=b'{"value":"ok"}\n' + line + b"\n")
    assert done.code == 8
    assert "Line 2" in done.err


def test_an_envelope_of_the_wrong_shape_is_invalid() -> None:
    with pytest.raises(Invalid, match="header"):
        record_of_line(b'{"value": "x", "headers": [["only"]]}')


def test_a_count_stops_and_a_group_commits_exactly_that(headrace: Run, client: Client) -> None:
    client.topic("single").send_many([str(i) for i in range(10)])
    first = headrace("consume", "single", "-g", "g", "--from", "start", "-n", "4", "-o", "jsonl")
    rest = headrace("consume", "single", "-g", "g", "-e", "-o", "jsonl")
    offsets = [json.loads(line)["offset"] for line in (first.out + rest.out).splitlines()]
    assert offsets == list(range(10))


def test_from_takes_start_end_and_an_offset(headrace: Run, client: Client) -> None:
    client.topic("single").send_many([str(i) for i in range(5)])
    assert headrace("consume", "single", "--from", "3", "-e", "-o", "name").out == (
        "single[0]@3\nsingle[0]@4\n"
    )
    assert headrace("consume", "single", "--from", "end", "-e").out == ""
    # Digits that are no numbers, and what no offset can be.
    for wrong in ("noon", "²", str(1 << 63), "9" * 5000):
        assert headrace("consume", "single", "--from", wrong, "-e").code == 8


def test_from_takes_a_time(headrace: Run, client: Client) -> None:
    client.topic("single").send_many([b"a", b"b"])
    between = datetime.now(UTC)
    client.topic("single").send_many([b"c"])
    for begin in (f"@{between.isoformat()}", f"@{between.astimezone().replace(tzinfo=None)}"):
        found = headrace("consume", "single", "--from", begin, "-e", "-o", "name")
        assert found.out == "single[0]@2\n"
    found = headrace("consume", "single", "--from", "@-1h", "-e", "-o", "name")
    assert len(found.out.splitlines()) == 3
    for wrong in ("@", "@noon", "@-", "@-5parsecs"):
        assert headrace("consume", "single", "--from", wrong, "-e").code == 8


def test_a_new_group_without_a_start_is_told_so(headrace: Run, client: Client) -> None:
    client.topic("single").send(b"x")
    done = headrace("consume", "single", "-g", "fresh", "-e")
    assert (done.code, done.out) == (8, "")
    assert "--from start" in done.err


def test_json_of_nothing_is_an_empty_array(headrace: Run) -> None:
    assert json.loads(headrace("consume", "single", "-e", "-o", "json").out) == []


def test_some_records_that_failed_are_counted(headrace: Run, node: ScriptedNode) -> None:
    lines = b"".join(bytes([65 + i % 26]) * 500_000 + b"\n" for i in range(6))
    node.faults.refuse = [refusal("BATCH_MALFORMED", wire.TERMINAL, "The batch is malformed")]
    done = headrace("produce", "single", stdin=lines)
    assert done.code == 9
    assert "of 6 records failed" in done.err


def test_a_readable_line_has_offset_key_value_and_headers(headrace: Run, client: Client) -> None:
    client.topic("single").send(b"v", key=b"k", headers={"h": "1"}, timestamp=0)
    out = headrace("consume", "single", "-e", "-o", "wide").out
    assert out == "0@0  00:00:00.000000  k  v  h=1\n"


def test_a_bad_line_says_what_is_stored_and_where_to_go_on(
    headrace: Run, node: ScriptedNode, tmp_path: Path
) -> None:
    good, bad = tmp_path / "good.jsonl", tmp_path / "bad.jsonl"
    good.write_text('{"value":"1"}\n{"value":"2"}\n')
    bad.write_bytes(b'{"value":"3"}\n{"v\xc3\xbc":x}\n{"value":"never"}\n')
    done = headrace("produce", "single", "-i", "jsonl", str(good), str(bad))
    assert (done.code, done.out) == (8, "")
    assert f"Line 2 of {bad}: Not JSON at byte 7" in done.err
    assert (
        f"3 records before it were stored. Fix the line, then resume at line 2 of {bad}."
        in done.err
    )
    assert "line 1 column" not in done.err
    assert node.values("single") == [b"1", b"2", b"3"]


def test_a_bad_line_of_stdin_is_said_to_be_of_stdin(headrace: Run) -> None:
    done = headrace("produce", "single", "-i", "jsonl", stdin=b'{"value":"1"}\n\xff\n')
    assert "Line 2 of stdin: Not UTF-8 at byte 0." in done.err
    assert (
        "1 record before it was stored. Fix the line, then resume at line 2 of stdin." in done.err
    )


def test_one_record_is_one_record(headrace: Run) -> None:
    assert headrace("produce", "single", stdin=b"a\n").err == "1 record stored in single\n"


@pytest.mark.parametrize(
    ("word", "offsets"), [("start", [0, 1]), ("earliest", [0, 1]), ("end", []), ("latest", [])]
)
def test_from_takes_the_words_of_the_sdk_too(
    headrace: Run, client: Client, word: str, offsets: list[int]
) -> None:
    client.topic("single").send_many([b"a", b"b"])
    out = headrace("consume", "single", "--from", word, "-e", "-o", "jsonl").out
    assert [json.loads(line)["offset"] for line in out.splitlines()] == offsets


def test_an_offset_beyond_the_end_is_noted(headrace: Run, client: Client) -> None:
    client.topic("single").send(b"a")
    done = headrace("consume", "single", "--from", "999", "-e", "-o", "jsonl")
    assert (done.code, done.out) == (0, "")
    assert done.err == "No records at or after offset 999: it is past the end.\n"
    assert headrace("consume", "single", "--from", "0", "-e").err == ""


def test_null_is_an_empty_cell_of_csv(headrace: Run, client: Client) -> None:
    client.topic("single").send(b"v", timestamp=0)
    line = headrace("consume", "single", "-e", "-o", "csv").out.splitlines()[1]
    assert line == "single,0,0,1970-01-01T00:00:00.000000Z,,v,[]"
