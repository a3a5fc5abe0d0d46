"""AlterConfigs: replaces all overrides of topics; any broker does that.

An unknown key is 40 and a bad value 42, with a text; a null value and an unknown topic are -1. A
message.format.version that this broker does not know is 40, too: 0.11.0.3 stores it, and then no
broker of the cluster can start. Source: kafka.server.AdminManager.alterConfigs 0.11.0.2.
"""

from __future__ import annotations

from kafka08.broker.requests.call import Call, NoResponse
from kafka08.broker.requests.context import BrokerContext
from kafka08.broker.requests.error_text import error_text
from kafka08.broker.topics.topic_requests import NullValue, checked_overrides
from kafka08.errors import (
    NO_ERROR,
    AdminError,
    ConfigError,
    InvalidRequest,
    InvalidTopic,
    KafkaError,
    code_of,
)
from kafka08.protocol.alter_configs import (
    AlterConfigsRequest,
    AlterConfigsResponse,
    AlteredResource,
    AlteredResourceResult,
)
from kafka08.protocol.describe_configs import (
    BROKER,
    known_type,
    last_of_each,
    unexpected_type,
)
from kafka08.runtime.yielding import yielding_batches
from kafka08.topic_name import fault_at
from kafka08.zk import paths


def handle(broker: BrokerContext, request: AlterConfigsRequest, call: Call) -> NoResponse:
    return call.run_in_greenlet("AlterConfigs", lambda: alter(broker, request, call))


def alter(broker: BrokerContext, request: AlterConfigsRequest, call: Call) -> AlterConfigsResponse:
    """Switches, and ends early if the client has left."""
    last = last_of_each(request.resources)
    if unexpected := unexpected_type(kind for kind, _ in last):
        text = f"Unexpected resource type {unexpected}"
        return refuse(request, InvalidRequest.code, text)
    results = []
    for (wanted,) in yielding_batches(list(last.values()), broker.runtime, 1):
        if call.is_abandoned():
            break
        result = AlteredResourceResult(
            NO_ERROR, None, known_type(wanted.resource_type), wanted.resource_name
        )
        try:
            alter_one(broker, wanted, validate_only=request.validate_only)
        except KafkaError as error:
            result.error_code = code_of(error)
            if not isinstance(error, NullValue):
                result.message = error_text(error)
        results.append(result)
    return AlterConfigsResponse(0, results)


def alter_one(broker: BrokerContext, wanted: AlteredResource, *, validate_only: bool) -> None:
    """Switches. KafkaError."""
    name = wanted.resource_name
    if wanted.resource_type == BROKER:
        raise InvalidRequest(
            "AlterConfigs is only supported for topics, but resource type is BROKER"
        )
    pairs = [(entry.key, entry.value) for entry in wanted.configs]
    if any(value is None for _, value in pairs):
        raise NullValue(f"a value of topic {name} is null")
    if fault := fault_at(name, broker.config.level):
        raise InvalidTopic(fault)
    if not broker.store.zk.exists(paths.topic(name)):
        raise AdminError(f'Topic "{name}" does not exist.')
    try:
        overrides = checked_overrides(pairs, broker.config.level)
    except ConfigError as error:
        resource = f"Resource(type=TOPIC, name='{name}'}}"
        raise InvalidRequest(f"Invalid config value for resource {resource}: {error}") from None
    if not validate_only:
        broker.store.replace_topic_config(name, overrides)


def refuse(
    request: AlterConfigsRequest, code: int, text: str | None = None
) -> AlterConfigsResponse:
    last = last_of_each(request.resources)
    return AlterConfigsResponse(
        0, [AlteredResourceResult(code, text, known_type(kind), name) for kind, name in last]
    )
