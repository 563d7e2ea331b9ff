"""Where to connect and as whom. Owns the precedence; opens no connection.

Precedence, each value by itself: argument, then HEADRACE_URL / HEADRACE_API_URL /
HEADRACE_BOOTSTRAP / HEADRACE_KEY, then the profile file (profiles.py), then the address of a local
`headrace up`. A URL holds everything:

    headrace://KEY@host:port,host:port/project         cleartext
    headrace+tls://KEY@host:port/project               TLS
"""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from urllib.parse import unquote, urlsplit

from headrace.errors import ConfigurationInvalid
from headrace.profiles import config_path, read_profiles, unknown_profile

logger = logging.getLogger("headrace")

BOOTSTRAP_DEFAULT = "127.0.0.1:8461"
API_URL_DEFAULT = "http://127.0.0.1:8460"
KEYS = ("bootstrap", "api_url", "key", "project", "tls")
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
class Candidate:
    """One place that says a value, and what it says: empty where it says nothing."""

    source: str
    value: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class _Url:
    bootstrap: tuple[str, ...]
    key: str | None
    project: str
    tls: bool


_SILENT = _Url((), None, "", False)


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
    said = candidates(
        url,
        bootstrap=bootstrap,
        api_url=api_url,
        key=key,
        project=project,
        profile=profile,
        environ=environ,
    )
    won = {name: winner(places) for name, places in said.items()}
    return Settings(
        bootstrap=addresses(won["bootstrap"]),
        api_url=_api_url(won["api_url"]),
        key=won["key"] or None,
        project=won["project"],
        tls=won["tls"] == "true",
    )


def winner(places: Sequence[Candidate]) -> str:
    """The first value that is said."""
    return next((place.value for place in places if place.value), "")


def candidates(
    url: str | None = None,
    *,
    bootstrap: str | list[str] | tuple[str, ...] | None = None,
    api_url: str | None = None,
    key: str | None = None,
    project: str | None = None,
    profile: str | None = None,
    environ: Mapping[str, str] | None = None,
) -> dict[str, list[Candidate]]:
    """Every place that may say a value, for each of KEYS, the strongest first."""
    env = os.environ if environ is None else environ
    given = _parse_url(url) if url else None
    from_env = _parse_url(env["HEADRACE_URL"]) if env.get("HEADRACE_URL") else None
    stored_as, stored = _read_profile(profile or env.get("HEADRACE_PROFILE"), env)
    of_url, of_env = given or _SILENT, from_env or _SILENT
    # Project and TLS belong to the URL as a whole: a weaker URL adds nothing to a stronger one.
    later = _SILENT if given else of_env

    def places(name: str, argument: str, in_url: str, in_env: str, default: str) -> list[Candidate]:
        variable = f"HEADRACE_{name.upper()}"
        readable = name in ("bootstrap", "api_url", "key")
        return [
            Candidate("argument", argument),
            Candidate("argument url", in_url),
            Candidate("HEADRACE_URL", in_env),
            *([Candidate(variable, env.get(variable, ""))] if readable else []),
            Candidate(f"profile {stored_as}", stored.get(name, "")),
            Candidate("default", default),
        ]

    listed = bootstrap if bootstrap is None or isinstance(bootstrap, str) else ",".join(bootstrap)
    url_seeds, env_seeds = ",".join(of_url.bootstrap), ",".join(of_env.bootstrap)
    return {
        "bootstrap": places("bootstrap", listed or "", url_seeds, env_seeds, BOOTSTRAP_DEFAULT),
        "api_url": places("api_url", api_url or "", "", "", API_URL_DEFAULT),
        "key": places("key", key or "", of_url.key or "", of_env.key or "", ""),
        "project": places("project", project or "", of_url.project, later.project, ""),
        "tls": places("tls", "", _said(given), _said(None if given else from_env), "false"),
    }


def _said(url: _Url | None) -> str:
    return "" if url is None else "true" if url.tls else "false"


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


def _api_url(text: str) -> str:
    """A whole address: what is none would be asked, in vain, until the deadline."""
    parts = urlsplit(text)
    if parts.scheme not in ("http", "https") or not parts.netloc:
        # Not repeated: a wrong URL may contain a key.
        raise ConfigurationInvalid(
            f"The address of the REST API {_beginning(parts.scheme)}",
            hint="Use http://127.0.0.1:8460, or https://... for TLS.",
        )
    return text.rstrip("/")


def _beginning(scheme: str) -> str:
    return f"starts with {scheme!r}" if scheme else "has no scheme"


def _parse_url(url: str) -> _Url:
    # The whole URL may hold a key: no message repeats it.
    try:
        parts = urlsplit(url)
    except ValueError:
        raise ConfigurationInvalid(
            "The connection URL cannot be parsed",
            hint="Use headrace://KEY@host:port/project, with IPv6 addresses in brackets.",
        ) from None
    if parts.scheme not in _SCHEMES or not parts.netloc:
        raise ConfigurationInvalid(
            f"The connection URL {_beginning(parts.scheme)}",
            hint="Use headrace://KEY@host:port/project, or headrace+tls:// for TLS.",
        )
    userinfo, at, hosts = parts.netloc.rpartition("@")
    return _Url(
        bootstrap=addresses(hosts),
        key=unquote(userinfo) if at and userinfo else None,
        project=unquote(parts.path.strip("/")),
        tls=_SCHEMES[parts.scheme],
    )


def _read_profile(name: str | None, environ: Mapping[str, str]) -> tuple[str, dict[str, str]]:
    """The profile that is named, else the current one: its name and its members as text."""
    path = config_path(environ)
    try:
        profiles = read_profiles(path)
    except ConfigurationInvalid:
        if name or _is_readable(path):
            raise
        # Somebody else's home: what the arguments and the environment say may be enough.
        return "default", {}
    chosen = name or profiles.current
    found = profiles.members.get(chosen)
    if found is None:
        # A current profile that is gone is a mistake; only "default" may be missing.
        if name or chosen != "default":
            raise unknown_profile(chosen, path, profiles)
        return chosen, {}
    if path.stat().st_mode & 0o077:
        logger.warning(
            "%s contains a key and is readable by other users: run chmod 600 on it", path
        )
    return chosen, {
        key: ("true" if value is True else "false" if value is False else str(value))
        for key, value in found.items()
    }


def _is_readable(path: os.PathLike[str]) -> bool:
    return os.access(path, os.R_OK)
