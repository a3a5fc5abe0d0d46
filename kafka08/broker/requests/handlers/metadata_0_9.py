"""Metadata from 0.9 on: each topic succeeds or fails by itself; 0.10 and 0.11 add versions.

An illegal name is 17 for its topic only, and so are other errors of a creation (38 at 0.10.2 for
too few brokers). From version 1 on, null means all topics and an empty list none, and dead replicas
stay listed without an error. At 0.11 a controller that is not among the brokers of the response is
-1. Version 4 may forbid the creation of topics, except of internal ones.
Source: KafkaApis.handleTopicMetadataRequest 0.9.0.1, 0.10.2.2, 0.11.0.2.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from kafka08.broker.requests.call import Call, NoResponse
from kafka08.broker.requests.context import BrokerContext
from kafka08.broker.requests.handlers.metadata import remembered
from kafka08.errors import (
    AdminError,
    InvalidReplicationFactor,
    KafkaError,
    LeaderNotAvailable,
    UnknownTopicOrPartition,
    code_of,
)
from kafka08.levels import Level
from kafka08.protocol.metadata import (
    BrokerEndpoint,
    MetadataRequest,
    MetadataResponse,
    TopicMetadata,
)
from kafka08.runtime.yielding import PARTITIONS_AT_ONCE, yielding
from kafka08.structs import INTERNAL_TOPICS, NO_CONTROLLER


def handle(
    broker: BrokerContext, request: MetadataRequest, call: Call
) -> MetadataResponse | bytes | NoResponse:
    cache = broker.metadata_cache
    topics = sorted(cache.topics) if request.topics is None else [*dict.fromkeys(request.topics)]
    unknown = [topic for topic in topics if topic not in cache]
    may_create = request.allow_auto_topic_creation
    to_create = [
        topic
        for topic in unknown
        if broker.topics.creates(topic) and (may_create or topic in INTERNAL_TOPICS)
    ]
    is_large = len(unknown) > PARTITIONS_AT_ONCE
    if not to_create and not is_large:
        made = response(broker, request, topics, {})
        return remembered(broker, request, made, call, broker.request_prefix)

    def create() -> MetadataResponse:
        created = {t: create_one(broker, t) for t in yielding(to_create, broker.runtime)}
        return response(broker, request, yielding(topics, broker.runtime), created)

    return call.run_in_greenlet("Metadata", create, is_large=is_large)


def create_one(broker: BrokerContext, topic: str) -> int:
    """Create a topic; returns its code in the response. Switches."""
    try:
        broker.topics.create([topic])
    except AdminError as error:
        new = InvalidReplicationFactor.is_of(broker.config.level)
        return InvalidReplicationFactor.code if new else code_of(error)
    except KafkaError as error:
        return code_of(error)
    return LeaderNotAvailable.code


def response(
    broker: BrokerContext,
    request: MetadataRequest,
    topics: Iterable[str],
    created: Mapping[str, int],
) -> MetadataResponse:
    """The response for `topics`; `created` has the codes of those that were unknown. Switches if
    `topics` does."""
    cache, level = broker.metadata_cache, broker.config.level
    controller_id = cache.controller_id
    if level >= Level.V0_11_0 and cache.broker(controller_id, broker.listener) is None:
        controller_id = NO_CONTROLLER

    def describe(topic: str) -> TopicMetadata:
        if topic in created or topic not in cache:
            code = created.get(topic, UnknownTopicOrPartition.code)
            return TopicMetadata(code, topic, [], topic in INTERNAL_TOPICS)
        return cache.topic_metadata(
            topic, listener=broker.listener, lists_dead=request.version >= 1
        )

    return MetadataResponse(
        [
            BrokerEndpoint(*live, rack=cache.racks.get(live.id))
            for live in cache.live_brokers(broker.listener)
        ],
        [describe(topic) for topic in topics],
        controller_id,
        broker.cluster_id if level >= Level.V0_10_2 else None,
    )


def refuse(request: MetadataRequest, code: int) -> MetadataResponse:
    topics = dict.fromkeys(request.topics or ())
    return MetadataResponse([], [TopicMetadata(code, topic, []) for topic in topics])
