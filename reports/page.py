"""usage.html: one page that needs nothing else, for people who would rather look than read.

Owns words and layout. Everything that a user could have typed is escaped; there is no script and no
request to anywhere. Exact figures stand beside rounded ones: the page must never be less true than
the CSV. Refuses to compute money.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from pyspark.sql import Row

from reports.chart import bars, bytes_text
from reports.export import Export
from reports.rating import COUNTED_IN, rounded
from reports.style import sheet
from reports.tally import DAYS_A_MONTH, Tally
from reports.usage import STATES

LINES_MAX = 500
PARTITIONS_MAX = 200

_STATE_WORDS = {
    "EXACT": "every stored byte was billed once",
    "OPEN": "exact so far; the newest bytes are billed by the next run",
    "UNVERIFIED": "the log is gone; the closes alone speak",
    "DIFFERENCE": "meter and log disagree",
    "LOG_INCOMPLETE": "part of the log was removed while it was read",
    "GAP": "closes are missing",
    "CONFLICT": "two closes of one id disagree",
}


@dataclass(frozen=True, slots=True)
class Evidence:
    """The proof lines of a run. partitions, findings: rows of usage.reconcile and usage.gaps."""

    input_sha256: str
    complete: bool
    bytes_in_log: int
    bytes_billed: int
    bytes_open: int
    bytes_before_log: int
    partitions: Sequence[Row]
    findings: Sequence[Row]


def usage_page(tally: Tally, export: Export, evidence: Evidence) -> str:
    """The whole document."""
    unit, buckets, sums = tally.buckets()
    body = "".join(
        [
            _heading(tally, evidence),
            _figures(tally, export, evidence),
            _section(f"Ingress per {unit} and topic", bars(unit, buckets, sums)) if sums else "",
            _section("Lines", _lines(tally, export)),
            _section(f"Price book {escape(export.price_book.version)}", _prices(export)),
            _section("Reconciliation: meter against log", _reconciliation(export, evidence)),
            _footer(evidence),
        ]
    )
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f"<title>Usage report</title><style>{sheet()}</style></head>"
        f"<body><main>{body}</main></body></html>\n"
    )


def _heading(tally: Tally, evidence: Evidence) -> str:
    if tally.first is None or tally.last is None:
        period = "No usage was recorded."
    else:
        period = f"{tally.first:%Y-%m-%d %H:%M} to {tally.last:%Y-%m-%d %H:%M} UTC"
    state = (
        '<span class="badge good">✓ complete</span>'
        if evidence.complete
        else '<span class="badge bad">! incomplete: see reconciliation</span>'
    )
    return f"<header><h1>Usage report</h1><p>{period} {state}</p></header>"


def _figures(tally: Tally, export: Export, evidence: Evidence) -> str:
    currency = escape(export.price_book.currency)
    amount, month = tally.total.amount, tally.per_month()
    tiles = [
        ("Amount", f"{currency} {rounded(amount):,}", f"exactly {amount:.9f}"),
        (
            f"At this rate, per {DAYS_A_MONTH} days",
            f"{currency} {rounded(month):,}",
            f"exactly {month:.9f}",
        ),
        ("Billed", bytes_text(evidence.bytes_billed), f"{evidence.bytes_billed:,} bytes"),
        ("In the log", bytes_text(evidence.bytes_in_log), f"{evidence.bytes_in_log:,} bytes"),
        ("Records", f"{tally.total.records:,}", f"{tally.rows:,} rows in usage.csv"),
    ]
    return '<section class="tiles">' + "".join(map(_tile, tiles)) + "</section>"


def _tile(tile: tuple[str, str, str]) -> str:
    label, figure, note = tile
    return (
        f'<div class="tile"><span class="label">{label}</span>'
        f'<span class="figure">{figure}</span><span class="note">{note}</span></div>'
    )


def _lines(tally: Tally, export: Export) -> str:
    order = sorted(tally.lines.items(), key=lambda item: (-item[1].amount, item[0]))
    rows = [
        [
            escape(organization),
            escape(project),
            escape(f"{stream}/{topic}"),
            escape(export.api_keys.get(principal, principal)),
            f"{line.ingress_bytes:,}",
            f"{line.records:,}",
            f"{line.amount:.9f}",
        ]
        for (organization, project, stream, topic, _, principal), line in order[:LINES_MAX]
    ]
    total = tally.total
    foot = [
        "Total",
        "",
        "",
        "",
        f"{total.ingress_bytes:,}",
        f"{total.records:,}",
        f"{total.amount:.9f}",
    ]
    heads = ["Organization", "Project", "Topic", "Key", "Bytes", "Records"]
    return _table([*heads, f"Amount ({escape(export.price_book.currency)})"], rows, 4, foot) + (
        _more(len(order), LINES_MAX, "lines")
    )


def _prices(export: Export) -> str:
    rows = [
        [
            escape(price.meter),
            escape(price.unit),
            f"{price.unit_quantity:,}",
            f"{export.price_book.currency} {price.unit_price.normalize():f}",
            "yes" if price.meter in COUNTED_IN else "not metered yet",
        ]
        for price in export.price_book.prices
    ]
    words = (
        "<p>Amount = quantity &times; price &divide; unit, rounded half-even once per row to 9 "
        "places. Retried duplicates, replication and reads by the service itself cost nothing.</p>"
    )
    return _table(["Meter", "Unit", "Unit holds", "Price per unit", "Metered"], rows, 2) + words


def _reconciliation(export: Export, evidence: Evidence) -> str:
    def place(row: Row) -> str:
        stream, topic = export.topics.get(row["topic_id"] or "", ("", ""))
        return escape(f"{stream}/{topic}" if topic else row["topic_id"] or f"topic {row['topic']}")

    order = sorted(
        evidence.partitions,
        key=lambda row: (STATES.index(row["state"]), row["topic"], row["partition"]),
    )
    rows = [
        [
            place(row),
            str(row["partition"]),
            f"{row['closes']:,}",
            f"{row['bytes_billed']:,}",
            f"{row['bytes_in_log']:,}",
            f"{row['bytes_open']:,}",
            "" if row["bytes_before_log"] is None else f"{row['bytes_before_log']:,}",
            "" if row["difference"] is None else f"{row['difference']:,}",
            f'<span class="state {row["state"].lower()}">{row["state"]}</span>',
        ]
        for row in order[:PARTITIONS_MAX]
    ]
    heads = ["Topic", "Partition", "Closes", "Billed", "In log", "Not yet closed"]
    table = _table([*heads, "Before the log", "Difference", "State"], rows, 1)
    seen = sorted({row["state"] for row in order}, key=STATES.index)
    words = "".join(f"<li><b>{state}</b>: {_STATE_WORDS[state]}</li>" for state in seen)
    missing = "".join(
        f"<li>topic {gap['topic']}, partition {gap['partition']}: closes between sequence "
        f"{gap['after_sequence']} and {gap['next_sequence']} are missing "
        f"(operations {gap['from_op']} to {gap['to_op']})</li>"
        for gap in evidence.findings[:PARTITIONS_MAX]
    )
    return table + _more(len(order), PARTITIONS_MAX, "partitions") + f"<ul>{words}{missing}</ul>"


def _footer(evidence: Evidence) -> str:
    return (
        "<footer><p>Computed from the frozen inputs "
        f"<code>{evidence.input_sha256}</code>. The same inputs give the same bytes; usage.csv, "
        "usage.json and usage.parquet beside this page hold every row. In the log: summed from the "
        "stored batches themselves, never from a meter.</p></footer>"
    )


def _section(title: str, content: str) -> str:
    return f"<section><h2>{title}</h2>{content}</section>"


def _table(
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


def _more(count: int, shown: int, what: str) -> str:
    return f"<p>{count - shown:,} more {what} are in usage.json.</p>" if count > shown else ""
