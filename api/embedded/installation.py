"""Fills the folder of an embedded service: database, configuration, keys, profile. Repeatable.

A start that was cut short is completed by the next one; an owner key whose token was lost that way,
or that was revoked, is replaced. What holds the only copy of something is never made a second time.
"""

from dataclasses import dataclass, replace
from pathlib import Path

from sqlalchemy import select

from api.auth.guard import authenticate
from api.auth.tokens import new_token, parse_token
from api.bootstrap.seed import Identity, another_owner_key, bootstrap, identity_of, readdress
from api.db.database import Database
from api.db.exclusive import Exclusive
from api.db.schema import migrate
from api.db.tables.work import ResourceStatus
from api.embedded.directory import Directory
from api.embedded.ports import HOST, Ports
from api.http.errors import UnauthenticatedError
from api.reconcile.conditions import is_true
from api.sessions.service import new_password, replace_password
from headrace.errors import ConfigurationInvalid
from headrace.profiles import read_profiles, write_profile
from headrace.toml_file import toml_text, write_whole


@dataclass(frozen=True, slots=True)
class Installation:
    """A folder that is ready to be started, and where its servers will be. ``console_password`` is
    there when it was just made: it is kept nowhere."""

    directory: Directory
    ports: Ports
    console_password: str | None = None

    @property
    def api_url(self) -> str:
        """Where the REST API will be."""
        return f"http://{HOST}:{self.ports.api}"

    @property
    def bootstrap(self) -> str:
        """Where the node will be."""
        return f"{HOST}:{self.ports.node}"


def install(
    directory: Directory,
    ports: Ports,
    *,
    window_seconds: int,
    profile_path: Path,
    profile: str,
    new_console_password: bool = False,
) -> Installation:
    """Makes everything that is missing, and tells the database where the node will be.

    :param new_console_password: make one, although there is one.
    :raises ConfigurationInvalid: what was there at an earlier start is gone or is something else.
    """
    installation = Installation(directory, ports)
    _check_kept(directory)
    if not directory.node_key.exists():
        write_whole(directory.node_key, new_token("node").text + "\n", mode=0o600)
    migrate(directory.database_url)
    directory.database.chmod(0o600)
    database = Database(directory.database_url)
    with Exclusive(directory.database):
        made = bootstrap(database, node_address=installation.bootstrap)
        token = made.token.text if made is not None else _valid_token(directory, database)
        identity = identity_of(database)
        _check_cluster(directory, identity)
        readdress(database, node_id=identity.node_id, node_address=installation.bootstrap)
        if new_console_password:
            password: str | None = replace_password(database, "up")
        else:
            with database.write() as session:
                password = new_password(session)
        members = {
            "api_url": installation.api_url,
            "bootstrap": installation.bootstrap,
            "key": token or another_owner_key(database),
        }
    database.close()
    write_profile(directory.profile, "default", members)
    if not directory.config.exists():
        write_whole(directory.config, _config_text(identity, ports, window_seconds))
    write_profile(profile_path, profile, members)
    return replace(installation, console_password=password)


def check_records(directory: Directory, data_dir: str) -> None:
    """A node that lost its directory would make the topics anew, and empty.

    :param data_dir: what the start says instead of the file; empty: nothing.
    :raises ConfigurationInvalid: topics are ready, and nothing is where their records should be.
    """
    configured = directory.configured("node").get("data_dir", "node-1")
    data = directory.root / (data_dir or str(configured))
    if (data / "node.identity").exists():
        return
    database = Database(directory.database_url)
    with database.read() as session:
        statuses = session.scalars(
            select(ResourceStatus).where(ResourceStatus.object_id.startswith("tp_"))
        ).all()
    database.close()
    ready = [each for each in statuses if is_true(each.conditions, "Ready", 1)]
    if ready:
        raise ConfigurationInvalid(
            f"{data} holds no node, and {len(ready)} topics have their records there",
            hint="Is its disk mounted? Put the whole folder back from a backup, or begin anew in "
            "another one with --dir",
        )


def owner_public_id(directory: Directory) -> str:
    """The public part of the owner's token."""
    token = parse_token(_known_token(directory) or "")
    assert token is not None
    return token.public_id


def _check_kept(directory: Directory) -> None:
    """What is made once and never again: another one would know nothing of the first one's data."""
    # The configuration is written when the database is filled.
    if directory.config.exists() and not _size(directory.database):
        raise ConfigurationInvalid(
            f"{directory.database} is gone or empty; the folder was in use before",
            hint="Put the whole folder back from a backup, or begin anew in another one with --dir",
        )
    if directory.node_key.exists():
        try:
            token = parse_token(directory.node_key.read_text(encoding="ascii").strip())
        except OSError as error:
            raise ConfigurationInvalid(
                f"{directory.node_key} cannot be read: {error.strerror}"
            ) from None
        except UnicodeDecodeError:
            token = None
        if token is None or token.kind != "node":
            raise ConfigurationInvalid(
                f"{directory.node_key} holds no node key (hr_node_...)",
                hint="Put it back from a backup, or remove it: the next start makes another one",
            )


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def _check_cluster(directory: Directory, identity: Identity) -> None:
    """A database of another folder would have this node's topics made anew, and empty."""
    configured = directory.configured("node").get("cluster_id", identity.cluster_id)
    if configured != identity.cluster_id:
        raise ConfigurationInvalid(
            f"{directory.database} is of cluster {identity.cluster_id}, {directory.config.name} of "
            f"{configured}: they are of different folders",
            hint="Put the whole folder back from one backup",
        )


def owner_token(directory: Directory) -> str:
    """The owner's token; empty if it is not written down."""
    return _known_token(directory) or ""


def _valid_token(directory: Directory, database: Database) -> str | None:
    """The owner key's token, if it is written down and still a key: it may have been revoked."""
    token = _known_token(directory)
    try:
        with database.read() as session:
            caller = authenticate(session, f"Bearer {token}", database)
    except UnauthenticatedError:
        return None
    return token if caller.operator else None


def _known_token(directory: Directory) -> str | None:
    key = read_profiles(directory.profile).members.get("default", {}).get("key")
    return str(key) if key else None


def _config_text(identity: Identity, ports: Ports, window_seconds: int) -> str:
    """Paths are relative to the file, so that the folder can be moved."""
    comment = "# Written by the first `headrace up`; yours from now on.\n"
    comment += "# Every key can be overridden as HEADRACE_<SECTION>__<KEY>.\n\n"
    return comment + toml_text(
        {
            "api": {"host": HOST, "port": ports.api},
            "database": {"url": "sqlite:///control.db"},
            "node": {
                **identity.members(),
                "host": HOST,
                "port": ports.node,
                "http_port": ports.node_http,
                "data_dir": "node-1",
                "shards": 1,
                "admin_key_file": "node.key",
            },
            "metering": {"window_seconds": window_seconds},
            "reports": {"uri": "reports", "logs": "logs", "spark_master": "local[*]"},
        }
    )
