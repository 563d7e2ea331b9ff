"""Values in, messages out."""

from datetime import UTC, datetime

import pytest

from headrace.errors import Invalid
from headrace.messages import Message, datetime_of, record_of, timestamp_us, value_bytes


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (b"raw", b"raw"),
        (bytearray(b"raw"), b"raw"),
        ("täxt", "täxt".encode()),
        ({"id": 7, "ok": True}, b'{"id":7,"ok":true}'),
        ([1, 2], b"[1,2]"),
        (None, None),
    ],
)
def test_values_become_bytes(value: object, expected: bytes | None) -> None:
    assert value_bytes(value) == expected  # type: ignore[arg-type]


@pytest.mark.parametrize("value", [7, 1.5, object(), {"a": object()}])
def test_what_is_not_a_value_is_refused_with_what_is(value: object) -> None:
    with pytest.raises(Invalid, match=r"bytes"):
        value_bytes(value)  # type: ignore[arg-type]


def test_headers_keep_their_order_and_repeated_names() -> None:
    record = record_of(b"v", "k", [("a", "1"), ("b", None), ("a", b"2")])
    assert list(record.headers) == [("a", b"1"), ("b", None), ("a", b"2")]
    assert record.key == b"k"


def test_times_are_utc_to_the_microsecond() -> None:
    moment = datetime(2026, 11, 27, 12, 0, 0, 123456, tzinfo=UTC)
    assert datetime_of(timestamp_us(moment)) == moment
    with pytest.raises(Invalid, match="time zone"):
        timestamp_us(datetime(2026, 1, 1))  # noqa: DTZ001 - that is what is refused


def test_a_message_is_one_readable_line_and_reads_json() -> None:
    message = Message("orders", 1, 42, 0, 0, b"cust", b'{"id": 7}', (("h", b"1"),))
    assert repr(message) == (
        "<Message orders[1]@42 1970-01-01T00:00:00Z key='cust' value='{\"id\": 7}' headers=1>"
    )
    assert message.json() == {"id": 7}
    assert message.text() == '{"id": 7}'
    with pytest.raises(Invalid, match=r"orders\[1\]@42 is not JSON"):
        message._replace(value=b"\xff").json()


def test_a_long_value_is_cut_in_the_line() -> None:
    line = repr(Message("orders", 0, 0, 0, 0, None, b"x" * 5000, ()))
    assert len(line) < 150
    assert "5000 bytes" in line
