"""Text of others in what we print: names, values and messages may hold whatever somebody sent.

A terminal obeys control characters and turns with those of direction, so people are shown escapes
in their place, as Python writes them; JSON and YAML escape what JSON would leave as it is, which
loses nothing. A spreadsheet runs a cell that begins like a formula, so text in CSV that does gets
an apostrophe in front, and text that begins with one gets another: taking one away gives it back.
Refuses to change a value for a program that can read it safely.
"""

from __future__ import annotations

import json
import re

# Control characters but the tab, separators of lines and paragraphs, embedding, overriding and
# isolating directions, and halves of surrogate pairs.
_OBEYED = re.compile(
    r"[\x00-\x08\x0a-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
)
_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n", "'")
_NUMBER = re.compile(r"[+-]?[0-9]+(\.[0-9]+)?")


def seen(text: str) -> str:
    """The text for people: what a terminal would obey stands as an escape."""
    return _OBEYED.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def json_of(value: object, indent: int | None = None) -> str:
    """JSON that is the same value to a program and harmless to a terminal."""
    text = json.dumps(value, ensure_ascii=False, indent=indent)
    # Outside of strings JSON has no such character but the line feeds of an indent.
    return _OBEYED.sub(lambda found: "\n" if found[0] == "\n" else f"\\u{ord(found[0]):04x}", text)


def guarded(cell: str) -> str:
    """A cell of CSV that no spreadsheet takes for a formula."""
    if cell.startswith(_FORMULA_STARTS) and not _NUMBER.fullmatch(cell):
        return f"'{cell}"
    return cell
