"""CreateTopics: the controller writes topics into ZooKeeper and waits for their leaders.

Each topic has its own code; a duplicate topic is 42. Not the controller: 41 for all. A topic that
is created but has no leaders within the timeout is 7; so is every one with a timeout of 0. Version
1 can request the checks alone. Source: KafkaApis.handleCreateTopicsRequest 0.10.2.2.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Collection
from typing import Final

from kafka08.broker.requests.call import Call, NoResponse
from kafka08.broker.requests.context import BrokerContext
from kafka08.broker.requests.error_text import error_text
from kafka08.broker.topics.topic_requests import (
    KnownTopics,
    NullValue,
    PartitionBudget,
    assignment_of,
    check_assignment,
    check_name,
    overrides_of,
)
from kafka08.errors import (
    InvalidRequest,
    KafkaError,
    NodeExists,
    NotController,
    RequestTimedOut,
    TopicAlreadyExists,
    code_of,
)
from kafka08.kernel.types import STRING_BYTES_MAX
from kafka08.profile import topic_overrides
from kafka08.protocol.create_topics import (
    CreateTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
    NewTopic,
)
from kafka08.runtime.yielding import yielding_batches

logger = logging.getLogger(__name__)

TEXTS_BYTES_MAX: Final = 16 << 20
"""The most bytes of all texts of a response: each of many topics may have the names of all."""


def handle(
    broker: BrokerContext, request: CreateTopicsRequest, call: Call
) -> CreateTopicsResponse | NoResponse:
    if not broker.controller.is_active:
        return refuse(request, NotController.code)
    return call.run_in_greenlet("CreateTopics", lambda: create(broker, request, call))


def create(broker: BrokerContext, request: CreateTopicsRequest, call: Call) -> CreateTopicsResponse:
    """Create the legal topics, and wait for their leaders. Switches, and ends early if the client
    has left."""
    times = Counter(wanted.topic for wanted in request.topics)
    twice = named_twice(call, times)
    results: dict[str, CreateTopicResult] = {}
    written: dict[str, Collection[int]] = {}
    existing = KnownTopics(broker.store.topics())
    budget = PartitionBudget()
    text_bytes = min(STRING_BYTES_MAX, TEXTS_BYTES_MAX // max(1, len(times)))
    for (wanted,) in yielding_batches(request.topics, broker.runtime, 1):
        if call.is_abandoned():
            break
        topic = wanted.topic
        if times[topic] > 1:
            text = error_text(InvalidRequest(twice), text_bytes)
            results[topic] = CreateTopicResult(topic, InvalidRequest.code, text)
            continue
        try:
            budget.take(wanted)
            partitions = create_one(broker, wanted, existing, validate_only=request.validate_only)
        except KafkaError as error:
            logger.info(
                "Error processing create topic request for topic %s: %s",
                topic,
                error,
                extra=call.cause,
            )
            detail = None if isinstance(error, NullValue) else error_text(error, text_bytes)
            results[topic] = CreateTopicResult(topic, code_of(error), detail)
        else:
            results[topic] = CreateTopicResult(topic, 0)
            if not request.validate_only:
                written[topic] = partitions
                existing.add(topic)
    waits = broker.topic_waits
    for topic in waits.await_leaders(written, request.timeout_ms, call.when_closed):
        results[topic] = CreateTopicResult(topic, RequestTimedOut.code)
    return CreateTopicsResponse([*results.values()])


def create_one(
    broker: BrokerContext, wanted: NewTopic, existing: KnownTopics, *, validate_only: bool
) -> Collection[int]:
    """Check and create one topic; returns its partitions. Switches. ApiError."""
    overrides = overrides_of(wanted, broker.config.level)
    racks, rng = broker.metadata_cache.racks, broker.runtime.random
    assignment = assignment_of(wanted, racks, rng, validate_only=validate_only)
    check_name(wanted.topic, existing, broker.config.level)
    check_assignment(assignment)
    if not validate_only:
        replicas = len(next(iter(assignment.values())))
        profile = topic_overrides(broker.config.kafka08_profile, replicas)
        try:
            broker.store.create_topic(wanted.topic, assignment, {**profile, **overrides})
        except NodeExists:
            raise TopicAlreadyExists(f"Topic '{wanted.topic}' already exists.") from None
    return tuple(assignment) if wanted.assignment else range(len(assignment))


def named_twice(call: Call, times: Counter[str]) -> str:
    topics = ",".join(topic for topic, count in times.items() if count > 1)
    return (
        f"Create topics request from client `{call.header.client_id}` contains multiple entries "
        f"for the following topics: {topics}"
    )


def refuse(request: CreateTopicsRequest, code: int) -> CreateTopicsResponse:
    topics = dict.fromkeys(wanted.topic for wanted in request.topics)
    return CreateTopicsResponse([CreateTopicResult(topic, code) for topic in topics])
