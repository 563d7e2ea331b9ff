"""The style guide (docs/STYLE.md) as a test: what a machine can hold us to, in a second.

Owns sizes, names, banned words and calls. What ruff, mypy and clang already refuse is left to them.
Every finding names its file, its line and what to write instead.
"""

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support.source import CODE, ROOT, c_code, chosen, files, numbered, report, text, tree

COLUMNS_MAX = 100
FILE_LINES_MAX = 500
PYTHON_FUNCTION_LINES_MAX = 50
C_FUNCTION_LINES_MAX = 70
FILE_BYTES_MAX = 512 * 1024

DRAWERS = {
    "base", "common", "core", "helper", "helpers", "impl", "impls", "manager", "misc", "types",
    "util", "utils", "v2",
}  # fmt: skip


# --- sizes ---------------------------------------------------------------------------------------


def test_no_line_of_code_is_wider_than_100_columns() -> None:
    report(
        [
            f"{path}:{number}: {len(line)} columns, the limit is {COLUMNS_MAX}"
            for path in chosen(*CODE)
            for number, line in numbered(text(path))
            if len(line) > COLUMNS_MAX and "://" not in line
        ]
    )


def test_no_file_is_longer_than_500_lines() -> None:
    report(
        [
            f"{path}: {len(text(path).splitlines())} lines; find the second concept in it"
            for path in chosen(*CODE, ".ts", ".tsx")
            if len(text(path).splitlines()) > FILE_LINES_MAX
        ]
    )


def test_no_blob_is_committed() -> None:
    report(
        [
            f"{path}: {size} bytes; build or fetch it instead"
            for path in files()
            if (size := (ROOT / path).stat().st_size) > FILE_BYTES_MAX
        ]
    )


def python_function_lines(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Lines of a function without its docstring."""
    lines = (function.end_lineno or function.lineno) - function.lineno + 1
    first = function.body[0]
    if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
        lines -= (first.end_lineno or first.lineno) - first.lineno + 1
    return lines


def test_no_python_function_is_longer_than_50_lines() -> None:
    report(
        [
            f"{path}:{node.lineno}: {node.name} has {lines} lines; split it at its seams"
            for path in chosen(".py")
            if path.parts[0] != "migrations"  # a list of tables has no seams
            for node in ast.walk(tree(path))
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
            and (lines := python_function_lines(node)) > PYTHON_FUNCTION_LINES_MAX
        ]
    )


def c_functions(code: str) -> Iterator[tuple[int, str, int]]:
    """Line, name and length of each function: braces that open and close in column 0."""
    start, name = 0, ""
    for number, line in numbered(code):
        if heading := re.match(r"[A-Za-z][\w\s*]*?\b(\w+)\(", line):
            start, name = number, heading.group(1)
        elif line.startswith("}"):
            if name:
                yield start, name, number - start + 1
            name = ""
        elif line.startswith("#") or (line.endswith(";") and line[:1].strip()):
            name = ""


def test_no_c_function_is_longer_than_70_lines() -> None:
    report(
        [
            f"{path}:{number}: {name} has {lines} lines; branch in the parent, leaves are pure"
            for path in chosen(".c", ".h")
            for number, name, lines in c_functions(c_code(path))
            if lines > C_FUNCTION_LINES_MAX
        ]
    )


# --- names ---------------------------------------------------------------------------------------


def test_no_file_or_folder_is_a_drawer() -> None:
    report(
        [
            f"{path}: a drawer name means that the concept is not found yet"
            for path in files()
            if DRAWERS & {part.split(".")[0] for part in path.parts}
        ]
    )


def test_test_names_are_sentences() -> None:
    report(
        [
            f"{path}:{node.lineno}: {node.name}: say what holds, as a sentence"
            for path in chosen(".py", under="tests/")
            for node in ast.walk(tree(path))
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
            and node.name.startswith("test_")
            and len(node.name.split("_")) < 4
        ]
    )


def test_packages_have_an_init_and_test_folders_have_none() -> None:
    folders = {path.parent for path in chosen(".py") if len(path.parts) > 1}
    source = {f for f in folders if f.parts[0] in {"api", "dataplane", "headrace", "native"}}
    report(
        [f"{f}: add __init__.py" for f in sorted(source) if f / "__init__.py" not in files()]
        + [f"{p}: remove it" for p in files() if p.parts[0] == "tests" and p.stem == "__init__"]
    )


# --- banned words and calls ----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Ban:
    """A pattern that must not appear, where, and what to write instead."""

    pattern: str
    instead: str
    example: str
    suffixes: tuple[str, ...] = (".py",)
    under: tuple[str, ...] = ("",)
    allowed: str = "$^"

    def findings(self) -> Iterator[str]:
        """Every match of the pattern."""
        here = Path(__file__).resolve().relative_to(ROOT)
        pattern = re.compile(self.pattern)
        for path in files():
            name = path.as_posix()
            if path == here or not name.startswith(self.under) or re.search(self.allowed, name):
                continue
            if self.suffixes != ("*",) and path.suffix not in self.suffixes:
                continue
            body = c_code(path) if path.suffix in {".c", ".h"} and self.is_code else text(path)
            for number, line in numbered(body):
                if pattern.search(line):
                    yield f"{path}:{number}: {line.strip()[:60]} -> {self.instead}"

    @property
    def is_code(self) -> bool:
        """Whether comments and strings of C do not count."""
        return self.suffixes != ("*",)


C = (".c", ".h")
ANY = ("*",)
LIBRARIES = ("api/", "dataplane/", "headrace/", "native/", "reports/")
# In two halves, so that this file names none of them.
REGISTRIES = (("pypi", "org"), ("pythonhosted", "org"), ("registry", "npmjs"), ("deb", "debian"))
BANS = [
    Ban(r"\b(TODO|FIXME|XXX|HACK)\b", "do it, or write it in the closing note", "# TODO: x", ANY),
    Ban(
        r"(?<![\w.])/(root|home|work|Users)/\w",
        "a path relative to the project",
        'open("/home/someone/x")',
        ANY,
    ),
    Ban(
        "|".join(rf"\b{first}\.{second}" for first, second in REGISTRIES),
        "the package's name; clients know their registry",
        "https://{}.{}/simple".format(*REGISTRIES[0]),
        ANY,
    ),
    # C
    Ban(
        r"\b(malloc|calloc|realloc|free|strdup|asprintf)\s*\(",
        "arena_take at engine_open; nothing is allocated after it is sealed",
        "x = malloc(1);",
        C,
        ("native/",),
        r"native/src/foundation/arena\.c",
    ),
    Ban(
        r"\b(strcpy|strcat|sprintf|vsprintf|gets|strtok|strncpy|atoi|atol|alloca)\s*\(",
        "memcpy with a checked size, snprintf, strtol",
        "strcpy(a, b);",
        C,
        ("native/",),
    ),
    Ban(
        r"#\s*include\s*<assert\.h>",
        '"foundation/assert.h": ours is always on, NDEBUG or not',
        "#include <assert.h>",
        C,
        ("native/",),
        r"native/src/foundation/assert\.h",
    ),
    Ban(
        r"\b(s?rand|rand_r|random|drand48)\s*\(",
        "foundation/random.h: randomness is seeded and passed in",
        "rand();",
        C,
        ("native/",),
    ),
    Ban(
        r"\btypedef\s+(struct|union|enum)\b[^(]*[;{]",
        "`struct name`, spelled out",
        "typedef struct x x;",
        C,
        ("native/",),
    ),
    Ban(
        r"\b(usleep|nanosleep|sleep)\s*\(",
        "epoll with a deadline",
        "usleep(1);",
        C,
        ("native/src/",),
        r"native/src/io/",  # its threads are not the pump
    ),
    Ban(
        r"(?<!\w)(printf|puts|perror)\s*\(",
        "a status to the caller, a counter in metrics",
        'printf("x");',
        C,
        ("native/src/",),
    ),
    # Python
    Ban(
        r"\b(time|asyncio|anyio)\.sleep\((?!0\))",
        "wait for a condition: wait_until in tests/support",
        "time.sleep(1)",
        (".py",),
        ("tests/",),
        r"tests/(support|demo|performance)/",
    ),
    Ban(
        # The mark xfail has rules of its own: test_tidy_known_faults.py.
        r"pytest\.(skip|importorskip|xfail)\b|mark\.(skip|skipif)\b",
        "make it pass, or delete it",
        "pytest.skip('x')",
        (".py",),
        ("tests/",),
    ),
    Ban(
        r"unittest\.mock|\bMagicMock\b|\bAsyncMock\b",
        "the real thing, or a model of it",
        "from unittest.mock import Mock",
    ),
    Ban(
        r"\bfrom typing import .*\bAny\b|\btyping\.Any\b",
        "the type, or object",
        "from typing import Any",
        (".py",),
        LIBRARIES,
        r"native/engine\.py",
    ),
    Ban(r"\bimport (requests|httpx)\b|\bfrom httpx\b", "httpx2", "import httpx"),
    Ban(r"\bshell=True\b|\bos\.system\(", "subprocess with a list", "os.system('x')"),
    Ban(r"#\s*type:\s*ignore(?!\[)", "ignore[code], with the reason beside it", "# type: ignore"),
    Ban(
        r"\bpickle\b|(?<![.\w])(eval|exec)\(",
        "a format with a version and a golden file",
        "import pickle",
    ),
]


@pytest.mark.parametrize("ban", BANS, ids=lambda ban: ban.pattern[:40])
def test_nothing_banned_is_written(ban: Ban) -> None:
    assert re.search(ban.pattern, ban.example), "the ban does not match its own example"
    report(list(ban.findings()))


def test_shell_scripts_stop_at_the_first_error() -> None:
    report(
        [f"{path}: add `set -eu`" for path in chosen(".sh") if "\nset -eu" not in text(path)],
    )


def test_text_ends_with_one_newline_and_no_line_with_blanks() -> None:
    findings = []
    for path in chosen(*CODE, ".md", ".txt", ".yaml", ".yml", ".json", ".ts", ".tsx", ".css"):
        body = text(path)
        if body and (not body.endswith("\n") or body.endswith("\n\n")):
            findings.append(f"{path}: end the file with exactly one newline")
        findings += [
            f"{path}:{number}: blanks at the end of the line, or a tab"
            for number, line in numbered(body)
            if line != line.rstrip() or "\t" in line
        ]
    report(findings)


def test_every_c_file_and_script_opens_with_what_it_owns() -> None:
    headers = {path.stem for path in chosen(".h")}
    report(
        [f"{p}: open with a comment" for p in chosen(".h") if not text(p).startswith("/*")]
        + [
            f"{p}: open with a comment"
            for p in chosen(".c")
            if not text(p).startswith("/*") and p.stem not in headers
        ]
        + [f"{p}: open with a comment" for p in chosen(".sh") if "\n#" not in text(p)[:40]]
    )
