"""PendingCommits: which commits are in flight, whatever a signal handler does."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

import pytest

from kafka08.consumer.group.committer import Commit
from kafka08.consumer.group.interceptors import Interceptors
from kafka08.consumer.group.kafka_consumer_config import KafkaConsumerConfig
from kafka08.consumer.group.pending_commits import PendingCommits
from kafka08.runtime.threads import THREADS
from kafka08.structs import OffsetAndMetadata
from tests.consumer.group.test_committer import FIRST, A, B, Coordinator
from tests.waiting import until


@pytest.fixture
def coordinator() -> Coordinator:
    return Coordinator()


@pytest.fixture
def commits(coordinator: Coordinator) -> Iterator[PendingCommits]:
    commits = PendingCommits(
        cast("Any", coordinator),
        KafkaConsumerConfig(bootstrap_servers="h:1", group_id="g", auto_commit_interval_ms=0),
        Interceptors([]),
        generation=lambda: FIRST,
        is_accepted=lambda: True,
        on_refused=lambda code, generation: None,
        on_change=lambda: None,
        timeout_ms=1000,
        runtime=THREADS,
    )
    yield commits
    commits.stop()
    coordinator.let_respond(9)
    commits.join(10)


@pytest.mark.parametrize("is_queued", [False, True])
def test_ctrl_c_in_a_commit_does_not_end_the_automatic_ones(
    commits: PendingCommits, coordinator: Coordinator, is_queued: bool
) -> None:
    """No commit stays in flight that the committer does not know: it would wait for its end for
    ever."""
    committer, submit = commits._committer, commits._committer.submit

    def interrupted(commit: Commit) -> None:
        if is_queued:
            submit(commit)
        raise KeyboardInterrupt

    committer.submit = interrupted  # type: ignore[method-assign]
    commits.begin_interval()
    with pytest.raises(KeyboardInterrupt):
        commits.commit_if_due(lambda: {A: OffsetAndMetadata(1)})
    committer.submit = submit  # type: ignore[method-assign]
    coordinator.let_respond(2)
    commits.commit_if_due(lambda: {A: OffsetAndMetadata(2)})
    until(lambda: coordinator.requests[-1:] == [{A: 2}] and not commits.are_in_flight)


def test_each_answer_ends_its_own_commit(commits: PendingCommits, coordinator: Coordinator) -> None:
    """Also when an earlier one is no longer waited for."""
    first = commits.submit({A: OffsetAndMetadata(1)})
    second = commits.submit({B: OffsetAndMetadata(2)})
    commits._in_flight.pop(first)
    coordinator.let_respond()
    until(lambda: first.is_done)
    assert commits.partitions() == ({B} if not second.is_done else set())
