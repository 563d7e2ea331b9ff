"""Files appear whole or not at all, and what a killed run left is swept."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from reports.errors import ArgumentError
from reports.files import PENDING, appear, pending_folder, root_of, sweep


def publish_text(parent: Path, text: str) -> None:
    """One file in a folder named `usage`."""
    with pending_folder(parent) as folder:
        (folder / "usage.csv").write_text(text)
        appear(folder, parent / "usage")


def test_a_folder_appears_whole_and_nothing_is_left_beside_it(tmp_path: Path) -> None:
    publish_text(tmp_path, "all of it")
    assert (tmp_path / "usage" / "usage.csv").read_text() == "all of it"
    assert [path.name for path in tmp_path.iterdir()] == ["usage"]


def test_a_folder_with_the_same_bytes_stays_and_one_with_others_gives_way(tmp_path: Path) -> None:
    publish_text(tmp_path, "first")
    before = (tmp_path / "usage").stat().st_ino
    publish_text(tmp_path, "first")
    assert (tmp_path / "usage").stat().st_ino == before
    publish_text(tmp_path, "as newer code writes it")
    assert (tmp_path / "usage" / "usage.csv").read_text() == "as newer code writes it"
    assert [path.name for path in tmp_path.iterdir()] == ["usage"]


def publish_half(parent: Path) -> None:
    """Fail between two files."""
    with pending_folder(parent) as folder:
        (folder / "usage.csv").write_text("half of it")
        raise ValueError("half")


def test_a_failure_before_the_end_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="half"):
        publish_half(tmp_path)
    assert list(tmp_path.iterdir()) == []


KILLED = """
import os, signal, sys
from pathlib import Path
from reports.files import pending_folder, settle
with pending_folder(Path(sys.argv[1])) as folder:
    (folder / "usage.csv").write_text("half of it")
    os.kill(os.getpid(), signal.SIGKILL)
    settle(folder, Path(sys.argv[1]) / "usage")
"""


def test_a_killed_run_leaves_nothing_published_and_is_swept_later(tmp_path: Path) -> None:
    killed = subprocess.run([sys.executable, "-c", KILLED, str(tmp_path)], check=False)
    assert killed.returncode == -signal.SIGKILL
    (left,) = tmp_path.iterdir()
    assert left.name.startswith(PENDING)
    sweep(tmp_path)
    assert left.is_dir()
    os.utime(left, (0, 0))
    sweep(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_pending_folder_that_goes_while_another_run_sweeps_is_no_trouble(tmp_path: Path) -> None:
    (tmp_path / f"{PENDING}gone").symlink_to(tmp_path / "nowhere")
    publish_text(tmp_path, "all of it")
    assert (tmp_path / "usage" / "usage.csv").read_text() == "all of it"


@pytest.mark.parametrize("uri", ["s3://bucket/reports", "", "file://elsewhere/reports"])
def test_only_folders_can_be_published_to(uri: str) -> None:
    with pytest.raises(ArgumentError, match="URI_UNSUPPORTED"):
        root_of(uri)


def test_a_file_url_is_a_folder(tmp_path: Path) -> None:
    assert root_of((tmp_path / "a b").as_uri()) == tmp_path / "a b"
    assert re.fullmatch(r"/.*a b", str(root_of(str(tmp_path / "a b"))))
