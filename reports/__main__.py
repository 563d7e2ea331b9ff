"""`python -m reports`: one run from a command line; the outcome is one line of JSON.

    python -m reports usage --run RUN --api URL --bootstrap HOST:PORT --uri DIR --master local[*]
    python -m reports usage --export FILE --bootstrap HOST:PORT --uri DIR --master local[*]
    python -m reports usage --inputs SHA256 --uri DIR --master local[*]
    python -m reports retention ..             the same three forms
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
from collections.abc import Callable, Sequence
from pathlib import Path

from reports.control import RunClient, run_client
from reports.errors import (
    EXIT_PUBLISHED,
    ArgumentError,
    InputError,
    ReportError,
    folder_trouble,
    found_in,
)
from reports.files import root_of
from reports.input.export import export_of

NODE_KEY = "HEADRACE_NODE_KEY"
RUN_TOKEN = "HEADRACE_RUN_TOKEN"
_KINDS = {
    "usage": "usage per hour, topic and key, priced",
    "retention": "what was deleted, what will be, and what breaks its promise",
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit status."""
    chosen = _parser().parse_args(arguments)
    began = time.monotonic()
    outcome: dict[str, object] = {} if chosen.command == "warm" else {"run": chosen.run}
    try:
        outcome |= _COMMANDS[chosen.command](chosen)
        status = EXIT_PUBLISHED
    except Exception as failure:  # noqa: BLE001 - the outcome line is owed whatever happened
        error = failure if isinstance(failure, ReportError) else found_in(str(failure))
        if error is None:
            traceback.print_exc()
            error = folder_trouble(failure)
        if error is None:
            error = ReportError("UNEXPECTED", f"{type(failure).__name__}.", "See standard error.")
        outcome |= {"outcome": "failed", "code": error.code, "message": error.message}
        outcome["hint"] = error.hint
        status = error.exit_status
    outcome["seconds"] = round(time.monotonic() - began, 1)
    print(json.dumps(outcome, ensure_ascii=False), flush=True)
    return status


def _usage(chosen: argparse.Namespace) -> dict[str, object]:
    from reports.run import run_usage

    client, answer = _answer(chosen)
    report = run_usage(
        root_of(chosen.uri),
        None if answer is None else export_of(answer),
        master=chosen.master,
        bootstrap=chosen.bootstrap,
        key_variable=NODE_KEY,
        inputs=chosen.inputs,
    )
    return _published(client, report.manifest)


def _retention(chosen: argparse.Namespace) -> dict[str, object]:
    from reports.retention.export import retention_export_of
    from reports.retention_run import run_retention

    client, answer = _answer(chosen)
    report = run_retention(
        root_of(chosen.uri),
        None if answer is None else retention_export_of(answer),
        master=chosen.master,
        bootstrap=chosen.bootstrap,
        key_variable=NODE_KEY,
        inputs=chosen.inputs,
    )
    return _published(client, report.manifest)


def _published(client: RunClient | None, manifest: dict[str, object]) -> dict[str, object]:
    if client is not None:
        client.put_result(manifest)
    shown = ("input_sha256", "path", "complete", "totals")
    return {"outcome": "published", **{name: manifest[name] for name in shown}}


def _answer(chosen: argparse.Namespace) -> tuple[RunClient | None, object]:
    """Who wants the result, and what the control plane exported; None: an archive has it."""
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
        return client, client.inputs()
    try:
        return None, json.loads(Path(chosen.export).read_bytes())
    except (OSError, ValueError) as failure:
        raise InputError(
            "EXPORT_INVALID",
            f"{chosen.export} cannot be read as JSON: {failure}.",
            "Check the file.",
        ) from failure


def _warm(chosen: argparse.Namespace) -> dict[str, object]:
    from reports.class_data_archive import warm

    return {"outcome": "warmed", "path": str(warm())}


_COMMANDS: dict[str, Callable[[argparse.Namespace], dict[str, object]]] = {
    "usage": _usage,
    "retention": _retention,
    "warm": _warm,
}


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m reports", description="Headrace reports")
    commands = parser.add_subparsers(dest="command", required=True)
    for name, words in _KINDS.items():
        kind = commands.add_parser(name, help=words)
        kind.add_argument("--run", default="", help="the run whose inputs and result these are")
        kind.add_argument("--api", default="", help="the control plane's address")
        kind.add_argument("--bootstrap", default="", help="host:port of the cluster's nodes")
        kind.add_argument("--uri", required=True, help=f"folder of inputs/ and {name}/")
        kind.add_argument("--master", required=True, help="Spark master, for example local[*]")
        kind.add_argument("--export", default="", help="the export from a file, without --run")
        kind.add_argument("--inputs", default="", help="SHA-256 of frozen inputs to compute again")
    commands.add_parser("warm", help="make the class archive that quickens the start of Spark")
    return parser


if __name__ == "__main__":
    sys.exit(main())
