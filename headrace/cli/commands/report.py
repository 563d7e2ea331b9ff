"""`headrace report run|list|verify`."""

from __future__ import annotations

from pathlib import Path

import click

from headrace import evidence
from headrace.cli.main import Tree
from headrace.cli.options import Verb, client, printer
from headrace.cli.output import Column, Row, note, path
from headrace.cli.watch import WatchedVerb

COLUMNS = (
    Column("id", path("id")),
    Column("kind", path("kind")),
    Column("state", path("state")),
    Column("created", path("created_at")),
    Column("finished", path("finished_at")),
    Column("rows", path("result", "totals", "rows"), right=True),
    Column("amount", path("result", "totals", "amount_exact"), right=True),
    Column("currency", path("result", "totals", "currency")),
    Column("superseded_by", path("result", "superseded_by")),
    Column("input_sha256", path("result", "input_sha256"), wide=True),
    Column("path", path("result", "path"), wide=True),
)


CHECKS = (
    Column("check", path("name")),
    Column("state", path("state")),
    Column("detail", path("detail")),
)


@click.group(cls=Tree)
def report() -> None:
    """Run, list and verify reports."""


@report.command(cls=Verb)
@click.argument("kind", type=click.Choice(["usage", "retention"]), default="usage")
@click.option("--wait", is_flag=True, help="Wait until the report has succeeded or failed.")
@click.option(
    "--timeout",
    default="10m",
    show_default=True,
    metavar="DURATION",
    help="Maximum time to wait.",
)
def run(kind: str, wait: bool, timeout: str) -> None:
    """Start a usage report (default) or a retention report."""
    with client() as c:
        started = c.admin.run_report(
            kind, wait=wait, timeout=timeout, changed=_tell if wait else None
        )
    printer().done(started, COLUMNS, name="id")
    if not wait:
        note("The report runs in the background. Check it with: headrace report list")
        return
    later = path("result", "superseded_by")(started)
    if later:
        note(f"The result is not shown: {later} started later and was published first.")
    folder = path("result", "path")(started)
    files = path("result", "files")(started)
    names = (
        [file.get("name") for file in files if isinstance(file, dict)]
        if isinstance(files, list)
        else []
    )
    if folder and f"{kind}.html" in names:
        note(f"{folder}/{kind}.html")


def _tell(run: Row) -> None:
    """One line whenever the state is another; it comes from the I/O thread."""
    note(f"{path('id')(run)} {str(path('state')(run)).lower()}")


@report.command("list", cls=WatchedVerb)
def list_reports() -> None:
    """List report runs."""
    with client() as c:
        found = c.admin.reports()
    printer().many(found, COLUMNS, name="id")


@report.command(cls=Verb)
@click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option(
    "--public-key", default="", metavar="HEX", help="Public key that the signatures must match."
)
@click.option(
    "--head",
    "heads",
    multiple=True,
    metavar="HEX",
    help="SHA-256 of a run that the ledger must contain. Repeatable.",
)
def verify(folder: Path, public_key: str, heads: tuple[str, ...]) -> None:
    """Verify one run, or all runs, in FOLDER: files, checksums, inputs, signature and chain.

    The verification is offline. The exit code is 1 if a check fails.

    To detect that the newest runs were removed from the ledger, pass --head with a value stored
    elsewhere: the last hash of the check "chain", or result.sha256 of `headrace report list`.
    """
    checks = evidence.verify(folder, public_key, heads)
    printer().many([check.row() for check in checks], CHECKS)
    failed = [check.name for check in checks if check.ok is False]
    if failed:
        raise evidence.NotAsPublished(f"Verification of {folder} failed: {', '.join(failed)}")
