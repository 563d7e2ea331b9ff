"""Which shard owns a partition is known in one place of the node's host.

`PartitionClient` will send a request to another node once partitions have replicas. Nothing else in
the host may count shards, compute an owner or build a frame for a partition.
"""

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from tests.support.source import chosen, report, tree

ROOM: Final = "dataplane/engine/"
PLACEMENT: Final = {"owner_of", "pack_partition", "shards_count"}


def _names(node: ast.AST) -> Iterator[str]:
    """What a node of the syntax tree names."""
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name) | ast.arg(arg=name):
            yield name.lstrip("_")
        case ast.keyword(arg=str(name)) | ast.alias(name=name):
            yield name.lstrip("_")


def _mentions(path: Path) -> Iterator[str]:
    for node in ast.walk(tree(path)):
        for name in PLACEMENT.intersection(_names(node)):
            yield f"{path}:{getattr(node, 'lineno', 0)}: {name}: ask PartitionClient instead"
        match node:
            case ast.Call(func=ast.Name(id="Frame"), args=positional, keywords=named):
                if len(positional) > 1 or any(each.arg == "shard" for each in named):
                    yield f"{path}:{node.lineno}: a frame for one shard: ask PartitionClient"


def test_only_the_engine_s_room_knows_where_a_partition_is() -> None:
    modules = chosen(".py", under="dataplane/")
    outside = [path for path in modules if not path.as_posix().startswith(ROOM)]
    assert len(outside) < len(modules)
    report([found for path in outside for found in _mentions(path)])
