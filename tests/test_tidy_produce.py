"""docs/internals/produce.md: the path of a Produce has few exits, and lies where the page says."""

import re
from collections import Counter
from pathlib import Path

from tests.support.source import ROOT, c_code, report, text

PAGE = Path("docs/internals/produce.md")
ROW = re.compile(r"^\| `(\w+)` \| (native/src/[\w/]+\.c) \| (admission|answer) \|$", re.MULTILINE)
RETURNS_MAX = 4


def body_of(function: str, path: Path) -> str | None:
    """From the function's heading to the brace that closes it in column 0, without comments."""
    heading = rf"^[a-z][^;{{}}]*\b{function}\([^;{{]*\)\n"
    found = re.search(heading + r"{.*?^}", c_code(path), re.MULTILINE | re.DOTALL)
    return found.group() if found else None


def test_a_produce_leaves_its_path_in_at_most_four_places_each_way() -> None:
    returns: Counter[str] = Counter()
    missing = []
    for function, name, leg in ROW.findall(text(PAGE)):
        body = body_of(function, Path(name))
        if body is None:
            missing.append(f"{PAGE}: {function} is not in {name}")
        else:
            returns[leg] += len(re.findall(r"\breturn\b", body))
    assert set(returns) == {"admission", "answer"}
    report(
        missing
        + [
            f"{leg}: {count} returns on the way; let the status run down the path"
            for leg, count in returns.items()
            if count > RETURNS_MAX
        ]
    )


def test_every_step_of_a_produce_is_owned_by_one_file() -> None:
    drawn = re.findall(r"^ (\d) (\w+) +(native/src/[\w/]+\.c)", text(PAGE), re.MULTILINE)
    assert [step for _, step, _ in drawn] == [
        "decode", "admit", "propose", "round", "execute", "reply",
    ]  # fmt: skip
    files = [name for _, _, name in drawn]
    assert len(set(files)) == len(files)
    report([f"{PAGE}: {name} does not exist" for name in files if not (ROOT / name).is_file()])
