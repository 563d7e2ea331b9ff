"""The profile file keeps what it holds, and is for its user only."""

from pathlib import Path

import pytest

from headrace.errors import ConfigurationInvalid
from headrace.profiles import read_profiles, use_profile, write_profile


def test_a_profile_keeps_the_others_and_is_for_its_user_only(tmp_path: Path) -> None:
    path = tmp_path / "headrace" / "config.toml"
    write_profile(path, "work", {"api_url": "http://work", "key": "a"})
    write_profile(path, "default", {"api_url": "http://here", "key": "b"})
    write_profile(path, "default", {"api_url": "http://there"})
    assert read_profiles(path).members == {
        "default": {"api_url": "http://there", "key": "b"},
        "work": {"api_url": "http://work", "key": "a"},
    }
    assert path.stat().st_mode & 0o777 == 0o600


def test_the_current_profile_stays_current_when_another_is_written(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    write_profile(path, "work", {"key": "a"})
    use_profile(path, "work")
    write_profile(path, "default", {"key": "b"})
    assert read_profiles(path).current == "work"


def test_a_profile_that_is_not_there_cannot_become_current(tmp_path: Path) -> None:
    write_profile(tmp_path / "config.toml", "work", {"key": "a"})
    with pytest.raises(ConfigurationInvalid, match=r'"nope".*known: work'):
        use_profile(tmp_path / "config.toml", "nope")


def test_a_file_that_is_not_toml_is_never_written_over(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_text("[profiles.work\nkey = 1")
    with pytest.raises(ConfigurationInvalid, match="is not TOML"):
        write_profile(path, "default", {"key": "b"})
    assert path.read_text() == "[profiles.work\nkey = 1"


def test_a_name_that_toml_would_read_otherwise_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationInvalid, match=r"a\.b"):
        write_profile(tmp_path / "config.toml", "a.b", {"key": "b"})


def test_no_key_is_shown_with_the_profiles(tmp_path: Path) -> None:
    write_profile(tmp_path / "config.toml", "work", {"key": "hr_user_secret"})
    assert "secret" not in repr(read_profiles(tmp_path / "config.toml"))
