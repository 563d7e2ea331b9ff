"""How values are written in every text format."""

from datetime import UTC, datetime

import pytest

from reports.formats import text_of


@pytest.mark.parametrize(
    ("moment", "text"),
    [
        (datetime(2026, 3, 1, 12, tzinfo=UTC), "2026-03-01T12:00:00Z"),
        (datetime(2026, 3, 1, 12, 0, 0, 70, tzinfo=UTC), "2026-03-01T12:00:00.000070Z"),
        (datetime(999, 1, 2, tzinfo=UTC), "0999-01-02T00:00:00Z"),
    ],
)
def test_a_moment_is_rfc_3339_in_every_year(moment: datetime, text: str) -> None:
    assert text_of("at", moment) == text
