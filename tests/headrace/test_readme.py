"""The README's programs run as they are printed."""

import re
import textwrap
from pathlib import Path

import pytest

from tests.headrace.scripted_node import ScriptedNode

README = Path(__file__).parents[2] / "headrace" / "README.md"


def programs() -> list[str]:
    return re.findall(r"```python\n(.*?)```", README.read_text(), re.S)


@pytest.fixture(autouse=True)
def environment(node: ScriptedNode, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADRACE_BOOTSTRAP", node.address)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    for name in ("HEADRACE_URL", "HEADRACE_PROFILE", "HEADRACE_KEY"):
        monkeypatch.delenv(name, raising=False)


def test_the_sync_program_prints_what_it_sent(capsys: pytest.CaptureFixture[str]) -> None:
    exec(programs()[0], {})
    assert capsys.readouterr().out == "0 b'cust-42' b'{\"id\":7,\"total\":9.5}'\n"


def test_the_async_program_prints_what_it_sent(capsys: pytest.CaptureFixture[str]) -> None:
    body = textwrap.indent(programs()[1], "    ")
    exec(f"import asyncio, headrace\nasync def main():\n{body}\nasyncio.run(main())", {})
    assert capsys.readouterr().out.endswith("0 {'id': 7, 'total': 9.5}\n")
