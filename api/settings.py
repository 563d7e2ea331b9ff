"""Typed configuration: headrace.toml, and over it the environment as HEADRACE_<SECTION>__<KEY>.

The control plane reads the sections it uses and leaves the others alone: one file serves every
process.
"""

import difflib
import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator
from pydantic_settings import BaseSettings, SettingsConfigDict, SettingsError
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError

from api.db.database import Bounds


class SettingsInvalid(Exception):
    """The file or the environment cannot be used; the text says where and why, and no value."""


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class ApiSettings(_Section):
    """Where the REST API listens. Port 0 lets the system choose."""

    host: str = Field(default="127.0.0.1", description="listen address")
    port: int = Field(default=8460, ge=0, le=65535)
    workers: int = Field(default=4, ge=1, le=64, description="reconcilers per process")
    log_level: Literal["debug", "info", "warning", "error"] = Field(
        default="info", description="debug, info, warning or error"
    )
    requests_per_second: int = Field(default=100, ge=1, description="sustained rate, per key")
    request_burst: int = Field(default=1000, ge=20, description="requests in a burst, per key")
    head_seconds: float = Field(default=10, gt=0, description="time to receive a request's head")
    body_seconds: float = Field(default=30, gt=0, description="time to receive a body")
    connections_max: int = Field(default=4096, ge=16, description="connections per process")


class DatabaseSettings(_Section):
    """Where the desired state lives."""

    url: str = Field(default="sqlite:///.headrace/control.db", description="database URL")
    connections: int = Field(
        default=16, ge=2, le=200, description="per process, to write and to read each"
    )
    wait_seconds: int = Field(default=5, ge=2, description="wait for a connection before 503")
    statement_seconds: int = Field(default=30, ge=1, description="time limit of a statement")

    def bounds(self) -> Bounds:
        """What :class:`Database` is opened with."""
        return Bounds(self.connections, self.wait_seconds, self.statement_seconds)

    @field_validator("url")
    @classmethod
    def _is_an_address(cls, text: str) -> str:
        try:
            make_url(text)
        except ArgumentError:
            raise ValueError("no address of a database; like sqlite:///control.db") from None
        return text


class NodeSettings(_Section):
    """What the control plane must know to call a node; the rest of the section is the node's."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    admin_key_file: Path = Path(".headrace/node.key")


class ReportsSettings(_Section):
    """How a report run is started and where its files go."""

    uri: str = Field(default=".headrace/reports", description="folder of published reports")
    logs: str = Field(default=".headrace/logs", description="folder of the logs of reports")
    spark_master: str = Field(default="local[*]", description="Spark master of reports")
    api_url: str = Field(default="", description="API address for reports, if not that of [api]")
    seconds_max: int = Field(default=1800, ge=1, description="time limit of a report run")


class Settings(BaseSettings):
    """All settings of `python -m api`."""

    model_config = SettingsConfigDict(
        env_prefix="HEADRACE_", env_nested_delimiter="__", extra="ignore", frozen=True
    )

    api: ApiSettings = ApiSettings()
    database: DatabaseSettings = DatabaseSettings()
    node: NodeSettings = NodeSettings()
    reports: ReportsSettings = ReportsSettings()

    @classmethod
    def load(cls, path: Path | None) -> Self:
        """The file, and over it the environment key by key; the environment alone without a file.

        :raises SettingsInvalid: the file cannot be read, or a key or a value is none of ours.
        """
        sections = _document(path) if path is not None else {}
        for name in cls.model_fields:
            section = dict(sections.get(name, {}))
            prefix = f"HEADRACE_{name.upper()}__"
            for variable, value in os.environ.items():
                if variable.upper().startswith(prefix):
                    section[variable[len(prefix) :].lower()] = value
            sections[name] = section
        try:
            settings = cls.model_validate({name: sections[name] for name in cls.model_fields})
        except ValidationError as error:
            raise SettingsInvalid(_explained(error, cls)) from None
        except SettingsError as error:
            raise SettingsInvalid(str(error)) from None
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
                "database": self.database.model_copy(
                    update={"url": url.render_as_string(hide_password=False)}
                ),
                "node": self.node.model_copy(update={"admin_key_file": key_file}),
                "reports": reports,
            }
        )


def _document(path: Path) -> dict[str, Mapping[str, object]]:
    try:
        found = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise SettingsInvalid(f"{path} cannot be read: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SettingsInvalid(f"{path} is not TOML: {error}") from None
    for name, section in found.items():
        if not isinstance(section, dict):
            raise SettingsInvalid(f"{path}: {name} is no section; write [{name}] above its keys")
    return found


def _explained(error: ValidationError, settings: type[BaseSettings]) -> str:
    lines = []
    for problem in error.errors(include_url=False, include_input=False):
        location = [str(part) for part in problem["loc"]]
        said = problem["msg"]
        if problem["type"] == "extra_forbidden":
            annotation = settings.model_fields[location[0]].annotation
            known = list(getattr(annotation, "model_fields", {}))
            near = difflib.get_close_matches(location[-1], known, n=1) or [", ".join(known)]
            said = f"there is no such key; known: {near[0]}"
        lines.append(f"{'.'.join(location)}: {said}")
    return "; ".join(lines)


def _absolute(folder: Path, uri: str) -> str:
    return uri if "://" in uri else str(folder / uri)
