"""Many generated cases for one Spark job: an example of its own would cost a second each.

Owns how Hypothesis's examples are gathered and how the rows of all of them are mixed. Examples are
the same every time unless HYPOTHESIS_PROFILE=explore; a case that fails is shown whole.
"""

import random
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TypeVar

from hypothesis import HealthCheck, given, settings
from hypothesis.strategies import SearchStrategy
from pyspark.sql import SparkSession

Case = TypeVar("Case")
PARTITIONS = "spark.sql.shuffle.partitions"


def gathered(strategy: SearchStrategy[Case], count: int) -> list[Case]:
    """So many examples of a strategy, the simplest one first."""
    found: list[Case] = []

    @settings(max_examples=count, database=None, suppress_health_check=list(HealthCheck))
    @given(strategy)
    def gather(case: Case) -> None:
        found.append(case)

    gather()
    return found


def in_any_order(rows: Sequence[Case], seed: int, copies: bool = True) -> list[Case]:
    """The rows in another order, some of them twice."""
    dice = random.Random(seed)
    more = dice.sample(rows, dice.randint(0, len(rows))) if copies else []
    mixed = [*rows, *more]
    dice.shuffle(mixed)
    return mixed


def cut(whole: int, permille: int) -> tuple[int, int]:
    """Two parts of a figure."""
    first = whole * permille // 1000
    return first, whole - first


@contextmanager
def partitioned(spark: SparkSession, partitions: int) -> Iterator[None]:
    """Every exchange of the block has so many partitions."""
    before = spark.conf.get(PARTITIONS)
    assert before is not None
    spark.conf.set(PARTITIONS, partitions)
    try:
        yield
    finally:
        spark.conf.set(PARTITIONS, before)
