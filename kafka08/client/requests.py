"""Converts between requests or responses and `{TopicPartition: …}`, the form that clients use.

The wire format groups partitions by topic; this module only groups and ungroups.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, Literal

from kafka08.config import INT_MAX
from kafka08.errors import ConsumerCoordinatorNotAvailable, check
from kafka08.protocol.consumer_metadata import ConsumerMetadataResponse
from kafka08.protocol.fetch import (
    NO_LOG_START_OFFSET,
    RACK_VERSION,
    READ_COMMITTED,
    READ_UNCOMMITTED,
    FetchPartition,
    FetchPartitionResponse,
    FetchRequest,
    FetchResponse,
    FetchTopic,
)
from kafka08.protocol.grouping import by_partition, by_topic
from kafka08.protocol.metadata import EPOCH_VERSION as METADATA_EPOCH_VERSION
from kafka08.protocol.metadata import EXACT_EPOCH_VERSION, MetadataRequest
from kafka08.protocol.offset_commit import (
    OffsetCommitPartition,
    OffsetCommitPartitionResponse,
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetCommitTopic,
)
from kafka08.protocol.offset_fetch import (
    EPOCH_VERSION,
    STABLE_VERSION,
    OffsetFetchPartitionResponse,
    OffsetFetchRequest,
    OffsetFetchResponse,
    OffsetFetchTopic,
)
from kafka08.protocol.offsets import EPOCH_VERSION as OFFSETS_EPOCH_VERSION
from kafka08.protocol.offsets import (
    ISOLATION_VERSION,
    OffsetsPartition,
    OffsetsPartitionResponse,
    OffsetsRequest,
    OffsetsResponse,
    OffsetsTopic,
)
from kafka08.protocol.produce import (
    MAGIC_1_VERSION,
    MAGIC_2_VERSION,
    TEXT_VERSION,
    ProducePartition,
    ProducePartitionResponse,
    ProduceRequest,
    ProduceResponse,
    ProduceTopic,
)
from kafka08.protocol.types import Buffer, Response
from kafka08.protocol.version_ranges import VersionRanges
from kafka08.structs import ORDINARY_CONSUMER, Broker, OffsetAndMetadata, TopicPartition

StorageName = Literal["zookeeper", "kafka"]
"""The store that an offset request addresses, in the words of offsets.storage: version 0 of the
request, or version 1. For the stores of a member, which may be both, see
kafka08.zk.migration_protocol.OffsetStorage."""
RETENTION_VERSION: Final = 2
"""Of OffsetCommit: one retention time in place of the times of commits."""
STORAGE_VERSIONS: Final[dict[StorageName, int]] = {"zookeeper": 0, "kafka": 1}


def coordinator_of(group: str, response: Response) -> Broker:
    """The broker in a ConsumerMetadata response. Raises the response's error, and
    ConsumerCoordinatorNotAvailable if it has neither broker nor error."""
    assert isinstance(response, ConsumerMetadataResponse)
    check(response.error_code, f"coordinator of group {group}")
    if not response.host:
        raise ConsumerCoordinatorNotAvailable(f"no broker coordinates group {group} yet")
    return Broker(response.coordinator_id, response.host, response.port)


def metadata_version(versions: VersionRanges) -> int:
    """The version of Metadata for a client that needs leader epochs: the first that has them, if
    the broker knows them exactly."""
    is_exact = versions.serves_beyond(MetadataRequest, EXACT_EPOCH_VERSION - 1)
    return METADATA_EPOCH_VERSION if is_exact else 0


def fetch_request(
    positions: Mapping[TopicPartition, tuple[int, int] | tuple[int, int, int]],
    *,
    max_wait_ms: int,
    min_bytes: int,
    replica_id: int = ORDINARY_CONSUMER,
    max_bytes: int = INT_MAX,
    isolation: int = READ_UNCOMMITTED,
    rack: str = "",
    version: int = 0,
) -> FetchRequest:
    """A Fetch of `{partition: (offset, max_bytes)}`, or with the leader's epoch, which counts from
    version 9 on; `max_bytes` limits the whole response from 3 on, `isolation` counts from 4 on,
    `rack` from 11 on."""
    return FetchRequest(
        replica_id,
        max_wait_ms,
        min_bytes,
        [
            FetchTopic(
                topic,
                [
                    FetchPartition(p, offset, size, NO_LOG_START_OFFSET, *epoch)
                    for p, (offset, size, *epoch) in items
                ],
            )
            for topic, items in by_topic(positions).items()
        ],
        max_bytes,
        isolation,
        rack_id=rack,
        version=version,
    )


def fetch_version(versions: VersionRanges, preferred: int) -> int:
    """The version of Fetch for a reader of one partition: the highest up to `preferred`, whose
    messages brokers convert; the lowest of a broker that serves none of them, as those from 4.0 on.
    """
    lowest = versions.lowest(FetchRequest, 0, RACK_VERSION)
    return lowest if lowest > preferred else versions.highest(FetchRequest, 0, preferred)


def fetch_results(response: FetchResponse) -> dict[TopicPartition, FetchPartitionResponse]:
    return by_partition(response.topics)


def produce_version(versions: VersionRanges) -> tuple[int, int]:
    """(version of Produce, magic of its messages) for a broker that serves `versions`: record
    batches from 0.11 on, with timestamps from 0.10.0 on, else those of 0.8. UnsupportedVersion."""
    highest = versions.highest(ProduceRequest, 0, TEXT_VERSION)
    if highest >= MAGIC_2_VERSION:
        return highest, 2
    if versions.highest(ProduceRequest, 0, MAGIC_1_VERSION) == MAGIC_1_VERSION:
        return MAGIC_1_VERSION, 1
    return 0, 0


def produce_request(
    message_sets: Mapping[TopicPartition, Buffer],
    *,
    required_acks: int,
    timeout_ms: int,
    transactional_id: str | None = None,
    version: int = 0,
) -> ProduceRequest:
    return ProduceRequest(
        required_acks,
        timeout_ms,
        [
            ProduceTopic(topic, [ProducePartition(p, data) for p, data in items])
            for topic, items in by_topic(message_sets).items()
        ],
        transactional_id,
        version=version,
    )


def produce_results(response: ProduceResponse) -> dict[TopicPartition, ProducePartitionResponse]:
    return by_partition(response.topics)


def offsets_version(
    versions: VersionRanges, isolation: int = READ_UNCOMMITTED, *, with_epochs: bool = False
) -> int:
    """The version of Offsets for the log's start or end: the first if the broker serves it, as 4.0
    does not; for a reader of committed messages one with isolation, where there are transactions;
    `with_epochs` the one that has them, where brokers know it.
    """
    if with_epochs and versions.serves_beyond(OffsetsRequest, OFFSETS_EPOCH_VERSION - 1):
        return OFFSETS_EPOCH_VERSION
    if isolation == READ_COMMITTED and versions.serves_beyond(OffsetsRequest, 1):
        return versions.highest(OffsetsRequest, ISOLATION_VERSION, ISOLATION_VERSION)
    return versions.lowest(OffsetsRequest, 0, ISOLATION_VERSION)


def offsets_request(
    times: Mapping[TopicPartition, int],
    *,
    max_offsets: int = 1,
    replica_id: int = ORDINARY_CONSUMER,
    isolation: int = READ_UNCOMMITTED,
    version: int = 0,
) -> OffsetsRequest:
    """Log offsets before `{partition: time in ms, LATEST_OFFSET or EARLIEST_OFFSET}`."""
    return OffsetsRequest(
        replica_id,
        [
            OffsetsTopic(topic, [OffsetsPartition(p, time_ms, max_offsets) for p, time_ms in items])
            for topic, items in by_topic(times).items()
        ],
        isolation,
        version=version,
    )


def offsets_results(response: OffsetsResponse) -> dict[TopicPartition, OffsetsPartitionResponse]:
    return by_partition(response.topics)


def commit_request(
    group: str, offsets: Mapping[TopicPartition, OffsetAndMetadata], storage: StorageName
) -> OffsetCommitRequest:
    """A commit from outside any generation. ZooKeeper's version has no timestamp."""
    return OffsetCommitRequest(
        group,
        [
            OffsetCommitTopic(
                topic,
                [
                    OffsetCommitPartition(p, o.offset, o.metadata, o.timestamp_ms, o.leader_epoch)
                    for p, o in items
                ],
            )
            for topic, items in by_topic(offsets).items()
        ],
        version=STORAGE_VERSIONS[storage],
    )


def commit_version(versions: VersionRanges) -> int:
    """The version of a `commit_request` to the offsets topic: the first if the broker serves it, as
    4.0 does not."""
    return versions.lowest(OffsetCommitRequest, STORAGE_VERSIONS["kafka"], RETENTION_VERSION)


def commit_results(
    response: OffsetCommitResponse,
) -> dict[TopicPartition, OffsetCommitPartitionResponse]:
    return by_partition(response.topics)


def committed_request(
    group: str, partitions: Iterable[TopicPartition], storage: StorageName
) -> OffsetFetchRequest:
    """Which, in the version for stable offsets, does not show those that an open transaction is
    about to replace."""
    return OffsetFetchRequest(
        group,
        [
            OffsetFetchTopic(topic, [partition for partition, _ in items])
            for topic, items in by_topic(dict.fromkeys(partitions)).items()
        ],
        is_stable=True,
        version=STORAGE_VERSIONS[storage],
    )


def stable_version(versions: VersionRanges) -> int:
    """The version of a `committed_request` of who begins to read at these offsets. Brokers before
    2.5 have none for stable offsets, those before 2.1 none with leader epochs."""
    for version in (STABLE_VERSION, EPOCH_VERSION):
        if versions.serves_beyond(OffsetFetchRequest, version - 1):
            return version
    return STORAGE_VERSIONS["kafka"]


def committed_results(
    response: OffsetFetchResponse,
) -> dict[TopicPartition, OffsetFetchPartitionResponse]:
    return by_partition(response.topics)
