"""`headrace`: the tree of verbs, exit codes, and errors that say what next.

Verbs are imported when they are used. Exit codes:

    0 ok            3 not found     6 quota or rate             9 some records failed
    1 failed        4 not allowed   7 unreachable or too late   130 interrupted
    2 usage         5 conflict      8 invalid
"""

from __future__ import annotations

import difflib
import importlib
import importlib.metadata
import os
import sys

import click
from click.shell_completion import shell_complete

from headrace import errors
from headrace.cli.options import shared
from headrace.cli.output import note
from headrace.version import VERSION

_VERBS = {
    "org": ("headrace.cli.commands.organizations:org", "Manage organizations."),
    "project": ("headrace.cli.commands.projects:project", "Manage projects."),
    "stream": ("headrace.cli.commands.streams:stream", "Manage streams, the namespaces of topics."),
    "topic": ("headrace.cli.commands.topics:topic", "Manage topics and their records."),
    "key": ("headrace.cli.commands.keys:key", "Manage API keys."),
    "hold": ("headrace.cli.commands.holds:hold", "Manage legal holds."),
    "group": ("headrace.cli.commands.groups:group", "Inspect consumer groups and their lag."),
    "node": ("headrace.cli.commands.nodes:node", "Inspect nodes (operators only)."),
    "produce": (
        "headrace.cli.commands.produce:produce",
        "Send lines from stdin or files to a topic.",
    ),
    "consume": ("headrace.cli.commands.consume:consume", "Print records from topics."),
    "explain": (
        "headrace.cli.commands.explain:explain",
        "Explain an object's state and next action.",
    ),
    "usage": ("headrace.cli.commands.usage:usage", "Show usage and cost."),
    "invoice": ("headrace.cli.commands.invoices:invoice", "Show monthly invoices."),
    "report": ("headrace.cli.commands.report:report", "Run, list and verify reports."),
    "retention": ("headrace.cli.commands.retention:retention", "Show past and upcoming deletions."),
    "profile": ("headrace.cli.commands.profiles:profile", "Manage connection profiles."),
    "config": (
        "headrace.cli.commands.configuration:config",
        "Show where configuration values come from.",
    ),
    "completion": (
        "headrace.cli.commands.completion:completion",
        "Print a shell completion script.",
    ),
    "version": ("headrace.cli.commands.version:version", "Print version information."),
}
_SERVER_VERBS = {
    "up": "Start a control plane and a node on this machine.",
    "down": "Stop the control plane and the node.",
}

_EXIT_CODES: tuple[tuple[type[errors.HeadraceError], int], ...] = (
    (errors.NotFound, 3),
    (errors.AccessDenied, 4),
    (errors.Conflict, 5),
    (errors.QuotaExceeded, 6),
    (errors.Throttled, 6),
    (errors.Retryable, 7),
    (errors.Invalid, 8),
)
FAILED, USAGE, PARTIAL, INTERRUPTED = 1, 2, 9, 130
COMPLETION_VARIABLE = "_HEADRACE_COMPLETE"


def exit_code_of(error: errors.HeadraceError) -> int:
    """The exit code for an error."""
    return next((code for cls, code in _EXIT_CODES if isinstance(error, cls)), FAILED)


class PartialFailure(errors.HeadraceError):
    """Some records were sent, others not."""

    code = "PARTIAL"


class Tree(click.Group):
    """A group with the shared options that answers a wrong verb with the nearest right one."""

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """Own parameters and the shared ones."""
        return [*shared(), *super().get_params(ctx)]

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the verb; raise a usage error with a suggestion when there is none."""
        name = args[0]
        command = self.get_command(ctx, name)
        if command is not None:
            return name, command, args[1:]
        near = difflib.get_close_matches(name, self.list_commands(ctx), n=1)
        meant = f' Did you mean "{near[0]}"?' if near else ""
        raise click.UsageError(f'No such command: "{name}".{meant}', ctx)


def _tell_version(context: click.Context, parameter: click.Parameter, value: bool) -> None:
    if value:
        click.echo(f"headrace {VERSION}")
        context.exit()


class Root(Tree):
    """The tree's root: own verbs by name, the server's through the entry-point group."""

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """The shared options, --version and --help."""
        version = click.Option(
            ["--version"],
            is_flag=True,
            expose_value=False,
            is_eager=True,
            callback=_tell_version,
            help="Print the version and exit.",
        )
        return [version, *super().get_params(ctx)]

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Every verb, the server's too."""
        return [*_VERBS, *_SERVER_VERBS]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the module of a verb."""
        if cmd_name in _VERBS:
            return _load(_VERBS[cmd_name][0])
        for entry in importlib.metadata.entry_points(group="headrace.commands", name=cmd_name):
            found = entry.load()
            if isinstance(found, click.Command):
                return found
        return _missing(cmd_name) if cmd_name in _SERVER_VERBS else None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The list of verbs, without importing one."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in _VERBS.items()])
        with formatter.section("Server commands (headrace-server)"):
            formatter.write_dl(list(_SERVER_VERBS.items()))


def _load(target: str) -> click.Command:
    module, _, name = target.partition(":")
    found = getattr(importlib.import_module(module), name)
    assert isinstance(found, click.Command)
    return found


def _missing(name: str) -> click.Command:
    def run() -> None:
        raise errors.ServerMissing(
            f"`headrace {name}` requires the server, which is not installed",
            hint="Install headrace-server: pip install headrace-server",
        )

    return click.Command(
        name,
        callback=run,
        short_help=_SERVER_VERBS[name],
        context_settings={"ignore_unknown_options": True, "allow_extra_args": True},
    )


root = Root(
    "headrace",
    help="""Manage Headrace topics, produce and consume records, and inspect usage and cost.

\b
Examples:
  headrace topic create orders --partitions 4
  seq 3 | headrace produce orders
  headrace consume orders --from start -e -o jsonl
""",
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)


def run(arguments: list[str] | None = None) -> int:
    """Run one command line. Returns the exit code; prints errors to stderr."""
    try:
        if instruction := os.environ.get(COMPLETION_VARIABLE):
            return shell_complete(root, {}, "headrace", COMPLETION_VARIABLE, instruction)
        # Not root.main: that would print a line on Ctrl-C and make a closed pipe a failure.
        given = sys.argv[1:] if arguments is None else list(arguments)
        with root.make_context("headrace", given) as context:
            root.invoke(context)
        sys.stdout.flush()
    except click.exceptions.Exit as done:
        return done.exit_code
    except (click.exceptions.Abort, KeyboardInterrupt):
        return INTERRUPTED
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except PartialFailure as error:
        note(f"error: {error}")
        return PARTIAL
    except errors.HeadraceError as error:
        note(f"error: {error}")
        return exit_code_of(error)
    except UnicodeEncodeError as error:
        # Bytes of an argument that are no UTF-8: no name and no key is made of such.
        wrong = error.object[error.start : error.end].encode("utf-8", "surrogateescape")
        byte = f"0x{wrong[:1].hex()}"
        note(f"error: Invalid UTF-8 in an argument: byte {byte}. Encode the argument as UTF-8.")
        return USAGE
    except BrokenPipeError:
        # The reader closed the pipe. Python would report it again at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:
        # A folder that is not ours, a full disk: of this machine, and no fault of the program.
        about = f"{error.filename}: " if error.filename else ""
        note(f"error: {about}{error.strerror or error}.")
        return FAILED
    return 0


def main() -> None:
    """The entry point of the script `headrace`."""
    raise SystemExit(run())
