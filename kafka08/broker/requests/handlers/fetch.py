"""Fetch: reads from partitions, at once or when there is enough.

The response is immediate if the wait is not positive, the request is empty, min_bytes can be read,
or any partition has an error; otherwise the request is parked. Consumers (replica_id -1) read from
the leader up to the HW, followers (>= 0) up to the LEO, a DEBUGGING_CONSUMER from any replica up to
the HW. A follower's offset moves HW and ISR before the response, which has the HW from before; a
broker that is not assigned gets -1 for everything, and one whose offset may be of an earlier
leadership gets 6 once. Message sets are sent from their files; small ones for a follower are copied
into the response. Source: KafkaApis.handleFetchRequest 0.8.2.2.

Version 3, of 0.10.1, limits the whole response, and keeps the order of the request. Each partition
is read up to the smaller of its own limit and the rest of the response's. The first message of the
response is whole, however large; after that, a partition whose first message does not fit returns
nothing. At level 0.10.2 topics unknown to this broker come last, and do not end the wait for data
of others; a fetch between the HW and the LEO is empty, not -1; and versions 0 and 1 get magic 0
only: sets with other messages are converted (converted_set). Reads and waits refer to the log's
bytes, whatever is sent. Source: ReplicaManager (readFromLocalLog), KafkaApis.handleFetchRequest
0.10.2.2.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kafka08.broker.requests.call import Call, NoResponse
from kafka08.broker.requests.context import BrokerContext
from kafka08.broker.requests.fetch_call import FetchCall
from kafka08.levels import Level
from kafka08.protocol.fetch import (
    NO_HIGH_WATERMARK,
    FetchPartition,
    FetchPartitionResponse,
    FetchRequest,
    FetchResponse,
    FetchTopicResponse,
)
from kafka08.protocol.grouping import by_partition

if TYPE_CHECKING:
    from kafka08.network.server_connection import ResponseFrame
    from kafka08.structs import TopicPartition


def handle(broker: BrokerContext, request: FetchRequest, call: Call) -> ResponseFrame | NoResponse:
    """Handle a request that the codec has decoded."""
    if broker.config.level >= Level.V0_10_2:
        # A stable sort: all others keep the order of the request.
        request.topics.sort(key=lambda topic: topic.topic not in broker.metadata_cache)
    wanted = by_partition(request.topics)
    return call.run_by_count("Fetch", len(wanted), lambda: answer(broker, wanted, call))


def answer(
    broker: BrokerContext, wanted: dict[TopicPartition, FetchPartition], call: Call
) -> ResponseFrame | NoResponse:
    found = FetchCall.decoded(call, broker, wanted).answer()
    return NoResponse.PARKED if found is None else found


def refuse(request: FetchRequest, code: int) -> FetchResponse:
    return FetchResponse(
        [
            FetchTopicResponse(
                topic.topic,
                [
                    FetchPartitionResponse(partition.partition, code, NO_HIGH_WATERMARK, b"")
                    for partition in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )
