"""kill -9 at any write, as far as one process can play it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from kafka08.migration.coordinators import Coordinators
from kafka08.zk.client import ZkClient
from kafka08.zk.transaction import Transaction


class Killed(BaseException):
    """Nobody catches it."""


class Killer:
    """Counts the writes that go to ZooKeeper or to the offsets topic, each as two moments, before
    and after it; raises Killed at the moment that was chosen."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._moments = 0
        self._kill_at = 0
        pipeline = ZkClient.pipeline

        def selective(zk: ZkClient, operations: Any, *args: Any, **keys: Any) -> Any:
            wanted = list(operations)
            write = pipeline if all(o.repeatable for o in wanted) else self._deadly(pipeline)
            return write(zk, wanted, *args, **keys)

        monkeypatch.setattr(ZkClient, "pipeline", selective)
        monkeypatch.setattr(Coordinators, "commit", self._deadly(Coordinators.commit))
        monkeypatch.setattr(Transaction, "commit", self._deadly(Transaction.commit))

    def kill_at(self, moment: int) -> None:
        """1: before the first write from now on, 2: after it, 3: before the second…"""
        self._moments, self._kill_at = 0, moment

    def spare(self) -> None:
        self._kill_at = 0

    def _deadly(self, write: Callable[..., Any]) -> Callable[..., Any]:
        def deadly(*args: Any, **keys: Any) -> Any:
            self._pass_a_moment()
            result = write(*args, **keys)
            self._pass_a_moment()
            return result

        return deadly

    def _pass_a_moment(self) -> None:
        self._moments += 1
        if self._moments == self._kill_at:
            raise Killed
