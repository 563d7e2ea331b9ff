"""Filling a folder: what a start needs, and the same folder again at the next start."""

import tomllib
from pathlib import Path

import pytest

from api.access.guard import authenticate
from api.access.tokens import parse_token
from api.commands.directory import Directory
from api.commands.installation import Installation, install, owner_public_id
from api.commands.ports import Ports
from api.database import Database
from api.exclusive import Exclusive, InUseError
from api.settings import Settings
from headrace.profiles import read_profiles


def test_a_start_finds_configuration_keys_and_profile(tmp_path: Path) -> None:
    installation = _install(tmp_path, Ports(8460, 8461, 8462))
    directory = installation.directory
    config = tomllib.loads(directory.config.read_text())
    assert config["metering"]["window_seconds"] == 5
    assert config["node"]["node_id"].startswith("nd_")
    assert directory.node_key.stat().st_mode & 0o777 == 0o600
    token = parse_token(directory.node_key.read_text().strip())
    assert token is not None
    assert token.kind == "node"
    settings = Settings.load(directory.config)
    assert settings.database.url == directory.database_url
    assert settings.node.admin_key_file == directory.node_key
    profile = read_profiles(tmp_path / "config.toml").members["default"]
    assert profile["api_url"] == "http://127.0.0.1:8460"
    database = Database(directory.database_url)
    with database.read() as session:
        assert authenticate(session, f"Bearer {profile['key']}", database).operator
    database.close()


def test_the_next_start_keeps_everything_but_the_addresses(tmp_path: Path) -> None:
    first = _install(tmp_path, Ports(1, 2, 3))
    config = first.directory.config.read_text()
    key = owner_public_id(first.directory)
    second = _install(tmp_path, Ports(4, 5, 6))
    assert second.bootstrap == "127.0.0.1:5"
    assert second.directory.config.read_text() == config
    assert owner_public_id(second.directory) == key
    assert read_profiles(tmp_path / "config.toml").members["default"]["bootstrap"] == "127.0.0.1:5"


def test_an_owner_key_that_was_never_written_down_is_replaced(tmp_path: Path) -> None:
    first = _install(tmp_path, Ports(1, 2, 3))
    key = owner_public_id(first.directory)
    first.directory.profile.unlink()
    second = _install(tmp_path, Ports(1, 2, 3))
    assert owner_public_id(second.directory) != key


def test_a_database_that_is_in_use_is_not_touched(tmp_path: Path) -> None:
    first = _install(tmp_path, Ports(1, 2, 3))
    with Exclusive(first.directory.database), pytest.raises(InUseError, match=r"control\.db"):
        _install(tmp_path, Ports(1, 2, 3))


def _install(tmp_path: Path, ports: Ports) -> Installation:
    directory = Directory(tmp_path / "data")
    directory.claim()
    return install(
        directory,
        ports,
        window_seconds=5,
        profile_path=tmp_path / "config.toml",
        profile="default",
    )
