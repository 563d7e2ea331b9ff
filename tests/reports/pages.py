"""A report's page as a browser would see it: its tags, what it would fetch, and its tables."""

from html.parser import HTMLParser
from pathlib import Path


class Page(HTMLParser):
    """One page. `tables`: the rows of cells (of body and foot) below each heading, as text."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.text = path.read_text(encoding="utf-8")
        self.tags: list[str] = []
        self.fetched: list[str] = []
        self.tables: dict[str, list[list[str]]] = {}
        self._heading = ""
        self._inside: list[str] = []
        self.feed(self.text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note it."""
        self.tags.append(tag)
        self.fetched += [name for name, _ in attrs if name in ("src", "href", "srcset", "action")]
        if tag in ("h2", "td"):
            self._inside.append(tag)
        if tag == "h2":
            self._heading = ""
        elif tag == "tr":
            self.tables.setdefault(self._heading, []).append([])
        elif tag == "td":
            self.tables[self._heading][-1].append("")

    def handle_endtag(self, tag: str) -> None:
        """A cell or a heading has ended; a row of heads has none."""
        if tag in ("h2", "td"):
            self._inside.pop()
        elif tag == "table":
            self.tables[self._heading] = [row for row in self.tables[self._heading] if row]

    def handle_data(self, data: str) -> None:
        """Text of a cell or a heading."""
        if self._inside == ["h2"]:
            self._heading += data
        elif self._inside == ["td"]:
            self.tables[self._heading][-1][-1] += data
