"""OffsetFetch, version 0 from ZooKeeper, the others from `__consumer_offsets`.

Version 0: offset -1 with 3 if the topic is unknown here or there is no znode. Version 1: 3 for a
partition that the metadata cache does not have; others as from OffsetManager.fetch (never
committed: -1 without an error). An empty request gets an empty response.

From level 0.9 on the metadata cache is not checked, and an empty request of 0.9 gets all offsets of
the group, as null does in version 2. An error of the group is repeated for every partition; in
version 2 it is at the end, without partitions. Source: kafka.server.KafkaApis 0.8.2.2, 0.9.0.1 and
0.10.2.2.

In the safe profile a broker whose ZooKeeper session may have expired, or that has not heard since
then who leads the group's partition, refuses all but version 0: another broker may coordinate the
group by then, and have newer offsets. A member that got an old one would begin there, and commit
it. 0.8.2.2 tells it all the same.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Final

from kafka08.broker.groups.offset_manager import FetchedOffset
from kafka08.broker.requests.call import Call, NoResponse
from kafka08.broker.requests.context import BrokerContext
from kafka08.errors import (
    NO_ERROR,
    NotCoordinatorForConsumer,
    UnknownError,
    UnknownTopicOrPartition,
    ZooKeeperError,
)
from kafka08.levels import Level
from kafka08.log_limit import caused_by
from kafka08.protocol.grouping import by_topic
from kafka08.protocol.offset_fetch import (
    OffsetFetchPartitionResponse,
    OffsetFetchRequest,
    OffsetFetchResponse,
    OffsetFetchTopicResponse,
)
from kafka08.protocol.types import NULL_NAME, Response
from kafka08.runtime.yielding import PARTITIONS_AT_ONCE, yielding_batches
from kafka08.structs import OFFSETS_TOPIC, TopicPartition
from kafka08.zk.group_store import GroupStore

logger = logging.getLogger(__name__)

ZOOKEEPER_VERSION: Final = 0
"""The version that reads offsets from ZooKeeper."""
VERSION_WITH_ERROR_CODE: Final = 2
"""The first version whose response has an error code for the group."""
UNKNOWN_PARTITION = FetchedOffset(error_code=UnknownTopicOrPartition.code)


def handle(broker: BrokerContext, request: OffsetFetchRequest, call: Call) -> Response | NoResponse:
    count = sum(len(topic.partitions) for topic in request.topics or ())
    if wants_all(broker, request):
        count = broker.offset_manager.count_of_group(request.group)
    is_large = count > PARTITIONS_AT_ONCE
    if is_large or request.version == ZOOKEEPER_VERSION:
        name = f"OffsetFetch v{request.version}"
        return call.run_in_greenlet(name, lambda: fetch(broker, request), is_large=is_large)
    return fetch(broker, request)


def wants_all(broker: BrokerContext, request: OffsetFetchRequest) -> bool:
    """Whether the request is for all offsets of the group."""
    if request.topics is None:
        return True
    is_empty = not any(topic.partitions for topic in request.topics)
    of_0_9 = broker.config.level is Level.V0_9_0 and request.version != ZOOKEEPER_VERSION
    return is_empty and of_0_9


def fetch(broker: BrokerContext, request: OffsetFetchRequest) -> Response:
    """Switches if there are more than PARTITIONS_AT_ONCE offsets, or if ZooKeeper has them. The
    group is checked again after that. A request for all offsets has an empty response where there
    is an error."""
    topics: dict[str, list[OffsetFetchPartitionResponse]] = {}
    has_code = request.version >= VERSION_WITH_ERROR_CODE
    wanted = partitions_of(broker, request)
    # One turn without partitions still finds an error of the group.
    turns = yielding_batches(wanted, broker.runtime, PARTITIONS_AT_ONCE) if wanted else [()]
    for turn in turns:
        error_code, offsets = find(broker, request, turn)
        if error_code and (has_code or wants_all(broker, request)):
            return OffsetFetchResponse([], error_code)
        for tp in turn:
            found = FetchedOffset(error_code=error_code) if error_code else offsets[tp]
            topics.setdefault(tp.topic, []).append(response_of(tp.partition, found))
    return OffsetFetchResponse([OffsetFetchTopicResponse(*item) for item in topics.items()])


def partitions_of(broker: BrokerContext, request: OffsetFetchRequest) -> Collection[TopicPartition]:
    """The partitions of the response, without duplicates. Switches if there are more than
    PARTITIONS_AT_ONCE."""
    if wants_all(broker, request):
        return broker.offset_manager.partitions_of_group(request.group)
    partitions: dict[TopicPartition, None] = {}
    for turn in yielding_batches(named_by(request), broker.runtime, PARTITIONS_AT_ONCE):
        partitions.update(dict.fromkeys(turn))
    return partitions


def named_by(request: OffsetFetchRequest) -> Iterator[TopicPartition]:
    for topic in request.topics or ():
        for number in topic.partitions:
            yield TopicPartition(topic.topic, number)


def find(
    broker: BrokerContext, request: OffsetFetchRequest, partitions: Sequence[TopicPartition]
) -> tuple[int, Mapping[TopicPartition, FetchedOffset]]:
    """The error code of the group and, without one, the offset of each partition. Switches if
    ZooKeeper has them."""
    cache = broker.metadata_cache
    if request.version == ZOOKEEPER_VERSION:
        known = [tp for tp in partitions if tp.topic in cache]
        fetched = find_in_zookeeper(broker, request.group, known)
    elif request.group is NULL_NAME:
        return UnknownError.code, {}
    elif broker.config.is_safe and broker.unconfirmed_leaderships.is_unconfirmed(
        TopicPartition(OFFSETS_TOPIC, broker.offset_manager.partition_for(request.group))
    ):
        return NotCoordinatorForConsumer.code, {}
    elif broker.config.level >= Level.V0_9_0:
        return broker.group_coordinator.fetch(request.group, partitions)
    else:
        known = [tp for tp in partitions if cache.partition_state(tp) is not None]
        fetched = broker.offset_manager.fetch(request.group, known)
    return NO_ERROR, {tp: fetched.get(tp, UNKNOWN_PARTITION) for tp in partitions}


def find_in_zookeeper(
    broker: BrokerContext, group: str, partitions: Sequence[TopicPartition]
) -> dict[TopicPartition, FetchedOffset]:
    """Read all offsets in one burst; one by one if some znode has no number. A group without a name
    has error -1. Switches."""
    if not group:
        return dict.fromkeys(partitions, FetchedOffset(error_code=UnknownError.code))
    try:
        offsets = GroupStore(broker.store.zk).offsets(group, partitions)
    except ZooKeeperError:
        return {tp: fetch_one(broker, group, tp) for tp in partitions}
    return {tp: FetchedOffset(offset) for tp, offset in offsets.items()}


def fetch_one(broker: BrokerContext, group: str, tp: TopicPartition) -> FetchedOffset:
    try:
        offset = GroupStore(broker.store.zk).offsets(group, [tp]).get(tp)
    except ZooKeeperError as error:
        logger.error(
            "cannot read the offset of group %s for %s: %s", group, tp, error, extra=caused_by("")
        )
        return FetchedOffset(error_code=UnknownError.code)
    return UNKNOWN_PARTITION if offset is None else FetchedOffset(offset)


def response_of(partition: int, found: FetchedOffset) -> OffsetFetchPartitionResponse:
    return OffsetFetchPartitionResponse(partition, found.offset, found.metadata, found.error_code)


def refuse(request: OffsetFetchRequest, code: int) -> Response:
    if request.version >= VERSION_WITH_ERROR_CODE:
        return OffsetFetchResponse([], code)
    refused = dict.fromkeys(named_by(request), FetchedOffset(error_code=code))
    return OffsetFetchResponse(
        [
            OffsetFetchTopicResponse(topic, [response_of(*item) for item in items])
            for topic, items in by_topic(refused).items()
        ]
    )
