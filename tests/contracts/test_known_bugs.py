"""Every bug that the page of known bugs names is kept out by tests that exist."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "internals" / "known-bugs.md"
ROW = re.compile(r"^\| (\d+) \| .+ \| (real|scripted|none) \| (.+) \|$", flags=re.M)
NAMED = re.compile(r"`([\w/]+\.py)::(test_\w+)`")


def rows() -> list[tuple[int, str, list[tuple[str, str]]]]:
    """Number, node and the tests of each bug: file and function."""
    return [
        (int(number), node, NAMED.findall(tests))
        for number, node, tests in ROW.findall(PAGE.read_text())
    ]


def source(file: str) -> str:
    """The text of a file of tests."""
    return (ROOT / "tests" / file).read_text()


def test_every_known_bug_has_its_own_number_and_a_test() -> None:
    numbers = [number for number, _, _ in rows()]
    assert len(numbers) == sum(line.startswith("| ") for line in PAGE.read_text().splitlines()) - 1
    assert numbers == sorted(set(numbers))
    assert all(tests for _, _, tests in rows())


def test_every_named_test_exists_and_says_truly_whether_its_node_is_real() -> None:
    for number, node, tests in rows():
        found = [
            re.search(rf"^def {name}\(([^)]*)\)", source(file), flags=re.M) for file, name in tests
        ]
        missing = [name for (_, name), each in zip(tests, found, strict=True) if each is None]
        assert missing == [], number
        real = any(each is not None and "process: NodeProcess" in each[1] for each in found)
        assert real is (node == "real"), number
