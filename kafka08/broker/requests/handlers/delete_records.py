"""DeleteRecords: partitions of this broker start at a higher offset; see RecordDeletions.

The response follows when every live replica does. A partition that takes longer than the timeout
gets 7, with the low watermark of before. Others: 3 unknown, or led by another broker that has no
replica here, 6 followed here, 17 internal topic, 1 above the high watermark or negative, 44 without
`delete` in cleanup.policy. Source: kafka.server.KafkaApis.handleDeleteRecordsRequest 0.11.0.2.
"""

from __future__ import annotations

from kafka08.broker.purgatory.delayed_deletion import Deletion, Deletions
from kafka08.broker.requests.call import Call, NoResponse
from kafka08.broker.requests.context import BrokerContext
from kafka08.protocol.delete_records import (
    NO_LOW_WATERMARK,
    DeleteRecordsPartitionResponse,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopicResponse,
)
from kafka08.protocol.grouping import by_partition, by_topic


def handle(broker: BrokerContext, request: DeleteRecordsRequest, call: Call) -> NoResponse:
    before = {tp: wanted.offset for tp, wanted in by_partition(request.topics).items()}
    reply = call.answering(lambda results: call.respond(respond(results)))

    def delete() -> NoResponse:
        deletions = broker.record_deletions
        deletions.delete(before, request.timeout_ms, call.when_closed, reply)
        return NoResponse.PARKED

    return call.run_in_greenlet("DeleteRecords", delete)


def respond(results: Deletions) -> DeleteRecordsResponse:
    return DeleteRecordsResponse(
        0,
        [
            DeleteRecordsTopicResponse(
                topic,
                [DeleteRecordsPartitionResponse(number, *result) for number, result in items],
            )
            for topic, items in by_topic(results).items()
        ],
    )


def refuse(request: DeleteRecordsRequest, code: int) -> DeleteRecordsResponse:
    refused = Deletion(NO_LOW_WATERMARK, code)
    return respond(dict.fromkeys(by_partition(request.topics), refused))
