"""How far every group had read every partition: the basis of the unread records.

Owns the questions (ListGroups of every project, then FetchOffsets of its topics) and their bound. A
cluster with more groups x partitions than QUESTIONS_MAX is asked as far as that, and the report
says so: unread records of the others are not known, never taken for none. A group that never
committed on a partition makes no claim on it. Refuses to judge.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

from headrace.evidence import canonical_json
from reports.source.cluster import ClusterReader, Handle

QUESTIONS_MAX = 50_000


@dataclass(frozen=True, slots=True, order=True)
class Commit:
    """`offset` is the next one that the group reads."""

    topic: int
    created_revision: int
    partition: int
    group: str
    offset: int


@dataclass(frozen=True, slots=True)
class Offsets:
    """Every commit that was found; complete: nothing was left unasked."""

    commits: tuple[Commit, ...]
    complete: bool

    def canonical(self) -> bytes:
        """The bytes that are archived and hashed."""
        rows = [asdict(commit) for commit in sorted(self.commits)]
        return canonical_json({"complete": self.complete, "commits": rows})


def offsets_of(document: dict[str, object]) -> Offsets:
    """What `canonical` wrote."""
    rows = document["commits"]
    assert isinstance(rows, list)
    return Offsets(tuple(Commit(**row) for row in rows), document["complete"] is True)


def committed_offsets(cluster: ClusterReader, projects: Mapping[str, Sequence[Handle]]) -> Offsets:
    """Ask the cluster. projects: their topics, by project id."""
    commits: list[Commit] = []
    asked = 0
    for project, mine in sorted(projects.items()):
        for group in cluster.groups(project):
            asked += sum(topic.partitions for topic in mine)
            if asked > QUESTIONS_MAX:
                return Offsets(tuple(sorted(commits)), complete=False)
            for topic in mine:
                for partition in range(topic.partitions):
                    offset = cluster.committed(topic, partition, group.group)
                    if offset is not None:
                        place = (topic.number, topic.created_revision, partition)
                        commits.append(Commit(*place, group.name, offset))
    return Offsets(tuple(sorted(commits)), complete=True)
