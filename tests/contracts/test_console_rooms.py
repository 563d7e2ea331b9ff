"""The rooms of the console's sources: lib, hooks, ui and features, and which may import which."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

SOURCE: Final = Path(__file__).resolve().parents[2] / "api" / "console" / "src"
# A room imports only rooms before it; main.tsx, which composes them, is in none.
ROOMS: Final = ("lib", "hooks", "ui", "features")
IMPORT: Final = re.compile(r'(?:\bfrom|\bimport|\bimport\()\s*"([^"]+)"')
VIEWS: Final = ("react", "@patternfly/", "@tanstack/")


def imports() -> Iterator[tuple[str, str]]:
    """Every import: the file it stands in, and what it names, from the sources' folder on."""
    for path in sorted(SOURCE.rglob("*.ts*")):
        for name in IMPORT.findall(path.read_text()):
            file = path.relative_to(SOURCE).as_posix()
            if name.startswith("."):
                target = (path.parent / name).resolve()
                yield file, target.relative_to(SOURCE.parent).as_posix().removeprefix("src/")
            else:
                yield file, name


def room(name: str) -> str:
    return name.partition("/")[0]


def test_every_file_is_in_a_room() -> None:
    found = {path.relative_to(SOURCE).parts[0] for path in SOURCE.iterdir()}
    assert found == {*ROOMS, "main.tsx", "style.css"}


def test_a_room_imports_only_rooms_before_it() -> None:
    upward = [
        f"{file} imports {name}"
        for file, name in imports()
        if room(file) in ROOMS and room(name) in ROOMS
        if ROOMS.index(room(name)) > ROOMS.index(room(file))
    ]
    assert upward == []


def test_a_feature_imports_no_other_feature() -> None:
    across = [
        f"{file} imports {name}"
        for file, name in imports()
        if room(file) == room(name) == "features"
        if file.split("/")[1] != name.split("/")[1]
    ]
    assert across == []


def test_lib_is_plain_typescript() -> None:
    views = [
        f"{file} imports {name}"
        for file, name in imports()
        if room(file) == "lib" and name.startswith(VIEWS)
    ]
    assert views == []
