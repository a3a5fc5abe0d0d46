"""Commits of a KafkaConsumer that are requested faster than the coordinator answers."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any, cast

import pytest

from kafka08.consumer.fetching.owned_partition import Position
from kafka08.consumer.group.committer import ONCE, Commit, Committer, fetch_committed
from kafka08.consumer.group.membership import Generation
from kafka08.consumer.group.partitions import Start
from kafka08.consumer.group.search_outages import SearchOutages
from kafka08.consumer.group.start_finder import StartFinder
from kafka08.errors import (
    NO_ERROR,
    CommitFailed,
    IllegalGeneration,
    KafkaError,
    NotCoordinatorForConsumer,
    OffsetMetadataTooLarge,
    UnstableOffsetCommit,
)
from kafka08.protocol.api_versions import ApiVersionRange
from kafka08.protocol.grouping import by_partition
from kafka08.protocol.offset_commit import (
    OffsetCommitPartitionResponse,
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetCommitTopicResponse,
)
from kafka08.protocol.offset_fetch import (
    STABLE_VERSION,
    OffsetFetchPartitionResponse,
    OffsetFetchRequest,
    OffsetFetchResponse,
    OffsetFetchTopicResponse,
)
from kafka08.protocol.version_ranges import OF_0_9, VersionRanges
from kafka08.runtime.threads import THREADS
from kafka08.structs import OffsetAndMetadata, TopicPartition
from tests.waiting import until

A, B = TopicPartition("t", 0), TopicPartition("t", 1)
FIRST = Generation(1, "member-1")


class Coordinator:
    """Responds to commits, as a cluster and a connection to it, whenever `let_respond` allows it.

    requests   partition → offset of each
    refusals   codes by partition, of the responses to come
    versions   that it serves
    sent       (version, leader epochs) of each request
    """

    def __init__(self) -> None:
        self.requests: list[dict[TopicPartition, int]] = []
        self.refusals: list[dict[TopicPartition, int]] = []
        self.versions = OF_0_9
        self.sent: list[tuple[int, list[int]]] = []
        self._responses = threading.Semaphore(0)

    def let_respond(self, count: int = 1) -> None:
        self._responses.release(count)

    def ask_coordinator(self, group: str, ask: Callable[[Any], None], **_: object) -> None:
        ask(self)

    def send(self, request: OffsetCommitRequest, **_: object) -> OffsetCommitResponse:
        partitions = by_partition(request.topics)
        self.requests.append({tp: p.offset for tp, p in partitions.items()})
        self.sent.append((request.version, [p.leader_epoch for p in partitions.values()]))
        assert self._responses.acquire(timeout=60)
        codes = self.refusals.pop(0) if self.refusals else {}
        return OffsetCommitResponse(
            [
                OffsetCommitTopicResponse(
                    of.topic,
                    [
                        OffsetCommitPartitionResponse(
                            p.partition, codes.get(TopicPartition(of.topic, p.partition), NO_ERROR)
                        )
                        for p in of.partitions
                    ],
                )
                for of in request.topics
            ]
        )


class Commits:
    """A committer and what it says; the first commit is under way."""

    def __init__(self) -> None:
        self.coordinator = Coordinator()
        self.done: list[Commit] = []
        self.refused: list[int] = []
        self.committer = Committer(
            cast("Any", self.coordinator),
            "g",
            on_refused=lambda code, _: self.refused.append(code),
            on_done=self.done.append,
            on_idle=lambda: None,
            idle_s=60.0,
            backoff_s=0.0,
            timeout_ms=1000,
            runtime=THREADS,
        )
        self.request({A: 0})
        until(lambda: bool(self.coordinator.requests), "the first request")

    def request(
        self,
        offsets: dict[TopicPartition, int],
        generation: Generation = FIRST,
        give_up_at: float = 0.0,
    ) -> Commit:
        with_metadata = {tp: OffsetAndMetadata(offset) for tp, offset in offsets.items()}
        commit = Commit(with_metadata, generation, give_up_at=give_up_at)
        self.committer.submit(commit)
        return commit

    def await_done(self, count: int) -> list[KafkaError | None]:
        until(lambda: len(self.done) == count, f"{count} commits done")
        return [commit.error for commit in self.done]


@pytest.fixture
def commits() -> Iterator[Commits]:
    commits = Commits()
    yield commits
    commits.committer.stop()
    commits.coordinator.let_respond(1000)
    commits.committer.join(60)


def test_commits_queued_during_a_request_go_in_one(commits: Commits) -> None:
    """The request has the last offset of each partition; each commit completes by itself, in
    order."""
    queued = [commits.request({A if n % 3 else B: n}) for n in range(1, 1001)]
    commits.coordinator.let_respond(2)
    assert [None] * 1001 == commits.await_done(1001)
    assert queued == commits.done[1:]
    assert [{A: 0}, {A: 1000, B: 999}] == commits.coordinator.requests


def test_each_commit_has_the_errors_of_its_own_partitions(commits: Commits) -> None:
    """And no others', though they share a request."""
    commits.request({A: 1})
    commits.request({B: 2})
    commits.coordinator.refusals = [{}, {B: OffsetMetadataTooLarge.code}]
    commits.coordinator.let_respond(2)
    errors = commits.await_done(3)
    assert [None, None] == errors[:2]
    assert isinstance(errors[2], OffsetMetadataTooLarge)


def test_generations_do_not_share_a_request(commits: Commits) -> None:
    """A commit of an earlier one is refused, once for all of its request; the later one is not."""
    commits.request({A: 1})
    commits.request({A: 2})
    commits.request({A: 3}, Generation(2, "member-1"))
    commits.coordinator.refusals = [{}, {A: IllegalGeneration.code}]
    commits.coordinator.let_respond(3)
    first, *fenced, last = commits.await_done(4)
    assert [None, None] == [first, last]
    assert all(isinstance(error, CommitFailed) for error in fenced)
    assert [IllegalGeneration.code] == commits.refused
    assert [{A: 0}, {A: 2}, {A: 3}] == commits.coordinator.requests


def test_a_commit_that_may_be_retried_is_the_last_of_its_request(commits: Commits) -> None:
    """Sent again it must not undo a later one: that waits for the end of its retries."""
    commits.request({A: 1, B: 1})
    commits.request({A: 2}, give_up_at=THREADS.monotonic() + 60)
    commits.request({A: 3})
    commits.coordinator.refusals = [{}, dict.fromkeys((A, B), NotCoordinatorForConsumer.code)]
    commits.coordinator.let_respond(4)
    errors = commits.await_done(4)
    assert isinstance(errors[1], NotCoordinatorForConsumer)
    assert [None] * 3 == [errors[0], *errors[2:]]
    assert [{A: 0}, {A: 2, B: 1}, {A: 2}, {A: 3}] == commits.coordinator.requests


LATER = VersionRanges([ApiVersionRange(8, 2, 9), ApiVersionRange(9, 1, 9)])


@pytest.mark.parametrize(("versions", "version"), [(OF_0_9, 2), (LATER, 7)])
def test_leader_epochs_are_committed_where_brokers_store_them(
    versions: VersionRanges, version: int
) -> None:
    """From 2.3 on. Earlier ones get the version in which a generation came."""
    commits = Commits()
    commits.coordinator.versions = versions
    offsets = {A: OffsetAndMetadata(5, leader_epoch=3), B: OffsetAndMetadata(6)}
    commits.committer.submit(Commit(offsets, FIRST))
    commits.committer.stop()
    commits.coordinator.let_respond(2)
    commits.committer.join(60)
    assert commits.coordinator.sent[1:] == [(version, [3, -1])]


class Committed:
    """A coordinator that has an offset of each partition, as a cluster and a connection to it."""

    def __init__(
        self, versions: VersionRanges, error_code: int = NO_ERROR, *, has_open: bool = False
    ) -> None:
        self.versions = versions
        self.asked: list[int] = []
        self.has_open = has_open
        """An open transaction has an offset of partition 1."""
        self._error_code = error_code

    def ask_coordinator(self, group: str, ask: Callable[[Any], Any], **_: object) -> Any:
        return ask(self)

    def send(self, request: OffsetFetchRequest) -> OffsetFetchResponse:
        self.asked.append(request.version)
        found = [OffsetFetchPartitionResponse(0, 5, "", NO_ERROR, 3)]
        if self.has_open and request.is_stable and request.version >= STABLE_VERSION:
            found.append(OffsetFetchPartitionResponse(1, -1, "", UnstableOffsetCommit.code))
        topics = [] if self._error_code else [OffsetFetchTopicResponse("t", found)]
        return OffsetFetchResponse(topics, self._error_code)


def up_to(version: int) -> VersionRanges:
    """A broker's, of OffsetFetch."""
    return VersionRanges([ApiVersionRange(9, 0, version)])


@pytest.mark.parametrize(
    ("versions", "version"), [(OF_0_9, 1), (up_to(4), 1), (up_to(5), 5), (up_to(6), 5), (LATER, 7)]
)
def test_leader_epochs_of_committed_offsets_are_read(versions: VersionRanges, version: int) -> None:
    """Where brokers have them."""
    coordinator = Committed(versions)
    found = fetch_committed(cast("Any", coordinator), "g", [A, B], ONCE)
    assert found == {A: OffsetAndMetadata(5), B: None}
    assert [one.leader_epoch for one in found.values() if one is not None] == [3]
    assert coordinator.asked == [version]


def test_an_error_of_the_group_is_not_an_offset_that_is_missing() -> None:
    """Later versions have it once, and no partitions: their offsets would count as none."""
    coordinator = Committed(LATER, NotCoordinatorForConsumer.code)
    with pytest.raises(NotCoordinatorForConsumer):
        fetch_committed(cast("Any", coordinator), "g", [A], ONCE)


def test_reading_begins_at_a_committed_offset_with_its_epoch() -> None:
    """So the leader can say whether the messages before it are still there."""
    finder = StartFinder(
        cast("Any", Committed(LATER)),
        "g",
        Start.EARLIEST,
        on_found=lambda: None,
        backoff_s=0.0,
        runtime=THREADS,
    )
    finder.begin({A: Start.COMMITTED}, 1)
    until(finder.has_found, "the committed offset")
    found = finder.take()
    assert found is not None
    assert found.positions == {A: Position(5, 3)}


def test_an_open_transaction_holds_up_its_own_partition() -> None:
    """Reading of others begins at once. It is the cause of the
    wait, but no failure however long it lasts, and without a warning at first."""
    coordinator = Committed(LATER, has_open=True)
    finder = StartFinder(
        cast("Any", coordinator),
        "g",
        Start.EARLIEST,
        on_found=lambda: None,
        backoff_s=0.0,
        runtime=THREADS,
    )
    finder.begin({A: Start.COMMITTED, B: Start.COMMITTED}, 1)
    results = [found for _ in range(2) if (found := until(finder.take, "a result"))]
    assert {A: Position(5, 3)} == results[0].positions | results[1].positions
    (failed,) = [one for one in results if one.failures]
    (why,) = failed.failures.values()
    assert "group g has a later offset of [t,1] in a transaction" in str(why)
    outages = SearchOutages()
    outages.note(failed, {B}, 10.0)
    assert outages.lasting({B}, 0.0, 10.0) is why
    assert outages.lasting({B}, 30.0, 1000.0) is None
    with pytest.raises(UnstableOffsetCommit):
        fetch_committed(cast("Any", coordinator), "g", [A, B], ONCE)
    coordinator.has_open = False
    assert fetch_committed(cast("Any", coordinator), "g", [B], ONCE) == {B: None}
