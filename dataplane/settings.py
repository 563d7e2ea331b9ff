"""The node's configuration: headrace.toml and the environment, checked before anything starts.

Owns sections [node] and [metering] of the file that all processes share; the other sections are
somebody else's and only their names are checked. `HEADRACE_NODE__PORT=9000` beats the file. An
unknown key is refused with the nearest known one: a silent typo would run with a default. Relative
paths are relative to the file. Refuses to hold the secret itself: it keeps the digest of the node
key.
"""

import difflib
import hashlib
import os
import re
import tomllib
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Final, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict

SECTIONS: Final = ("api", "database", "node", "metering", "reports")
ENV_PREFIX: Final = "HEADRACE_"

_TOKEN: Final = re.compile(r"hr_(node)_([a-z0-9]{10})_([A-Za-z0-9]{43})_([A-Za-z0-9]{6})")
_BASE62: Final = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

Id = Annotated[str, StringConstraints(min_length=1, max_length=47, pattern=r"^[A-Za-z0-9_-]+$")]
Port = Annotated[int, Field(ge=0, le=65535)]


class SettingsInvalid(Exception):
    """The configuration cannot be used; the text says which key, why, and what to write instead."""


class NodeSection(BaseModel):
    """[node]"""

    model_config = ConfigDict(extra="forbid", frozen=True)

    cluster_id: Id
    node_id: Id
    host: str = "127.0.0.1"
    port: Port = 8461
    http_port: Port = 8462
    advertised_host: str = ""
    data_dir: Path
    shards: Annotated[int, Field(ge=1, le=64)] = 1
    shards_pinned: bool = False
    direct_io: bool = True
    admin_key_file: Path
    memory_mib: Annotated[int, Field(ge=0, le=1_048_576)] = 0
    journal_mib: Annotated[int, Field(ge=0, le=1_048_576)] = 0
    partitions_max: Annotated[int, Field(ge=0, le=100_000)] = 0
    system_organization_id: Id
    system_project_id: Id
    drain_seconds: Annotated[float, Field(gt=0, le=600)] = 10.0
    log_level: Annotated[str, StringConstraints(pattern=r"^(debug|info|warning|error)$")] = "info"

    def address(self, port: int) -> str:
        """The address that clients get for the node; an IPv6 address stands in brackets."""
        host = self.advertised_host or self.host
        if ":" in host and not host.startswith("["):
            host = f"[{host}]"
        return f"{host}:{port}"


class MeteringSection(BaseModel):
    """[metering]"""

    model_config = ConfigDict(extra="forbid", frozen=True)

    window_seconds: Annotated[int, Field(ge=1, le=60)] = 60


class NodeSettings(BaseSettings):
    """Everything a node needs to start."""

    model_config = SettingsConfigDict(
        env_prefix=ENV_PREFIX, env_nested_delimiter="__", extra="ignore", frozen=True
    )

    node: NodeSection
    metering: MeteringSection = MeteringSection()

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """The environment beats the file, which arrives as init arguments."""
        return env_settings, init_settings


class AdminKey(NamedTuple):
    """The node key as the shards compare it: the public id and the digest of the secret."""

    public_id: str
    sha256: bytes


def load(path: Path) -> NodeSettings:
    """Read the file and the environment. Raises SettingsInvalid."""
    try:
        document = tomllib.loads(path.read_text())
    except OSError as error:
        raise SettingsInvalid(f"cannot read {path}: {error.strerror}") from error
    except tomllib.TOMLDecodeError as error:
        raise SettingsInvalid(f"{path} is no TOML: {error}") from error
    _check_sections(document, str(path))
    _check_environment(os.environ)
    given = {name: document[name] for name in ("node", "metering") if name in document}
    try:
        settings = NodeSettings(**given)
    except ValidationError as error:
        raise SettingsInvalid(_explain(error, path)) from error
    if 60 % settings.metering.window_seconds:
        raise SettingsInvalid(
            f"metering.window_seconds is {settings.metering.window_seconds}; it must divide 60"
        )
    folder = path.resolve().parent
    node = settings.node.model_copy(
        update={
            "data_dir": folder / settings.node.data_dir,
            "admin_key_file": folder / settings.node.admin_key_file,
        }
    )
    return settings.model_copy(update={"node": node})


def read_admin_key(path: Path) -> AdminKey:
    """The node key's public id and digest.

    Raises SettingsInvalid, never showing what the file holds.
    """
    try:
        text = path.read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsInvalid(f"cannot read the node key {path}: {type(error).__name__}") from error
    match = _TOKEN.fullmatch(text)
    if match is None:
        raise SettingsInvalid(f"{path} holds no node key (hr_node_...)")
    body, _, check = text.rpartition("_")
    if check != _check_of(body):
        raise SettingsInvalid(f"the node key in {path} fails its own check: it was mistyped or cut")
    return AdminKey(match.group(2), hashlib.sha256(match.group(3).encode()).digest())


def _check_of(body: str) -> str:
    """6 characters, base62 of the CRC-32 of a token without its check."""
    value = zlib.crc32(body.encode("ascii"))
    digits = ""
    for _ in range(6):
        value, digit = divmod(value, 62)
        digits = _BASE62[digit] + digits
    return digits


def _check_sections(document: Mapping[str, object], where: str) -> None:
    for name in document:
        if name not in SECTIONS:
            raise SettingsInvalid(
                f"{where}: there is no section [{name}]{_did_you_mean(name, SECTIONS)}"
            )


def _check_environment(environment: Mapping[str, str]) -> None:
    """Refuse HEADRACE_NODE__PROT: pydantic would pass over a misspelt section in silence."""
    for variable in environment:
        if not variable.startswith(ENV_PREFIX) or "__" not in variable:
            continue
        section = variable.removeprefix(ENV_PREFIX).partition("__")[0].lower()
        if section not in SECTIONS:
            raise SettingsInvalid(
                f"{variable}: there is no section {section}{_did_you_mean(section, SECTIONS)}"
            )


def _explain(error: ValidationError, path: Path) -> str:
    lines: list[str] = []
    for problem in error.errors(include_url=False, include_input=False):
        location = ".".join(str(part) for part in problem["loc"])
        section, _, key = location.partition(".")
        known = (NodeSection if section == "node" else MeteringSection).model_fields
        if problem["type"] == "extra_forbidden":
            lines.append(f"{location} is no key of this version{_did_you_mean(key, known)}")
        else:
            lines.append(f"{location}: {problem['msg']}")
    return f"{path}: " + "; ".join(lines)


def _did_you_mean(name: str, known: Mapping[str, object] | tuple[str, ...]) -> str:
    near = difflib.get_close_matches(name, list(known), n=1)
    return f"; did you mean {near[0]}?" if near else f"; known are {', '.join(sorted(known))}"
