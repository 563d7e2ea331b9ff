"""The pool of the process, as routes get it."""

from typing import Annotated

from fastapi import Depends, Request

from api.node.pool import NodePool


def _nodes(request: Request) -> NodePool:
    nodes: NodePool = request.app.state.nodes
    return nodes


NodesOf = Annotated[NodePool, Depends(_nodes)]
