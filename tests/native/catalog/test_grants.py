"""grants.c and tables.c: who may, from rows; against a dictionary."""

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from native._engine_sim import ffi, lib
from tests.support.processes.engine_host import (
    ADMIN_SECRET,
    ADMIN_TOKEN,
    grant_row,
    token,
    topic_row,
)

SECRET = "s" * 43
OK, MISSING, INVALID, EXPIRED = 0, 1, 2, 3


class Tables:
    def __init__(self) -> None:
        self.tables = ffi.new("struct tables *")
        self.topics = ffi.new("uint8_t[]", int(lib.tables_topics_bytes()))
        self.slots = ffi.new("uint8_t[]", int(lib.grants_slots_bytes()))
        lib.tables_init(self.tables, ffi.cast("struct table_topic *", self.topics))
        self.grants = ffi.addressof(self.tables, "grants")
        digest = hashlib.sha256(ADMIN_SECRET.encode()).digest()
        admin = b"adminadmin".ljust(16, b"\0")
        slots = ffi.cast("struct grant *", self.slots)
        assert lib.grants_init(self.grants, slots, admin, digest) == 0

    def apply(self, *rows: bytes) -> int:
        delta = b"".join(rows)
        return int(lib.tables_apply(self.tables, delta, len(delta)))

    def check(self, value: str, now_us: int = 1_000) -> tuple[int, int]:
        grant = ffi.new("struct grant *")
        data = value.encode()
        answer = lib.grants_check(self.grants, data, len(data), now_us, grant)
        return int(answer), int(grant.principal)

    def topic(self, number: int) -> int | None:
        found = lib.tables_topic(self.tables, number)
        return None if found == ffi.NULL else int(found.created_revision)

    def close(self) -> None:
        lib.grants_deinit(self.grants)


@pytest.fixture(scope="module")
def tables() -> Tables:
    made = Tables()
    assert made.apply(grant_row("k" * 10, SECRET, principal=40, expires_at_us=5_000)) == 0
    return made


def test_the_right_secret_is_taken_until_it_expires(tables: Tables) -> None:
    value = f"Bearer {token('k' * 10, SECRET)}"
    assert tables.check(value, 4_999) == (OK, 40)
    assert tables.check(value, 5_000)[0] == EXPIRED


def test_the_node_key_is_principal_one(tables: Tables) -> None:
    assert tables.check(f"Bearer {ADMIN_TOKEN}") == (OK, 1)


@pytest.mark.parametrize(
    ("value", "answer"),
    [
        ("", MISSING),
        ("Bearer ", INVALID),
        ("Basic abc", INVALID),
        (f"Bearer {token('k' * 10, 'w' * 43)}", INVALID),
        (f"Bearer {token('x' * 10, SECRET)}", INVALID),
        (f"Bearer {token('k' * 9, SECRET)}", INVALID),
        (f"Bearer {token('K' * 10, SECRET)}", INVALID),
        (f"Bearer {token('k' * 10, SECRET)}x", INVALID),
        (f"Bearer hr_evil_{'k' * 10}_{SECRET}_000000", INVALID),
        (f"Bearer {token('k' * 10, SECRET[:-1] + '-')}", INVALID),
        (f"Bearer {token('k' * 10, SECRET)[:-7]}-000000", INVALID),
    ],
)
def test_anything_else_is_refused(tables: Tables, value: str, answer: int) -> None:
    assert tables.check(value)[0] == answer


@given(st.binary(max_size=120))
def test_arbitrary_header_values_are_refused(data: bytes) -> None:
    assert not lib.grant_token_parse(data, len(data), ffi.new("struct grant_token *"))


def test_a_row_never_gives_the_right_to_administer(tables: Tables) -> None:
    assert tables.apply(grant_row("wishful000", SECRET, verbs=7)) == 0
    grant = lib.grants_find(tables.grants, b"wishful000".ljust(16, b"\0"))
    assert grant.verbs == 3


@given(
    st.lists(
        st.tuples(st.booleans(), st.integers(min_value=0, max_value=40), st.integers(1, 1000)),
        max_size=150,
    )
)
def test_puts_and_removals_leave_exactly_what_a_dictionary_has(
    steps: list[tuple[bool, int, int]],
) -> None:
    tables, keys, topics = Tables(), dict[str, int](), dict[int, int]()
    for put, number, value in steps:
        name = f"key{number:07d}"
        if put:
            assert tables.apply(grant_row(name, SECRET, principal=value)) == 0
            assert tables.apply(topic_row(number * 65536 + 1, revision=value)) == 0
            keys[name], topics[number] = value, value
        else:
            assert tables.apply(grant_row(name, SECRET, gone=True)) == 0
            assert tables.apply(topic_row(number * 65536 + 1, gone=True)) == 0
            keys.pop(name, None)
            topics.pop(number, None)
    for number in range(41):
        name = f"key{number:07d}"
        answer = tables.check(f"Bearer {token(name, SECRET)}")
        assert answer == ((OK, keys[name]) if name in keys else (INVALID, 0))
        assert tables.topic(number * 65536 + 1) == topics.get(number)
    tables.close()


def test_a_malformed_delta_changes_nothing(tables: Tables) -> None:
    good = topic_row(77)
    for bad in (
        good[:-1],
        good[:4],
        b"\x09\x00" + good[2:],
        topic_row(0),
        topic_row(5, partitions=0),
        grant_row("", SECRET),
    ):
        revision = tables.grants.revision
        assert tables.apply(good, bad) != 0
        assert tables.topic(77) is None
        assert tables.grants.revision == revision
