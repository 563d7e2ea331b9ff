"""The profile file of a user: where services are and the keys for them. Only its user reads it.

    current = "default"            the profile that is used when none is given

    [profiles.default]
    api_url = "http://127.0.0.1:8460"
    bootstrap = "127.0.0.1:8461"
    key = "hr_user_..."

Refuses to lose a profile: a file that is not TOML is never written over.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from headrace.errors import ConfigurationInvalid
from headrace.toml_file import toml_text, write_whole

DEFAULT = "default"
Members = dict[str, str | int | bool]


@dataclass(frozen=True, slots=True)
class Profiles:
    """What the file holds. `members` hold keys and stay out of repr."""

    current: str
    members: dict[str, Members] = field(repr=False)


def config_path(environ: Mapping[str, str]) -> Path:
    """The profile file of this user."""
    base = environ.get("XDG_CONFIG_HOME") or str(Path(environ.get("HOME", "~")) / ".config")
    return Path(base).expanduser() / "headrace" / "config.toml"


def read_profiles(path: Path) -> Profiles:
    """Every profile of a file; none if it is not there. Raises ConfigurationInvalid for a file
    that cannot be read or is not TOML."""
    try:
        found = tomllib.loads(path.read_text())
    except (FileNotFoundError, NotADirectoryError):
        return Profiles(DEFAULT, {})
    except OSError as error:
        raise ConfigurationInvalid(f"{path} cannot be read: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigurationInvalid(f"{path} is not TOML: {error}") from None
    profiles = found.get("profiles", {})
    current = found.get("current", DEFAULT)
    members = {
        str(name): {str(k): v for k, v in table.items() if isinstance(v, (str, int, bool))}
        for name, table in (profiles.items() if isinstance(profiles, dict) else ())
        if isinstance(table, dict)
    }
    return Profiles(current if isinstance(current, str) else DEFAULT, members)


def write_profile(path: Path, name: str, members: Mapping[str, str]) -> None:
    """Put one profile in, keeping the others and what else it had; mode 0600."""
    check_name(name)
    found = read_profiles(path)
    changed = {**found.members, name: {**found.members.get(name, {}), **members}}
    _write(path, Profiles(found.current, changed))


def use_profile(path: Path, name: str) -> None:
    """Make a profile the one that is used when none is given."""
    found = read_profiles(path)
    if name not in found.members:
        raise unknown_profile(name, path, found)
    _write(path, Profiles(name, found.members))


def check_name(name: str) -> None:
    """A name is a bare TOML key. Raises ConfigurationInvalid."""
    if not re.fullmatch(r"[A-Za-z0-9_-]{1,64}", name):
        raise ConfigurationInvalid(
            f"{name!r} is not a valid profile name", hint="Use letters, digits, _ and -."
        )


def unknown_profile(name: str, path: Path, found: Profiles) -> ConfigurationInvalid:
    """The error for a profile that is not there."""
    known = ", ".join(sorted(found.members)) or "none"
    return ConfigurationInvalid(
        f'Profile "{name}" does not exist in {path} (known: {known})',
        hint="Create one with `headrace up` or `headrace profile create`.",
    )


def _write(path: Path, profiles: Profiles) -> None:
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    sections: dict[str, Members] = {}
    if profiles.current != DEFAULT:
        sections[""] = {"current": profiles.current}
    sections |= {f"profiles.{each}": profiles.members[each] for each in sorted(profiles.members)}
    write_whole(path, toml_text(sections), mode=0o600)
