"""MarkerSender and another broker, over real connections: one request in flight, and every answer
of every partition."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from kafka08.broker.cluster.metadata_cache import MetadataCache
from kafka08.broker.transactions import marker_sender
from kafka08.broker.transactions.marker_sender import MarkerSender
from kafka08.broker.transactions.transactional_ids import SendMarkers
from kafka08.levels import Level
from kafka08.log.producers import TransactionEnd
from kafka08.protocol.add_partitions_to_txn import partitions_of, results_of
from kafka08.protocol.codec import decode_request, encode_response
from kafka08.protocol.leader_and_isr import PartitionStateInfo
from kafka08.protocol.served import Served
from kafka08.protocol.update_metadata import LiveBroker, UpdateMetadataRequest
from kafka08.protocol.write_txn_markers import (
    TxnMarkerResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from kafka08.structs import NO_LEADER, TopicPartition
from tests.broker.thread_broker import ThreadBroker
from tests.network.frame_server import FrameServer

DEADLINE_S = 20.0
SERVED = Served(Level.V0_11_0)
T0, T1, U0 = TopicPartition("t", 0), TopicPartition("t", 1), TopicPartition("u", 0)
Answer = Callable[[WriteTxnMarkersRequest], WriteTxnMarkersResponse | None]


class Leader(FrameServer):
    """Broker 2: records requests, and answers as `answer` says, once `may_answer` is set."""

    def __init__(self) -> None:
        self.requests: queue.SimpleQueue[WriteTxnMarkersRequest] = queue.SimpleQueue()
        self.answer: Answer = agree
        self.may_answer = threading.Event()
        self.may_answer.set()
        super().__init__()

    def respond(self, payload: bytes) -> bytes | None:
        header, request = decode_request(payload, SERVED)
        assert isinstance(request, WriteTxnMarkersRequest)
        self.requests.put(request)
        assert self.may_answer.wait(DEADLINE_S)
        response = self.answer(request)
        return None if response is None else encode_response(response, header.correlation_id)

    def next_request(self) -> list[tuple[int, list[TopicPartition]]]:
        """Producer ids and partitions of the next request."""
        request = self.requests.get(timeout=DEADLINE_S)
        return [(one.producer_id, partitions_of(one.topics)) for one in request.markers]


def agree(request: WriteTxnMarkersRequest) -> WriteTxnMarkersResponse:
    """Success for all."""
    found = {one.producer_id: partitions_of(one.topics) for one in request.markers}
    return WriteTxnMarkersResponse(
        [TxnMarkerResult(one, results_of(dict.fromkeys(found[one], 0))) for one in found]
    )


class Sender:
    """A MarkerSender of broker 1, and the codes that it reported."""

    def __init__(self, leader: Leader, timeout_ms: int = 20_000) -> None:
        self.cache = MetadataCache(1)
        self.update(leader.port)
        self.codes: queue.SimpleQueue[tuple[int, TopicPartition, int]] = queue.SimpleQueue()
        runtime: Any = ThreadBroker()
        store: Any = None
        self.sender = MarkerSender(
            runtime,
            1,
            store,
            self.cache,
            lambda *_: None,
            listener="PLAINTEXT",
            timeout_ms=timeout_ms,
        )

    def update(self, port: int, leader: int = 2) -> None:
        states = [PartitionStateInfo(*tp, 1, leader, 0, [2], 0, [2]) for tp in (T0, T1, U0)]
        live = [LiveBroker.plaintext(2, "127.0.0.1", port)]
        self.cache.update(UpdateMetadataRequest(9, 1, states, live))

    def send(self, producer_id: int, *partitions: TopicPartition) -> None:
        sent = SendMarkers("x", TransactionEnd(producer_id, 0, True, 3), partitions)
        self.sender.send(sent, lambda tp, code: self.codes.put((producer_id, tp, code)))

    def next_code(self) -> tuple[int, TopicPartition, int]:
        return self.codes.get(timeout=DEADLINE_S)


@pytest.fixture
def leader() -> Iterator[Leader]:
    with Leader() as leader:
        yield leader


@pytest.fixture
def sender(leader: Leader) -> Iterator[Sender]:
    sender = Sender(leader)
    yield sender
    sender.sender.shutdown()


def test_what_waits_while_a_request_is_in_flight_is_the_next(
    leader: Leader, sender: Sender
) -> None:
    """One request for each broker at a time, with all that waits."""
    leader.may_answer.clear()
    sender.send(7, T0, U0)
    assert [(7, [T0, U0])] == leader.next_request()
    sender.send(8, T1)
    sender.send(9, T0)
    leader.may_answer.set()
    assert [(8, [T1]), (9, [T0])] == leader.next_request()
    assert [(7, T0, 0), (7, U0, 0), (8, T1, 0), (9, T0, 0)] == [
        sender.next_code() for _ in range(4)
    ]


def test_a_request_has_a_bound(
    leader: Leader, sender: Sender, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of partitions: those of one transaction may be several requests."""
    monkeypatch.setattr(marker_sender, "PARTITIONS_MAX", 2)
    sender.send(7, T0, T1, U0)
    assert [[(7, [T0, T1])], [(7, [U0])]] == [leader.next_request() for _ in range(2)]


def test_every_partition_has_an_answer(leader: Leader, sender: Sender) -> None:
    """Its own; -1 if the response does not have it, 7 if there is none: a cut connection, and a
    broker that cannot be reached."""
    leader.answer = lambda _: WriteTxnMarkersResponse(
        [TxnMarkerResult(7, results_of({T0: 6, T1: 0}))]
    )
    sender.send(7, T0, T1, U0)
    assert [(7, T0, 6), (7, T1, 0), (7, U0, -1)] == [sender.next_code() for _ in range(3)]
    leader.answer = lambda _: None
    sender.send(7, T0)
    assert (7, T0, 7) == sender.next_code()
    leader.answer = agree
    sender.send(7, T0)
    assert (7, T0, 0) == sender.next_code()
    leader.close()
    sender.send(7, T1)
    assert (7, T1, 7) == sender.next_code()


def test_a_leader_that_does_not_answer(leader: Leader) -> None:
    """7 after request.timeout.ms; what waited is sent then."""
    sender = Sender(leader, timeout_ms=100)
    leader.may_answer.clear()
    sender.send(7, T0)
    assert (7, T0, 7) == sender.next_code()
    leader.may_answer.set()
    sender.send(8, T1)
    assert (8, T1, 0) == sender.next_code()
    sender.sender.shutdown()


def test_a_leader_that_moved(leader: Leader, sender: Sender) -> None:
    """Markers go to its new address; what the former one has not answered is 7."""
    leader.may_answer.clear()
    sender.send(7, T0)
    leader.next_request()
    with Leader() as moved:
        sender.update(moved.port)
        sender.send(8, T1)
        assert [(8, [T1])] == moved.next_request()
        assert {(7, T0, 7), (8, T1, 0)} == {sender.next_code() for _ in range(2)}
    leader.may_answer.set()


def test_no_leader(leader: Leader, sender: Sender) -> None:
    """5, so that the marker is sent again, to the leader of that time."""
    sender.update(leader.port, leader=NO_LEADER)
    sender.send(7, T0)
    assert (7, T0, 5) == sender.next_code()
    sender.update(leader.port)
    sender.send(7, T0)
    assert (7, T0, 0) == sender.next_code()
