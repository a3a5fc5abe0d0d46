"""What a Spark task does: read one exact range into Arrow batches."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from functools import cache

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import InputPartition
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from kafka08.arrow.access import cluster_at, fetch_pool
from kafka08.arrow.batches import BatchBuilder
from kafka08.arrow.range_reader import RangeReader
from kafka08.arrow.ranges import OffsetRange
from kafka08.arrow.settings import ClusterAddress, ReadSettings
from kafka08.structs import Broker


class RangePartition(InputPartition):
    """One task's range, and who led its partition when it was planned (None: not known)."""

    def __init__(self, wanted: OffsetRange, leader: Broker | None) -> None:
        super().__init__(wanted)
        self.wanted = wanted
        self.leader = leader


class RangeTasks:
    """Reads ranges of the cluster at `address` (resolved) as batches of `schema`. Pickled once per
    read; all that differs between tasks is in the RangePartition."""

    def __init__(self, address: ClusterAddress, settings: ReadSettings, schema: StructType) -> None:
        self.address = address
        self.settings = settings
        self.schema = schema

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The range's batches. Spark makes one task without a range where nothing is planned."""
        if isinstance(partition, RangePartition) and partition.wanted.size:
            leave_modules_to_the_end()
            arrow_schema = to_arrow_schema(self.schema, timezone="UTC")
            builder = BatchBuilder(arrow_schema, partition.wanted)
            yield from builder.batches(
                range_reader(self.address, self.settings, partition.wanted, partition.leader)
            )


@cache
def leave_modules_to_the_end() -> None:
    """Once in a worker: Spark's daemon collects garbage after every task, and would each time walk
    through all that was imported: a quarter of a worker's time for a task of 60 MB."""
    gc.freeze()


def range_reader(
    address: ClusterAddress, settings: ReadSettings, wanted: OffsetRange, leader: Broker | None
) -> RangeReader:
    """A reader on this worker's connections. A task that was tried before asks for the leader."""
    context = TaskContext.get()
    tried_before = context is not None and context.attemptNumber() > 0
    return RangeReader(
        wanted,
        settings,
        cluster_at(address, settings),
        fetch_pool(settings),
        None if tried_before else leader,
    )
