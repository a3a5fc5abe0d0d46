"""DescribeConfigs: topics from ZooKeeper, and the broker that gets the request.

An unknown topic has the defaults, without an error. A resource that is named twice has the keys of
the last one; one of another type makes all of them 42. Source:
kafka.server.AdminManager.describeConfigs 0.11.0.2.
"""

from __future__ import annotations

from kafka08.broker.requests.call import Call, NoResponse
from kafka08.broker.requests.context import BrokerContext
from kafka08.broker.requests.error_text import error_text
from kafka08.broker.topics.config_entries import broker_entries, topic_entries
from kafka08.errors import NO_ERROR, InvalidRequest, InvalidTopic, KafkaError, code_of
from kafka08.protocol.describe_configs import (
    TOPIC,
    DescribeConfigsRequest,
    DescribeConfigsResponse,
    DescribedConfig,
    DescribedConfigs,
    DescribedResource,
    known_type,
    last_of_each,
    unexpected_type,
)
from kafka08.runtime.yielding import yielding_batches
from kafka08.topic_name import fault_at


def handle(broker: BrokerContext, request: DescribeConfigsRequest, call: Call) -> NoResponse:
    return call.run_in_greenlet("DescribeConfigs", lambda: describe(broker, request, call))


def describe(
    broker: BrokerContext, request: DescribeConfigsRequest, call: Call
) -> DescribeConfigsResponse:
    """Switches, and ends early if the client has left."""
    last = last_of_each(request.resources)
    for kind, name in last:
        if unexpected := unexpected_type([kind]):
            text = f"Unexpected resource type {unexpected} for resource {name}"
            return refuse(request, InvalidRequest.code, error_text(InvalidRequest(text)))
    results = []
    for (wanted,) in yielding_batches(list(last.values()), broker.runtime, 1):
        if call.is_abandoned():
            break
        result = DescribedConfigs(
            NO_ERROR, None, known_type(wanted.resource_type), wanted.resource_name, []
        )
        try:
            result.configs = entries_of(broker, wanted)
        except KafkaError as error:
            result.error_code = code_of(error)
            result.message = error_text(error)
        results.append(result)
    return DescribeConfigsResponse(0, results)


def entries_of(broker: BrokerContext, wanted: DescribedResource) -> list[DescribedConfig]:
    """Switches. InvalidTopic, InvalidRequest, ZooKeeperError."""
    name = wanted.resource_name
    names = None if wanted.names is None else frozenset(wanted.names)
    if wanted.resource_type == TOPIC:
        if fault := fault_at(name, broker.config.level):
            raise InvalidTopic(fault)
        return topic_entries(name, broker.store.topic_config(name), broker.config, names)
    own = broker.config.broker_id
    if not is_int(name):
        raise InvalidRequest(f"Broker id must be an integer, but it is: {name}")
    if int(name) != own:
        raise InvalidRequest(f"Unexpected broker id, expected {own}, but received {int(name)}")
    return broker_entries(broker.config, names)


def is_int(text: str) -> bool:
    """Whether Java's Integer.parseInt reads it; Python would read blanks and underscores, too."""
    digits = text[1:] if text[:1] in {"+", "-"} else text
    return len(digits) <= 10 and digits.isascii() and digits.isdigit()


def refuse(
    request: DescribeConfigsRequest, code: int, text: str | None = None
) -> DescribeConfigsResponse:
    last = last_of_each(request.resources)
    return DescribeConfigsResponse(
        0, [DescribedConfigs(code, text, known_type(kind), name, []) for kind, name in last]
    )
