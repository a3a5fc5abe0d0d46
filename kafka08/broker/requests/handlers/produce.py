"""Produce: appends message sets to partitions that this broker leads.

acks 0    no response; if any partition fails the connection is closed, so that a client notices
acks 1    the response follows the local append
acks -1   when the HW passes the set, i.e. every in-sync replica has it; min.insync.replicas of the
          topic is checked before (19, nothing appended) and after (20)
others    n > 1: when n in-sync replicas have it; below -1: as -1, but without the check before
Version 3 has one record batch in each set; else the connection is closed, and nothing is appended.
On timeout the code is 7, although the set is appended. Never creates a topic (3);
`__consumer_offsets` is refused (17), from 0.9 on unless the client id is ADMIN_CLIENT_ID.
Source: KafkaApis.handleProducerRequest 0.8.2.2.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Final

from kafka08.broker.purgatory.delayed_produce import AppendResult, AppendResults
from kafka08.broker.replication.grouped_errors import GroupedErrors
from kafka08.broker.requests.call import Call, NoResponse
from kafka08.broker.requests.context import BrokerContext
from kafka08.errors import (
    InvalidRequiredAcks,
    ProtocolError,
    Refusal,
    UnknownTopicOrPartition,
)
from kafka08.levels import Level
from kafka08.protocol.grouping import by_partition
from kafka08.protocol.produce import (
    MAGIC_2_VERSION,
    ProducePartitionResponse,
    ProduceRequest,
    ProduceResponse,
    ProduceTopicResponse,
)
from kafka08.protocol.record_batches import is_one_batch
from kafka08.protocol.types import Buffer
from kafka08.runtime.yielding import PARTITIONS_AT_ONCE
from kafka08.structs import NO_OFFSET, TopicPartition

logger = logging.getLogger(__name__)

ADMIN_CLIENT_ID: Final = "__admin_client"
"""kafka.admin.AdminUtils.AdminClientId."""


def handle(
    broker: BrokerContext, request: ProduceRequest, call: Call
) -> ProduceResponse | NoResponse:
    if request.required_acks not in {-1, 0, 1}:
        logger.warning(
            "Client %s from %s sent a produce request with request.required.acks of %d, which is "
            "now deprecated. Valid values are -1, 0 or 1.",
            call.header.client_id,
            call.peer,
            request.required_acks,
            extra=call.cause,
        )
    sets = {tp: partition.message_set for tp, partition in by_partition(request.topics).items()}
    if request.version >= MAGIC_2_VERSION:
        for tp, data in sets.items():
            if not is_one_batch(data):
                raise ProtocolError(
                    f"Produce {request.version} with another set than one record batch, for {tp}"
                )
    refused = None
    if request.transactional_id is not None:
        refused = broker.transaction_checks.begin(request.transactional_id, sets)
    if len(sets) <= PARTITIONS_AT_ONCE:
        return append(broker, request, call, sets, refused)
    # The buffer with the sets is reused when this returns.
    own = {tp: bytearray(message_set) for tp, message_set in sets.items()}
    return call.run_in_greenlet("Produce", lambda: append(broker, request, call, own, refused))


def append(
    broker: BrokerContext,
    request: ProduceRequest,
    call: Call,
    sets: Mapping[TopicPartition, Buffer],
    appended: AppendResults | None = None,
) -> ProduceResponse | NoResponse:
    """Append the sets but those that are `appended`, with these results. Switches if there are more
    than PARTITIONS_AT_ONCE sets."""
    finished: list[AppendResults] = []
    parked = False

    def done(results: AppendResults) -> None:
        # Before `append` has returned, its caller makes the response.
        if parked:
            finish(request, results, call)
        else:
            finished.append(results)

    broker.appender.append(
        sets,
        required_acks=request.required_acks,
        timeout_ms=request.timeout_ms,
        done=call.answering(done),
        appended=appended,
        when_closed=call.when_closed,
        internal_topics_allowed=(
            broker.config.level >= Level.V0_9_0 and call.header.client_id == ADMIN_CLIENT_ID
        ),
    )
    if finished:
        return outcome(request, finished[0], call)
    parked = True
    return NoResponse.PARKED


def handle_legal_acks(
    broker: BrokerContext, request: ProduceRequest, call: Call
) -> ProduceResponse | NoResponse:
    """Handles Produce from 0.9 on: acks other than -1, 0 and 1 are refused (21), and nothing is
    appended. From 0.10.2 on topics that are unknown here have error 3."""
    if request.required_acks in {-1, 0, 1}:
        return handle(broker, request, call)
    names_unknown = broker.config.level >= Level.V0_10_2
    return response(
        {
            tp: AppendResult(
                NO_OFFSET,
                NO_OFFSET,
                Refusal.of(
                    UnknownTopicOrPartition(str(tp))
                    if names_unknown and tp.topic not in broker.metadata_cache
                    else InvalidRequiredAcks(str(request.required_acks))
                ),
            )
            for tp in by_partition(request.topics)
        }
    )


def outcome(
    request: ProduceRequest, results: AppendResults, call: Call
) -> ProduceResponse | NoResponse:
    """The immediate response for these results."""
    report(results, call)
    if request.required_acks != 0:
        return response(results)
    if any(result.error is not None for result in results.values()):
        call.close(
            f"error handling produce request [clientId = {call.header.client_id}, correlationId = "
            f"{call.header.correlation_id}, topicAndPartition = {','.join(map(str, results))}] "
            "with Ack=0"
        )
    return NoResponse.SILENT


def finish(request: ProduceRequest, results: AppendResults, call: Call) -> None:
    """Respond to a parked call with these results."""
    response = outcome(request, results, call)
    if isinstance(response, ProduceResponse):
        call.respond(response)
    else:
        call.respond_encoded(b"")


def report(results: AppendResults, call: Call) -> None:
    """Log one line for each kind of error."""
    refused = GroupedErrors()
    for topic_partition, result in results.items():
        if result.error is not None:
            refused.add(topic_partition, result.error)
    for partitions, error in refused:
        logger.info(
            "Produce request with correlation id %d from client %s on %s failed due to %s",
            call.header.correlation_id,
            call.header.client_id,
            partitions,
            error,
            extra=call.cause,
        )


def response(results: AppendResults) -> ProduceResponse:
    topics: dict[str, list[ProducePartitionResponse]] = {}
    for topic_partition, result in results.items():
        topics.setdefault(topic_partition.topic, []).append(
            ProducePartitionResponse(
                topic_partition.partition,
                result.error_code,
                result.base_offset,
                result.log_append_time_ms,
            )
        )
    return ProduceResponse([ProduceTopicResponse(*item) for item in topics.items()])


def refuse(request: ProduceRequest, code: int) -> ProduceResponse:
    return ProduceResponse(
        [
            ProduceTopicResponse(
                topic.topic,
                [
                    ProducePartitionResponse(partition.partition, code, NO_OFFSET)
                    for partition in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )
