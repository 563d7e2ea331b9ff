"""The style sheet of report pages."""

import re

from reports.output.style import sheet


def test_paper_is_never_dark() -> None:
    dark = re.findall(r"@media ([^{]*prefers-color-scheme: dark\))", sheet())
    # Light ink on a white sheet would be unreadable.
    assert dark == ["screen and (prefers-color-scheme: dark)"]
