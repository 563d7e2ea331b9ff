"""`spark.read.format("headrace")`: topics of a cluster as DataFrames.

    spark.dataSource.register(HeadraceSource)
    flights = spark.read.format("headrace").option("topic", "default/flights").load()

| option          | default        | means                                                    |
| --------------- | -------------- | -------------------------------------------------------- |
| topic           |                | `stream/topic`, or `topic` of the stream `default`       |
| handles         |                | not topic: `number:created_revision:partitions`, commas  |
| bootstrap       | client profile | `host:port[,host:port]`                                  |
| key_variable    | HEADRACE_KEY   | environment variable with the key, binding if named      |
| key             |                | the key itself; prefer the variable                      |
| project         | the key's      | where `topic` is looked up                               |
| columns         | records        | or `batches`: one row per stored batch, nothing decoded  |
| payload         | true           | false: no key, value, headers: the JVM is what costs     |
| start, end      | everything     | offsets, the same for every partition; end is exclusive  |
| truncated       | fail           | `skip`: go on when retention or deletion overtakes it    |
| split_records   | 1000000        | offsets per task                                         |
| timeout_seconds | 120            | how long one fetch is repeated                           |

Owns planning: the high watermarks are frozen when the plan is made, so a DataFrame reads the same
range however often it is evaluated (until retention removes it). Memory: one fetch (4 MiB, or one
larger batch) and its columns per task. Refuses writing, and predicates: Spark filters.

The key is resolved when the plan is made and travels to the workers with the reader, never as an
option that plans show.
"""

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from headrace.errors import HeadraceError
from headrace.settings import resolve
from reports.errors import ArgumentError, SourceError
from reports.source.cluster import DEADLINE_SECONDS, Access, ClusterReader, Handle, Range
from reports.source.columns import (
    BATCHES,
    RECORDS,
    RECORDS_WITHOUT_PAYLOAD,
    header_rows,
    record_rows,
)

SPLIT_RECORDS = 1_000_000
TASKS_MAX = 256
KEY_VARIABLE = "HEADRACE_KEY"

_OPTIONS = frozenset(
    {
        "topic",
        "handles",
        "bootstrap",
        "key",
        "key_variable",
        "project",
        "columns",
        "payload",
        "start",
        "end",
        "truncated",
        "split_records",
        "timeout_seconds",
    }
)


@dataclass(frozen=True, slots=True)
class Selection:
    """What to read, checked."""

    topic: str
    handles: tuple[Handle, ...]
    batches: bool
    payload: bool
    start: int | None
    end: int | None
    skip_truncated: bool
    split_records: int


class RangesPartition(InputPartition):
    """What one task reads."""

    def __init__(self, ranges: tuple[Range, ...]) -> None:
        super().__init__(None)
        self.ranges = ranges


class HeadraceSource(DataSource):
    """The data source named `headrace`."""

    @classmethod
    def name(cls) -> str:
        """The name after `format`."""
        return "headrace"

    def schema(self) -> StructType:
        """Records or batches, as the options say."""
        selection = selection_of(self.options)
        if selection.batches:
            return BATCHES
        return RECORDS if selection.payload else RECORDS_WITHOUT_PAYLOAD

    def reader(self, schema: StructType) -> DataSourceReader:
        """A reader of the ranges that are committed now. A schema of the caller's must be ours."""
        if schema != self.schema():
            raise ArgumentError(
                "SCHEMA_FIXED",
                "The columns of the headrace source cannot be changed by .schema().",
                "Leave .schema() out and select the columns that are needed.",
            )
        return HeadraceReader(access_of(self.options), selection_of(self.options))


class HeadraceReader(DataSourceReader):
    """Plans ranges on the driver and reads them on the workers."""

    def __init__(self, access: Access, selection: Selection) -> None:
        self._access = access
        self._selection = selection

    def partitions(self) -> list[InputPartition]:
        """One task per offset range; many small partitions share one."""
        with ClusterReader(self._access) as cluster:
            handles = self._handles(cluster)
            ranges = [
                split
                for handle in handles
                for partition in range(handle.partitions)
                for split in self._ranges(cluster, handle, partition)
            ]
        share = -(-len(ranges) // TASKS_MAX)
        return [
            RangesPartition(tuple(ranges[first : first + share]))
            for first in range(0, len(ranges), share or 1)
        ] or [RangesPartition(())]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Arrow record batches of one task, a fetch at a time."""
        assert isinstance(partition, RangesPartition)
        selection = self._selection
        with ClusterReader(self._access) as cluster:
            for wanted in partition.ranges:
                try:
                    for found in cluster.replies(wanted, skip_truncated=selection.skip_truncated):
                        if selection.batches:
                            yield header_rows(wanted, found)
                        else:
                            yield from record_rows(wanted, found, payload=selection.payload)
                except SourceError as failure:
                    self._pass_over(cluster, wanted.handle, failure)

    def _pass_over(self, cluster: ClusterReader, handle: Handle, failure: SourceError) -> None:
        """A topic that was deleted since it was named is cut off whole: who skips what retention
        took skips it too. Anything else is raised."""
        if not (self._selection.skip_truncated and cluster.is_deleted(handle, failure)):
            raise failure

    def _handles(self, cluster: ClusterReader) -> list[Handle]:
        """Handles with their present names.

        A handle that is not described any more has its number and the cluster only.
        """
        if self._selection.topic:
            return cluster.topics(self._selection.topic)
        known = {(topic.number, topic.created_revision): topic for topic in cluster.topics()}
        return [
            known.get(
                (handle.number, handle.created_revision),
                replace(handle, cluster_id=cluster.cluster_id),
            )
            for handle in self._selection.handles
        ]

    def _ranges(self, cluster: ClusterReader, handle: Handle, partition: int) -> Iterator[Range]:
        try:
            log_start, high_watermark = cluster.bounds(handle, partition)
        except SourceError as failure:
            self._pass_over(cluster, handle, failure)
            return
        wanted = self._selection
        first = log_start if wanted.start is None else max(wanted.start, log_start)
        last = high_watermark if wanted.end is None else min(wanted.end, high_watermark)
        for start in range(first, last, wanted.split_records):
            end = min(start + wanted.split_records, last)
            yield Range(handle, partition, start, end, leads=start == log_start)


def access_of(options: Mapping[str, str]) -> Access:
    """Where to connect and as whom: options, then the environment, then the client profile."""
    named = options.get("key_variable")
    variable = named or KEY_VARIABLE
    if named and not os.environ.get(named) and not options.get("key"):
        # Another key would see other topics, and its figures would look right.
        raise _no_key(f"{named} is not set")
    try:
        settings = resolve(
            bootstrap=options.get("bootstrap"),
            key=options.get("key") or os.environ.get(variable),
            project=options.get("project"),
        )
    except HeadraceError as error:
        raise ArgumentError(error.code, error.message, error.hint) from None
    if not settings.key:
        raise _no_key(f"neither {variable} nor a client profile holds one")
    return Access(
        settings.bootstrap,
        settings.key,
        settings.tls,
        settings.project,
        float(options.get("timeout_seconds", DEADLINE_SECONDS)),
    )


def selection_of(options: Mapping[str, str]) -> Selection:
    """The checked options; a misspelt one is refused, since ignoring it could change a figure."""
    names = {name.lower() for name in options}
    unknown = sorted(names - _OPTIONS)
    if unknown:
        raise ArgumentError(
            "OPTION_UNKNOWN",
            f"The headrace source has no option {unknown[0]}.",
            f"Options: {', '.join(sorted(_OPTIONS))}.",
        )
    topic, handles = options.get("topic", ""), options.get("handles", "")
    if bool(topic) == bool(handles):
        raise ArgumentError(
            "TOPIC_MISSING",
            "Exactly one of topic and handles must be given.",
            'Example: .option("topic", "default/flights").',
        )
    return Selection(
        topic=topic,
        handles=tuple(_handle(text) for text in handles.split(",")) if handles else (),
        batches=_choice(options, "columns", ("records", "batches")) == "batches",
        payload=_choice(options, "payload", ("true", "false")) == "true",
        start=_whole(options, "start"),
        end=_whole(options, "end"),
        skip_truncated=_choice(options, "truncated", ("fail", "skip")) == "skip",
        split_records=max(1, _whole(options, "split_records") or SPLIT_RECORDS),
    )


def _no_key(why: str) -> ArgumentError:
    return ArgumentError(
        "KEY_MISSING",
        f"No key: {why}.",
        "Set the variable before Spark starts, or run `headrace up`, which writes a profile.",
    )


def handle_text(handle: Handle) -> str:
    """A handle as the option `handles` takes it."""
    return f"{handle.number}:{handle.created_revision}:{handle.partitions}"


def _handle(text: str) -> Handle:
    try:
        number, created_revision, partitions = (int(part) for part in text.split(":"))
    except ValueError:
        raise ArgumentError(
            "HANDLE_INVALID",
            f"{text!r} is not number:created_revision:partitions.",
            "Take the numbers from Cluster.Describe.",
        ) from None
    return Handle("", "", number, created_revision, partitions)


def _choice(options: Mapping[str, str], name: str, allowed: tuple[str, ...]) -> str:
    """One of `allowed`; the first is the default."""
    value = str(options.get(name, allowed[0])).lower()
    if value not in allowed:
        raise ArgumentError(
            "OPTION_INVALID",
            f"The option {name} is {value!r}.",
            f"Allowed: {', '.join(allowed)}.",
        )
    return value


def _whole(options: Mapping[str, str], name: str) -> int | None:
    text = options.get(name)
    if text is None:
        return None
    if not str(text).isdecimal():
        raise ArgumentError(
            "OPTION_INVALID", f"The option {name} is {text!r}.", "Give a whole number, 0 or more."
        )
    return int(text)
