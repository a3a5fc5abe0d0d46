"""The first columns of tables with a row for each partition of a group."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from kafka08.observe.group import PartitionFacts

OFFSET_COLUMNS: Final = ("topic", "partition", "zookeeper", "kafka", "log start", "log end")


def offset_cells(p: PartitionFacts) -> tuple[object, ...]:
    """The cells of OFFSET_COLUMNS: what is committed in both stores, and the range of the log."""
    return (*p.topic_partition, p.zookeeper, p.kafka, p.log_start, p.log_end)
