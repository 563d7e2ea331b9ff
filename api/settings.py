"""Typed configuration: headrace.toml, and over it the environment as HEADRACE_<SECTION>__<KEY>.

The control plane reads the sections it uses and leaves the others alone: one file serves every
process.
"""

import os
import tomllib
from pathlib import Path
from typing import Self

from pydantic import BaseModel, ConfigDict, Field
from pydantic_settings import BaseSettings, SettingsConfigDict
from sqlalchemy.engine import make_url


class _Section(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)


class ApiSettings(_Section):
    """Where the REST API listens. Port 0 lets the system choose."""

    host: str = "127.0.0.1"
    port: int = Field(default=8460, ge=0, le=65535)
    workers: int = Field(default=4, ge=1, le=64, description="reconcilers in this process")
    log_level: str = "info"
    requests_per_second: int = Field(default=100, ge=1, description="of one key, in the long run")
    request_burst: int = Field(default=1000, ge=20, description="of one key, at once")
    head_seconds: float = Field(default=10, gt=0, description="for the head of a request")
    body_seconds: float = Field(default=30, gt=0, description="for its body, and to take an answer")
    connections_max: int = Field(default=4096, ge=16, description="of this process at once")


class DatabaseSettings(_Section):
    """Where the desired state lives."""

    url: str = "sqlite:///.headrace/control.db"


class NodeSettings(_Section):
    """What the control plane must know to call a node."""

    admin_key_file: Path = Path(".headrace/node.key")


class ReportsSettings(_Section):
    """How a report run is started and where its files go."""

    uri: str = ".headrace/reports"
    logs: str = ".headrace/logs"
    spark_master: str = "local[*]"
    seconds_max: int = Field(default=1800, ge=1, description="a run that takes longer is ended")
    kinds: tuple[str, ...] = ("usage",)


class Settings(BaseSettings):
    """The whole of what `python -m api` is told."""

    model_config = SettingsConfigDict(
        env_prefix="HEADRACE_", env_nested_delimiter="__", extra="ignore", frozen=True
    )

    api: ApiSettings = ApiSettings()
    database: DatabaseSettings = DatabaseSettings()
    node: NodeSettings = NodeSettings()
    reports: ReportsSettings = ReportsSettings()

    @classmethod
    def load(cls, path: Path | None) -> Self:
        """The file, with the environment over it key by key; the environment alone without a
        file."""
        sections = tomllib.loads(path.read_text()) if path is not None else {}
        for name in cls.model_fields:
            section = dict(sections.get(name, {}))
            prefix = f"HEADRACE_{name.upper()}__"
            for variable, value in os.environ.items():
                if variable.upper().startswith(prefix):
                    section[variable[len(prefix) :].lower()] = value
            sections[name] = section
        settings = cls(**{name: sections[name] for name in cls.model_fields})
        return settings.relative_to(path.absolute().parent) if path is not None else settings

    def relative_to(self, folder: Path) -> Self:
        """Relative paths of a file are relative to the file, so that its folder can be moved."""
        url = make_url(self.database.url)
        if url.get_backend_name() == "sqlite" and url.database:
            url = url.set(database=str(folder / url.database))
        reports = self.reports.model_copy(
            update={
                "uri": _absolute(folder, self.reports.uri),
                "logs": _absolute(folder, self.reports.logs),
            }
        )
        key_file = folder / self.node.admin_key_file
        return self.model_copy(
            update={
                "database": DatabaseSettings(url=url.render_as_string(hide_password=False)),
                "node": self.node.model_copy(update={"admin_key_file": key_file}),
                "reports": reports,
            }
        )


def _absolute(folder: Path, uri: str) -> str:
    return uri if "://" in uri else str(folder / uri)
