"""names.c: names of topics and projects, against a dictionary; and the rows that bring them."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from native._engine_sim import ffi, lib
from tests.support.processes.engine_host import project_row, topic_row

SECRET = bytes(range(16))
NAME_SIZE_MAX = 313
BUSY = -2


class Names:
    """A table of its own memory."""

    def __init__(self, count_max: int = 64, secret: bytes = SECRET) -> None:
        size = int(lib.names_bytes(count_max, NAME_SIZE_MAX))
        # The indexes are words: cffi gives memory aligned to what it is made of.
        self.memory = ffi.new("uint64_t[]", (size + 7) // 8)
        self.names = ffi.new("struct names *")
        lib.names_init(self.names, self.memory, count_max, NAME_SIZE_MAX, secret)

    def put(self, scope: int, number: int, name: bytes) -> int:
        return int(lib.names_put(self.names, scope, number, name, len(name)))

    def remove(self, number: int) -> None:
        lib.names_remove(self.names, number)

    def find(self, scope: int, name: bytes) -> int:
        return int(lib.names_find(self.names, scope, name, len(name)))


def test_the_hash_is_siphash_with_its_published_vectors() -> None:
    key = ffi.new("uint64_t[2]", [0x0706050403020100, 0x0F0E0D0C0B0A0908])
    vectors = {0: 0x726FDB47DD0E0E31, 1: 0x74F839C593DC67FD, 8: 0x93F5F5799A932462}
    for size, expected in {**vectors, 15: 0xA129CA6149BE45E5}.items():
        assert lib.names_hash(key, bytes(range(size)), size) == expected


def test_another_secret_gives_other_hashes() -> None:
    keys = [ffi.new("uint64_t[2]", [number, 7]) for number in range(50)]
    assert len({int(lib.names_hash(key, b"name", 4)) for key in keys}) == 50


scopes = st.integers(min_value=1, max_value=3)
numbers = st.integers(min_value=1, max_value=12)
names = st.sampled_from([b"a", b"b", b"default/events", b"x" * NAME_SIZE_MAX, b""])


@settings(max_examples=300)
@given(st.lists(st.tuples(st.booleans(), scopes, numbers, names), max_size=120))
def test_any_history_leaves_what_a_dictionary_has(
    steps: list[tuple[bool, int, int, bytes]],
) -> None:
    # Eight entries: the table fills up, and its slots wrap around.
    table, model = Names(8), dict[int, tuple[int, bytes]]()
    for put, scope, number, name in steps:
        if put:
            model.pop(number, None)
            full = len(model) == 8
            assert table.put(scope, number, name) == (BUSY if full and name else 0)
            if name and not full:
                model[number] = (scope, name)
        else:
            table.remove(number)
            model.pop(number, None)
        for wanted in (1, 2, 3):
            for text in (b"a", b"b", b"default/events", b"x" * NAME_SIZE_MAX):
                bearers = [n for n, bears in model.items() if bears == (wanted, text)]
                assert table.find(wanted, text) == max(bearers, default=0)
    assert table.names.count == len(model)


def test_the_newest_of_several_bearers_is_meant_until_it_is_gone() -> None:
    table = Names()
    table.put(1, 5, b"default/events")
    table.put(1, 9, b"default/events")
    table.put(1, 5, b"default/events")  # the one that is being deleted changes its flags
    assert table.find(1, b"default/events") == 9
    table.remove(5)
    assert table.find(1, b"default/events") == 9
    table.remove(9)
    assert table.find(1, b"default/events") == 0


def test_a_full_table_refuses_counts_and_recovers() -> None:
    table = Names(4)
    assert [table.put(1, number, b"%d" % number) for number in range(1, 6)] == [0, 0, 0, 0, BUSY]
    assert table.names.refused_count == 1
    assert table.find(1, b"5") == 0
    table.remove(2)
    assert table.put(1, 5, b"5") == 0
    assert [table.find(1, b"%d" % number) for number in range(1, 6)] == [1, 0, 3, 4, 5]


def test_a_name_that_is_too_long_is_nobodys() -> None:
    table = Names()
    table.put(1, 1, b"x" * NAME_SIZE_MAX)
    assert table.find(1, b"x" * (NAME_SIZE_MAX + 1)) == 0
    assert table.find(1, b"x" * 10_000) == 0
    assert table.find(1, b"") == 0


def test_without_a_table_every_name_is_refused() -> None:
    table = ffi.new("struct names *")
    assert lib.names_put(table, 1, 1, b"a", 1) == BUSY
    lib.names_remove(table, 1)
    assert lib.names_find(table, 1, b"a", 1) == 0


class Tables:
    """The tables of a shard, as far as names go."""

    def __init__(self) -> None:
        self.tables = ffi.new("struct tables *")
        self.topics = ffi.new("uint8_t[]", int(lib.tables_topics_bytes()))
        lib.tables_init(self.tables, ffi.cast("struct table_topic *", self.topics))
        self.kept = [Names(), Names()]
        self.tables.topic_names = self.kept[0].names[0]
        self.tables.projects = self.kept[1].names[0]

    def apply(self, *rows: bytes) -> int:
        delta = b"".join(rows)
        return int(lib.tables_apply(self.tables, delta, len(delta)))

    def topic(self, project: int, name: bytes) -> int:
        found = ffi.addressof(self.tables, "topic_names")
        return int(lib.names_find(found, project, name, len(name)))

    def project(self, organization: int, name: bytes) -> int:
        found = ffi.addressof(self.tables, "projects")
        return int(lib.names_find(found, organization, name, len(name)))


def test_rows_bring_names_change_them_and_take_them_away() -> None:
    tables = Tables()
    rows = (
        project_row(4, "default"),
        project_row(5, "default", organization=2),
        topic_row(20, project=4, name="default/a"),
        topic_row(21, project=5, name="default/a"),
    )
    assert tables.apply(*rows) == 0
    assert (tables.project(1, b"default"), tables.project(2, b"default")) == (4, 5)
    assert (tables.topic(4, b"default/a"), tables.topic(5, b"default/a")) == (20, 21)
    assert tables.apply(project_row(4, "main"), topic_row(20, project=4, name="default/b")) == 0
    assert (tables.project(1, b"default"), tables.project(1, b"main")) == (0, 4)
    assert (tables.topic(4, b"default/a"), tables.topic(4, b"default/b")) == (0, 20)
    assert tables.apply(topic_row(20, gone=True)) == 0
    assert tables.topic(4, b"default/b") == 0


@pytest.mark.parametrize(
    "row",
    [
        project_row(4, "")[:24],
        project_row(0, "default"),
        project_row(4, "x" * 64),
        project_row(4, "default")[:-8],
        topic_row(20, name="x" * 314),
        topic_row(20, name="default/a")[:-8],
    ],
)
def test_a_row_whose_name_lies_changes_nothing(row: bytes) -> None:
    tables = Tables()
    assert tables.apply(project_row(9, "other"), row) != 0
    assert tables.project(1, b"other") == 0


def test_turns_go_round_the_partitions_and_survive_a_new_row() -> None:
    tables = Tables()
    tables.apply(topic_row(20, partitions=3))
    assert [lib.tables_turn(tables.tables, 20) for _ in range(4)] == [0, 1, 2, 0]
    tables.apply(topic_row(20, partitions=5))
    assert [lib.tables_turn(tables.tables, 20) for _ in range(3)] == [4, 0, 1]
