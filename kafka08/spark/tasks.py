"""A Spark task: reads one exact range into Arrow batches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql.datasource import InputPartition
from pyspark.sql.types import StructType

from kafka08.arrow.batches import BatchBuilder
from kafka08.arrow.ranges import OffsetRange
from kafka08.arrow.settings import ClusterAddress, ReadSettings
from kafka08.spark.collection import leave_modules_to_the_end
from kafka08.spark.plain_errors import plain_errors_of_items
from kafka08.spark.task_reader import range_reader
from kafka08.spark.versions import arrow_schema
from kafka08.structs import Broker

if TYPE_CHECKING:
    from kafka08.arrow.resolve import Resolver


class RangePartition(InputPartition):
    """One task's range, and its partition's leader when it was planned (None: unknown)."""

    def __init__(self, wanted: OffsetRange, leader: Broker | None) -> None:
        super().__init__(wanted)
        self.wanted = wanted
        self.leader = leader


def range_partitions(resolver: Resolver, ranges: Sequence[OffsetRange]) -> list[InputPartition]:
    """The tasks of `ranges`, split as the options say, with the leaders known now."""
    return [
        RangePartition(piece, resolver.leader(piece.topic_partition))
        for piece in resolver.tasks(ranges)
    ]


class RangeTasks:
    """Reads ranges of the cluster at `address` (resolved) as batches of `schema`. Pickled once per
    read; everything that differs between tasks is in the RangePartition."""

    def __init__(self, address: ClusterAddress, settings: ReadSettings, schema: StructType) -> None:
        self.address = address
        self.settings = settings
        self.schema = schema

    @plain_errors_of_items
    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The range's batches. For an empty plan Spark makes one task without a range."""
        if isinstance(partition, RangePartition) and partition.wanted.size:
            leave_modules_to_the_end()
            builder = BatchBuilder(arrow_schema(self.schema), partition.wanted, in_place=True)
            yield from builder.batches(
                range_reader(self.address, self.settings, partition.wanted, partition.leader)
            )
