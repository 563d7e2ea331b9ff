"""What all resources share on their way over HTTP."""

from datetime import UTC, datetime, timedelta, timezone

import pytest

from api.http.resource import format_instant

ZURICH = timezone(timedelta(hours=1))


@pytest.mark.parametrize(
    ("moment", "text"),
    [
        (datetime(2026, 3, 1, 12, tzinfo=UTC), "2026-03-01T12:00:00.000000Z"),
        (datetime(2026, 3, 1, 0, 30, 0, 7, tzinfo=ZURICH), "2026-02-28T23:30:00.000007Z"),
        (datetime(999, 1, 2, tzinfo=UTC), "0999-01-02T00:00:00.000000Z"),
        (datetime(1, 1, 1, tzinfo=UTC), "0001-01-01T00:00:00.000000Z"),
    ],
)
def test_a_moment_is_rfc_3339_in_every_year(moment: datetime, text: str) -> None:
    assert format_instant(moment) == text
