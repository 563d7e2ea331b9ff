"""Opens a node's data directory: engine, spools, boot number, incarnation.

Owns the errors when one of them cannot be used. Refuses to repair: an operator must inspect a
changed directory.
"""

import struct
from pathlib import Path
from typing import Final, NamedTuple

from dataplane.evidence.boot import Boot, BootDamaged
from dataplane.evidence.spool import Spool, SpoolDamaged
from dataplane.settings import AdminKey, NodeSettings
from native.engine import Engine, EngineConfig, EngineError

MIB: Final = 1024 * 1024

# node.identity: u64 node_incarnation at byte 24 (docs/internals/log-format.md).
_INCARNATION: Final = struct.Struct("<24xQ")


class NodeUnusable(Exception):
    """The node cannot start here; the text says what is wrong and what to do."""


class Spools(NamedTuple):
    """What waits to be published, each in a folder of its own."""

    usage: Spool
    retention: Spool


def open_engine(settings: NodeSettings, admin_key: AdminKey) -> Engine:
    """Open the data directory and recover every shard. Blocks."""
    section = settings.node
    config = EngineConfig(
        data_path=section.data_dir,
        cluster_id=section.cluster_id,
        node_id=section.node_id,
        admin_key_id=admin_key.public_id,
        admin_sha256=admin_key.sha256,
        host=section.host,
        port=section.port,
        shards=section.shards,
        shards_pinned=section.shards_pinned,
        direct_io=section.direct_io,
        journal_bytes=section.journal_mib * MIB,
        memory_bytes=section.memory_mib * MIB,
        metering_window_s=settings.metering.window_seconds,
        partitions_max=section.partitions_max,
    )
    try:
        return Engine(config)
    except EngineError as error:
        raise NodeUnusable(
            f"the data directory {section.data_dir} cannot be used: {error}"
        ) from error


def open_spools(data_dir: Path) -> Spools:
    """Open both, or none. Blocks."""
    usage = _open_spool(data_dir / "spool", "usage")
    try:
        return Spools(usage, _open_spool(data_dir / "spool-retention", "retention"))
    except NodeUnusable:
        usage.close()
        raise


def _open_spool(folder: Path, name: str) -> Spool:
    try:
        return Spool(folder)
    except (SpoolDamaged, OSError) as error:
        raise NodeUnusable(f"the {name} spool cannot be used: {error}") from error


def open_boot(data_dir: Path) -> Boot:
    """The boot number of this start."""
    try:
        return Boot(data_dir)
    except (BootDamaged, OSError) as error:
        raise NodeUnusable(f"the boot number cannot be read: {error}") from error


def read_incarnation(data_dir: Path) -> int:
    """The node's incarnation, as the engine wrote it when it formatted the directory."""
    identity = (data_dir / "node.identity").read_bytes()
    return int(_INCARNATION.unpack_from(identity)[0])
