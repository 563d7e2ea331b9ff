"""docs/ARCHITECTURE.md maps the tree: every room once, in words, and no room that is not there."""

import re
from pathlib import Path

from tests.support.source import ROOT, chosen, report, text

DOCUMENT = Path("docs/ARCHITECTURE.md")
ROW = re.compile(r"^\| \[([\w/]+)\]\(\.\./([\w/]+)\) \| (.*) \| (.*) \|$", re.MULTILINE)
# Folders of generated stubs have no room of their own to describe.
PACKAGES = ("api", "dataplane", "headrace", "reports", "native/src", "native/sim")
WORDS_MAX = 40


def rooms() -> set[str]:
    """Every folder below the mapped packages that holds code."""
    folders = {path.parent.as_posix() for path in chosen(".py", ".c", ".h", ".ts", ".tsx")}
    found = set()
    for folder in folders:
        for package in PACKAGES:
            if folder.startswith(f"{package}/"):
                found.add(folder)
    return {folder for folder in found if not folder.startswith("api/console/")} | {"api/console"}


def mapped() -> dict[str, tuple[str, str]]:
    """Each room of the map: what it owns, what it refuses."""
    return {path: (owns, refuses) for _, path, owns, refuses in ROW.findall(text(DOCUMENT))}


def test_every_room_is_in_the_map_and_every_row_is_a_room() -> None:
    named = {path for path in mapped() if path.startswith(PACKAGES) and path not in PACKAGES}
    report(
        [f"{DOCUMENT}: say what {room} owns and refuses" for room in sorted(rooms() - named)]
        + [f"{DOCUMENT}: {room} is no room" for room in sorted(named - rooms())]
    )


def test_a_row_of_the_map_is_one_line_that_says_both() -> None:
    report(
        [
            f"{DOCUMENT}: {path}: say in a few words what it owns and what it refuses"
            for path, (owns, refuses) in mapped().items()
            if not owns.strip()
            or not refuses.strip()
            or len(f"{owns} {refuses}".split()) > WORDS_MAX
        ]
    )


def test_the_map_lists_the_rooms_of_the_engine_in_their_order() -> None:
    listed = [path for path in mapped() if re.fullmatch(r"native/src/\w+", path)]
    source = text(Path("tests/test_tidy_links.py"))
    ranks = re.search(r"^ROOMS = \((.*?)\)", source, re.DOTALL | re.MULTILINE)
    assert ranks is not None
    assert [Path(path).name for path in listed] == re.findall(r'"(\w+)"', ranks.group(1))
    assert all((ROOT / path).is_dir() for path in listed)
