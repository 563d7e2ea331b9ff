"""message_batch.c and proto_messages.c: plain messages into a batch and out of it, against protobuf
and the SDK's codec."""

from google.protobuf.message import DecodeError
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace import codec
from headrace.producer.partitioner import partition_of
from headrace.wire import stream_pb2 as wire
from native._engine_sim import ffi, lib

NOW_US = 1_700_000_000_000_000
INVALID, SPAN, COUNT = -8, -131, -130
ROOM = 8 * 1024 * 1024

nullable = st.none() | st.binary(max_size=40)
headers = st.lists(st.tuples(st.text(max_size=8), nullable), max_size=4)
times = st.sampled_from([0, 1, -5, 2**40, NOW_US]) | st.integers(-(2**60), 2**60)
records = st.tuples(nullable, nullable, headers, times)


def message(
    record: tuple[bytes | None, bytes | None, list[tuple[str, bytes | None]], int],
) -> wire.Message:
    key, value, pairs, time_us = record
    made = [wire.Header(key=name, value=content) for name, content in pairs]
    return wire.Message(key=key, value=value, headers=made, timestamp_us=time_us)


def encode(data: bytes, partitions: int = 6, room: int = ROOM) -> tuple[int, bytes, int | None]:
    """(status, client part, partition of the keys)."""
    keep = ffi.from_buffer(data)
    request = ffi.new("struct proto_publish_request *")
    status = int(lib.proto_decode_publish(keep, len(data), request))
    if status != 0:
        return status, b"", None
    batch = ffi.new("struct message_batch *")
    status = int(lib.message_batch_measure(request, NOW_US, partitions, room, batch))
    if status != 0:
        return status, b"", None
    size = int(lib.message_batch_bytes(batch))
    part = ffi.new("uint8_t[]", size)
    lib.message_batch_write(request, batch, part)
    return 0, bytes(ffi.buffer(part, size)), batch.partition if batch.has_key else None


@given(st.lists(records, min_size=1, max_size=8), st.binary(min_size=16, max_size=16))
def test_a_batch_holds_what_the_messages_say(
    sent: list[tuple[bytes | None, bytes | None, list[tuple[str, bytes | None]], int]],
    producer: bytes,
) -> None:
    named = any(producer)
    request = wire.PublishRequest(
        topic="t",
        partition=0,
        messages=[message(record) for record in sent],
        producer_id=producer if named else b"",
        producer_epoch=7 if named else 0,
        base_sequence=2**40 if named else 0,
    )
    status, part, _ = encode(request.SerializeToString())
    assert status == 0
    batch = codec.client_batch(part)
    assert (batch.producer_id, batch.producer_epoch, batch.base_sequence) == (
        request.producer_id or bytes(16),
        request.producer_epoch,
        request.base_sequence,
    )
    found = codec.decode(batch)
    assert list(found.keys) == [key for key, _, _, _ in sent]
    assert list(found.values) == [value for _, value, _, _ in sent]
    assert list(found.timestamps_us) == [time_us or NOW_US for *_, time_us in sent]
    assert [found.headers(index) for index in range(len(sent))] == [r[2] for r in sent]
    # The same as the SDK makes of them.
    made = codec.encode(
        [codec.Record(k, v, t or NOW_US, h) for k, v, h, t in sent],
        producer_id=batch.producer_id,
        producer_epoch=batch.producer_epoch,
        base_sequence=batch.base_sequence,
    )
    assert part == made


@given(st.lists(nullable, min_size=1, max_size=6), st.integers(1, 8))
def test_all_keys_must_belong_to_one_partition(keys: list[bytes | None], partitions: int) -> None:
    request = wire.PublishRequest(topic="t", messages=[wire.Message(key=key) for key in keys])
    status, _, partition = encode(request.SerializeToString(), partitions)
    wanted = {partition_of(key, partitions) for key in keys if key is not None}
    assert status == (SPAN if len(wanted) > 1 else 0)
    assert partition == (wanted.pop() if len(wanted) == 1 else None)


@given(st.binary(max_size=200))
def test_arbitrary_bytes_are_refused_or_read_as_protobuf_reads_them(data: bytes) -> None:
    status, part, _ = encode(data)
    try:
        theirs = wire.PublishRequest.FromString(data)
    except DecodeError:
        assert status != 0
        return
    if status == 0:
        found = codec.decode(codec.client_batch(part))
        assert list(found.keys) == [m.key if m.HasField("key") else None for m in theirs.messages]


@settings(max_examples=300)
@given(st.lists(records, min_size=1, max_size=3), st.data())
def test_a_flipped_or_cut_request_never_gives_a_batch_that_is_not_one(
    sent: list[tuple[bytes | None, bytes | None, list[tuple[str, bytes | None]], int]],
    data: st.DataObject,
) -> None:
    whole = bytearray(
        wire.PublishRequest(
            topic="t", messages=[message(record) for record in sent]
        ).SerializeToString()
    )
    at = data.draw(st.integers(0, len(whole) - 1))
    whole[at] ^= data.draw(st.integers(1, 255))
    cut = data.draw(st.integers(0, len(whole)))
    for mangled in (bytes(whole), bytes(whole[:cut])):
        status, part, _ = encode(mangled)
        if status == 0:
            codec.decode(codec.client_batch(part))


def test_a_count_beyond_a_batchs_is_refused_before_a_message_is_read() -> None:
    head = wire.PublishRequest(topic="t").SerializeToString()
    assert encode(head)[0] == COUNT
    assert encode(head + b"\x22\x00" * 1_000_001)[0] == COUNT
    status, part, _ = encode(head + b"\x22\x00" * 1_000_000, room=64 << 20)
    assert status == 0
    assert codec.client_batch(part).record_count == 1_000_000


@given(
    st.tuples(st.text(max_size=20), st.text(max_size=20)),
    st.lists(st.integers(0, 2**32 - 1), min_size=4, max_size=4),
    st.integers(0, 2**64 - 1),
)
def test_a_fetch_messages_request_is_read_as_protobuf_wrote_it(
    names: tuple[str, str], numbers: list[int], offset: int
) -> None:
    request = wire.FetchMessagesRequest(
        project=names[0],
        topic=names[1],
        partition=numbers[0],
        offset=offset,
        messages_max=numbers[1],
        bytes_max=numbers[2],
        wait_ms_max=numbers[3],
    )
    data = request.SerializeToString()
    keep = ffi.from_buffer(data)
    found = ffi.new("struct proto_fetch_messages_request *")
    assert lib.proto_decode_fetch_messages(keep, len(data), found) == 0
    assert [found.partition, found.messages_max, found.bytes_max, found.wait_ms_max] == numbers
    assert found.offset == offset
    texts = [
        bytes(ffi.buffer(text.data, text.size)).decode() if text.size else ""
        for text in (found.project, found.topic)
    ]
    assert tuple(texts) == names


@given(st.lists(records, min_size=1, max_size=6), st.integers(0, 2**63), st.integers(0, 2**62))
def test_stored_messages_are_written_as_protobuf_reads_them(
    sent: list[tuple[bytes | None, bytes | None, list[tuple[str, bytes | None]], int]],
    offset: int,
    append_time_us: int,
) -> None:
    part = codec.encode([codec.Record(k, v, t, h) for k, v, h, t in sent])
    client = ffi.new("struct batch_client *")
    keep = ffi.from_buffer(part)
    assert lib.batch_decode_client(keep, len(part), client) == 0
    opened = ffi.cast("uint8_t *", keep) + 72
    at = ffi.new("uint8_t **", opened)
    written = b""
    for index in range(len(sent)):
        record = ffi.new("struct batch_record *")
        assert lib.batch_record_next(at, opened, client, index, record) == 0
        size = int(lib.proto_stored_message_bytes(record, offset + index, append_time_us))
        target = ffi.new("uint8_t[]", size)
        end = lib.proto_encode_stored_message(record, offset + index, append_time_us, target)
        assert end - target == size
        written += bytes(ffi.buffer(target, size))
    reply = wire.FetchMessagesReply(
        messages=[
            wire.StoredMessage(
                offset=offset + index, append_time_us=append_time_us, message=message(record)
            )
            for index, record in enumerate(sent)
        ]
    )
    assert wire.FetchMessagesReply.FromString(written) == reply
    assert written == reply.SerializeToString(deterministic=True)
