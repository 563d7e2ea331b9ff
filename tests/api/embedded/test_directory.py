"""The folder of an embedded service: ours or not touched, and its secrets for its user only."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from api.embedded.directory import Directory
from headrace.errors import ConfigurationInvalid


def test_a_new_folder_is_claimed_and_found_again(tmp_path: Path) -> None:
    directory = Directory(tmp_path / "data")
    directory.claim()
    directory.claim()
    assert directory.root.stat().st_mode & 0o777 == 0o700


def test_a_folder_with_other_files_is_not_touched(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("")
    with pytest.raises(ConfigurationInvalid) as refused:
        Directory(tmp_path).claim()
    assert refused.value.code == "DIRECTORY_NOT_OURS"
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]


def test_a_folder_of_another_layout_is_refused(tmp_path: Path) -> None:
    directory = Directory(tmp_path)
    directory.claim()
    (tmp_path / "layout.json").write_text('{"layout": 2}')
    with pytest.raises(ConfigurationInvalid) as refused:
        directory.claim()
    assert refused.value.code == "LAYOUT_UNKNOWN"


@pytest.mark.parametrize("found", [b"", b"[]", b"{}", b"\xff\xfe", b"{"])
def test_a_layout_that_cannot_be_read_is_refused(tmp_path: Path, found: bytes) -> None:
    directory = Directory(tmp_path)
    directory.claim()
    (tmp_path / "layout.json").write_bytes(found)
    with pytest.raises(ConfigurationInvalid):
        directory.check()


@pytest.mark.parametrize(
    "name",
    [
        "layout.json",
        "headrace.toml",
        "control.db",
        "control.db.lock",
        "node.key",
        "profile.toml",
        "up.json",
        "logs/api.log",
    ],
)
@pytest.mark.parametrize("make", [os.mkdir, os.mkfifo])
def test_what_is_no_file_in_a_files_place_is_named(
    tmp_path: Path, name: str, make: Callable[[Path], None]
) -> None:
    directory = Directory(tmp_path)
    directory.claim()
    (tmp_path / name).unlink(missing_ok=True)
    make(tmp_path / name)
    with pytest.raises(ConfigurationInvalid, match=rf"{name} is no file"):
        directory.check()


@pytest.mark.parametrize("name", ["logs", "reports"])
def test_what_is_no_folder_in_a_folders_place_is_named(tmp_path: Path, name: str) -> None:
    directory = Directory(tmp_path)
    directory.claim()
    (tmp_path / name).rmdir()
    (tmp_path / name).touch()
    with pytest.raises(ConfigurationInvalid, match=f"{name} is no folder"):
        directory.check()


def test_logs_that_somebody_removed_are_made_again(tmp_path: Path) -> None:
    directory = Directory(tmp_path)
    directory.claim()
    directory.logs.rmdir()
    directory.claim()
    assert directory.logs.is_dir()


@pytest.mark.parametrize("found", [b"# caf\xe9\n", b"[api", b"api = 5\n"])
def test_a_configuration_that_cannot_be_read_is_refused(tmp_path: Path, found: bytes) -> None:
    directory = Directory(tmp_path)
    directory.config.write_bytes(found)
    with pytest.raises(ConfigurationInvalid, match=r"headrace\.toml"):
        directory.configured("api")


def test_the_tail_of_a_log_is_of_this_start_and_says_nothing_twice(tmp_path: Path) -> None:
    directory = Directory(tmp_path)
    directory.claim()
    assert directory.log_tail("node", directory.log_size("node")) == []
    directory.log("node").write_text("of an earlier start\n")
    begin = directory.log_size("node")
    with directory.log("node").open("a") as log:
        log.write("serving\n" + "the port is taken\n" * 100)
    assert directory.log_tail("node", begin) == ["serving", "the port is taken"]
