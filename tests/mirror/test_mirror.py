"""The threads of a mirror, without clusters."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any, cast

import pytest

from kafka08.consumer import Whitelist
from kafka08.errors import Closed
from kafka08.mirror import Mirror, mirror
from tests.mirror.test_settings import source, target


class SilentCoordinator:
    """A connector whose commit waits for a coordinator until `shutdown`."""

    def __init__(self) -> None:
        self.commits = threading.Event()
        self._closed = threading.Event()

    def commit_offsets(self) -> None:
        self.commits.set()
        assert self._closed.wait(60)
        raise Closed("the consumer was shut down")

    def shutdown(self) -> None:
        self._closed.set()


class EndedStream:
    """A stream without messages."""

    thread_id = "g_a-0"

    def batches(self, *_: int) -> Iterator[object]:
        return iter(())


class IdleProducer:
    def close(self, timeout: float) -> None:
        """There is nothing to send."""


def test_a_commit_without_a_response_does_not_keep_a_stop(monkeypatch: pytest.MonkeyPatch) -> None:
    """A stop that has waited long enough for the last commit of a thread shuts the connector down,
    which ends that commit. It waited for the thread first, for as long as the commit took."""
    monkeypatch.setattr(mirror, "STOP_TIMEOUT_S", 0.1)
    connector, stopping = SilentCoordinator(), threading.Event()
    copying = Mirror(source(), target(), Whitelist("t"))
    ended = threading.Thread(
        target=copying._copy,
        args=(connector, [EndedStream()], [cast("Any", IdleProducer())], stopping),
        daemon=True,
    )
    ended.start()
    assert connector.commits.wait(30)
    stopping.set()
    ended.join(10)
    is_stuck = ended.is_alive()
    connector.shutdown()
    assert not is_stuck
