"""Records of `_retention` as columns, and every way not to be one."""

import pyarrow as pa
import pytest
from google.protobuf.json_format import ParseDict

from headrace.wire import usage_pb2
from reports.errors import InputError
from reports.retention.export import instant_us, retention_export_of
from reports.retention.records import decode
from reports.retention.rows import held_by
from tests.reports.building import TEN_US
from tests.reports.retention.building import Picture, Trim, answer, hold


def value_of(record: usage_pb2.RetentionRecord) -> bytes:
    """As the node writes it."""
    return b"\x01" + record.SerializeToString(deterministic=True)


def decoded(value: bytes | None) -> dict[str, object]:
    part = pa.RecordBatch.from_pydict({"offset": [5], "value": pa.array([value], pa.binary())})
    ((row,),) = [batch.to_pylist() for batch in decode(iter([part]))]
    found: dict[str, object] = row
    return found


def test_a_trim_and_an_inventory_keep_every_field() -> None:
    trim, picture = Trim(1, 0, 99).row(), Picture(held_from=7).row()
    trimmed = ParseDict({"trimmed": trim}, usage_pb2.RetentionRecord())
    inventory = ParseDict({"inventory": picture}, usage_pb2.RetentionRecord())
    assert decoded(value_of(trimmed)) == {"offset": 5, "trimmed": trim, "inventory": None}
    assert decoded(value_of(inventory)) == {"offset": 5, "trimmed": None, "inventory": picture}


@pytest.mark.parametrize(
    ("value", "code"),
    [
        (None, "RETENTION_VERSION_UNKNOWN"),
        (b"", "RETENTION_VERSION_UNKNOWN"),
        (b"\x02", "RETENTION_VERSION_UNKNOWN"),
        (b"\x01\xff\xff", "RETENTION_RECORD_DAMAGED"),
        (b"\x01", "RETENTION_RECORD_UNKNOWN"),
    ],
)
def test_every_way_not_to_be_a_retention_record_has_its_code(
    value: bytes | None, code: str
) -> None:
    with pytest.raises(InputError, match=f"{code}.*offset 5"):
        decoded(value)


def test_the_export_is_the_same_in_any_order_and_with_more_fields() -> None:
    whole = answer(holds=[hold("hold_2"), hold("hold_1")])
    other = {**answer(holds=[hold("hold_1"), hold("hold_2")]), "price_book": {"version": "x"}}
    assert retention_export_of(whole).canonical() == retention_export_of(other).canonical()


@pytest.mark.parametrize("name", ["as_of", "policies", "holds", "topics", "organizations"])
def test_an_export_that_lacks_something_is_refused_by_name(name: str) -> None:
    broken = {key: value for key, value in answer().items() if key != name}
    with pytest.raises(InputError, match=f"EXPORT_INVALID.*{name}"):
        retention_export_of(broken)


def test_a_cell_names_twenty_holds_and_counts_the_rest() -> None:
    names = [f"hold_{number:026d}" for number in range(60)]
    assert held_by(names[:20]).split() == names[:20]
    assert held_by(names).split() == [*names[:20], "+40"]
    assert len(held_by(names)) < 1024


def test_a_time_without_a_zone_is_refused() -> None:
    assert instant_us("2026-11-27T10:00:00Z", "as_of") == TEN_US
    with pytest.raises(InputError, match="with its zone"):
        instant_us("2026-11-27T10:00:00", "as_of")
