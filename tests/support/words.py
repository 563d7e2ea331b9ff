"""Text that a user reads, and the words that it avoids.

Owns the banned words and how text is taken out of each kind of source. Refuses to judge style
beyond the list: the rest is docs/STYLE.md.
"""

import ast
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final, NamedTuple

import click

from headrace.cli.main import root
from tests.support.source import ROOT, below, chosen, text, tree

# A phrase may be broken over two lines.
BANNED: Final = re.compile(
    r"\b(told|nobody(?:'s)?|whoever|wish|wished|wishes|lets?\s+go|by\s+name|as\s+it\s+is|"
    r"when\s+it\s+is\s+so|on\s+its\s+way|what\s+goes|what\s+is\s+there)\b",
    re.IGNORECASE,
)
_QUOTED: Final = re.compile(
    r'"(?:\\.|[^"\\\n])*"' r"|'(?:\\.|[^'\\\n])*'" r"|`(?:\\.|[^`\\])*`", re.DOTALL
)
_COMMENT: Final = re.compile(r"/\*.*?\*/|(?<![:\w])//[^\n]*", re.DOTALL)
# Code inside a template literal.
_EXPRESSION: Final = re.compile(r"\$\{[^{}]*\}")
# What stands between two tags or expressions; code has other characters.
_JSX: Final = re.compile(r"(?<=[>}])[^<>{}=;()]+(?=[<{])")
_IN_C: Final = re.compile(r'/\*.*?\*/|//[^\n]*|"((?:\\.|[^"\\\n])*)"', re.DOTALL)


class Said(NamedTuple):
    """A text and its place."""

    place: str
    text: str


def of_help() -> Iterator[Said]:
    """Every help text of the command line."""
    yield from _of_command("headrace", root)


def _of_command(name: str, command: click.Command) -> Iterator[Said]:
    yield Said(name, f"{command.help or ''}\n{command.get_short_help_str(1000)}")
    for parameter in command.params:
        if isinstance(parameter, click.Option):
            yield Said(f"{name} {parameter.opts[0]}", parameter.help or "")
    if isinstance(command, click.Group):
        context = click.Context(command)
        yield Said(f"{name} --help", command.get_help(context))
        for each in command.list_commands(context):
            found = command.get_command(context, each)
            assert found is not None, each
            yield from _of_command(f"{name} {each}", found)


def of_documents() -> Iterator[Said]:
    """Every document but the decisions, which are dated records."""
    for path in chosen(".md"):
        name = path.as_posix()
        if name.startswith("docs/decisions/"):
            continue
        if name.startswith("docs/") or name in (
            "README.md",
            "CONTRIBUTING.md",
            "headrace/README.md",
        ):
            yield from _lines(path, text(path))


def of_openapi() -> Iterator[Said]:
    """Summaries and descriptions of the REST API."""
    page = ROOT / "openapi" / "control-plane.json"
    yield from _of_json("openapi", json.loads(page.read_text()))


def _of_json(place: str, value: object) -> Iterator[Said]:
    if isinstance(value, dict):
        for key, inner in value.items():
            if key in ("summary", "description") and isinstance(inner, str):
                yield Said(f"{place} {key}", inner)
            yield from _of_json(f"{place}/{key}", inner)
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from _of_json(f"{place}/{index}", inner)


def of_console() -> Iterator[Said]:
    """Strings and JSX text of the web console."""
    for path in below(ROOT / "api" / "console" / "src", "*.ts*"):
        code = _EXPRESSION.sub(_blank, _COMMENT.sub(_blank, path.read_text()))
        # JSX first: an apostrophe in it is no quote.
        for pattern in (_JSX, _QUOTED) if path.suffix == ".tsx" else (_QUOTED,):
            yield from _matches(path.relative_to(ROOT), code, pattern)


def of_c(folder: str) -> Iterator[Said]:
    """String literals of C."""
    for path in chosen(".c", ".h", under=folder):
        for found in _IN_C.finditer(text(path)):
            if found[1] is not None:
                yield Said(_place(path, text(path), found.start()), found[1])


def of_python(folder: str) -> Iterator[Said]:
    """String literals of Python, without docstrings."""
    for path in chosen(".py", under=folder):
        documented = set(_docstrings(tree(path)))
        for node in ast.walk(tree(path)):
            if not isinstance(node, ast.Constant) or node in documented:
                continue
            if isinstance(node.value, str):
                yield Said(f"{path}:{node.lineno}", node.value)


def _docstrings(module: ast.Module) -> Iterator[ast.expr]:
    for node in ast.walk(module):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            yield node.value


def banned(said: Iterator[Said], allowed: Callable[[Said, str], bool]) -> list[str]:
    """Every banned word that is not allowed in its text, with its place."""
    return [
        f"{each.place}: {found.group()!r} in {each.text.strip()[:80]!r}"
        for each in said
        for found in BANNED.finditer(each.text)
        if not allowed(each, found.group())
    ]


def _lines(path: Path, body: str) -> Iterator[Said]:
    for found in re.finditer(r"[^\n]+(?:\n[^\n]+)*", body):
        yield Said(_place(path, body, found.start()), found.group())


def _matches(path: Path, body: str, pattern: re.Pattern[str]) -> Iterator[Said]:
    for found in pattern.finditer(body):
        yield Said(_place(path, body, found.start()), found.group())


def _place(path: Path, body: str, start: int) -> str:
    return f"{path}:{body.count(chr(10), 0, start) + 1}"


def _blank(found: re.Match[str]) -> str:
    return re.sub(r"[^\n]", " ", found.group())
