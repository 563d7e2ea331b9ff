"""The folder of an embedded service: ours or not touched, and its secrets for its user only."""

from pathlib import Path

import pytest

from api.commands.directory import Directory
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
