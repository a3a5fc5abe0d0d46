"""The cluster that `kafkaParams` of the old API name."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import AbstractContextManager, suppress

from pyspark import SparkContext

from kafka08.arrow.connections import cluster_at, resolved
from kafka08.arrow.data_loss import DataLost, Loss
from kafka08.arrow.log_offsets import LogOffsets
from kafka08.arrow.ranges import OffsetRange, furthest_ends
from kafka08.arrow.settings import ClusterAddress, ReaderKeys, address_of
from kafka08.errors import ApiError, ConfigError
from kafka08.spark.rdd import Handle, KafkaRDD, RangeRead, kafka_rdd
from kafka08.structs import Broker, TopicPartition


class OldCluster:
    """The cluster that kafkaParams name, for the driver. `topics`: those that are read."""

    def __init__(self, params: Mapping[str, str], topics: Collection[str]) -> None:
        given = dict(params)
        if "metadata.broker.list" in given:
            given["bootstrap.servers"] = given.pop("metadata.broker.list")
        if "bootstrap.servers" not in given and "zookeeper.connect" not in given:
            raise ConfigError("Must specify metadata.broker.list or bootstrap.servers")
        self.starts_at_earliest = given.pop("auto.offset.reset", "").lower() == "smallest"
        if "bootstrap.servers" in given:
            given.pop("zookeeper.connect", None)
        keys = ReaderKeys(given)
        self.settings = keys.settings
        self.address: ClusterAddress = resolved(
            address_of(keys), self.settings, frozenset(topics).__contains__
        )
        self.client = cluster_at(self.address, self.settings)
        self.offsets = LogOffsets(self.client, self.settings)

    def deadline(self) -> AbstractContextManager[None]:
        """For a block that looks up one interval, or the start of a stream."""
        return self.settings.deadline(self.client.clock)

    def check(self, wanted: Sequence[OffsetRange]) -> None:
        """Check every range, even empty ones, against its leader."""
        ends = furthest_ends(wanted)
        with self.deadline():
            there = sorted(self.offsets.existing(ends))
            earliest = self.offsets.earliest(there)
            latest = self.offsets.latest_up_to({tp: ends[tp] for tp in there})
        faults = [
            str(Loss(OffsetRange(*r), earliest.get(tp), latest.get(tp)))
            for r in wanted
            if (tp := r.topic_partition) not in latest
            or not earliest[tp] <= r.from_offset <= r.until_offset <= latest[tp]
        ]
        if faults:
            raise DataLost("Offsets not available on leader: " + "; ".join(faults))

    def ends_from(self, positions: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        """The end of each log. DataLost if one is below the position of a stream: the topic was
        recreated, or an unclean election cut the log. Once the log had grown beyond the position,
        what is new below it would be skipped silently. Spark 2.4 fails there, too ("Beginning
        offset … is after the ending offset …")."""
        latest = self.offsets.latest_up_to(positions)
        behind = [tp for tp, position in sorted(positions.items()) if latest[tp] < position]
        if behind:
            earliest = self.offsets.earliest(behind)
            lost = [OffsetRange(*tp, latest[tp], positions[tp]) for tp in behind]
            losses = [Loss(r, earliest[r.topic_partition], r.from_offset) for r in lost]
            raise DataLost(
                "offsets are missing: " + "; ".join(map(str, losses)),
                "The topic was deleted and recreated, or an unclean election cut the log: start "
                "the stream again",
            )
        return latest

    def rdd(
        self,
        sc: SparkContext,
        wanted: Sequence[OffsetRange],
        handle: Handle,
        leaders: Mapping[TopicPartition, Broker] | None = None,
    ) -> KafkaRDD:
        """The RDD of these ranges. Missing leaders come from the metadata known now; if there is
        none, the task looks it up."""
        metadata = self.client.metadata
        located = dict(leaders or {})
        for tp in {r.topic_partition for r in wanted} - located.keys():
            with suppress(ApiError):
                located[tp] = metadata.leader(tp)
        read = RangeRead(self.address, self.settings, handle)
        return kafka_rdd(sc, wanted, located, read)
