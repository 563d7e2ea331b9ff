"""Commit subjects and change fragments that are newer than the base keep to CONTRIBUTING.md."""

import re
import subprocess
from pathlib import Path

import pytest

from tests.support.commits import Commit, faults_of_fragment, faults_of_subject
from tests.support.source import ROOT, report

BASE = ROOT / ".ci" / "commits-base"
# The last fragment written before there was a rule.
FRAGMENT_BASE = 198


def git(*arguments: str) -> str:
    """What git answers; empty outside a checkout and where the base is not in the history."""
    done = subprocess.run(
        ["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False
    )
    return done.stdout if done.returncode == 0 else ""


def commits_since_the_base() -> list[Commit]:
    """Every commit after the base, without merges."""
    log = git("log", "--no-merges", "--format=%h %s", f"{BASE.read_text().strip()}..HEAD")
    return [Commit(*line.split(" ", 1)) for line in log.splitlines()]


def test_new_commits_have_an_area_and_an_imperative() -> None:
    report(
        [
            f"{commit.name} {commit.subject!r}: {fault}"
            for commit in commits_since_the_base()
            for fault in faults_of_subject(commit.subject)
        ]
    )


def test_new_change_fragments_are_one_plain_sentence() -> None:
    report(
        [
            f"{path.relative_to(ROOT)}: {fault}"
            for path in sorted(Path(ROOT, "changes").glob("*.md"))
            if int(path.stem) > FRAGMENT_BASE
            for fault in faults_of_fragment(path.read_text())
        ]
    )


def test_change_fragments_are_named_by_running_numbers() -> None:
    report(
        [
            f"{path.relative_to(ROOT)}: name it by the next number, four digits"
            for path in sorted(Path(ROOT, "changes").iterdir())
            if not re.fullmatch(r"\d{4}\.md", path.name)
        ]
    )


@pytest.mark.parametrize(
    "subject",
    [
        "console: Show data loss before saving a shorter retention",
        "tests: Assert that print styles ignore dark mode",
        "native/store: Process completions after the step",
    ],
)
def test_a_plain_subject_has_no_fault(subject: str) -> None:
    assert faults_of_subject(subject) == []


@pytest.mark.parametrize(
    "subject",
    [
        "console: What a shorter retention lets go is told before it is saved; docs.",
        "tests: Paper is never dark.",
        "tests: the smallest first",
        "fix the queue",
        "api: Fixed the queue",
        "api: Adding a queue",
        "api: Adds a queue",
        "api: Add a queue " + "that is longer than one line of a log shows to its reader",
    ],
)
def test_a_subject_that_is_no_order_is_refused(subject: str) -> None:
    assert faults_of_subject(subject) != []


@pytest.mark.parametrize(
    "fragment",
    ["One. Two.", "No end", "It is told to nobody.", "Two\nlines.", "Additionally, it flies."],
)
def test_a_fragment_that_is_not_one_plain_sentence_is_refused(fragment: str) -> None:
    assert faults_of_fragment(fragment) != []
