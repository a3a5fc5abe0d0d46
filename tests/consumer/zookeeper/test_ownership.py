"""Ownership: commits and releases at the same time."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from typing import cast

import pytest

from kafka08.consumer.fetching.owned_partition import OwnedPartition
from kafka08.consumer.zookeeper import ownership
from kafka08.consumer.zookeeper.member_stream import MemberStream
from kafka08.consumer.zookeeper.offset_store import Offsets
from kafka08.consumer.zookeeper.ownership import Ownership
from kafka08.consumer.zookeeper.session import SessionGate
from kafka08.errors import (
    ConnectionFailed,
    KafkaError,
    NotCoordinatorForConsumer,
    OffsetMetadataTooLarge,
)
from kafka08.runtime.threads import THREADS, ThreadRuntime
from kafka08.structs import TopicPartition
from tests.consumer.streams import AllIsWell, chunk_of, partition_of
from tests.mock_clock import MockClock
from tests.waiting import until

T0 = TopicPartition("t", 0)


class OpenGate:
    """The gate of a live session."""

    is_open = True

    def check(self) -> None:
        """Every commit may go on."""


class SlowStore:
    """A store whose commits wait until `go` is set."""

    def __init__(self) -> None:
        self.entered, self.go = threading.Event(), threading.Event()

    def fetch(self, partitions: Collection[TopicPartition]) -> Offsets:
        raise AssertionError("nobody asks")

    def commit(self, offsets: Mapping[TopicPartition, int]) -> None:
        self.entered.set()
        assert self.go.wait(60)


class Member:
    """Owns [t,0] and commits to `store`."""

    def __init__(self) -> None:
        self.store = SlowStore()
        self.stream = MemberStream(supervisor=AllIsWell(), runtime=ThreadRuntime(clock=MockClock()))
        self.partition = partition_of(self.stream)
        gate = cast(SessionGate, OpenGate())
        self.ownership = Ownership(self.store, gate, [self.stream], THREADS)
        self.ownership.take([self.partition])

    @contextmanager
    def committing(self) -> Iterator[None]:
        """One thread is within a commit."""
        with running(self.ownership.commit):
            assert self.store.entered.wait(60)
            try:
                yield
            finally:
                self.store.go.set()


def raise_(error: KafkaError) -> None:
    raise error


@contextmanager
def running(action: Callable[[], object]) -> Iterator[threading.Thread]:
    thread = threading.Thread(target=action, daemon=True)
    thread.start()
    yield thread
    thread.join(60)


def test_a_release_that_cannot_wait_takes_nothing_away(monkeypatch: pytest.MonkeyPatch) -> None:
    """While a commit does not end, a release takes no partition: they stay owned and are read.
    (They used to be revoked first, and then the member owned partitions that it did not read.)"""
    monkeypatch.setattr(ownership, "COMMIT_TIMEOUT_S", 0.01)
    member = Member()
    with member.committing(), pytest.raises(KafkaError, match="another commit"):
        member.ownership.give_up([T0], commit=True)
    assert not member.partition.revoked
    assert member.ownership.assignment == {T0: member.ownership.thread_of(T0)}


def test_a_commit_is_tried_again_where_that_may_help(monkeypatch: pytest.MonkeyPatch) -> None:
    """A commit is retried as often as requested, with the backoff in between, and only for errors
    that may pass."""
    clock, member = MockClock(), Member()
    ownership = Ownership(
        member.store, cast(SessionGate, OpenGate()), [member.stream], ThreadRuntime(clock=clock)
    )
    ownership.take([member.partition])
    errors: list[KafkaError] = []
    monkeypatch.setattr(member.store, "commit", lambda offsets: raise_(errors.pop(0)))

    errors[:] = [NotCoordinatorForConsumer(), ConnectionFailed(), OffsetMetadataTooLarge()]
    with pytest.raises(OffsetMetadataTooLarge):
        ownership.commit(retries=5, backoff_ms=200)
    assert clock.slept == [0.2, 0.2]

    errors[:] = [ConnectionFailed("first"), ConnectionFailed("second")]
    with pytest.raises(ConnectionFailed, match="second"):
        ownership.commit(retries=1, backoff_ms=200)


def test_a_release_is_whole_whatever_its_commit_meets(monkeypatch: pytest.MonkeyPatch) -> None:
    """A release finishes for any error of its commit. Otherwise a bug in the store would leave a
    partition that is owned and not read."""
    member = Member()
    monkeypatch.setattr(member.store, "commit", lambda offsets: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        member.ownership.give_up([T0], commit=True)
    assert member.partition.revoked
    assert member.ownership.assignment == {}
    assert member.ownership.thread_of(T0) is None


def test_nothing_is_waited_for_between_commits() -> None:
    """The rebalancer's commits have no backoff, because it retries by itself and has other work."""
    member = Member()
    called: list[Collection[TopicPartition]] = []
    with member.committing():
        member.ownership.between_commits(called.append)
    member.ownership.between_commits(called.append)
    assert called == [[T0]]


def test_a_fetch_of_offsets_waits_for_the_commit_under_way(monkeypatch: pytest.MonkeyPatch) -> None:
    """A fetch of offsets waits for a commit in another thread, since a store serves one thread at a
    time. (The rebalancer used to fetch during a commit.)"""
    member = Member()
    monkeypatch.setattr(member.store, "fetch", lambda partitions: dict.fromkeys(partitions, 7))
    fetched: list[Offsets] = []
    with (
        member.committing(),
        running(lambda: fetched.append(member.ownership.fetch_committed([T0]))) as fetching,
    ):
        fetching.join(0.1)
        waited = fetching.is_alive() and not fetched
        member.store.go.set()
    assert waited
    assert fetched == [{T0: 7}]


def test_guarantee_1_a_new_session_waits_for_the_last_commit_of_the_old_one() -> None:
    """A member registers again only after the last commit of the old session has ended: with the
    new id znode that commit would pass as one of the new session. Reading stops at once."""
    member = Member()
    with member.committing(), running(member.ownership.drop) as dropping:
        until(lambda: member.partition.revoked, "the end of delivery")
        still_waiting = dropping.is_alive() and list(member.ownership.assignment) == [T0]
        member.store.go.set()
    assert still_waiting
    assert member.ownership.assignment == {}


class OvertakenStream(MemberStream):
    """A stream whose reader advances as far as it may whenever its position is read."""

    def position(self) -> tuple[OwnedPartition, int] | None:
        reader = threading.Thread(target=lambda: [next(self), next(self)], daemon=True)
        reader.start()
        reader.join(0.1)
        return super().position()


def test_no_commit_goes_back_while_the_reader_continues() -> None:
    """A commit never goes back while the reader advances. A set that was finished between two reads
    of the position used to count from its start again, and committed messages were read twice."""
    stream = OvertakenStream(supervisor=AllIsWell(), runtime=THREADS)
    partitions = [partition_of(stream, number) for number in range(2)]
    owned = Ownership(SlowStore(), cast(SessionGate, OpenGate()), [stream], THREADS)
    owned.take(partitions)
    for partition in partitions:
        stream.offer(chunk_of(partition, b"a", b"b", b"c"))
    assert [next(stream).offset for _ in range(2)] == [0, 1]
    assert owned.positions()[T0] > 0
