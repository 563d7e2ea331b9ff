"""What a user reads avoids the banned words: docs/STYLE.md, "Words"."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Final

import pytest

from tests.support.source import report
from tests.support.words import (
    BANNED,
    Said,
    banned,
    of_c,
    of_console,
    of_documents,
    of_help,
    of_openapi,
    of_python,
)

SURFACES: Final[dict[str, Callable[[], Iterator[Said]]]] = {
    "help": of_help,
    "documents": of_documents,
    "openapi": of_openapi,
    "console": of_console,
    "engine": partial(of_c, "native/src/"),
    "sdk": partial(of_python, "headrace/"),
    "api": partial(of_python, "api/"),
    "node": partial(of_python, "dataplane/"),
    "reports": partial(of_python, "reports/"),
}
# (part of the place, text that holds the word): names and quotations that are not ours to change.
ALLOWED: Final[tuple[tuple[str, str], ...]] = ()


def _allowed(said: Said, word: str) -> bool:
    return any(
        place in said.place and part in said.text and word in part for place, part in ALLOWED
    )


@pytest.mark.parametrize("surface", sorted(SURFACES))
def test_a_surface_uses_no_banned_word(surface: str) -> None:
    report(banned(SURFACES[surface](), _allowed))


@pytest.mark.parametrize("surface", sorted(SURFACES))
def test_a_surface_has_text(surface: str) -> None:
    assert sum(1 for said in SURFACES[surface]() if said.text.strip()) > 20


@pytest.mark.parametrize(
    "text", ["It is told.", "as it\n  is", "Nobody's", "What it lets go", "stopped by name"]
)
def test_a_banned_word_is_found_in_any_case_and_over_a_line_break(text: str) -> None:
    assert BANNED.search(text)


@pytest.mark.parametrize("text", ["He wishlisted", "the name", "by names", "untold"])
def test_a_part_of_another_word_is_not_banned(text: str) -> None:
    assert not BANNED.search(text)
