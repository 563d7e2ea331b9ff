"""The shape of a JSON document: every path in it with the type of what stands there.

Owns the comparison of a document that tests wrote with one that the product wrote, so that nobody
is shown a page that works with the former only.
"""

from collections.abc import Collection, Iterator


def shape(document: object, at: str = "") -> Iterator[tuple[str, str]]:
    """(path, type) of everything; members of a list share a path, `lines[].line`."""
    if isinstance(document, dict):
        for name, value in document.items():
            yield from shape(value, f"{at}.{name}")
    elif isinstance(document, list):
        for value in document:
            yield from shape(value, f"{at}[]")
    else:
        yield at, type(document).__name__


def strange(told: object, real: object, *, free: Collection[str] = ()) -> set[tuple[str, str]]:
    """Paths and types in `told` that do not occur in `real`. Below the paths `free`, names are
    data. Null is not a separate type where the path is known.
    """
    known = set(shape(real))
    paths = {path for path, _ in known}
    return {
        (path, kind)
        for path, kind in shape(told)
        if (path, kind) not in known
        and not (kind == "NoneType" and path in paths)
        and not any(path.startswith(f"{each}.") for each in free)
    }
