"""The pieces that every report page is made of: document, sections, tiles, tables.

Owns the frame; nothing is fetched and nothing runs. Refuses to escape: who puts a user's text into
a cell escapes it there.
"""

from collections.abc import Sequence

from reports.output.style import sheet


def document(title: str, body: str) -> str:
    """A whole page around its body."""
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f"<title>{title}</title><style>{sheet()}</style></head>"
        f"<body><main>{body}</main></body></html>\n"
    )


def section(title: str, content: str) -> str:
    """A card with a heading."""
    return f"<section><h2>{title}</h2>{content}</section>"


def tiles(figures: Sequence[tuple[str, str, str]]) -> str:
    """Large figures side by side: (label, figure, note)."""
    return '<section class="tiles">' + "".join(map(_tile, figures)) + "</section>"


def table(
    heads: Sequence[str], rows: Sequence[Sequence[str]], words: int, foot: Sequence[str] = ()
) -> str:
    """A table whose first `words` columns are text and the others figures."""

    def cells(tag: str, row: Sequence[str]) -> str:
        return "".join(
            f"<{tag}>{cell}</{tag}>" if index < words else f'<{tag} class="n">{cell}</{tag}>'
            for index, cell in enumerate(row)
        )

    body = "".join(f"<tr>{cells('td', row)}</tr>" for row in rows)
    last = f"<tfoot><tr>{cells('td', foot)}</tr></tfoot>" if foot else ""
    return (
        f'<div class="wide"><table><thead><tr>{cells("th", heads)}</tr></thead>'
        f"<tbody>{body}</tbody>{last}</table></div>"
    )


def more(count: int, shown: int, what: str, file: str) -> str:
    """How many are left out here, and where they are."""
    return f"<p>{count - shown:,} more {what} are in {file}.</p>" if count > shown else ""


def badge(good: bool, text: str) -> str:
    """A state beside a heading; the sign says it without colour."""
    name, sign = ("good", "✓") if good else ("bad", "!")
    return f'<span class="badge {name}">{sign} {text}</span>'


def _tile(tile: tuple[str, str, str]) -> str:
    label, figure, note = tile
    return (
        f'<div class="tile"><span class="label">{label}</span>'
        f'<span class="figure">{figure}</span><span class="note">{note}</span></div>'
    )
