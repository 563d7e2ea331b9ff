"""The settings that `headrace up --set` takes: one table for the check and for the help.

Those of the control plane come from its own settings. Those of the node are listed here, because
the control plane does not import the node; a test compares the two. Ports have an option, and
identifiers are fixed by the first start.
"""

import difflib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from api.settings import Settings
from headrace.errors import ConfigurationInvalid

PORTS: Final = frozenset({"api.port", "node.port", "node.http_port"})
IDENTITY: Final = frozenset(
    {
        "node.cluster_id", "node.node_id", "node.system_organization_id", "node.system_project_id",
    }
)  # fmt: skip
# What headrace.toml of a new folder says; a default of the class would mislead.
_IN_FILE: Final = frozenset({"database.url", "reports.uri", "reports.logs"})


@dataclass(frozen=True, slots=True)
class Setting:
    """A key of headrace.toml."""

    name: str
    meaning: str


_NODE: Final = (
    Setting("node.host", "listen address [default: 127.0.0.1]"),
    Setting("node.advertised_host", "host given to clients [default: node.host]"),
    Setting("node.data_dir", "folder of the node's data"),
    Setting("node.shards", "1 to 64; fixed by the first start [default: 1]"),
    Setting("node.shards_pinned", "pin each shard to a CPU [default: false]"),
    Setting("node.direct_io", "bypass the page cache [default: true]"),
    Setting("node.admin_key_file", "file with the node key"),
    Setting("node.memory_mib", "memory of each shard [default: 256]"),
    Setting("node.journal_mib", "journal of each shard; 0: automatic [default: 0]"),
    Setting("node.partitions_max", "partitions of each shard; 0: automatic [default: 0]"),
    Setting("node.drain_seconds", "maximum time to complete calls at exit [default: 10]"),
    Setting("node.log_level", "debug, info, warning or error [default: info]"),
    Setting("metering.window_seconds", "1 to 60, a divisor of 60 [default: 60]"),
)


def _of_control_plane() -> tuple[Setting, ...]:
    found = []
    for section, model in Settings.model_fields.items():
        for key, field in getattr(model.annotation, "model_fields", {}).items():
            name = f"{section}.{key}"
            is_plain = field.default not in ("", None) and name not in _IN_FILE
            default = f" [default: {field.default}]" if is_plain else ""
            if section != "node" and name not in PORTS:
                found.append(Setting(name, f"{field.description}{default}"))
    return tuple(found)


SETTINGS: Final = (*_of_control_plane(), *_NODE)
# Click keeps the lines of a paragraph that begins with \b.
HELP: Final = "\b\nSettings for --set:\n" + "\n".join(
    f"  {each.name:27} {each.meaning}" for each in SETTINGS
)


def overrides_of(settings: Sequence[str]) -> dict[str, str]:
    """The environment variables for `SECTION.KEY=VALUE`, each.

    :raises ConfigurationInvalid: one has another form, or names no setting.
    """
    overrides = {}
    for setting in settings:
        name, equals, value = setting.partition("=")
        section, dot, key = name.partition(".")
        if not (equals and dot and section and key):
            raise ConfigurationInvalid(
                f"--set {setting!r} is not SECTION.KEY=VALUE", hint="Example: node.shards=2"
            )
        _check_name(name.lower())
        overrides[f"HEADRACE_{section.upper()}__{key.upper()}"] = value
    return overrides


def _check_name(name: str) -> None:
    known = [each.name for each in SETTINGS]
    if name in known:
        return
    near = difflib.get_close_matches(name, known, n=1)
    hint = f"Did you mean {near[0]}?" if near else "List them with: headrace up --help"
    if name in PORTS:
        hint = "Use --port."
    elif name in IDENTITY:
        hint = "The first start of a folder sets it."
    raise ConfigurationInvalid(f"--set cannot set {name}", hint=hint)
