"""Fenced blocks of the documents, and how they are run: in order, page by page, as a reader would.

A block of `sh` or `python` runs, one of `toml` is loaded as the control plane's settings, one of
`sql` is executed by a PostgreSQL server of its own; unless the line above says
`<!-- not run: why -->`. Variables of a shell live from one block of a page to the next. The ports
of the service that the tests started stand in for the usual ones; nothing else is changed.
"""

import os
import re
import subprocess
import sys
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.support.processes.platform import Platform, Profile
from tests.support.processes.postgres import Postgres

ROOT = Path(__file__).resolve().parents[2]
LANGUAGES = ("sh", "python", "toml", "sql")
# Not the name that the pages give to the product's own account.
ADMINISTRATOR = "administrator"
# Two blocks start Spark, which takes its time on a busy machine.
BLOCK_SECONDS_MAX = 900
FENCE = re.compile(
    r"^(?:<!-- not run: (?P<reason>[^\n]+) -->\n)?```(?P<language>\w+)\n(?P<code>.*?)^```$",
    re.M | re.S,
)


@dataclass(frozen=True, slots=True)
class Snippet:
    """One block. ``reason``: why it is not run; empty if it is."""

    page: str
    line: int
    language: str
    code: str
    reason: str

    def __str__(self) -> str:
        return f"{self.page}:{self.line}"


def snippets_of(page: Path) -> list[Snippet]:
    """Every fenced block of a page, whatever its language."""
    body = (ROOT / page).read_text()
    return [
        Snippet(
            page.as_posix(),
            body.count("\n", 0, found.start("language")) + 1,
            found["language"],
            found["code"],
            found["reason"] or "",
        )
        for found in FENCE.finditer(body)
    ]


class Reader:
    """Runs the commands of a page in a folder of its own, with a running service."""

    def __init__(self, platform: Platform, profile: Profile, folder: Path) -> None:
        self._folder = folder
        self._usual = {
            "127.0.0.1:8460": profile.api_url.removeprefix("http://"),
            "127.0.0.1:8461": profile.bootstrap,
            "127.0.0.1:8462": platform.node_http,
        }
        home = platform.folder / "home"
        home.mkdir(exist_ok=True)
        links = {home / ".config": platform.folder / "config", folder / ".headrace": platform.data}
        for link, target in links.items():
            if not link.is_symlink():
                link.symlink_to(target)
        self._environment = platform.environment | {
            "HOME": str(home),
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            "PYTHONPATH": str(ROOT),
        }

    def types(self, snippets: Sequence[Snippet]) -> None:
        """Run the blocks of one page. Fails with the place and what was said."""
        for snippet in snippets:
            code = snippet.code
            for usual, here in self._usual.items():
                code = code.replace(usual, here)
            if snippet.language == "sql":
                execute(code)
            else:
                self._run(snippet, COMMANDS[snippet.language](code))

    def _run(self, snippet: Snippet, command: Sequence[str]) -> None:
        done = subprocess.run(
            command,
            cwd=self._folder,
            env=self._environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=BLOCK_SECONDS_MAX,
            check=False,
        )
        assert done.returncode == 0, f"{snippet}\n{snippet.code}\n{done.stdout}{done.stderr}"


def shell(code: str) -> list[str]:
    """bash, ending at the first failure; variables are kept in a file for the next block."""
    begin = "set -euo pipefail\nif [ -f .variables ]; then . ./.variables; fi\n"
    end = "\nset | grep -E '^(API|KEY|ID)=' > .variables || true\n"
    return ["bash", "-c", begin + code + end]


def python(code: str) -> list[str]:
    """Python; a block that awaits, as in a notebook cell, gets the coroutine around it."""
    try:
        compile(code, "snippet", "exec")
    except SyntaxError:
        body = textwrap.indent(code, "    ")
        code = f"import asyncio, headrace\nasync def main():\n{body}\nasyncio.run(main())"
    return [sys.executable, "-c", code]


def settings(code: str) -> list[str]:
    """The file, loaded as every process of the control plane would."""
    program = (
        "import pathlib, sys\n"
        "from api.settings import Settings\n"
        "file = pathlib.Path('headrace.toml')\n"
        "file.write_text(sys.argv[1])\n"
        "Settings.load(file)\n"
    )
    return [sys.executable, "-c", program, code]


COMMANDS = {"sh": shell, "python": python, "toml": settings}


def execute(code: str) -> None:
    """Statement by statement: some may not stand in a transaction."""
    with Postgres(ADMINISTRATOR) as server:
        for statement in filter(None, map(str.strip, code.split(";\n"))):
            server.execute(statement.encode())
