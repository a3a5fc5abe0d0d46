"""A reader in a Spark task, on the connections that its worker keeps."""

from __future__ import annotations

from pyspark import TaskContext

from kafka08.arrow.connections import cluster_at, fetch_pool, lost_leaders
from kafka08.arrow.range_reader import RangeReader
from kafka08.arrow.ranges import OffsetRange
from kafka08.arrow.settings import ClusterAddress, ReadSettings
from kafka08.structs import Broker


def range_reader(
    address: ClusterAddress, settings: ReadSettings, wanted: OffsetRange, leader: Broker | None
) -> RangeReader:
    """A reader on this worker's connections. A retried task looks up the leader."""
    context = TaskContext.get()
    tried_before = context is not None and context.attemptNumber() > 0
    return RangeReader(
        wanted,
        settings,
        cluster_at(address, settings),
        fetch_pool(address, settings),
        None if tried_before else leader,
        lost=lost_leaders,
    )
