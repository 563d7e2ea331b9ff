"""``update_mask``: which members a patch speaks of, whatever else its body holds. Pure.

Without a mask a patch is merged: what the body names changes. With one, each member the mask names
becomes what the body says of it, and its default if the body says nothing; the rest of the body is
not looked at. ``*`` is every member of the user's.
"""

from collections.abc import Mapping, Set
from typing import Final

from api.http.errors import InvalidRequestError, Violation
from api.topics.schemas import TopicPatch, TopicSpec

MAPS: Final = ("labels", "annotations")
MEMBERS: Final = ("display_name", *MAPS, "spec")
SPEC_PATHS: Final = {f"spec.{name}": name for name in TopicSpec.model_fields}


def masked(patch: TopicPatch, mask: str, present: Mapping[str, Mapping[str, str]]) -> TopicPatch:
    """The merge patch that does what a patch under a mask means.

    :param present: the labels and annotations as they are.
    :raises InvalidRequestError: a path of the mask names no member of the user's.
    """
    paths = _paths(mask)
    sent: dict[str, object] = {}
    if "display_name" in paths:
        sent["display_name"] = patch.display_name
    for name in MAPS:
        if name in paths:
            wanted: Mapping[str, str | None] = getattr(patch, name) or {}
            sent[name] = {**dict.fromkeys(present[name]), **wanted}
    members = {name for path, name in SPEC_PATHS.items() if path in paths or "spec" in paths}
    if members:
        sent["spec"] = _spec(patch.spec, members)
    return TopicPatch.model_construct(_fields_set=set(sent), **sent)


def _spec(spec: TopicSpec | None, members: Set[str]) -> TopicSpec:
    wanted = {name: getattr(spec, name) if spec else None for name in members}
    return TopicSpec.model_construct(_fields_set=set(members), **wanted)


def _paths(mask: str) -> frozenset[str]:
    paths = frozenset(path.strip() for path in mask.split(","))
    if paths == {"*"}:
        return frozenset(MEMBERS)
    unknown = sorted(paths - {*MEMBERS, *SPEC_PATHS})
    if unknown:
        raise InvalidRequestError(
            f"update_mask names no member of a topic: {', '.join(unknown)}.",
            hint=f"It takes * or any of {', '.join((*MEMBERS, *SPEC_PATHS))}.",
            violations=[
                Violation("?update_mask", "UNKNOWN_PATH", "no such member", actual=path)
                for path in unknown
            ],
        )
    return paths
