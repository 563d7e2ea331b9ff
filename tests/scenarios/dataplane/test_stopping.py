"""A node ends within its time whatever is in motion, and refuses a directory that lost a part."""

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.support.builders.node_objects import EDITOR, furnish
from tests.support.processes.node_process import NodeProcess


def test_sigterm_ends_a_node_in_the_middle_of_a_hand_over(tmp_path: Path) -> None:
    with NodeProcess(tmp_path) as node:
        furnish(node, "held")
        client = node.client(EDITOR)
        holder = client.join("holder", "held", timeout_ms=60_000)
        holder.assigned(2)
        client.join("waiting", "held", timeout_ms=60_000)
        moving = holder.next_event().assignment
        assert moving.revoked, moving  # and the holder never releases it
        node.terminate()  # kills and fails after 30 s
        assert "the node failed" not in node.log()


@pytest.mark.parametrize(
    ("lost", "code"),
    [
        ("layout-1/shard-0/journal", "JOURNAL_MISSING"),
        ("layout-1", "JOURNAL_MISSING"),
        ("node.identity", "IDENTITY_MISSING"),
    ],
)
def test_a_directory_that_lost_a_part_is_refused_by_name_and_left_as_it_is(
    tmp_path: Path, lost: str, code: str
) -> None:
    node = NodeProcess(tmp_path)
    with node:
        furnish(node, "kept")
        client = node.client(EDITOR)
        client.produce(client.topic("kept"), 0, [b"precious"])
    data = tmp_path / "node-1"
    hidden = tmp_path / "hidden"
    (data / lost).rename(hidden)
    with pytest.raises(RuntimeError, match="did not become ready"):
        node.start()
    assert code in node.log()
    assert not (data / lost).is_file()
    shutil.rmtree(data / lost, ignore_errors=True)  # an empty folder may have been made again
    hidden.rename(data / lost)
    with node:
        client = node.client(EDITOR)
        assert client.fetch(client.topic("kept"), 0).high_watermark == 1


@pytest.mark.xfail(
    strict=True,
    raises=subprocess.TimeoutExpired,
    reason="A node whose metadata log is damaged neither starts nor ends: it asks for ever.",
)
def test_a_node_whose_metadata_log_is_damaged_ends_and_says_so(tmp_path: Path) -> None:
    with NodeProcess(tmp_path) as node:
        node.kill()
        journal = node.data_dir / "layout-1/shard-0/journal"
        data = bytearray(journal.read_bytes())
        first_round = 8192 + 4096  # behind the headers of the file and of its first extent
        assert data[first_round : first_round + 4] == b"HRJB"
        data[first_round + 300] ^= 1
        journal.write_bytes(data)
        node.begin_start()
        node.wait_until(lambda: "DAMAGED" in node.log(), seconds=30)
        assert node.ended(seconds=3) == (2, b"")
