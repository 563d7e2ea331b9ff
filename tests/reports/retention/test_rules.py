"""Every rule of retention has a small input that breaks it, and a neighbour that does not."""

from dataclasses import replace

import pytest

from reports.retention.export import UNLIMITED, Policy
from reports.retention.figures import GRACE_US
from reports.retention.offsets import Commit
from reports.retention.rules import RULES, Seen, Standing, violations_of
from tests.reports.building import TEN_US

MIB = 1 << 20
DAY_MS = 86_400_000
BATCH = 1000
POLICY = Policy("tp_1", 1, TEN_US, "key_1", DAY_MS, UNLIMITED, 0, MIB, {})
SIZED = replace(POLICY, retention_ms=UNLIMITED, retention_bytes=8 * MIB)
SEEN = Seen(TEN_US + GRACE_US, DAY_MS, UNLIMITED, 0, TEN_US)
GOOD = Standing(
    policy=POLICY,
    live_bytes=10 * MIB,
    largest_batch=BATCH,
    expired_bytes=MIB,
    aged_bytes=10 * MIB,
    held_bytes=0,
    future_bytes=0,
    log_start=100,
    log_end=900,
    end_due_24h=100,
    as_of_us=TEN_US + GRACE_US,
    seen=SEEN,
    commits=(Commit(16, 3, 0, "board", 100),),
)


def codes(standing: Standing) -> list[str]:
    return [found.code for found in violations_of(standing)]


def test_a_partition_that_keeps_its_promises_breaks_no_rule() -> None:
    assert codes(GOOD) == []


@pytest.mark.parametrize(
    ("expired", "live", "broken"),
    [
        # One whole segment and the batch that crossed its end may outlive the policy, no byte more.
        (MIB + BATCH, 10 * MIB, []),
        (MIB + BATCH + 1, 10 * MIB, ["OVER_RETAINED"]),
        # A log of nothing but expired records keeps none of them, its newest segment included.
        (MIB, MIB, ["OVER_RETAINED"]),
        (0, 0, []),
    ],
)
def test_more_than_a_segment_beyond_the_age_is_over_retained(
    expired: int, live: int, broken: list[str]
) -> None:
    assert codes(replace(GOOD, expired_bytes=expired, live_bytes=live)) == broken


def test_a_policy_that_is_new_has_its_time_to_take_effect() -> None:
    late = replace(GOOD, expired_bytes=10 * MIB)
    assert codes(late) == ["OVER_RETAINED"]
    assert codes(replace(late, as_of_us=TEN_US + GRACE_US - 1)) == []


@pytest.mark.parametrize(
    ("live", "aged", "broken"),
    [
        (9 * MIB + BATCH, 9 * MIB, []),
        (9 * MIB + BATCH + 1, 9 * MIB, ["OVER_RETAINED"]),
        # The promised age keeps it, or a hold: neither is counted as aged.
        (20 * MIB, MIB, []),
    ],
)
def test_more_than_a_segment_beyond_the_size_is_over_retained(
    live: int, aged: int, broken: list[str]
) -> None:
    seen = replace(SEEN, retention_ms=UNLIMITED, retention_bytes=8 * MIB)
    sized = replace(GOOD, policy=SIZED, seen=seen, live_bytes=live, aged_bytes=aged)
    assert codes(sized) == broken


def test_a_node_that_keeps_by_other_limits_is_a_mismatch_once_it_had_its_time() -> None:
    other = replace(SEEN, retention_bytes=5)
    assert codes(replace(GOOD, seen=other)) == ["POLICY_MISMATCH"]
    assert codes(replace(GOOD, seen=replace(other, at_us=SEEN.at_us - 1))) == []
    assert codes(replace(GOOD, seen=None)) == []


def test_a_topic_without_any_limit_is_unbounded() -> None:
    unlimited = replace(POLICY, retention_ms=UNLIMITED)
    seen = replace(SEEN, retention_ms=UNLIMITED)
    assert codes(replace(GOOD, policy=unlimited, seen=seen)) == ["UNBOUNDED"]


def test_a_clock_that_is_ahead_is_told_from_the_log_or_from_the_inventory() -> None:
    assert codes(replace(GOOD, future_bytes=1)) == ["CLOCK_SKEW"]
    ahead = replace(SEEN, newest_us=SEEN.at_us + GRACE_US + 1)
    assert codes(replace(GOOD, seen=ahead)) == ["CLOCK_SKEW"]


def test_a_group_below_the_start_of_the_log_lost_what_it_had_not_read() -> None:
    behind = (Commit(16, 3, 0, "board", 99), Commit(16, 3, 0, "other", 100))
    (found,) = violations_of(replace(GOOD, commits=behind))
    assert (found.code, found.group) == ("UNREAD_DELETED", "board")
    assert found.detail == "1 records before offset 100"


def test_a_group_below_what_goes_within_a_day_may_lose_it() -> None:
    (found,) = violations_of(replace(GOOD, end_due_24h=130))
    assert (found.code, found.detail) == ("UNREAD_AT_RISK", "30 records before offset 130")
    assert codes(replace(GOOD, end_due_24h=130, commits=())) == []


def test_a_topic_that_the_control_plane_does_not_know_is_not_judged_by_a_policy() -> None:
    unknown = replace(GOOD, policy=None, expired_bytes=5 * MIB, future_bytes=1)
    assert codes(unknown) == ["CLOCK_SKEW"]


def test_every_rule_says_why() -> None:
    assert all(words.endswith(".") for words in RULES.values())
