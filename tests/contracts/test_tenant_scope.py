"""Every statement over a table of tenants goes through `api/auth/scope.py`, or is named here with
the reason why it does not.

A table of tenants has a column `org_id`. A statement goes through the scope if it is written inside
`visible_to(select(Topic), Topic, caller)`, or `of_organization(...)`. Which rows that leaves is
another test's: tests/api/auth/test_scope.py, and test_two_organizations.py for what is served.
"""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import api.db.tables
from tests.support.source import chosen, report, tree

SCOPE: Final = Path("api/auth/scope.py")
FILTERS: Final = ("visible_to", "of_organization")
STATEMENTS: Final = ("select", "update", "delete", "exists")
CLAUSES: Final = ("select_from", "join", "outerjoin")

TABLES: Final = {each.class_.__name__: each for each in api.db.tables.Base.registry.mappers}
TENANTS: Final = {name for name, mapper in TABLES.items() if "org_id" in mapper.columns}
OTHERS: Final = TABLES.keys() - TENANTS

ENGINE: Final = "workers look at the objects of every organization"
FOUND: Final = "one object, which the guard found to be the caller's"
INSIDE: Final = "what belongs to an object that was found to be the caller's, whoever put it there"
REPORT: Final = "a report is over the whole service; its rows are filtered when they are read"
SERVICE: Final = "what holds for the whole service: a name that only one has, what has expired"

# A room, a module or a function.
EXCEPTIONS: Final = {
    "api/bootstrap/": "a first start has no caller",
    "api/embedded/": "an embedded service looks after itself and has no caller",
    "api/reconcile/": ENGINE,
    "api/api_keys/reconciler.py:": ENGINE,
    "api/auth/guard.py:authenticate": "finds out who the caller is",
    "api/clusters/service.py:create_cluster": SERVICE,
    "api/clusters/service.py:only_cluster": SERVICE,
    "api/db/locks.py:locked": FOUND,
    "api/deletion/mark.py:running_delete": INSIDE,
    "api/explain/steps.py:holding": INSIDE,
    "api/explain/steps.py:requests": INSIDE,
    "api/holds/reconciler.py:": ENGINE,
    "api/holds/service.py:_check_room": INSIDE,
    "api/holds/service.py:_loss": INSIDE,
    "api/holds/service.py:hold_bodies": INSIDE,
    "api/http/idempotency.py:run_once": SERVICE,
    "api/invoices/service.py:_remove": REPORT,
    "api/invoices/service.py:load_invoices": REPORT,
    "api/live/observation.py:observe": "looks for all callers at once; each is shown its own part",
    "api/node/addresses.py:": "nodes are asked for the sake of objects that were found",
    "api/nodes/service.py:register_node": INSIDE,
    "api/organizations/service.py:create_organization": SERVICE,
    "api/projects/deletion.py:": INSIDE,
    "api/reports/reconciler.py:": ENGINE,
    "api/reports/service.py:_lifecycle": REPORT,
    "api/reports/service.py:inputs_of": REPORT,
    "api/retention/inputs.py:": REPORT,
    "api/retention/loader.py:": REPORT,
    "api/sessions/service.py:": "the console's own sessions, of whichever organization",
    "api/streams/deletion.py:topics_of": INSIDE,
    "api/streams/service.py:create_stream_row": INSIDE,
    "api/topics/holds.py:": INSIDE,
    "api/topics/partition_hours.py:end_span": INSIDE,
    "api/topics/purge.py:_check_free": INSIDE,
    "api/topics/retention_plan.py:shortening_of": INSIDE,
    "api/topics/service.py:_check_spec": "counts the nodes of a cluster, which all may use",
    "api/topics/service.py:_replace": FOUND,
    "api/topics/service.py:_stream_names": "the streams of topics that were found",
    "api/topics/service.py:create_topic": INSIDE,
    "api/usage/loader.py:": REPORT,
    "api/usage/service.py:_check_meter": "names of meters, which are the same for all",
}


@dataclass(frozen=True, slots=True)
class Statement:
    """A statement over a table of tenants, and whether it goes through the scope."""

    path: Path
    line: int
    function: str
    scoped: bool

    @property
    def place(self) -> str:
        """Where it stands, as exceptions name it."""
        return f"{self.path.as_posix()}:{self.function}"


def _function(node: ast.AST) -> str:
    """The name of the function that a call calls, if it is a plain name."""
    match node:
        case ast.Call(func=ast.Name(id=name)):
            return name
    return ""


def _method(node: ast.AST) -> str:
    match node:
        case ast.Call(func=ast.Attribute(attr=name)):
            return name
    return ""


def _names(node: ast.AST) -> set[str]:
    return {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}


def _entities(call: ast.Call, above: list[ast.AST]) -> set[str]:
    """The tables that a statement may be over; a name that is not known here counts as one."""
    found = set[str]()
    for argument in call.args:
        names = _names(argument)
        found |= names & TENANTS if "func" in names else names - OTHERS
    for outer in above:
        if _method(outer) in CLAUSES:
            found |= _names(outer) & TENANTS
    return found


def _scoped(call: ast.Call, entities: set[str], above: list[ast.AST]) -> bool:
    """Whether a filter of the scope stands around a statement, and is told one of its tables."""
    inner: ast.AST = call
    for outer in above:
        if isinstance(outer, ast.Call) and _function(outer) in FILTERS and outer.args[0] is inner:
            return bool(_names(outer.args[1]) & entities)
        inner = outer
    return False


def _statements(path: Path) -> Iterator[Statement]:
    def visit(node: ast.AST, above: list[ast.AST], function: str) -> Iterator[Statement]:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            function = node.name
        if isinstance(node, ast.Call) and _function(node) in STATEMENTS:
            entities = _entities(node, above)
            if entities:
                scoped = _scoped(node, entities, above)
                yield Statement(path, node.lineno, function, scoped)
        for inner in ast.iter_child_nodes(node):
            yield from visit(inner, [node, *above], function)

    yield from visit(tree(path), [], "")


def _all() -> list[Statement]:
    return [each for path in chosen(".py", under="api/") for each in _statements(path)]


def _excepts(exception: str, statement: Statement) -> bool:
    whole = exception.endswith(("/", ":"))
    place = statement.place
    return place.startswith(exception) if whole else place == exception


def test_every_statement_over_a_table_of_tenants_is_scoped_or_named_with_a_reason() -> None:
    report(
        [
            f"{each.path}:{each.line}: write visible_to(...) around it, or name {each.place}"
            for each in _all()
            if each.path != SCOPE
            and not each.scoped
            and not any(_excepts(exception, each) for exception in EXCEPTIONS)
        ]
    )


def test_every_exception_is_needed() -> None:
    found = [each for each in _all() if not each.scoped]
    report(
        [
            f"{exception} is not needed any more"
            for exception in EXCEPTIONS
            if not any(_excepts(exception, each) for each in found)
        ]
    )


def _is_organization(node: ast.AST) -> bool:
    """Whether it is the column that says whose a row is."""
    match node:
        case ast.Attribute(value=ast.Name(id=table), attr="org_id"):
            return table in TENANTS
    return False


def _is_column(node: ast.AST) -> bool:
    match node:
        case ast.Attribute(value=ast.Name(id=table)):
            return table in TENANTS
    return False


def _is_of_caller(node: ast.AST) -> bool:
    return isinstance(node, ast.Attribute) and "caller" in ast.unparse(node.value)


def _typed_by_hand(node: ast.AST) -> bool:
    """Whether it is a filter by the organization, or by what a caller is confined to."""
    match node:
        case ast.Compare(left=left, comparators=others):
            sides = [left, *others]
            column, said = any(map(_is_column, sides)), any(map(_is_of_caller, sides))
            return any(map(_is_organization, sides)) or (column and said)
        case ast.Call(func=ast.Attribute(value=column, attr="in_")):
            return _is_organization(column)
        case ast.Call(func=ast.Attribute(attr="filter_by"), keywords=members):
            return any(each.arg == "org_id" or _is_of_caller(each.value) for each in members)
    return False


def test_no_filter_of_tenants_is_typed_by_hand() -> None:
    report(
        [
            f"{path}:{node.lineno}: {ast.unparse(node)}; use visible_to or of_organization"
            for path in chosen(".py", under="api/")
            if path != SCOPE
            for node in ast.walk(tree(path))
            if isinstance(node, ast.expr) and _typed_by_hand(node)
        ]
    )
