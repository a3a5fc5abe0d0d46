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
from collections.abc import Callable, Mapping
from typing import Final

from kafka08.broker.call import Call, NoResponse
from kafka08.broker.context import BrokerContext
from kafka08.broker.coordinator.offset_manager import FetchedOffset
from kafka08.errors import (
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
from kafka08.structs import OFFSETS_TOPIC, TopicPartition
from kafka08.zk.group_store import GroupStore

logger = logging.getLogger(__name__)

ZOOKEEPER_VERSION: Final = 0
"""The version that reads offsets from ZooKeeper."""
VERSION_WITH_ERROR_CODE: Final = 2
"""The first version whose response has an error code for the group."""
UNKNOWN_PARTITION = FetchedOffset(error_code=UnknownTopicOrPartition.code)


def handle(broker: BrokerContext, request: OffsetFetchRequest, call: Call) -> Response | NoResponse:
    if request.version == ZOOKEEPER_VERSION:
        return call.run_in_greenlet("OffsetFetch v0", lambda: fetch_from_zookeeper(broker, request))
    if request.group is NULL_NAME:
        raise UnknownError("a group whose name is null")
    if broker.config.is_safe and broker.unheard_successors.may_exist(
        TopicPartition(OFFSETS_TOPIC, broker.offset_manager.partition_for(request.group))
    ):
        return refuse(request, NotCoordinatorForConsumer.code)
    if broker.config.level >= Level.V0_9_0:
        return fetch_from_coordinator(broker, request)
    known = [
        tp for tp in partitions_of(request) if broker.metadata_cache.partition_state(tp) is not None
    ]
    fetched = broker.offset_manager.fetch(request.group, known)
    return respond(request, lambda tp: fetched.get(tp, UNKNOWN_PARTITION))


def refuse(request: OffsetFetchRequest, code: int) -> Response:
    if request.version >= VERSION_WITH_ERROR_CODE:
        return OffsetFetchResponse([], code)
    return respond(request, lambda _: FetchedOffset(error_code=code))


def fetch_from_coordinator(broker: BrokerContext, request: OffsetFetchRequest) -> Response:
    partitions = None if request.topics is None else partitions_of(request)
    if not partitions and broker.config.level is Level.V0_9_0:
        partitions = None
    error_code, fetched = broker.group_coordinator.fetch(request.group, partitions)
    return refuse(request, error_code) if error_code else response_of(fetched)


def fetch_from_zookeeper(broker: BrokerContext, request: OffsetFetchRequest) -> Response:
    """Read all offsets in one burst; one by one if some znode has no number. A group without a name
    has error -1. Switches."""
    known = [tp for tp in partitions_of(request) if tp.topic in broker.metadata_cache]
    if not request.group:
        nameless = dict.fromkeys(known, FetchedOffset(error_code=UnknownError.code))
        return respond(request, lambda tp: nameless.get(tp, UNKNOWN_PARTITION))
    fetched: dict[TopicPartition, FetchedOffset] = {}
    try:
        offsets = GroupStore(broker.store.zk).offsets(request.group, known)
    except ZooKeeperError:
        fetched = {tp: fetch_one(broker, request.group, tp) for tp in known}
    else:
        fetched = {tp: FetchedOffset(offset) for tp, offset in offsets.items()}
    return respond(request, lambda tp: fetched.get(tp, UNKNOWN_PARTITION))


def fetch_one(broker: BrokerContext, group: str, tp: TopicPartition) -> FetchedOffset:
    try:
        offset = GroupStore(broker.store.zk).offsets(group, [tp]).get(tp)
    except ZooKeeperError as error:
        logger.error(
            "cannot read the offset of group %s for %s: %s", group, tp, error, extra=caused_by("")
        )
        return FetchedOffset(error_code=UnknownError.code)
    return UNKNOWN_PARTITION if offset is None else FetchedOffset(offset)


def partitions_of(request: OffsetFetchRequest) -> list[TopicPartition]:
    """The partitions of the request, without duplicates."""
    topics = request.topics or ()
    names = (TopicPartition(t.topic, number) for t in topics for number in t.partitions)
    return list(dict.fromkeys(names))


def respond(
    request: OffsetFetchRequest, offset_of: Callable[[TopicPartition], FetchedOffset]
) -> OffsetFetchResponse:
    """One offset per partition, without duplicates; a topic without partitions is left out."""
    return response_of({tp: offset_of(tp) for tp in partitions_of(request)})


def response_of(offsets: Mapping[TopicPartition, FetchedOffset]) -> OffsetFetchResponse:
    return OffsetFetchResponse(
        [
            OffsetFetchTopicResponse(
                topic,
                [
                    OffsetFetchPartitionResponse(number, o.offset, o.metadata, o.error_code)
                    for number, o in items
                ],
            )
            for topic, items in by_topic(offsets).items()
        ]
    )
