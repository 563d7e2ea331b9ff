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

    @property
    def state(self) -> Path:
        """What runs now."""
        return self.root / "up.json"

    def check(self) -> bool:
        """Whether the folder is ours already; it is new or empty otherwise. Changes nothing.

        :raises ConfigurationInvalid: LAYOUT_UNKNOWN or DIRECTORY_NOT_OURS.
        """
        marker = self.root / "layout.json"
        if marker.exists():
            found = json.loads(marker.read_text()).get("layout")
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
        """Makes the folder unless it is ours already."""
        if self.check():
            return
        self.root.mkdir(parents=True, exist_ok=True, mode=0o700)
        self.logs.mkdir(exist_ok=True)
        (self.root / "reports").mkdir(exist_ok=True)
        write_whole(self.root / "layout.json", json.dumps({"layout": LAYOUT}) + "\n")

    def configured(self, section: str) -> Mapping[str, object]:
        """A section of headrace.toml; empty before the first start."""
        if not self.config.exists():
            return {}
        try:
            found = tomllib.loads(self.config.read_text()).get(section, {})
        except tomllib.TOMLDecodeError as error:
            raise ConfigurationInvalid(f"{self.config} is not TOML: {error}") from None
        return found if isinstance(found, dict) else {}
