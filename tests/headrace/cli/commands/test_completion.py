"""Completion: verbs from the tree, topics from the service, and no noise when it is away."""

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.headrace.cli.conftest import Run
from tests.headrace.scripted_api import ScriptedApi, problem

Complete = Callable[..., list[str]]


@pytest.fixture
def complete(headrace: Run, monkeypatch: pytest.MonkeyPatch) -> Complete:
    def invoke(*words: str) -> list[str]:
        monkeypatch.setenv("_HEADRACE_COMPLETE", "bash_complete")
        monkeypatch.setenv("COMP_WORDS", " ".join(("headrace", *words)))
        monkeypatch.setenv("COMP_CWORD", str(len(words)))
        done = headrace()
        monkeypatch.delenv("_HEADRACE_COMPLETE")
        assert done.err == ""
        return [line.partition(",")[2] for line in done.out.splitlines() if line]

    return invoke


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_every_shell_has_a_script(headrace: Run, shell: str) -> None:
    done = headrace("completion", shell)
    assert (done.code, done.err) == (0, "")
    assert "_HEADRACE_COMPLETE" in done.out


def test_bash_reads_its_script(headrace: Run, tmp_path: Path) -> None:
    bash = shutil.which("bash")
    assert bash is not None
    (tmp_path / "script").write_text(headrace("completion", "bash").out)
    done = subprocess.run([bash, "-n", tmp_path / "script"], capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")


def test_verbs_complete_at_every_depth(complete: Complete) -> None:
    assert complete("prod") == ["produce"]
    assert complete("topic", "de") == ["delete", "describe"]


def test_topics_complete_and_are_asked_for_once_in_a_while(
    headrace: Run, complete: Complete, api: ScriptedApi
) -> None:
    for name in ("orders", "billing/orders", "other"):
        headrace("topic", "create", name, "--no-wait")
    api.seen.clear()
    assert complete("topic", "describe", "o") == ["orders", "other"]
    assert complete("produce", "b") == ["billing/orders"]
    assert len(api.seen) == 1


def test_a_service_that_is_away_completes_nothing_in_silence(
    complete: Complete, api: ScriptedApi
) -> None:
    api.answers = [problem(401, "UNAUTHENTICATED", "The key is not known")]
    assert complete("consume", "o") == []
