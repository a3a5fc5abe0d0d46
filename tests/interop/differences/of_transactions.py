"""Requests of transactional producers, from the first to the end of a transaction."""

from __future__ import annotations

from struct import unpack_from

from kafka08.errors import NO_ERROR, ConcurrentTransactions
from kafka08.levels import Level
from kafka08.protocol.add_offsets_to_txn import AddOffsetsToTxnRequest
from kafka08.protocol.add_partitions_to_txn import AddPartitionsToTxnRequest, TxnTopic
from kafka08.protocol.codec import encode_request
from kafka08.protocol.consumer_metadata import TRANSACTION, ConsumerMetadataRequest
from kafka08.protocol.end_txn import EndTxnRequest
from kafka08.protocol.init_producer_id import InitProducerIdRequest
from kafka08.protocol.offset_fetch import OffsetFetchRequest, OffsetFetchTopic
from kafka08.protocol.txn_offset_commit import TxnOffset, TxnOffsetCommitRequest, TxnOffsetTopic
from kafka08.protocol.types import Request
from kafka08.protocol.write_txn_markers import TxnMarker, WriteTxnMarkersRequest
from kafka08.structs import OFFSETS_TOPIC, TRANSACTIONS_TOPIC
from tests.interop.differences.sequence import sequence
from tests.interop.differences.talk import Talk
from tests.waiting import until

SINCE = Level.V0_11_0
CODE_POSITION = 8
"""Of the error code of most responses: behind the correlation id and the throttle time."""
COMMIT, ABORT = True, False


class Producer:
    """A transactional producer, which knows its id from the first response."""

    def __init__(self, talk: Talk, name: str) -> None:
        self.talk = talk
        self.name = name
        self.id = -1
        until(lambda: self._probe(ConsumerMetadataRequest(name, TRANSACTION, version=1)) == 0)
        self.find()
        until(lambda: self._probe(EndTxnRequest(name, 1, 0, COMMIT)) == 49)

    def ask(self, request: Request) -> bytes:
        return self.talk.ask(encode_request(request, 7, "c"))

    def _probe(self, request: Request) -> int:
        found = self.talk.probe(encode_request(request, 7, "c"))
        return int(unpack_from(">h", found, CODE_POSITION)[0])

    def find(self) -> None:
        self.ask(ConsumerMetadataRequest(self.name, TRANSACTION, version=1))

    def init(self, timeout_ms: int = 60_000) -> None:
        found = self.ask(InitProducerIdRequest(self.name, timeout_ms))
        code, producer_id = unpack_from(">hq", found, CODE_POSITION)
        if code == NO_ERROR:
            self.id = producer_id

    def add(self, *topics: TxnTopic, epoch: int = 0, producer_id: int | None = None) -> None:
        own = self.id if producer_id is None else producer_id
        self.ask(AddPartitionsToTxnRequest(self.name, own, epoch, list(topics)))

    def add_offsets(self, group: str, epoch: int = 0) -> None:
        self.ask(AddOffsetsToTxnRequest(self.name, self.id, epoch, group))

    def end(self, commits: bool, epoch: int = 0, producer_id: int | None = None) -> None:
        own = self.id if producer_id is None else producer_id
        self.ask(EndTxnRequest(self.name, own, epoch, commits))

    def complete(self, commits: bool, epoch: int = 0) -> None:
        """End the transaction, and wait until the same end again is no error."""
        self.end(commits, epoch)
        again = EndTxnRequest(self.name, self.id, epoch, commits)
        until(lambda: self._probe(again) != ConcurrentTransactions.code)


@sequence("0.11, states of a transactional id", since=SINCE)
def _(talk: Talk) -> None:
    one = Producer(talk, "states")
    one.add(TxnTopic("t", [0]))
    for timeout_ms in (0, -1, 900_001):
        one.init(timeout_ms)
    one.init()
    for end in (COMMIT, ABORT):
        one.end(end)
    one.add(TxnTopic("t", [0, 1]))
    one.add(TxnTopic("t", [1]))
    for epoch, producer_id in ((1, None), (-1, None), (0, 77)):
        one.add(TxnTopic("t", [0]), epoch=epoch, producer_id=producer_id)
    one.end(COMMIT, -1)
    one.end(COMMIT, producer_id=77)
    one.complete(COMMIT)
    one.end(COMMIT)
    one.end(ABORT)
    one.add(TxnTopic("t", [0]))
    one.complete(ABORT)
    one.end(ABORT)
    one.end(COMMIT)
    one.init()
    one.add(TxnTopic("t", [0]))
    one.end(COMMIT, 1)
    one.add(epoch=1)
    one.complete(COMMIT, 1)


@sequence("0.11, partitions of a transaction", since=SINCE)
def _(talk: Talk) -> None:
    one = Producer(talk, "partitions")
    one.init()
    one.add(TxnTopic("t", [0, 7]), TxnTopic("nosuch", [0]))
    one.add(TxnTopic("t", [0]), TxnTopic(OFFSETS_TOPIC, [0]))
    one.add(TxnTopic(TRANSACTIONS_TOPIC, [0]))
    one.add()
    one.add(TxnTopic("t", [0]), TxnTopic("full", [0]))
    one.add_offsets("g11")
    one.add_offsets("")
    one.complete(ABORT)


@sequence("0.11, requests without a transactional id", since=SINCE)
def _(talk: Talk) -> None:
    one = Producer(talk, "nobody")
    one.name = ""
    one.init()
    one.add(TxnTopic("t", [0]))
    one.add_offsets("g")
    one.end(COMMIT)
    one.find()


@sequence("0.11, markers by hand", since=SINCE)
def _(talk: Talk) -> None:
    def write(*markers: TxnMarker) -> None:
        talk.ask(encode_request(WriteTxnMarkersRequest(list(markers)), 7, "c"))

    t = [TxnTopic("t", [2])]
    write()
    write(TxnMarker(9000, 0, COMMIT, [], 0))
    write(TxnMarker(9000, 0, COMMIT, [TxnTopic("nosuch", [0]), TxnTopic("t", [9])], 0))
    write(TxnMarker(9000, 0, COMMIT, [TxnTopic("mindful", [0]), TxnTopic("old", [0])], 0))
    write(TxnMarker(9000, 1, COMMIT, t, 5))
    write(TxnMarker(9000, 0, COMMIT, t, 5))
    write(TxnMarker(9000, 1, ABORT, t, 4))
    write(TxnMarker(9000, 2, ABORT, t, 6))


@sequence("0.11, offsets in a transaction", since=SINCE)
def _(talk: Talk) -> None:
    group = "in a transaction"
    one = Producer(talk, "offsets")
    one.init()
    fetch = encode_request(
        OffsetFetchRequest(group, [OffsetFetchTopic("t", [0])], version=3), 7, "c"
    )

    def commit(offset: int, note: str = "", topic: str = "t") -> None:
        topics = [TxnOffsetTopic(topic, [TxnOffset(0, offset, note)])]
        one.ask(TxnOffsetCommitRequest(one.name, group, one.id, 0, topics))

    one.add_offsets(group)
    commit(5, "m")
    commit(5, topic="nosuch")
    talk.ask(fetch)
    one.complete(COMMIT)
    until(lambda: b"\0\1m" in talk.probe(fetch), "the marker is applied")
    talk.ask(fetch)
    one.add_offsets(group)
    commit(9, "x" * 4097)
    commit(9)
    one.complete(ABORT)
    talk.ask(fetch)
