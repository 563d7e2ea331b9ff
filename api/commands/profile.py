"""The client's profile: where the service is and the owner's key, in a file that only its user
reads."""

import os
import tomllib
from collections.abc import Mapping
from pathlib import Path

from api.commands.directory import toml_text, write_whole
from headrace.settings import config_path


def read_profiles(path: Path) -> dict[str, dict[str, str | int | bool]]:
    """The profiles of a file; none if it is not there or not TOML."""
    try:
        found = tomllib.loads(path.read_text()).get("profiles", {})
    except (OSError, tomllib.TOMLDecodeError):
        return {}
    return {str(name): dict(members) for name, members in found.items()}


def write_profile(path: Path, name: str, members: Mapping[str, str]) -> None:
    """Puts one profile in, keeping the others; mode 0600."""
    profiles = read_profiles(path)
    profiles[name] = {**profiles.get(name, {}), **members}
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    sections = {f"profiles.{each}": profiles[each] for each in sorted(profiles)}
    write_whole(path, toml_text(sections), mode=0o600)


def user_profile_path() -> Path:
    """The profile file of this user."""
    return config_path(os.environ)
