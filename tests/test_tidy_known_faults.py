"""Known faults (tests/known_faults.txt): the only tests that may fail, and each in one way only.

Owns the rules of the mark: a decorator of a test, strict, with the one exception by which the test
fails and a sentence that says why. Refuses a mark that the list lacks, and a line without a mark.
"""

import ast
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.source import ROOT, chosen, report, tree

LIST = Path("tests/known_faults.txt")
MARK = "pytest.mark.xfail"
# They would take in any other failure too.
TOO_WIDE = {"Exception", "BaseException"}
REASON_WORDS_MIN = 4


def faults_in(mark: ast.Call) -> Iterator[str]:
    """What a mark lacks."""
    given = {keyword.arg: keyword.value for keyword in mark.keywords}
    if mark.args or set(given) != {"strict", "raises", "reason"}:
        yield "give strict=True, raises and reason, and nothing else"
        return
    if ast.unparse(given["strict"]) != "True":
        yield "strict=True: a test that passes is no fault any more"
    raises = given["raises"]
    if not isinstance(raises, ast.Name | ast.Attribute) or ast.unparse(raises) in TOO_WIDE:
        yield "raises: the one exception by which the test fails"
    reason = given["reason"]
    said = reason.value if isinstance(reason, ast.Constant) else None
    if not isinstance(said, str) or len(said.split()) < REASON_WORDS_MIN:
        yield "reason: a plain sentence of the fault"


def marked(path: Path, module: ast.Module) -> tuple[list[str], list[str]]:
    """The tests of a file with the mark, as `file::test`; and what is wrong with its marks."""
    tests, findings = [], []
    right: set[ast.expr] = set()
    for test in ast.walk(module):
        if not isinstance(test, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        for mark in test.decorator_list:
            if not isinstance(mark, ast.Call) or ast.unparse(mark.func) != MARK:
                continue
            if test.name.startswith("test_"):
                right.add(mark.func)
                tests.append(f"{path.name}::{test.name}")
                findings += [f"{path}:{mark.lineno}: {fault}" for fault in faults_in(mark)]
    for node in ast.walk(module):
        named = node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")
        if named == "xfail" and node not in right:
            findings.append(f"{path}:{getattr(node, 'lineno', 0)}: @{MARK}(..) of a test only")
    return tests, findings


def listed() -> list[str]:
    """The lines of the list."""
    lines = (ROOT / LIST).read_text(encoding="utf-8").splitlines()
    return [line for line in lines if not line.startswith("#")]


def test_every_mark_is_strict_and_names_the_failure_and_the_fault() -> None:
    report([one for path in chosen(".py", under="tests/") for one in marked(path, tree(path))[1]])


def test_the_list_of_known_faults_and_the_marks_agree() -> None:
    marks = Counter(
        test for path in chosen(".py", under="tests/") for test in marked(path, tree(path))[0]
    )
    lines = Counter(listed())
    report(
        [f"{LIST}: {test} is marked: add its line, or mend the fault" for test in marks - lines]
        + [f"{LIST}: {test} is not marked: delete its line" for test in lines - marks]
    )


def test_the_list_of_known_faults_is_sorted() -> None:
    assert listed() == sorted(listed())


RIGHT = 'strict=True, raises=AssertionError, reason="A full disk is for ever."'


@pytest.mark.parametrize(
    ("decorator", "function"),
    [
        (f"@{MARK}", "test_x"),
        (f"@{MARK}()", "test_x"),
        (f"@{MARK}({RIGHT})", "helper"),
        (f"@{MARK}({RIGHT.replace('True', 'False')})", "test_x"),
        (f"@{MARK}({RIGHT.replace('AssertionError', 'Exception')})", "test_x"),
        (f"@{MARK}({RIGHT.replace('AssertionError', '(KeyError, ValueError)')})", "test_x"),
        (f"@{MARK}({RIGHT.replace('A full disk is for ever.', 'later')})", "test_x"),
        (f"@{MARK}({RIGHT.replace(', raises=AssertionError', '')})", "test_x"),
        (f"@{MARK}(1 > 0, {RIGHT})", "test_x"),
        (f"@{MARK}({RIGHT}, run=False)", "test_x"),
        (f"@mark.xfail({RIGHT})", "test_x"),
        (f"@pytest.mark.parametrize('n', [pytest.param(1, marks={MARK}({RIGHT}))])", "test_x"),
        (f"pytestmark = {MARK}({RIGHT})\n@wraps", "test_x"),
    ],
)
def test_a_mark_that_takes_in_more_than_its_fault_is_found(decorator: str, function: str) -> None:
    module = ast.parse(f"{decorator}\ndef {function}() -> None: ...")
    assert marked(Path("test_x.py"), module)[1] != []


def test_a_right_mark_is_counted() -> None:
    module = ast.parse(f"@{MARK}({RIGHT})\ndef test_x() -> None: ...")
    assert marked(Path("tests/test_x.py"), module) == (["test_x.py::test_x"], [])
