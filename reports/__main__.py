"""`python -m reports`: one run from a command line; the outcome is one line of JSON.

    python -m reports usage --run RUN --api URL --bootstrap HOST:PORT --uri DIR --master local[*]
    python -m reports usage --export FILE --bootstrap HOST:PORT --uri DIR --master local[*]
    python -m reports usage --inputs SHA256 --uri DIR --master local[*]
    python -m reports warm

Owns arguments, the environment (HEADRACE_RUN_TOKEN, HEADRACE_NODE_KEY) and exit statuses
(errors.py). Refuses secrets as arguments: they would be in every process list.
"""

import argparse
import json
import os
import sys
import time
import traceback
from collections.abc import Sequence
from pathlib import Path

from reports.control import RunClient, run_client
from reports.errors import (
    EXIT_PUBLISHED,
    ArgumentError,
    InputError,
    ReportError,
    found_in,
)
from reports.export import Export, export_of
from reports.files import root_of

NODE_KEY = "HEADRACE_NODE_KEY"
RUN_TOKEN = "HEADRACE_RUN_TOKEN"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit status."""
    chosen = _parser().parse_args(arguments)
    began = time.monotonic()
    outcome: dict[str, object] = {"run": chosen.run} if chosen.command == "usage" else {}
    try:
        outcome |= (
            {"outcome": "published", **_usage(chosen)} if chosen.command == "usage" else _warm()
        )
        status = EXIT_PUBLISHED
    except Exception as failure:  # noqa: BLE001 - the outcome line is owed whatever happened
        error = failure if isinstance(failure, ReportError) else found_in(str(failure))
        if error is None:
            traceback.print_exc()
            error = ReportError("UNEXPECTED", f"{type(failure).__name__}.", "See standard error.")
        outcome |= {"outcome": "failed", "code": error.code, "message": error.message}
        outcome["hint"] = error.hint
        status = error.exit_status
    outcome["seconds"] = round(time.monotonic() - began, 1)
    print(json.dumps(outcome, ensure_ascii=False), flush=True)
    return status


def _usage(chosen: argparse.Namespace) -> dict[str, object]:
    from reports.run import run_usage

    client, export = _export(chosen)
    report = run_usage(
        root_of(chosen.uri),
        export,
        master=chosen.master,
        bootstrap=chosen.bootstrap,
        key_variable=NODE_KEY,
        inputs=chosen.inputs,
    )
    if client is not None:
        client.put_result(report.manifest)
    shown = ("input_sha256", "path", "complete", "totals")
    return {name: report.manifest[name] for name in shown}


def _export(chosen: argparse.Namespace) -> tuple[RunClient | None, Export | None]:
    if chosen.inputs and not chosen.run:
        return None, None
    if bool(chosen.export) == bool(chosen.run):
        raise ArgumentError(
            "EXPORT_MISSING",
            "Exactly one of --run (with --api) and --export must be given.",
            "A worker passes --run and --api; by hand, pass --export FILE.",
        )
    if chosen.run:
        client = run_client(chosen.api or "", chosen.run, os.environ.get(RUN_TOKEN))
        return client, export_of(client.inputs())
    try:
        return None, export_of(json.loads(Path(chosen.export).read_bytes()))
    except (OSError, ValueError) as failure:
        raise InputError(
            "EXPORT_INVALID",
            f"{chosen.export} cannot be read as JSON: {failure}.",
            "Check the file.",
        ) from failure


def _warm() -> dict[str, object]:
    from reports.warm import warm

    return {"outcome": "warmed", "path": str(warm())}


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m reports", description="Headrace reports")
    commands = parser.add_subparsers(dest="command", required=True)
    usage = commands.add_parser("usage", help="usage per hour, topic and key, priced")
    usage.add_argument("--run", default="", help="the report run whose inputs and result these are")
    usage.add_argument("--api", default="", help="the control plane's address")
    usage.add_argument("--bootstrap", default="", help="host:port of the cluster's nodes")
    usage.add_argument("--uri", required=True, help="folder of inputs/ and usage/")
    usage.add_argument("--master", required=True, help="Spark master, for example local[*]")
    usage.add_argument("--export", default="", help="names and prices from a file, without --run")
    usage.add_argument("--inputs", default="", help="SHA-256 of frozen inputs to compute again")
    commands.add_parser("warm", help="make the class archive that quickens the start of Spark")
    return parser


if __name__ == "__main__":
    sys.exit(main())
