"""proto.c and error.c against protobuf itself."""

import base64
import urllib.parse

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.wire import stream_pb2 as wire
from native._engine_sim import ffi, lib

u64 = st.integers(min_value=0, max_value=2**64 - 1)
u32 = st.integers(min_value=0, max_value=2**32 - 1)


def decode(function: object, kind: str, data: bytes) -> object | None:
    target = ffi.new(f"struct {kind} *")
    status = function(data, len(data), target)  # type: ignore[operator]
    return target if status == 0 else None


@given(u64, u64, u32, st.binary(max_size=200), u64)
def test_a_produce_request_is_read_as_protobuf_wrote_it(
    topic: int, revision: int, partition: int, batch: bytes, request: int
) -> None:
    data = wire.ProduceRequest(
        topic=topic,
        created_revision=revision,
        partition=partition,
        batch=batch,
        request=request,
    ).SerializeToString()
    keep = ffi.from_buffer(data)
    target = ffi.new("struct proto_produce_request *")
    assert lib.proto_decode_produce(keep, len(data), target) == 0
    found = (target.topic, target.created_revision, target.partition, target.request)
    assert found == (topic, revision, partition, request)
    assert bytes(ffi.buffer(target.batch.data, target.batch.size)) == batch


@given(st.tuples(u64, u64, u32, u64, u32, u32, u64, u64))
def test_a_fetch_request_is_read_as_protobuf_wrote_it(values: tuple[int, ...]) -> None:
    names = (
        "topic created_revision partition offset bytes_max wait_ms_max group generation"
    ).split()
    fields = dict(zip(names, values, strict=True))
    data = wire.FetchRequest(**fields).SerializeToString()
    target = decode(lib.proto_decode_fetch, "proto_fetch_request", data)
    assert target is not None
    assert {name: getattr(target, name) for name in names} == fields


@given(st.tuples(u64, u64, u32, u64, u64, u64))
def test_a_commit_request_is_read_as_protobuf_wrote_it(values: tuple[int, ...]) -> None:
    names = "topic created_revision partition group generation offset".split()
    fields = dict(zip(names, values, strict=True))
    data = wire.CommitOffsetsRequest(**fields).SerializeToString()
    target = decode(lib.proto_decode_commit, "proto_commit_request", data)
    assert target is not None
    assert {name: getattr(target, name) for name in names} == fields


@given(st.binary(max_size=120))
def test_arbitrary_bytes_are_judged_as_protobuf_judges_them(data: bytes) -> None:
    try:
        message = wire.FetchRequest.FromString(data)
    except Exception:
        message = None
    target = decode(lib.proto_decode_fetch, "proto_fetch_request", data)
    # Groups and wrong wire types of known fields are refused here and skipped there.
    if target is not None and message is not None:
        assert target.topic == message.topic  # type: ignore[attr-defined]
        assert target.offset == message.offset  # type: ignore[attr-defined]
    if message is None:
        assert target is None


def test_unknown_fields_are_skipped() -> None:
    data = b"\xf8\x07\x01\x82\x06\x03abc\x81\x06" + bytes(8) + b"\x85\x06" + bytes(4) + b"\x08\x05"
    target = decode(lib.proto_decode_fetch, "proto_fetch_request", data)
    assert target is not None
    assert target.topic == 5  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "data",
    [
        b"\x08",  # a value is missing
        b"\x08" + b"\xff" * 10,  # a varint without an end
        b"\x00\x01",  # field number 0
        b"\x0b",  # a group
        b"\x0a\x01a",  # bytes where a number belongs
        b"\xfa\x01\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",  # a length beyond the end
    ],
)
def test_malformed_bytes_are_refused(data: bytes) -> None:
    assert decode(lib.proto_decode_fetch, "proto_fetch_request", data) is None


@given(u64, u64, u32, u32, u32, st.booleans(), st.integers(-(2**63), 2**63 - 1))
def test_a_produce_reply_is_written_as_protobuf_writes_it(
    request: int, base: int, count: int, persisted: int, replicas: int, duplicate: bool, at: int
) -> None:
    reply = ffi.new("struct proto_produce_reply *")
    reply.request, reply.base_offset, reply.record_count = request, base, count
    reply.persisted, reply.replicas, reply.duplicate = persisted, replicas, duplicate
    reply.append_time_us = at
    target = ffi.new("uint8_t[1024]")
    size = lib.proto_encode_produce_reply(reply, target)
    expected = wire.ProduceReply(
        request=request,
        base_offset=base,
        record_count=count,
        persisted=persisted,
        replicas=replicas,
        duplicate=duplicate,
        append_time_us=at,
    )
    assert bytes(ffi.buffer(target, size)) == expected.SerializeToString()


@given(u64, u64, u64, st.integers(min_value=0, max_value=6), st.binary(min_size=1, max_size=50))
def test_a_fetch_reply_is_its_header_and_the_batches(
    start: int, high: int, end: int, status: int, batches: bytes
) -> None:
    reply = ffi.new("struct proto_fetch_reply *")
    reply.status, reply.log_start, reply.high_watermark, reply.log_end = status, start, high, end
    reply.batches_size = len(batches)
    target = ffi.new("uint8_t[64]")
    size = lib.proto_encode_fetch_header(reply, target)
    found = wire.FetchReply.FromString(bytes(ffi.buffer(target, size)) + batches)
    assert found == wire.FetchReply(
        status=wire.FetchStatus.Name(status),
        log_start=start,
        high_watermark=high,
        log_end=end,
        batches=batches,
    )


@given(st.tuples(u64, u64, u32, u64, u64, u64, u64, u32))
def test_the_begin_of_a_consume_is_read_as_protobuf_wrote_it(values: tuple[int, ...]) -> None:
    names = "topic created_revision partition offset credit group generation bytes_max".split()
    fields = dict(zip(names, values, strict=True))
    data = wire.ConsumeRequest(begin=wire.ConsumeBegin(**fields)).SerializeToString()
    keep = ffi.from_buffer(data)
    message = ffi.new("struct proto_consume_request *")
    assert lib.proto_decode_consume(keep, len(data), message) == 0
    assert message.begin.data != ffi.NULL
    begin = ffi.new("struct proto_consume_begin *")
    assert lib.proto_decode_consume_begin(message.begin, begin) == 0
    assert {name: getattr(begin, name) for name in names} == fields


@given(u64)
def test_consume_credit_is_read_as_protobuf_wrote_it(credit: int) -> None:
    data = wire.ConsumeRequest(credit=credit).SerializeToString()
    message = decode(lib.proto_decode_consume, "proto_consume_request", data)
    assert message is not None
    assert message.credit == credit  # type: ignore[attr-defined]
    assert message.begin.data == ffi.NULL  # type: ignore[attr-defined]


def test_a_consume_message_that_begins_and_gives_credit_is_refused() -> None:
    both = wire.ConsumeRequest(begin=wire.ConsumeBegin(topic=1)).SerializeToString() + b"\x10\x05"
    assert decode(lib.proto_decode_consume, "proto_consume_request", both) is None


@given(u64, u64, u64, st.integers(min_value=1, max_value=6), st.binary(max_size=50))
def test_a_consume_reply_is_its_header_and_the_batches(
    start: int, high: int, end: int, status: int, batches: bytes
) -> None:
    reply = ffi.new("struct proto_fetch_reply *")
    reply.status, reply.log_start, reply.high_watermark, reply.log_end = status, start, high, end
    reply.batches_size = len(batches)
    target = ffi.new("uint8_t[64]")
    size = lib.proto_encode_consume_header(reply, target)
    found = wire.ConsumeReply.FromString(bytes(ffi.buffer(target, size)) + batches)
    assert found == wire.ConsumeReply(
        fetch=wire.FetchReply(
            status=wire.FetchStatus.Name(status),
            log_start=start,
            high_watermark=high,
            log_end=end,
            batches=batches,
        )
    )


i64 = st.integers(min_value=-(2**63), max_value=2**63 - 1)


@given(u64, u64, u32, i64)
def test_a_list_request_is_read_as_protobuf_wrote_it(
    topic: int, revision: int, partition: int, time_us: int
) -> None:
    fields = {
        "topic": topic,
        "created_revision": revision,
        "partition": partition,
        "time_us": time_us,
    }
    data = wire.ListOffsetsRequest(**fields).SerializeToString()
    target = decode(lib.proto_decode_list, "proto_list_request", data)
    assert target is not None
    assert {name: getattr(target, name) for name in fields} == fields


@given(st.booleans(), u64, i64, u64, u64)
def test_a_list_reply_is_written_as_protobuf_writes_it(
    found: bool, offset: int, time_us: int, start: int, high: int
) -> None:
    reply = ffi.new("struct proto_list_reply *")
    reply.found, reply.offset, reply.append_time_us = found, offset, time_us
    reply.log_start, reply.high_watermark = start, high
    target = ffi.new("uint8_t[64]")
    size = lib.proto_encode_list_reply(reply, target)
    expected = wire.ListOffsetsReply(
        found=found, offset=offset, append_time_us=time_us, log_start=start, high_watermark=high
    )
    assert bytes(ffi.buffer(target, size)) == expected.SerializeToString()


def errors() -> list[int]:
    return list(range(1, lib.GRPC_ERROR_COUNT))


@pytest.mark.parametrize("error", errors())
def test_every_error_has_a_code_a_kind_a_reason_and_a_hint(error: int) -> None:
    failure = ffi.new("struct grpc_failure *")
    failure.error, failure.expected = error, 7
    made = ffi.new("struct proto_error *")
    lib.grpc_failure_proto(failure, made)
    code = lib.grpc_error_entry(error).grpc_code
    target = ffi.new("uint8_t[1024]")
    size = lib.proto_encode_status(code, made, target)
    status = wire.Status.FromString(bytes(ffi.buffer(target, size)))
    (packed,) = status.details
    found = wire.Error()
    assert packed.Unpack(found)
    assert 1 <= status.code <= 16
    assert found.code.replace("_", "").isalnum()
    assert found.code == found.code.upper()
    assert found.kind in wire.ErrorKind.values()[1:]
    assert found.message
    assert found.hint
    assert found.expected == 7
    assert (found.retry_after_ms > 0) <= (found.kind == wire.RETRY_SAME_NODE)
    size = lib.proto_encode_consume_error(made, target)
    assert wire.ConsumeReply.FromString(bytes(ffi.buffer(target, size))).error == found


def test_every_status_of_the_core_maps_to_one_error() -> None:
    for number in range(-200, 0):
        if ffi.string(lib.status_name(number)) != b"UNKNOWN":
            assert lib.grpc_failure_of(number).error > 0


@given(st.text(max_size=100))
def test_a_grpc_message_is_percent_encoded(text: str) -> None:
    data = text.encode()
    target = ffi.new("uint8_t[]", 3 * len(data) + 1)
    size = lib.grpc_percent_encode(data, len(data), target, 3 * len(data) + 1)
    encoded = bytes(ffi.buffer(target, size)).decode("ascii")
    assert encoded.isprintable() or not encoded
    assert urllib.parse.unquote(encoded, errors="strict") == text


@given(st.text(max_size=100), st.integers(0, 60))
def test_a_grpc_message_is_cut_between_characters(text: str, room: int) -> None:
    data = text.encode()
    target = ffi.new("uint8_t[]", room + 1)
    size = lib.grpc_percent_encode(data, len(data), target, room)
    encoded = bytes(ffi.buffer(target, size)).decode("ascii")
    assert size <= room
    assert text.startswith(urllib.parse.unquote(encoded, errors="strict"))


@given(st.binary(max_size=100))
def test_details_are_base64_without_padding(data: bytes) -> None:
    target = ffi.new("uint8_t[]", len(data) * 2 + 8)
    size = lib.grpc_base64(data, len(data), target)
    assert bytes(ffi.buffer(target, size)) == base64.b64encode(data).rstrip(b"=")
