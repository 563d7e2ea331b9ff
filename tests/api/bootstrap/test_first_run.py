"""The first run of a database: made once, told once, and the same on both databases."""

import json
import tomllib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from api.__main__ import main
from api.auth.guard import authenticate
from api.bootstrap.first_run import Options, first_run
from api.bootstrap.seed import bootstrap
from api.db.database import Database
from api.db.schema import check_schema, migrate
from api.http.errors import UnauthenticatedError
from api.node.addresses import addresses
from api.sessions.service import sign_in
from api.settings import DatabaseSettings, NodeSettings, Settings, SettingsInvalid
from tests.support.processes.postgres import DATABASES, Postgres


@pytest.fixture(params=DATABASES)
def settings(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Settings]:
    """Of an empty database, and a key file in a folder that is not there yet."""
    node = NodeSettings(admin_key_file=tmp_path / "keys" / "node.key")
    if request.param == "sqlite":
        url = f"sqlite:///{tmp_path}/control.db"
        yield Settings(database=DatabaseSettings(url=url), node=node)
        return
    postgres: Postgres = request.getfixturevalue("postgres")
    yield Settings(database=DatabaseSettings(url=postgres.create("first")), node=node)
    postgres.drop("first")


def test_the_first_run_makes_everything_and_a_second_one_tells_no_secret(
    settings: Settings, tmp_path: Path
) -> None:
    options = Options("10.0.0.3:8461", tmp_path / "node.toml")
    told = first_run(settings, options)
    node_key, node_file = settings.node.admin_key_file.read_bytes(), options.node_file
    assert node_file is not None
    configured = tomllib.loads(node_file.read_text())
    database = Database(settings.database.url)
    check_schema(database)
    with database.read() as session:
        assert authenticate(session, f"Bearer {told['owner_key']}", database).operator
        assert addresses(session, str(told["cluster_id"])) == ["10.0.0.3:8461"]
    assert sign_in(database, str(told["console_password"]), "test")
    assert settings.node.admin_key_file.stat().st_mode & 0o777 == 0o600

    again = first_run(settings, Options("10.0.0.4:9000", node_file))
    ids = {name: told[name] for name in ("cluster_id", "node_id", "system_organization_id")}
    assert again == {"made": False, **ids, "system_project_id": told["system_project_id"]}
    assert settings.node.admin_key_file.read_bytes() == node_key
    assert tomllib.loads(node_file.read_text()) == configured
    with database.read() as session:
        assert addresses(session, str(told["cluster_id"])) == ["10.0.0.4:9000"]
    database.close()


def test_who_lost_the_secrets_gets_others(settings: Settings) -> None:
    lost = first_run(settings, Options())
    database = Database(settings.database.url)
    kept = sign_in(database, str(lost["console_password"]), "test")
    found = first_run(settings, Options(renew=True))
    assert not {lost["owner_key"], lost["console_password"]} & set(found.values())
    with database.read() as session, pytest.raises(UnauthenticatedError):
        authenticate(session, f"Bearer {kept}", database)
    with database.read() as session:
        assert authenticate(session, f"Bearer {found['owner_key']}", database).operator
    assert sign_in(database, str(found["console_password"]), "test")
    with pytest.raises(UnauthenticatedError):
        sign_in(database, str(lost["console_password"]), "test")
    database.close()


def test_two_first_runs_at_once_are_one(settings: Settings) -> None:
    migrate(settings.database.url)
    database = Database(settings.database.url)
    with ThreadPoolExecutor(4) as runs:
        made = list(runs.map(lambda _: bootstrap(database, node_address="n:1"), range(4)))
    database.close()
    assert sum(each is not None for each in made) == 1


def test_the_nodes_file_is_for_its_address_and_of_its_cluster(
    settings: Settings, tmp_path: Path
) -> None:
    path = tmp_path / "node.toml"
    told = first_run(settings, Options("node-1.internal:9000", path))
    node = tomllib.loads(path.read_text())["node"]
    assert node["cluster_id"] == told["cluster_id"]
    assert (node["host"], node["advertised_host"]) == ("0.0.0.0", "node-1.internal")
    assert (node["port"], node["http_port"]) == (9000, 9001)
    path.write_text('[node]\ncluster_id = "cl_another"\n')
    with pytest.raises(SettingsInvalid, match="is of another cluster"):
        first_run(settings, Options(node_file=path))
    assert path.read_text() == '[node]\ncluster_id = "cl_another"\n'


@pytest.mark.parametrize(
    ("address", "host", "advertised"),
    [("[::1]:8461", "::1", "[::1]"), ("127.0.0.1:8461", "127.0.0.1", "127.0.0.1")],
)
def test_a_node_whose_address_is_a_number_listens_there_and_nowhere_else(
    tmp_path: Path, address: str, host: str, advertised: str
) -> None:
    path = tmp_path / "node.toml"
    settings = Settings(
        database=DatabaseSettings(url=f"sqlite:///{tmp_path}/control.db"),
        node=NodeSettings(admin_key_file=tmp_path / "node.key"),
    )
    first_run(settings, Options(address, path))
    node = tomllib.loads(path.read_text())["node"]
    assert (node["host"], node["advertised_host"], node["port"]) == (host, advertised, 8461)


@pytest.mark.parametrize("address", ["::1:8461", "[node-1]:8461", "[127.0.0.1]:8461", "[]:8461"])
def test_an_ipv6_address_stands_in_brackets_and_nothing_else_does(address: str) -> None:
    with pytest.raises(SettingsInvalid, match=r"as in \[::1\]:8461"):
        first_run(Settings(), Options(address))


@pytest.mark.parametrize("address", ["node-1", "node-1:", ":8461", "node-1:65535", "node-1:x"])
def test_an_address_that_is_none_changes_nothing(address: str, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/control.db"
    settings = Settings(database=DatabaseSettings(url=url))
    with pytest.raises(SettingsInvalid, match="HOST:PORT"):
        first_run(settings, Options(address))
    assert not list(tmp_path.iterdir())


def test_a_file_that_holds_no_node_key_is_never_written_over(tmp_path: Path) -> None:
    key_file = tmp_path / "node.key"
    key_file.write_text("something else\n")
    settings = Settings(
        database=DatabaseSettings(url=f"sqlite:///{tmp_path}/control.db"),
        node=NodeSettings(admin_key_file=key_file),
    )
    with pytest.raises(SettingsInvalid, match="holds no node key"):
        first_run(settings, Options())
    assert key_file.read_text() == "something else\n"


def test_the_verb_prints_one_object(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HEADRACE_DATABASE__URL", f"sqlite:///{tmp_path}/control.db")
    monkeypatch.setenv("HEADRACE_NODE__ADMIN_KEY_FILE", str(tmp_path / "node.key"))
    assert main(["bootstrap", "--node-address", "127.0.0.1:9000"]) == 0
    assert json.loads(capsys.readouterr().out)["made"] is True
    assert main(["bootstrap", "--node-address", "nowhere"]) == 2
    assert "HOST:PORT" in capsys.readouterr().err
