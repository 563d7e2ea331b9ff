"""Filling a folder: what a start needs, and the same folder again at the next start."""

import tomllib
from pathlib import Path

import pytest
from sqlalchemy import select, update

from api.auth.guard import authenticate
from api.auth.tokens import new_token, parse_token
from api.db.database import Database
from api.db.exclusive import Exclusive, InUseError
from api.db.tables.api_keys import ApiKey
from api.db.tables.organizations import Organization
from api.db.tables.work import ResourceStatus
from api.embedded.directory import Directory
from api.embedded.installation import Installation, check_records, install, owner_public_id
from api.embedded.ports import Ports
from api.settings import Settings
from headrace.errors import ConfigurationInvalid
from headrace.profiles import read_profiles, write_profile


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


@pytest.mark.parametrize("change", ["revoked", "garbled", "of another folder"])
def test_an_owner_key_that_is_one_no_more_is_replaced(tmp_path: Path, change: str) -> None:
    first = _install(tmp_path, Ports(1, 2, 3))
    key = owner_public_id(first.directory)
    database = Database(first.directory.database_url)
    if change == "revoked":
        with database.write() as session:
            session.execute(update(ApiKey).values(revoked_at=database.now(session)))
    else:
        token = "hr_user_x" if change == "garbled" else new_token("user").text
        write_profile(first.directory.profile, "default", {"key": token})
    second = _install(tmp_path, Ports(1, 2, 3))
    assert owner_public_id(second.directory) != key
    text = read_profiles(second.directory.profile).members["default"]["key"]
    with database.read() as session:
        assert authenticate(session, f"Bearer {text}", database).operator
    database.close()


def test_a_database_that_is_gone_is_not_made_a_second_time(tmp_path: Path) -> None:
    first = _install(tmp_path, Ports(1, 2, 3))
    first.directory.database.unlink()
    with pytest.raises(ConfigurationInvalid, match=r"control\.db is gone"):
        _install(tmp_path, Ports(1, 2, 3))
    assert not first.directory.database.exists()


def test_a_database_of_another_folder_is_refused(tmp_path: Path) -> None:
    first, other = (
        _install(tmp_path / "1", Ports(1, 2, 3)),
        _install(tmp_path / "2", Ports(1, 2, 3)),
    )
    other.directory.database.replace(first.directory.database)
    with pytest.raises(ConfigurationInvalid, match="different folders"):
        _install(tmp_path / "1", Ports(1, 2, 3))


def test_a_node_that_is_gone_is_not_made_a_second_time_under_topics(tmp_path: Path) -> None:
    directory = _install(tmp_path, Ports(1, 2, 3)).directory
    check_records(directory, "")
    ready = {"type": "Ready", "status": "True", "observed_generation": 1}
    database = Database(directory.database_url)
    with database.write() as session:
        organization = session.scalars(select(Organization.id)).first()
        status = ResourceStatus(
            object_id="tp_1",
            org_id=organization,
            conditions=[ready],
            detail={},
            updated_at=database.now(session),
        )
        session.add(status)
    database.close()
    with pytest.raises(ConfigurationInvalid, match="1 topics have their records there"):
        check_records(directory, "")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "node.identity").touch()
    check_records(directory, str(tmp_path / "elsewhere"))


@pytest.mark.parametrize("found", [b"", b"garbage\n", b"\xff\xfe\n"])
def test_a_node_key_that_is_none_is_refused_and_never_shown(tmp_path: Path, found: bytes) -> None:
    first = _install(tmp_path, Ports(1, 2, 3))
    first.directory.node_key.write_bytes(found)
    with pytest.raises(ConfigurationInvalid, match="holds no node key") as refused:
        _install(tmp_path, Ports(1, 2, 3))
    assert "garbage" not in str(refused.value)


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
