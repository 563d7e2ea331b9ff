"""A small TOML file of flat sections: rendered, and written whole or not at all, with its mode from
the first byte. Owns no meaning: profiles.py does."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path


def write_whole(path: Path, text: str, *, mode: int = 0o644) -> None:
    """Write a file so that it is there whole or not at all, with its mode from the first byte."""
    pending = path.with_name(f".{path.name}.{os.getpid()}")
    descriptor = os.open(pending, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode)
    with os.fdopen(descriptor, "w") as file:
        os.fchmod(file.fileno(), mode)
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    pending.replace(path)


def toml_text(sections: Mapping[str, Mapping[str, str | int | bool]]) -> str:
    """Flat sections as TOML; the section "" stands on top. JSON strings are TOML strings."""
    lines = []
    for name, members in sections.items():
        lines += [f"[{name}]"] if name else []
        lines += [f"{key} = {json.dumps(value)}" for key, value in members.items()]
        lines.append("")
    return "\n".join(lines)
