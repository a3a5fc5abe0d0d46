"""Metadata: brokers, topics and leaders, from the metadata cache alone; creates unknown topics.

No topics in the request mean all of them. An unknown legal name is created with
auto.create.topics.enable (`__consumer_offsets` always) and returned with 5 and no partitions; else
it is 3. One illegal name fails the whole response: no brokers, and 17 for every topic. Responses
without a creation are cached in encoded form until the metadata changes. Source:
KafkaApis.handleTopicMetadataRequest 0.8.2.2.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from kafka08.broker.requests.call import Call, NoResponse
from kafka08.broker.requests.context import BrokerContext
from kafka08.errors import LeaderNotAvailable, UnknownTopicOrPartition
from kafka08.protocol.codec import encoded_exchange, frame_of
from kafka08.protocol.metadata import (
    BrokerEndpoint,
    MetadataRequest,
    MetadataResponse,
    TopicMetadata,
)
from kafka08.runtime.yielding import PARTITIONS_AT_ONCE, yielding

REMEMBERED_TOPICS_MAX: Final = 1000
"""The response to a request with more topics is not worth caching."""


def handle(
    broker: BrokerContext, request: MetadataRequest, call: Call
) -> MetadataResponse | bytes | NoResponse:
    # Without duplicates, as the JVM reads it, but in the order of the request.
    if request.topics is None:
        topics = sorted(broker.metadata_cache.topics)
    else:
        topics = list(dict.fromkeys(request.topics))
    unknown = [topic for topic in topics if topic not in broker.metadata_cache]
    to_create = [topic for topic in unknown if broker.topics.creates(topic)]
    is_large = len(unknown) > PARTITIONS_AT_ONCE
    if not to_create and not is_large:
        return remembered(broker, request, response(broker, topics), call)

    def create() -> MetadataResponse:
        broker.topics.create(to_create)
        return response(broker, yielding(topics, broker.runtime), created=frozenset(to_create))

    return call.run_in_greenlet("Metadata", create, is_large=is_large)


def remembered(
    broker: BrokerContext,
    request: MetadataRequest,
    made: MetadataResponse,
    call: Call,
    prefix: bytes = b"",
) -> MetadataResponse | bytes:
    """The response, as a frame that is cached for the next such request, unless that has many
    topics. `prefix`: what stands before the request's body in the cache."""
    if len(request.topics or ()) > REMEMBERED_TOPICS_MAX:
        return made
    request_body, body = encoded_exchange(request, made)
    broker.metadata_cache.cache_response(prefix + request_body, body)
    return frame_of(body, call.header.correlation_id)


def response(
    broker: BrokerContext, topics: Iterable[str], created: frozenset[str] = frozenset()
) -> MetadataResponse:
    """The response for `topics`; those just `created` have no leader yet. Switches if `topics`
    does."""
    cache = broker.metadata_cache
    return MetadataResponse(
        [BrokerEndpoint(*live) for live in cache.live_brokers()],
        [
            cache.topic_metadata(topic)
            if topic in cache and topic not in created
            else TopicMetadata(
                LeaderNotAvailable.code if topic in created else UnknownTopicOrPartition.code,
                topic,
                [],
            )
            for topic in topics
        ],
    )


def refuse(request: MetadataRequest, code: int) -> MetadataResponse:
    # 0.8: an error response has no brokers either.
    topics = dict.fromkeys(request.topics or ())
    return MetadataResponse([], [TopicMetadata(code, topic, []) for topic in topics])
