"""What a partition answers to its node's host: each cause has a result of its own, and INVALID
means a malformed request and nothing else."""

import struct
from pathlib import Path

from headrace import codec
from tests.support.processes import engine_host
from tests.support.processes.engine_host import PARTITION_ID, Host, topic_row

TOPIC, REVISION, GROUPS_MAX, CLOSE = 20, 7, 64, 2
OK, INVALID, TOO_MANY_GROUPS, OFFSET_BEYOND_END, PRODUCER_LOST = 0, 7, 13, 14, 15
PLACE = PARTITION_ID.pack(TOPIC, REVISION, 0, 0)


def publish(host: Host, sequence: int) -> int:
    part = codec.encode(
        [codec.Record(None, b"x", 5)], producer_id=b"p" * 16, base_sequence=sequence
    )
    return host.request(engine_host.PUBLISH, PLACE + part)[0]


def fence(host: Host, group: int) -> int:
    body = struct.pack("<QQQII", group, 1, 1, CLOSE, 0)
    return host.request(engine_host.GROUP_FENCE, PLACE + body)[0]


def test_each_cause_has_a_result_of_its_own(tmp_path: Path) -> None:
    with Host(engine_host.config(tmp_path / "node")) as host:
        host.submit(topic_row(TOPIC, revision=REVISION))
        assert publish(host, 5) == PRODUCER_LOST
        assert publish(host, 0) == OK
        assert publish(host, 2) == PRODUCER_LOST
        assert host.purge(TOPIC, REVISION, 0, 2) == OFFSET_BEYOND_END
        assert {fence(host, group) for group in range(1, GROUPS_MAX + 1)} == {OK}
        assert fence(host, GROUPS_MAX + 1) == TOO_MANY_GROUPS
        assert host.request(engine_host.GROUP_FENCE, PLACE + b"short")[0] == INVALID
