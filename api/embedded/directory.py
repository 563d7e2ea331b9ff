"""The folder of an embedded service: what is in it, and that it is ours.

.headrace/
  layout.json      layout version; a folder without it is not touched
  headrace.toml    configuration of every process; written once, then the user's
  control.db       the control plane's database
  node-1/          the node's data
  node.key         the node key (0600)
  profile.toml     the owner key (0600), copied to the user's profile
  reports/  logs/  what reports wrote; one log a process
  up.json          while it runs: processes, ports, addresses
  *.lock           who works on the database, and who runs the folder
"""

import json
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from headrace.errors import ConfigurationInvalid
from headrace.toml_file import write_whole

LAYOUT: Final = 1
LOG_TAIL_LINES: Final = 12
LOG_LINE_CHARACTERS: Final = 400
LOGS: Final = ("supervisor", "api", "node", "demo")


@dataclass(frozen=True, slots=True)
class Directory:
    """Paths of an embedded service."""

    root: Path

    @property
    def config(self) -> Path:
        """headrace.toml."""
        return self.root / "headrace.toml"

    @property
    def database(self) -> Path:
        """The control plane's database."""
        return self.root / "control.db"

    @property
    def database_url(self) -> str:
        """Its SQLAlchemy URL."""
        return f"sqlite:///{self.database}"

    @property
    def node_key(self) -> Path:
        """The node key."""
        return self.root / "node.key"

    @property
    def profile(self) -> Path:
        """The owner key."""
        return self.root / "profile.toml"

    @property
    def logs(self) -> Path:
        """One log a process."""
        return self.root / "logs"

    def log(self, name: str) -> Path:
        """The log of one process."""
        return self.logs / f"{name}.log"

    @property
    def reports(self) -> Path:
        """What reports wrote."""
        return self.root / "reports"

    @property
    def state(self) -> Path:
        """What runs now."""
        return self.root / "up.json"

    def check(self) -> bool:
        """Whether the folder is ours already; it is new or empty otherwise. Changes nothing.

        :raises ConfigurationInvalid: LAYOUT_UNKNOWN or DIRECTORY_NOT_OURS; or it names what stands
            in the place of a file or a folder that is ours.
        """
        marker = self.root / "layout.json"
        if marker.exists():
            self._check_places()
            found = _layout_of(_text_of(marker))
            if found != LAYOUT:
                raise ConfigurationInvalid(
                    f"{self.root} has layout {found}; this release reads layout {LAYOUT}",
                    code="LAYOUT_UNKNOWN",
                    hint="Use the release that made it, or another --dir",
                )
            return True
        if self.root.exists() and any(self.root.iterdir()):
            raise ConfigurationInvalid(
                f"{self.root} is not empty and was not made by `headrace up`",
                code="DIRECTORY_NOT_OURS",
                hint="Give an empty or new folder with --dir",
            )
        return False

    def claim(self) -> None:
        """Makes the folder unless it is ours already, and what is in it that anybody may delete."""
        if not self.check():
            self.root.mkdir(parents=True, exist_ok=True, mode=0o700)
            # First of all: a start that is cut short here must find the folder its own.
            write_whole(self.root / "layout.json", json.dumps({"layout": LAYOUT}) + "\n")
        self.logs.mkdir(exist_ok=True)
        self.reports.mkdir(exist_ok=True)

    def configured(self, section: str) -> Mapping[str, object]:
        """A section of headrace.toml; empty before the first start."""
        if not self.config.exists():
            return {}
        try:
            found = tomllib.loads(_text_of(self.config)).get(section, {})
        except tomllib.TOMLDecodeError as error:
            raise ConfigurationInvalid(f"{self.config} is not TOML: {error}") from None
        if not isinstance(found, dict):
            raise ConfigurationInvalid(
                f"{self.config}: {section} is no section",
                hint=f"Write [{section}] on a line of its own, and its keys below",
            )
        return found

    def log_size(self, name: str) -> int:
        """How long a log is now."""
        path = self.log(name)
        return path.stat().st_size if path.exists() else 0

    def log_tail(self, name: str, begin: int) -> list[str]:
        """The last lines of a log since it had a size, each once: most likely they say why."""
        if not self.log(name).exists():
            return []
        with self.log(name).open("rb") as log:
            log.seek(begin)
            lines = log.read().decode(errors="replace").splitlines()
        # A process that is restarted repeatedly logs the same lines each time.
        last_first = dict.fromkeys(line[:LOG_LINE_CHARACTERS] for line in reversed(lines))
        return list(last_first)[:LOG_TAIL_LINES][::-1]

    def _check_places(self) -> None:
        """Misplaced files and folders that would make a process fail later."""
        locks = (path.with_name(path.name + ".lock") for path in (self.database, self.state))
        logs = (self.log(name) for name in LOGS)
        marker = self.root / "layout.json"
        files = (marker, self.config, self.database, self.node_key, self.profile, self.state)
        for path in (*files, *locks, *logs):
            if path.exists() and not path.is_file():
                raise _misplaced(path, "file")
        for path in (self.logs, self.reports):
            if path.exists() and not path.is_dir():
                raise _misplaced(path, "folder")


def _misplaced(path: Path, what: str) -> ConfigurationInvalid:
    return ConfigurationInvalid(
        f"{path} is no {what}",
        hint="Move it away and put back what was there",
    )


def _text_of(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise ConfigurationInvalid(f"{path} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise ConfigurationInvalid(f"{path} is not UTF-8 at byte {error.start}") from None


def _layout_of(text: str) -> object:
    try:
        found = json.loads(text)
    except ValueError:
        return "unreadable"
    return found.get("layout") if isinstance(found, dict) else "unreadable"
