"""python -m api serve | reconcile | bootstrap | migrate | openapi."""

import argparse
import json
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import uvicorn
from sqlalchemy.exc import DatabaseError

from api.app import create_app
from api.bootstrap.first_run import Options, first_run
from api.db.database import Database
from api.db.exclusive import Exclusive, InUseError
from api.db.schema import SchemaError, check_schema, migrate
from api.embedded.shutdown import Stop
from api.http.listener import Bounds, descriptors, listening
from api.node.addresses import registrations
from api.node.pool import NodePool
from api.settings import Settings, SettingsInvalid
from api.telemetry import configure_logs
from api.workers import Workers

DRAIN_SECONDS = 10
KEEP_ALIVE_SECONDS = 5


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one verb; the exit status is 0, or with one line that says why 1; 2 if no further try
    can end otherwise: a setting, a database of another release."""
    chosen = _parser().parse_args(arguments)
    try:
        settings = Settings.load(chosen.config)
        configure_logs(settings.api.log_level)
        match chosen.verb:
            case "serve":
                return _serve(settings)
            case "reconcile":
                return _reconcile(settings)
            case "bootstrap":
                options = Options(chosen.node_address, chosen.node_file, chosen.renew)
                print(json.dumps(first_run(settings, options), indent=1))
            case "migrate":
                migrate(settings.database.url)
            case "openapi":
                _openapi(settings, chosen.output)
    except (SettingsInvalid, SchemaError) as error:
        print(f"headrace: {error}", file=sys.stderr)
        return 2
    except InUseError as error:
        print(f"headrace: {error}", file=sys.stderr)
        return 1
    except OSError as error:
        print(f"headrace: {error.filename or ''}: {error.strerror}", file=sys.stderr)
        return 1
    except DatabaseError as error:
        print(f"headrace: the database cannot be used: {error.orig}", file=sys.stderr)
        return 1
    return 0


def _serve(settings: Settings) -> int:
    """The API; on SQLite with the workers inside, since one process must hold the database."""
    database = Database(settings.database.url, settings.database.bounds())
    with Exclusive.of(database), _nodes(settings, database) as nodes:
        check_schema(database)
        workers = None
        if database.is_sqlite:
            workers = Workers(settings, database, nodes, _api_url(settings))
        bounds = Bounds(
            settings.api.head_seconds,
            settings.api.body_seconds,
            descriptors(settings.api.connections_max),
        )
        uvicorn.run(
            create_app(settings, database, nodes, workers),
            host=settings.api.host,
            port=settings.api.port,
            log_config=None,
            access_log=False,
            server_header=False,
            http=listening(bounds),
            ws="none",
            timeout_keep_alive=KEEP_ALIVE_SECONDS,
            timeout_graceful_shutdown=DRAIN_SECONDS,
        )
    database.close()
    return 0


def _reconcile(settings: Settings) -> int:
    """The workers alone; any number of such processes may run on PostgreSQL."""
    database = Database(settings.database.url, settings.database.bounds())
    with Exclusive.of(database), _nodes(settings, database) as nodes:
        check_schema(database)
        stopped = Stop()
        stopped.on_signals()
        workers = Workers(settings, database, nodes, _api_url(settings))
        workers.start()
        stopped.wait()
        workers.stop()
    database.close()
    return 0


def _nodes(settings: Settings, database: Database) -> NodePool:
    """The connections of this process to the nodes that are registered."""
    return NodePool(settings.node.admin_key_file, partial(registrations, database))


def _api_url(settings: Settings) -> str:
    """Where a report job finds the control plane: on this host unless the settings say else."""
    return settings.reports.api_url or f"http://{settings.api.host}:{settings.api.port}"


def _openapi(settings: Settings, output: Path | None) -> None:
    """Writes the contract; the database is named and never opened."""
    database = Database("sqlite://")
    app = create_app(settings, database, _nodes(settings, database))
    text = json.dumps(app.openapi(), indent=1, sort_keys=True, ensure_ascii=False) + "\n"
    if output is None:
        print(text, end="")
    else:
        output.write_text(text)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m api", description=__doc__)
    verbs = parser.add_subparsers(dest="verb", required=True)
    for verb, text in (
        ("serve", "the REST API, with the workers inside on SQLite"),
        ("reconcile", "the workers alone"),
        (
            "bootstrap",
            "initialize the schema, the data and the node configuration; prints secrets once",
        ),
        ("migrate", "bring the database to this release's schema"),
        ("openapi", "print the contract"),
    ):
        chosen = verbs.add_parser(verb, help=text)
        chosen.add_argument("--config", type=Path, default=None, help="headrace.toml")
        if verb == "openapi":
            chosen.add_argument("--output", type=Path, default=None, help="file to write")
        elif verb == "bootstrap":
            _bootstrap_options(chosen)
    return parser


def _bootstrap_options(verb: argparse.ArgumentParser) -> None:
    verb.add_argument("--node-address", help="HOST:PORT at which API and clients find the node")
    verb.add_argument("--node-file", type=Path, help="the node's headrace.toml, unless it is there")
    verb.add_argument(
        "--renew", action="store_true", help="another owner key and another console password"
    )


if __name__ == "__main__":
    sys.exit(main())
