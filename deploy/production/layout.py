"""The folder of the layout: ports, configuration, keys, database; and the processes it consists of.

    build/production/
      headrace.toml    of the APIs and the workers (0600: the database's password)
      node-1.toml      of the node; written once by `python -m api bootstrap`
      ports.json       which ports the first start chose
      postgres/        the database server
      node-1/          the node's data
      the rest         as in an embedded folder: keys, profile, reports, logs, up.json

Everything is made once; a start that was cut short is completed by the next one.
"""

import json
import os
import secrets
import subprocess
import sys
import tomllib
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from sqlalchemy.engine import make_url

from api.embedded.directory import Directory
from api.embedded.ports import API_PORT, HOST, check_free, free_ports
from api.embedded.supervisor import Child
from deploy.production.postgres import Server
from headrace.errors import ConfigurationInvalid
from headrace.profiles import config_path, read_profiles, write_profile
from headrace.toml_file import toml_text, write_whole

PROFILE: Final = "production"
PORTS: Final = ("api_1", "node", "node_http", "api_2", "postgres")


@dataclass(frozen=True, slots=True)
class Ports:
    """Where the servers of the layout listen."""

    api_1: int
    node: int
    node_http: int
    api_2: int
    postgres: int

    def check_free(self) -> None:
        """:raises Conflict: PORT_IN_USE, with the port."""
        for port in asdict(self).values():
            check_free(port)


@dataclass(frozen=True, slots=True)
class Layout:
    """A folder that is ours, and its ports."""

    directory: Directory
    ports: Ports

    @classmethod
    def of(cls, root: Path, first_port: int | None) -> "Layout":
        """The layout of a folder: with the ports of its first start, which takes five in a row from
        ``first_port`` (8460 unless told), or free ones for 0."""
        directory = Directory(root)
        known = root / "ports.json"
        if directory.check() and known.exists():
            return cls(directory, Ports(**json.loads(known.read_text())))
        if first_port == 0:
            return cls(directory, Ports(*free_ports(len(PORTS))))
        first = first_port or API_PORT
        return cls(directory, Ports(*range(first, first + len(PORTS))))

    @property
    def server(self) -> Server:
        """The database server."""
        return Server(self.directory.root / "postgres", self.ports.postgres)

    @property
    def node_config(self) -> Path:
        """The node's configuration."""
        return self.directory.root / "node-1.toml"

    @property
    def api_url(self) -> str:
        """The first API, which the profile names."""
        return f"http://{HOST}:{self.ports.api_1}"

    @property
    def bootstrap(self) -> str:
        """Where the node is."""
        return f"{HOST}:{self.ports.node}"

    @property
    def owner_key(self) -> str:
        """The owner's token; empty before the first start is complete."""
        members = read_profiles(self.directory.profile).members.get("default", {})
        return str(members.get("key", ""))

    def prepare(self) -> str | None:
        """Makes what is missing, and brings the schema up.

        :returns: the console's password, if it was made now.
        :raises HeadraceError: what stands in the way.
        """
        self.ports.check_free()
        self.directory.claim()
        root = self.directory.root
        # The account of the database server has to get to its own folder; all else is closed.
        root.chmod(0o711)
        write_whole(root / "ports.json", json.dumps(asdict(self.ports)) + "\n")
        password = self._configured_password() or secrets.token_urlsafe(24)
        if not self.directory.config.exists():
            write_whole(self.directory.config, self._config_text(password), mode=0o600)
        self.server.initialize()
        with self.server.running(self.directory.log("postgres")):
            self.server.ensure_database(password)
            told = self._first_run()
        key = str(told.get("owner_key", self.owner_key))
        members = {"api_url": self.api_url, "bootstrap": self.bootstrap, "key": key}
        write_profile(self.directory.profile, "default", members)
        write_profile(config_path(os.environ), PROFILE, members)
        shown = told.get("console_password")
        return str(shown) if shown else None

    def children(self) -> dict[str, Child]:
        """Its processes, in the order in which they are started."""
        python = sys.executable
        config = ["--config", str(self.directory.config)]
        commands = {
            "postgres": self.server.command,
            "node-1": [
                "env", f"HEADRACE_NODE__HTTP_PORT={self.ports.node_http}",
                python, "-m", "dataplane", "--config", str(self.node_config),
            ],
        }  # fmt: skip
        for number, port in ((1, self.ports.api_1), (2, self.ports.api_2)):
            # A worker finds the API of its own number, as on a host of their own.
            told = ["env", f"HEADRACE_API__PORT={port}", python, "-m", "api"]
            commands[f"api-{number}"] = [*told, "serve", *config]
            commands[f"worker-{number}"] = [*told, "reconcile", *config]
        return {
            name: Child(name, command, self.directory.log(name))
            for name, command in commands.items()
        }

    def _first_run(self) -> dict[str, object]:
        """`python -m api bootstrap`; once more for another key if the first one was lost."""
        told = self._bootstrap()
        if not self.owner_key and "owner_key" not in told:
            told = self._bootstrap("--renew")
        return told

    def _bootstrap(self, *more: str) -> dict[str, object]:
        done = subprocess.run(
            [sys.executable, "-m", "api", "bootstrap", "--config", str(self.directory.config),
             "--node-address", self.bootstrap, "--node-file", str(self.node_config), *more],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )  # fmt: skip
        if done.returncode:
            last = done.stderr.strip().rpartition("\n")[2]
            raise ConfigurationInvalid(f"The database cannot be made ready: {last}")
        told: dict[str, object] = json.loads(done.stdout)
        return told

    def _configured_password(self) -> str | None:
        if not self.directory.config.exists():
            return None
        try:
            url = tomllib.loads(self.directory.config.read_text())["database"]["url"]
            return make_url(url).password
        except (tomllib.TOMLDecodeError, KeyError) as error:
            raise ConfigurationInvalid(
                f"{self.directory.config} has no [database] url: {error}"
            ) from None

    def _config_text(self, password: str) -> str:
        comment = (
            "# Written by the first start; yours from now on. Of both APIs and both workers.\n"
        )
        return comment + toml_text(
            {
                "api": {"host": HOST, "port": self.ports.api_1},
                "database": {"url": self.server.url(password)},
                "node": {"admin_key_file": "node.key"},
                "reports": {"uri": "reports", "logs": "logs", "spark_master": "local[*]"},
            }
        )
