"""Every block of every document runs as it is printed, against one real service."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.processes.platform import Platform
from tests.support.snippets import LANGUAGES, Reader, Snippet, snippets_of
from tests.support.source import chosen

NOT_RUN_MAX = 3
BLOCKS = [snippet for page in chosen(".md") for snippet in snippets_of(page)]
# They run reports with Spark, or start platforms of their own.
SLOW = {"README.md", "docs/getting-started.md", "docs/operating/embedded.md"}
PAGES = [
    pytest.param(page, marks=pytest.mark.check if page in SLOW else ())
    for page in sorted({block.page for block in BLOCKS if block.language in LANGUAGES})
]


@pytest.fixture(scope="module")
def platform(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Platform]:
    """What `headrace up` starts, with short metering windows."""
    with Platform(tmp_path_factory.mktemp("docs"), "--metering-window", "1") as platform:
        yield platform


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("page", PAGES)
def test_every_block_of_a_page_runs_as_printed(
    platform: Platform, page: str, tmp_path: Path
) -> None:
    blocks = [block for block in BLOCKS if block.page == page and not block.reason]
    Reader(platform, platform.profile(), tmp_path).types(blocks)


def test_no_block_is_in_a_language_that_nobody_runs() -> None:
    assert [str(block) for block in BLOCKS if block.language not in LANGUAGES] == []


def test_few_blocks_are_not_run_and_each_says_why() -> None:
    left: list[Snippet] = [block for block in BLOCKS if block.reason]
    assert len(left) <= NOT_RUN_MAX
    assert all(len(block.reason) > 10 for block in left)
