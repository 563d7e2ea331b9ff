"""usage.html: the usage report as one self-contained page.

Owns words and layout. Everything that a user could have typed is escaped; there is no script and no
request to anywhere. Exact figures stand beside rounded ones: the page must never be less true than
the CSV. Refuses to compute money.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from pyspark.sql import Row

from reports.billing.reconciliation import Check, Measured
from reports.billing.usage import STATES
from reports.input.export import Export
from reports.input.prices import COUNTED_IN, PriceBook, rounded
from reports.output.chart import bars, bytes_text
from reports.output.markup import badge, document, more, section, table, tiles
from reports.output.page_sums import DAYS_A_MONTH, Tally

LINES_MAX = 500
PARTITIONS_MAX = 200

_STATE_WORDS = {
    "EXACT": "every stored byte was billed exactly once",
    "OPEN": "matches so far; the newest bytes are billed by the next run",
    "UNVERIFIED": "the log was deleted; only meter records remain",
    "DIFFERENCE": "meter and log differ",
    "LOG_INCOMPLETE": "part of the log was deleted while it was read",
    "GAP": "meter records are missing",
    "CONFLICT": "two meter records with one id differ",
}


@dataclass(frozen=True, slots=True)
class Evidence:
    """The proof lines of a run, and what Spark summed beside its rows."""

    input_sha256: str
    complete: bool
    bytes_in_log: int
    bytes_billed: int
    bytes_open: int
    bytes_before_log: int
    measured: Measured

    @property
    def partitions(self) -> Sequence[Row]:
        """Rows of usage.reconcile, one per partition of the cluster."""
        return self.measured.partitions

    @property
    def findings(self) -> Sequence[Row]:
        """Rows of usage.gaps."""
        return self.measured.findings


def usage_page(tally: Tally, export: Export, evidence: Evidence, checks: Sequence[Check]) -> str:
    """The whole document."""
    unit, buckets, sums = tally.buckets()
    body = "".join(
        [
            _heading(tally, evidence),
            _figures(tally, export, evidence),
            section(f"Ingress per {unit} and topic", bars(unit, buckets, sums)) if sums else "",
            section("Usage by topic and key", _lines(tally, export)),
            *(section(_title(book), _prices(book)) for book in reversed(export.books)),
            section("Checks", checks_table(checks)),
            section("Reconciliation: meter against log", _reconciliation(export, evidence)),
            _footer(evidence),
        ]
    )
    return document("Usage report", body)


def checks_table(checks: Sequence[Check]) -> str:
    """Every check with its answer and its figures."""
    rows = [
        [
            _named(check),
            badge(check.ok, "passed" if check.ok else "failed"),
            f'<div class="words">{escape(check.detail)}</div>',
            '<div class="small">'
            + "<br>".join(
                f"{escape(name)} {_grouped(text)}" for name, text in check.figures.items()
            )
            + "</div>",
        ]
        for check in checks
    ]
    return table(["Check", "Result", "Finding", "Details"], rows, 4)


def _named(check: Check) -> str:
    title, name = escape(check.title), escape(check.name)
    return f'<div class="words">{title}</div><div class="small">{name}</div>'


def _grouped(text: str) -> str:
    """Whole numbers in groups of three, for people; anything else as it is."""
    return f"{int(text):,}" if text.isdecimal() else escape(text)


def _heading(tally: Tally, evidence: Evidence) -> str:
    if tally.first is None or tally.last is None:
        period = "No usage was recorded."
    else:
        period = f"{tally.first:%Y-%m-%d %H:%M} to {tally.last:%Y-%m-%d %H:%M} UTC"
    words = "complete" if evidence.complete else "incomplete: see reconciliation"
    state = badge(evidence.complete, words)
    return f"<header><h1>Usage report</h1><p>{period} {state}</p></header>"


def _figures(tally: Tally, export: Export, evidence: Evidence) -> str:
    currency = escape(export.price_book.currency)
    amount = tally.total.amount
    figures = [
        ("Cost", f"{currency} {rounded(amount):,}", f"exact: {amount:.9f}"),
        _per_month(tally, export),
        ("Billed", bytes_text(evidence.bytes_billed), f"{evidence.bytes_billed:,} bytes"),
        ("In the log", bytes_text(evidence.bytes_in_log), f"{evidence.bytes_in_log:,} bytes"),
        ("Records", f"{tally.total.records:,}", f"{tally.rows:,} rows in usage.csv"),
    ]
    return tiles(figures)


def _per_month(tally: Tally, export: Export) -> tuple[str, str, str]:
    title = f"Monthly projection ({DAYS_A_MONTH} days)"
    month = tally.per_month(export.began, export.as_of)
    span = tally.covered(export.began, export.as_of)
    if month is None:
        return title, "not enough data", "less than one hour of usage"
    figure = f"{escape(export.price_book.currency)} {rounded(month):,}"
    words = f"; based on {span[0]:%Y-%m-%d %H:%M} to {span[1]:%Y-%m-%d %H:%M}" if span else ""
    return title, figure, f"exact: {month:.9f}{words}"


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
    return table([*heads, f"Cost ({escape(export.price_book.currency)})"], rows, 4, foot) + (
        "<p>Lines without a key are the cost of the topic itself: its partitions and stored "
        "data.</p>" + more(len(order), LINES_MAX, "lines", "usage.json")
    )


def _title(book: PriceBook) -> str:
    since = f", from {book.starts:%Y-%m-%d %H:%M} UTC" if book.effective_from else ""
    return f"Price book {escape(book.version)}{since}"


def _prices(book: PriceBook) -> str:
    rows = [
        [
            escape(price.meter),
            escape(price.unit),
            f"{price.unit_quantity:,}",
            f"{escape(book.currency)} {price.unit_price.normalize():f}",
            "yes" if price.meter in COUNTED_IN else "not metered yet",
        ]
        for price in book.prices
    ]
    words = (
        "<p>Cost = quantity &times; price &divide; unit size, rounded half-even once per row to 9 "
        "decimal places. Duplicates from retries, replication and reads by the service itself are "
        "free of charge.</p>"
    )
    return table(["Meter", "Unit", "Unit size", "Price per unit", "Metered"], rows, 2) + words


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
    heads = ["Topic", "Partition", "Meter records", "Billed", "In log", "Not yet billed"]
    listed = table([*heads, "Before log start", "Difference", "State"], rows, 1)
    seen = sorted({row["state"] for row in order}, key=STATES.index)
    words = "".join(f"<li><b>{state}</b>: {_STATE_WORDS[state]}</li>" for state in seen)
    missing = "".join(
        f"<li>topic {gap['topic']}, partition {gap['partition']}: meter records between sequence "
        f"{gap['after_sequence']} and {gap['next_sequence']} are missing "
        f"(operations {gap['from_op']} to {gap['to_op']})</li>"
        for gap in evidence.findings[:PARTITIONS_MAX]
    )
    listed += more(len(order), PARTITIONS_MAX, "partitions", "usage.json")
    return f"{listed}<ul>{words}{missing}</ul>"


def _footer(evidence: Evidence) -> str:
    return (
        "<footer><p>Computed from a snapshot of the inputs, "
        f"<code>{evidence.input_sha256}</code>. The same inputs always give identical files. All "
        "rows are in usage.csv, usage.json and usage.parquet next to this page. Bytes in the log "
        "are summed from the stored batches, independently of the meter.</p></footer>"
    )
