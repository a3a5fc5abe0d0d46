"""OffsetCommit, version 0 into ZooKeeper, the others into `__consumer_offsets`.

Version 0: per partition 3 if it cannot exist, 12 for too long metadata, else the offset goes to
/consumers/<group>/offsets/<topic>/<partition>; the metadata are dropped. Version 1: see
OffsetManager.commit; 3 beyond UNKNOWN_MAX such partitions, and once UNKNOWN_ABOVE offsets are kept.
Generation and member are ignored.

From level 0.9 on: 3 for such a partition; for others generation and member decide, see
Group.check_commit. (The originals store offsets of any partition, and 0.8.2.2 in version 1 of any
topic: everybody can fill the memory of a coordinator with them.)
Source: kafka.server.KafkaApis 0.8.2.2, 0.9.0.1 and 0.10.2.2.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain, islice
from typing import Final

from kafka08.broker.groups.append_codes import CODES_OF_GROUPS
from kafka08.broker.groups.group_coordinator import fits
from kafka08.broker.groups.offset_manager import java_length
from kafka08.broker.requests.call import Call, NoResponse
from kafka08.broker.requests.context import BrokerContext
from kafka08.errors import (
    NO_ERROR,
    OffsetMetadataTooLarge,
    UnknownError,
    UnknownTopicOrPartition,
)
from kafka08.levels import Level
from kafka08.log_limit import caused_by
from kafka08.protocol.grouping import by_partition
from kafka08.protocol.offset_commit import (
    OffsetCommitPartitionResponse,
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetCommitTopicResponse,
)
from kafka08.protocol.types import NULL_NAME, Response
from kafka08.runtime.yielding import PARTITIONS_AT_ONCE, yielding_batches
from kafka08.structs import OffsetAndMetadata, TopicPartition
from kafka08.zk.group_store import GroupStore

logger = logging.getLogger(__name__)

PARTITIONS_AHEAD: Final = 100
"""How many partitions more than this broker knows a topic may have: added ones, of which clients
may hear first."""
UNKNOWN_MAX: Final = 100
"""Of each thousand partitions of a request, how many 0.8's coordinator stores although they do not
exist."""
UNKNOWN_ABOVE: Final = 200_000
"""With so many offsets in its cache it stores none of these: many requests would fill it, too."""
ZOOKEEPER_VERSION: Final = 0
"""The version that stores offsets in ZooKeeper."""


def handle(
    broker: BrokerContext, request: OffsetCommitRequest, call: Call
) -> Response | NoResponse:
    is_large = sum(len(topic.partitions) for topic in request.topics) > PARTITIONS_AT_ONCE
    if is_large or request.version == ZOOKEEPER_VERSION:
        name = f"OffsetCommit v{request.version}"
        return call.run_in_greenlet(
            name, lambda: commit(broker, request, call, is_large=is_large), is_large=is_large
        )
    return commit(broker, request, call, is_large=False)


def commit(
    broker: BrokerContext, request: OffsetCommitRequest, call: Call, *, is_large: bool
) -> Response | NoResponse:
    """Switches if the request is large, or if the offsets go to ZooKeeper. Each turn commits as a
    request of its own would: its member is checked when it appends."""
    if request.version != ZOOKEEPER_VERSION:
        if has_null_name(request):
            raise UnknownError("a group or a topic whose name is null")
        if broker.config.level < Level.V0_9_0 and not fits(request.group):
            raise UnknownError("a group whose name no record can have")
    offsets: dict[TopicPartition, OffsetAndMetadata] = {}
    for turn in yielding_batches(offsets_of(request), broker.runtime, PARTITIONS_AT_ONCE):
        offsets.update(turn)
    codes: dict[TopicPartition, int] = {}
    parked = False

    def response() -> Response:
        turns = yielding_batches(offsets, broker.runtime, PARTITIONS_AT_ONCE)
        return respond(turns, codes.__getitem__)

    def done(some: Mapping[TopicPartition, int]) -> None:
        codes.update(some)
        # Before `commit` has returned, its caller makes the response.
        if not parked or len(codes) < len(offsets):
            return
        if is_large:
            call.run_in_greenlet("OffsetCommit", response, is_large=True)
        else:
            call.respond(response())

    for part in yielding_batches(offsets.items(), broker.runtime, PARTITIONS_AT_ONCE):
        commit_part(broker, request, dict(part), call.answering(done))
    if len(codes) == len(offsets):
        return response()
    parked = True
    return NoResponse.PARKED


def has_null_name(request: OffsetCommitRequest) -> bool:
    """Whether the group, or a topic with partitions, has a null name."""
    return request.group is NULL_NAME or any(
        topic.topic is NULL_NAME and topic.partitions for topic in request.topics
    )


def commit_part(
    broker: BrokerContext,
    request: OffsetCommitRequest,
    offsets: Mapping[TopicPartition, OffsetAndMetadata],
    done: Callable[[Mapping[TopicPartition, int]], object],
) -> None:
    """Calls `done` with a code per partition, maybe before this returns."""
    if request.version == ZOOKEEPER_VERSION:
        done(commit_to_zookeeper(broker, request.group, offsets))
        return
    known = {tp: offset for tp, offset in offsets.items() if may_exist(broker, tp)}
    is_old = broker.config.level < Level.V0_9_0
    if is_old and len(known) < len(offsets) and len(broker.offset_manager) < UNKNOWN_ABOVE:
        # 0.8: the offsets of a topic that the coordinator does not know are stored, too.
        others = ((tp, item) for tp, item in offsets.items() if tp not in known)
        known |= islice(others, UNKNOWN_MAX)
    unknown = dict.fromkeys(offsets.keys() - known.keys(), UnknownTopicOrPartition.code)

    def committed(codes: Mapping[TopicPartition, int]) -> None:
        done({**codes, **unknown})

    if not known:
        done(unknown)
    elif broker.config.level >= Level.V0_9_0:
        broker.group_coordinator.commit(request, known, committed)
    else:
        broker.offset_manager.commit(request.group, known, committed)


def may_exist(broker: BrokerContext, topic_partition: TopicPartition) -> bool:
    """Whether the topic is known here, and the partition is one of it, or may be soon. -1 is no
    partition, but one number: the originals store its offset."""
    topic, number = topic_partition
    if topic not in broker.metadata_cache:
        return False
    if broker.metadata_cache.partition_state(topic_partition) is not None:
        return True
    return -1 <= number < broker.metadata_cache.partition_count(topic) + PARTITIONS_AHEAD


def commit_to_zookeeper(
    broker: BrokerContext, group: str, offsets: Mapping[TopicPartition, OffsetAndMetadata]
) -> dict[TopicPartition, int]:
    """Write all offsets in one burst; returns the codes. A group without a name has error -1.
    Switches."""
    codes = dict.fromkeys(offsets, NO_ERROR)
    accepted: dict[TopicPartition, int] = {}
    for tp, item in offsets.items():
        if not may_exist(broker, tp):
            codes[tp] = UnknownTopicOrPartition.code
        elif java_length(item.metadata) > broker.config.offset_metadata_max_bytes:
            codes[tp] = OffsetMetadataTooLarge.code
        elif group:
            accepted[tp] = item.offset
        else:
            codes[tp] = UnknownError.code
    failed = GroupStore(broker.store.zk).commit_offsets(group, accepted)
    for tp, error in failed.items():
        logger.error(
            "cannot commit offset %d of %s: %s", accepted[tp], tp, error, extra=caused_by("")
        )
        codes[tp] = UnknownError.code
    return codes


def offsets_of(
    request: OffsetCommitRequest,
) -> Iterator[tuple[TopicPartition, OffsetAndMetadata]]:
    """The offsets with their partitions; of a duplicate partition the last one counts."""
    for topic in request.topics:
        for item in topic.partitions:
            yield (
                TopicPartition(topic.topic, item.partition),
                OffsetAndMetadata(item.offset, item.metadata, item.timestamp_ms),
            )


def respond(
    turns: Iterable[Iterable[TopicPartition]], code_of: Callable[[TopicPartition], int]
) -> OffsetCommitResponse:
    """One code per partition; a topic without partitions is left out. Switches if `turns` does."""
    topics: dict[str, list[OffsetCommitPartitionResponse]] = {}
    for tp in chain.from_iterable(turns):
        response = OffsetCommitPartitionResponse(tp.partition, code_of(tp))
        topics.setdefault(tp.topic, []).append(response)
    return OffsetCommitResponse([OffsetCommitTopicResponse(*item) for item in topics.items()])


def refuse(request: OffsetCommitRequest, code: int) -> Response:
    code = CODES_OF_GROUPS.get(code, code)
    return respond([by_partition(request.topics)], lambda _: code)
