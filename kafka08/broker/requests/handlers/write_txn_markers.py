"""WriteTxnMarkers: a coordinator ends transactions in partitions that this broker leads.

One entry for each producer, with the codes of all its partitions; see MarkerWriter. Answered when
all markers are replicated, or refused. 0.11.0.3 never answers if an entry without a partition of
its own comes after one that ends at once. Source: kafka.server.KafkaApis.
handleWriteTxnMarkersRequest 0.11.0.2.
"""

from __future__ import annotations

from functools import partial
from itertools import groupby
from operator import itemgetter

from kafka08.broker.requests.call import Call, NoResponse
from kafka08.broker.requests.context import BrokerContext
from kafka08.log.producers import TransactionEnd
from kafka08.protocol.add_partitions_to_txn import partitions_of, results_of
from kafka08.protocol.write_txn_markers import (
    TxnMarker,
    TxnMarkerResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from kafka08.runtime.yielding import PARTITIONS_AT_ONCE, yielding_batches
from kafka08.structs import TopicPartition

Codes = dict[int, dict[TopicPartition, int]]
"""producer id → partition → code."""


def handle(
    broker: BrokerContext, request: WriteTxnMarkersRequest, call: Call
) -> WriteTxnMarkersResponse | NoResponse:
    wanted = [(end_of(one), tp) for one in request.markers for tp in partitions_of(one.topics)]
    left = len(wanted)
    if not left:
        return WriteTxnMarkersResponse([])
    codes: Codes = {}

    def done(producer_id: int, tp: TopicPartition, code: int) -> None:
        nonlocal left
        codes.setdefault(producer_id, {})[tp] = code
        left -= 1
        if not left:
            call.respond(respond(codes))

    def write() -> NoResponse:
        for turn in yielding_batches(wanted, broker.runtime, PARTITIONS_AT_ONCE):
            for end, some in groupby(turn, itemgetter(0)):
                done_one = call.answering(partial(done, end.producer_id))
                broker.marker_writer.write(end, [tp for _, tp in some], done_one)
        return NoResponse.PARKED

    return call.run_by_count("WriteTxnMarkers", left, write)


def end_of(marker: TxnMarker) -> TransactionEnd:
    return TransactionEnd(
        marker.producer_id, marker.producer_epoch, marker.commits, marker.coordinator_epoch
    )


def respond(codes: Codes) -> WriteTxnMarkersResponse:
    return WriteTxnMarkersResponse(
        [TxnMarkerResult(producer_id, results_of(found)) for producer_id, found in codes.items()]
    )


def refuse(request: WriteTxnMarkersRequest, code: int) -> WriteTxnMarkersResponse:
    codes: Codes = {}
    for marker in request.markers:
        found = dict.fromkeys(partitions_of(marker.topics), code)
        codes.setdefault(marker.producer_id, {}).update(found)
    return respond(codes)
