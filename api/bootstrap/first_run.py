"""`python -m api bootstrap`: the schema, what a fresh database needs, and a node's configuration.

Repeatable: a second run brings the schema up, changes nothing else and prints no secret. Owns the
node key's file and a node's first configuration; both are made once and then the operator's. The
owner key and the console's password are printed once and stored nowhere; lost ones are replaced.
"""

import ipaddress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from api.auth.tokens import new_token, parse_token
from api.bootstrap.seed import Identity, another_owner_key, bootstrap, identity_of, readdress
from api.db.database import Database
from api.db.exclusive import Exclusive
from api.db.schema import migrate
from api.sessions.service import new_password, replace_password
from api.settings import Settings, SettingsInvalid
from headrace.toml_file import toml_text, write_whole

NODE_ADDRESS: Final = "127.0.0.1:8461"
EVERYWHERE: Final = "0.0.0.0"  # the ports of a container, or of a host with a name


@dataclass(frozen=True, slots=True)
class Options:
    """What is asked of a run.

    :param node_address: HOST:PORT of the first node; None: as it is, at first 127.0.0.1:8461.
    :param node_file: where the node's configuration is written unless it is there.
    :param renew: another owner key and another console password, which ends every session.
    """

    node_address: str | None = None
    node_file: Path | None = None
    renew: bool = False


def first_run(settings: Settings, options: Options) -> dict[str, str | bool]:
    """Makes everything that is missing.

    :returns: ``made``: whether the database was empty; the ids a node is configured with; and what
        was made now and is kept nowhere: ``owner_key``, ``console_password``.
    :raises SettingsInvalid: an address is none, or a file holds something else than it should.
    """
    host, port = _address(options.node_address or NODE_ADDRESS)
    _ensure_node_key(settings.node.admin_key_file)
    database = Database(settings.database.url, settings.database.bounds())
    try:
        with Exclusive.of(database):
            migrate(settings.database.url)
            made = bootstrap(database, node_address=options.node_address or NODE_ADDRESS)
            identity = identity_of(database)
            if options.node_file is not None:
                _ensure_node_file(options.node_file, settings, identity, host, port)
            if options.node_address is not None:
                readdress(database, node_id=identity.node_id, node_address=options.node_address)
            created: dict[str, str | bool] = {"made": made is not None, **identity.members()}
            if made is not None:
                created["owner_key"] = made.token.text
            elif options.renew:
                created["owner_key"] = another_owner_key(database)
            password = _password(database, renew=options.renew)
    finally:
        database.close()
    return created if password is None else {**created, "console_password": password}


def _password(database: Database, *, renew: bool) -> str | None:
    """The console's, if it is made now."""
    if renew:
        return replace_password(database, "bootstrap")
    with database.write() as session:
        return new_password(session)


def _address(text: str) -> tuple[str, int]:
    """The host, without the brackets of an IPv6 address, and the port."""
    host, colon, port = text.rpartition(":")
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
        if not _is_number(host) or ":" not in host:
            raise SettingsInvalid(
                f"--node-address {text}: brackets hold an IPv6 address, as in [::1]:8461"
            )
    elif ":" in host:
        raise SettingsInvalid(
            f"--node-address {text}: an IPv6 address stands in brackets, as in [::1]:8461"
        )
    if not (colon and host and port.isdecimal() and 0 < int(port) < 65535):
        raise SettingsInvalid(f"--node-address {text}: write HOST:PORT, as in {NODE_ADDRESS}")
    return host, int(port)


def _ensure_node_key(path: Path) -> None:
    """The secret that control plane and nodes share: the same file on each of their hosts."""
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        write_whole(path, new_token("node").text + "\n", mode=0o600)
        return
    token = parse_token(path.read_text(encoding="ascii", errors="replace").strip())
    if token is None or token.kind != "node":
        raise SettingsInvalid(
            f"node.admin_key_file: {path} holds no node key (hr_node_...); put it back from a "
            "backup, or remove it on every host to have another one made"
        )


def _ensure_node_file(
    path: Path, settings: Settings, identity: Identity, host: str, port: int
) -> None:
    if path.exists():
        if f'cluster_id = "{identity.cluster_id}"' not in path.read_text(encoding="utf-8"):
            raise SettingsInvalid(
                f"{path} is of another cluster than {identity.cluster_id}, which this database "
                "knows: give another --node-file, or the database that made it"
            )
        return
    members: dict[str, str | int | bool] = {
        **identity.members(),
        "host": host if _is_number(host) else EVERYWHERE,
        "advertised_host": f"[{host}]" if ":" in host else host,
        "port": port,
        "http_port": port + 1,
        "data_dir": "node-1",
        "admin_key_file": str(settings.node.admin_key_file.absolute()),
    }
    comment = "# Written by `python -m api bootstrap`; yours from now on.\n"
    write_whole(path, comment + toml_text({"node": members}))


def _is_number(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True
