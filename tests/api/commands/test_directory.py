"""The folder of an embedded service: ours or not touched, and its secrets for its user only."""

import tomllib
from pathlib import Path

import pytest

from api.commands.directory import Directory, toml_text, write_whole
from api.commands.profile import read_profiles, write_profile
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


def test_a_file_appears_whole_with_its_mode(tmp_path: Path) -> None:
    path = tmp_path / "node.key"
    write_whole(path, "secret\n", mode=0o600)
    assert path.stat().st_mode & 0o777 == 0o600
    assert [each.name for each in tmp_path.iterdir()] == ["node.key"]


def test_what_is_written_is_toml() -> None:
    sections: dict[str, dict[str, str | int | bool]] = {
        "api": {"port": 1, "on": True, "name": 'a "quoted" \\ name'}
    }
    assert tomllib.loads(toml_text(sections)) == sections


def test_a_profile_keeps_the_others_and_is_for_its_user_only(tmp_path: Path) -> None:
    path = tmp_path / "headrace" / "config.toml"
    write_profile(path, "work", {"api_url": "http://work", "key": "a"})
    write_profile(path, "default", {"api_url": "http://here", "key": "b"})
    write_profile(path, "default", {"api_url": "http://there"})
    assert read_profiles(path) == {
        "default": {"api_url": "http://there", "key": "b"},
        "work": {"api_url": "http://work", "key": "a"},
    }
    assert path.stat().st_mode & 0o777 == 0o600
