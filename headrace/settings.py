"""Where to connect and as whom. Owns the precedence; opens no connection.

Precedence, each value by itself: argument, then HEADRACE_URL / HEADRACE_API_URL /
HEADRACE_BOOTSTRAP / HEADRACE_KEY, then the profile file, then the address of a local `headrace up`.
A URL holds everything:

    headrace://KEY@host:port,host:port/project         cleartext
    headrace+tls://KEY@host:port/project               TLS

The profile file is $XDG_CONFIG_HOME/headrace/config.toml, mode 0600:

    [profiles.default]
    api_url = "http://127.0.0.1:8460"
    bootstrap = "127.0.0.1:8461"
    key = "hr_user_..."
"""

from __future__ import annotations

import logging
import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import unquote, urlsplit

from headrace.errors import ConfigurationInvalid

logger = logging.getLogger("headrace")

BOOTSTRAP_DEFAULT = "127.0.0.1:8461"
API_URL_DEFAULT = "http://127.0.0.1:8460"
_SCHEMES = {"headrace": False, "headrace+tls": True}


@dataclass(frozen=True, slots=True)
class Settings:
    """A resolved configuration. `key` is a secret and stays out of repr and logs."""

    bootstrap: tuple[str, ...]
    """Seed addresses, host:port, tried in turn."""
    api_url: str
    key: str | None = field(repr=False)
    project: str = ""
    """Empty: the key's own project."""
    tls: bool = False


@dataclass(frozen=True, slots=True)
class _Url:
    bootstrap: tuple[str, ...]
    key: str | None
    project: str
    tls: bool


def config_path(environ: Mapping[str, str]) -> Path:
    """The profile file of this user."""
    base = environ.get("XDG_CONFIG_HOME") or str(Path(environ.get("HOME", "~")) / ".config")
    return Path(base).expanduser() / "headrace" / "config.toml"


def resolve(
    url: str | None = None,
    *,
    bootstrap: str | list[str] | tuple[str, ...] | None = None,
    api_url: str | None = None,
    key: str | None = None,
    project: str | None = None,
    profile: str | None = None,
    environ: Mapping[str, str] | None = None,
) -> Settings:
    """Apply the precedence. Raises ConfigurationInvalid for what cannot be used."""
    env = os.environ if environ is None else environ
    given = _parse_url(url) if url else None
    from_env = _parse_url(env["HEADRACE_URL"]) if env.get("HEADRACE_URL") else None
    stored = _read_profile(profile or env.get("HEADRACE_PROFILE"), env)
    none: tuple[str, ...] = ()
    seeds = (
        addresses(bootstrap)
        or (given.bootstrap if given else none)
        or (from_env.bootstrap if from_env else none)
        or addresses(env.get("HEADRACE_BOOTSTRAP"))
        or addresses(stored.get("bootstrap"))
        or (BOOTSTRAP_DEFAULT,)
    )
    source = given or from_env
    return Settings(
        bootstrap=seeds,
        api_url=(
            api_url or env.get("HEADRACE_API_URL") or stored.get("api_url") or API_URL_DEFAULT
        ).rstrip("/"),
        key=key
        or (given.key if given else None)
        or (from_env.key if from_env else None)
        or env.get("HEADRACE_KEY")
        or stored.get("key")
        or None,
        project=project or (source.project if source else "") or stored.get("project", ""),
        tls=source.tls if source else stored.get("tls") == "true",
    )


def addresses(text: str | list[str] | tuple[str, ...] | None) -> tuple[str, ...]:
    """Seed addresses from "host:port,host:port" or a list; a missing port is 8461."""
    if not text:
        return ()
    parts = text.split(",") if isinstance(text, str) else list(text)
    return tuple(_address(part.strip()) for part in parts if part.strip())


def _address(text: str) -> str:
    host, colon, port = text.rpartition(":")
    if not colon or text.endswith("]"):
        return f"{text}:8461"
    if not host or not port.isdigit() or not 0 < int(port) < 65536:
        raise ConfigurationInvalid(f"{text!r} is not host:port", hint="Example: 127.0.0.1:8461.")
    return text


def _parse_url(url: str) -> _Url:
    # The whole URL may hold a key: no message repeats it.
    parts = urlsplit(url)
    if parts.scheme not in _SCHEMES or not parts.netloc:
        raise ConfigurationInvalid(
            f"The connection URL begins with {parts.scheme or 'no scheme'!r}",
            hint="Write headrace://KEY@host:port/project, or headrace+tls:// for TLS.",
        )
    userinfo, at, hosts = parts.netloc.rpartition("@")
    return _Url(
        bootstrap=addresses(hosts),
        key=unquote(userinfo) if at and userinfo else None,
        project=unquote(parts.path.strip("/")),
        tls=_SCHEMES[parts.scheme],
    )


def _read_profile(name: str | None, environ: Mapping[str, str]) -> dict[str, str]:
    path = config_path(environ)
    try:
        text = path.read_text()
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        if name:
            raise ConfigurationInvalid(
                f'There is no profile "{name}": {path} cannot be read',
                hint="Run `headrace up`, which writes one, or set HEADRACE_URL.",
            ) from None
        return {}
    try:
        profiles = tomllib.loads(text).get("profiles", {})
    except tomllib.TOMLDecodeError as error:
        raise ConfigurationInvalid(f"{path} is not TOML: {error}") from None
    if path.stat().st_mode & 0o077:
        logger.warning("%s holds a key and others can read it: chmod 600 it", path)
    found = profiles.get(name or "default")
    if not isinstance(found, dict):
        if name:
            known = ", ".join(sorted(profiles)) or "none"
            raise ConfigurationInvalid(f'There is no profile "{name}" in {path} (known: {known})')
        return {}
    return {
        str(k): ("true" if v is True else "false" if v is False else str(v))
        for k, v in found.items()
    }
