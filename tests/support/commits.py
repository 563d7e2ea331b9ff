"""How commits and change fragments are written, judged by a machine as far as it can.

Owns the rules for a subject (`area: Imperative sentence`) and for a fragment of `changes/`. Refuses
to guess grammar: what it cannot tell apart passes.
"""

import re
from dataclasses import dataclass
from typing import Final

from tests.support.words import BANNED

SUBJECT_COLUMNS_MAX: Final = 72
FRAGMENT_COLUMNS_MAX: Final = 400

# Words that open a statement about a state of affairs, not an order to change one.
STATEMENTS: Final = frozenset(
    """
    A All An Another Any Both Each Every Few Half How If It Its Many More Most No Nobody None
    Nothing On One Only Other Our Some Such That The Their There These They This Those Two What
    When Where Which While Who Whoever Whose Why With Without
    """.split()
)
# Verbs that end as participles or third persons do.
VERBS: Final = frozenset(
    """
    Access Address Assess Bring Bypass Compress Cross Discuss Embed Exceed Express Feed Focus Fling
    Guess Harness Miss Need Pass Press Proceed Process Ring Seed Shed Speed Spring String Succeed
    Suppress Swing
    """.split()
)


@dataclass(frozen=True, slots=True)
class Commit:
    """One commit as git shows it."""

    name: str
    subject: str


def faults_of_subject(subject: str) -> list[str]:
    """What is wrong with the first line of a message; empty when nothing is."""
    found = []
    if len(subject) > SUBJECT_COLUMNS_MAX:
        found.append(f"{len(subject)} columns; the limit is {SUBJECT_COLUMNS_MAX}")
    shape = re.fullmatch(r"[\w./{}, -]+: (\S+)(.*)", subject)
    if shape is None:
        return [*found, "write `area: Imperative sentence`"]
    word, rest = shape.group(1), shape.group(2)
    verb = word.strip("`,;:")
    if not verb[:1].isupper():
        found.append(f"begin the sentence with a capital letter: {word}")
    if verb in STATEMENTS or (verb.endswith(("ed", "ing", "s")) and verb not in VERBS):
        found.append(f"begin with a verb in the imperative: {word}")
    if (rest or word).endswith("."):
        found.append("leave out the full stop")
    if ";" in rest:
        found.append("two sentences are two commits")
    return found


def faults_of_fragment(text: str) -> list[str]:
    """What is wrong with a change fragment; empty when nothing is."""
    sentence = text.strip()
    found = []
    if "\n" in sentence:
        found.append("one sentence on one line")
    if not sentence.endswith("."):
        found.append("end the sentence with a full stop")
    if re.search(r"[.!?]\s+[A-Z]", sentence):
        found.append("two sentences are two fragments")
    if len(sentence) > FRAGMENT_COLUMNS_MAX:
        found.append(f"{len(sentence)} characters; the limit is {FRAGMENT_COLUMNS_MAX}")
    if word := BANNED.search(sentence) or re.search(r"\badditionally\b", sentence, re.IGNORECASE):
        found.append(f"write plain English instead of {word.group()!r}")
    return found
