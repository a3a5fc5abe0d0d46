"""DeleteTopics: the controller deletes topics, and waits until they are gone.

Not the controller: 41 for all; an unknown topic: 3. One that is not gone within the timeout is 7,
and so is every one with a timeout of 0: the request stays in ZooKeeper. Every one is 7 without
delete.topic.enable, too, where the controller removes the request. From 0.11 on an internal topic
is 17. Source: KafkaApis.handleDeleteTopicsRequest 0.10.2.2.
"""

from __future__ import annotations

from kafka08.broker.requests.call import Call, NoResponse
from kafka08.broker.requests.context import BrokerContext
from kafka08.errors import (
    NO_ERROR,
    InvalidTopic,
    NodeExists,
    NotController,
    RequestTimedOut,
    UnknownTopicOrPartition,
    ZooKeeperError,
    code_of,
)
from kafka08.levels import Level
from kafka08.protocol.delete_topics import (
    DeleteTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
)
from kafka08.structs import INTERNAL_TOPICS
from kafka08.zk import nodes, paths


def handle(
    broker: BrokerContext, request: DeleteTopicsRequest, call: Call
) -> DeleteTopicsResponse | NoResponse:
    if not broker.controller.is_active:
        return refuse(request, NotController.code)
    return call.run_in_greenlet("DeleteTopics", lambda: delete(broker, request, call))


def delete(broker: BrokerContext, request: DeleteTopicsRequest, call: Call) -> DeleteTopicsResponse:
    """Request the deletion of each topic, and wait for it. Switches."""
    codes = {topic: delete_one(broker, topic) for topic in dict.fromkeys(request.topics)}
    asked = [topic for topic, code in codes.items() if code == NO_ERROR]
    for topic in broker.topic_waits.await_absence(asked, request.timeout_ms, call.when_closed):
        codes[topic] = RequestTimedOut.code
    return DeleteTopicsResponse([DeleteTopicResult(*item) for item in codes.items()])


def delete_one(broker: BrokerContext, topic: str) -> int:
    """Request the deletion of a topic; returns the code so far. Switches."""
    if topic not in broker.metadata_cache:
        return UnknownTopicOrPartition.code
    if topic in INTERNAL_TOPICS and broker.config.level >= Level.V0_11_0:
        # 0.11.0.3 deletes the offsets of all groups, and all transactions.
        return InvalidTopic.code
    zk = broker.store.zk
    try:
        if not zk.exists(paths.topic(topic)):
            return UnknownTopicOrPartition.code
        zk.create(paths.delete_topic(topic), nodes.encode_delete_topic())
    except NodeExists:
        return NO_ERROR  # requested before: wait as for a new request
    except ZooKeeperError as error:
        return code_of(error)
    return NO_ERROR


def refuse(request: DeleteTopicsRequest, code: int) -> DeleteTopicsResponse:
    topics = dict.fromkeys(request.topics)
    return DeleteTopicsResponse([DeleteTopicResult(topic, code) for topic in topics])
