"""Moments at which a tool may die: before and after each write of a migration."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from kafka08.client.coordinators import Coordinators
from kafka08.zk.client import ZkClient


def at_each_write(
    moment: Callable[[], None], patch: Callable[[Any, str, Any], None] = setattr
) -> None:
    """Have `moment` called before and after whatever goes to ZooKeeper or to the offsets topic."""

    def deadly(write: Callable[..., Any]) -> Callable[..., Any]:
        def written(*args: Any, **keys: Any) -> Any:
            moment()
            result = write(*args, **keys)
            moment()
            return result

        return written

    pipeline = ZkClient.pipeline

    def selective(zk: ZkClient, operations: Any, *args: Any, **keys: Any) -> Any:
        wanted = list(operations)
        only_reads = all(operation.repeatable for operation in wanted)
        return (pipeline if only_reads else deadly(pipeline))(zk, wanted, *args, **keys)

    patch(ZkClient, "pipeline", selective)
    patch(Coordinators, "commit", deadly(Coordinators.commit))
    patch(ZkClient, "multi", deadly(ZkClient.multi))


class Killed(BaseException):
    """kill -9, simulated within one process: an exception that no code catches."""


class Killer:
    """Raises Killed at the moment that was chosen, until the end of the test."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._moments = 0
        self._kill_at = 0
        at_each_write(self._pass_a_moment, monkeypatch.setattr)

    def kill_at(self, moment: int) -> None:
        """1: before the first write from now on, 2: after it, 3: before the second…"""
        self._moments, self._kill_at = 0, moment

    def spare(self) -> None:
        self._kill_at = 0

    def _pass_a_moment(self) -> None:
        self._moments += 1
        if self._moments == self._kill_at:
            raise Killed
