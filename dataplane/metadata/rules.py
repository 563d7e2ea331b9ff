"""What a command must look like before the machine looks at its state. Pure checks on one message.

Owns limits and name rules of the data plane: whatever the control plane lets through passes here.
Every refusal says what, why and what next.
"""

import re
from typing import Final

from dataplane.errors import Refused
from dataplane.metadata.tables import MESSAGE_BYTES_MAX, VERBS_OF_ROLE
from dataplane.wire import node_pb2 as wire

PARTITIONS_MAX: Final = 1024
REPLICATION_FACTORS: Final = (1, 3, 5)
SEGMENT_BYTES_MIN: Final = 64 * 1024
SEGMENT_BYTES_MAX: Final = 4 * 1024 * 1024 * 1024
UNLIMITED: Final = -1
CODECS: Final = ("", "none", "lz4", "zstd")
PUBLIC_ID_SIZE_MAX: Final = 16
MEMBERS_MAX: Final = 256
GROUPS_MAX: Final = 10_000
GROUP_TOPICS_MAX: Final = 256
ID_SIZE_MAX: Final = 64
REASON_SIZE_MAX: Final = 1024

# The control plane's rule for the name of a topic, letter for letter; a contract test compares.
TOPIC_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,248}")
_PUBLIC_ID: Final = re.compile(rf"[a-z0-9]{{1,{PUBLIC_ID_SIZE_MAX}}}")
_MEMBER: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:@/-]{0,199}")


def check_topic(command: wire.PutTopic) -> None:
    """Raises Refused unless this could be a topic."""
    _check_id("topic_id", command.topic_id)
    _check_id("organization_id", command.organization_id)
    _check_id("project_id", command.project_id)
    _check_name("project", command.project)
    _check_name("stream", command.stream)
    _check_name("topic", command.topic)
    _check_range("partitions", command.partitions, 1, PARTITIONS_MAX)
    if command.replication_factor not in REPLICATION_FACTORS:
        raise _invalid("replication_factor", command.replication_factor, "1, 3 or 5")
    if command.codec not in CODECS:
        raise _invalid("codec", command.codec, "none, lz4 or zstd")
    if command.message_bytes_max > MESSAGE_BYTES_MAX:
        raise _invalid(
            "message_bytes_max", command.message_bytes_max, f"at most {MESSAGE_BYTES_MAX}"
        )
    if command.segment_bytes:
        _check_range("segment_bytes", command.segment_bytes, SEGMENT_BYTES_MIN, SEGMENT_BYTES_MAX)


def check_submitted(request: wire.ApplyRequest) -> None:
    """Raises Refused if this is not taken any more, though the machine applies it.

    Logs of earlier releases hold topics with a limit of 0, and what a log holds must come out the
    same whenever it is applied: such a command is refused on arrival, and nowhere later.
    """
    if not request.HasField("put_topic"):
        return
    topic = request.put_topic
    for what, found in (
        ("retention_ms", topic.retention_ms),
        ("retention_bytes", topic.retention_bytes),
    ):
        if found != UNLIMITED and found < 1:
            raise _invalid(what, found, f"1 or more, or {UNLIMITED} for unlimited")


def check_deletion(command: wire.DeleteTopic) -> None:
    """Raises Refused unless this names a topic, and at most a short reason."""
    _check_id("topic_id", command.topic_id)
    if len(command.force_reason) > REASON_SIZE_MAX:
        raise _invalid(
            "force_reason",
            f"{len(command.force_reason)} characters",
            f"at most {REASON_SIZE_MAX} characters",
        )


def check_key(command: wire.PutKey) -> None:
    """Raises Refused unless this could be a key."""
    _check_id("key_id", command.key_id)
    _check_id("organization_id", command.organization_id)
    if command.project_id:
        _check_id("project_id", command.project_id)
    if not _PUBLIC_ID.fullmatch(command.public_id):
        raise _invalid("public_id", command.public_id, "up to 16 of a-z and 0-9")
    if len(command.secret_sha256) != 32:
        raise _invalid("secret_sha256", f"{len(command.secret_sha256)} bytes", "32 bytes")
    if command.role not in VERBS_OF_ROLE:
        raise _invalid("role", command.role, "one of " + ", ".join(sorted(VERBS_OF_ROLE)))
    if command.expires_at_us < 0:
        raise _invalid("expires_at_us", command.expires_at_us, "0 for never, or a time")


def check_revocation(command: wire.RevokeKey) -> None:
    """Raises Refused unless this names a key."""
    _check_id("key_id", command.key_id)


def check_join(command: wire.JoinGroup) -> None:
    """Raises Refused unless this could be a member's session."""
    _check_id("organization_id", command.organization_id)
    _check_id("project_id", command.project_id)
    _check_name("group", command.group)
    if not _MEMBER.fullmatch(command.member):
        raise _invalid("member", command.member, "1 to 200 letters, digits and . _ : @ / -")
    if command.session == 0:
        raise _invalid("session", command.session, "a number above 0")
    _check_range("the number of topics", len(command.topics), 1, GROUP_TOPICS_MAX)


def _invalid(what: str, found: object, wanted: str) -> Refused:
    return Refused(
        "INVALID_ARGUMENT",
        f"{what} is {found!r}; it must be {wanted}",
        hint=f"correct {what} and send the command again",
    )


def _check_range(what: str, found: int, least: int, most: int) -> None:
    if not least <= found <= most:
        raise _invalid(what, found, f"from {least} to {most}")


def _check_id(what: str, found: str) -> None:
    if not found or len(found) > ID_SIZE_MAX or not found.isascii():
        raise _invalid(what, found, f"an id of 1 to {ID_SIZE_MAX} ASCII characters")


def _check_name(what: str, found: str) -> None:
    if not TOPIC_NAME.fullmatch(found):
        raise _invalid(
            what,
            found,
            "1 to 249 letters, digits, dots, dashes and underscores, beginning with a letter "
            "or digit (names that begin with _ belong to the system)",
        )
