"""Every metric that a document or an alarm names is one that a node or the API serves."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
PAGES = sorted(ROOT.glob("docs/**/*.md"))
SOURCES = [
    *ROOT.glob("native/src/**/*.c"),
    *ROOT.glob("dataplane/**/*.py"),
    *ROOT.glob("api/*.py"),
    *ROOT.glob("api/node/*.py"),
]
# Cookies are called alike.
COOKIES = {"headrace_session"}
SERVED = set(re.findall(r"\bheadrace_[a-z_]+", "".join(p.read_text() for p in SOURCES)))
# A name that is written in code, with what the text format adds to a counter.
NAMED = re.compile(r"`(headrace_[a-z_]+)(?:`|\{)")


def test_the_node_serves_more_than_a_handful() -> None:
    assert len(SERVED) > 60


@pytest.mark.parametrize(
    "page",
    [page for page in PAGES if NAMED.search(page.read_text())],
    ids=lambda page: str(page.relative_to(ROOT)),
)
def test_a_page_names_metrics_that_are_served(page: Path) -> None:
    named = set(NAMED.findall(page.read_text())) - COOKIES
    assert {
        name for name in named if name not in SERVED and name.removesuffix("_total") not in SERVED
    } == set()
