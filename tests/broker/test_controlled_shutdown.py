"""A stopping broker asks for other leaders only while somebody could lead."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from kafka08.broker.config import BrokerConfig
from kafka08.broker.controlled_shutdown import request_controlled_shutdown
from kafka08.errors import SessionLost, ZooKeeperError
from kafka08.protocol.controlled_shutdown import ControlledShutdownRequest
from kafka08.structs import TopicPartition
from tests.broker.fake_runtime import FakeRuntime
from tests.broker.world import Client, World


@pytest.mark.parametrize(
    ("may_have_session", "error", "tries"),
    [
        (True, ZooKeeperError("/controller: cannot be read"), 3),
        (True, SessionLost("/controller: no reply from ZooKeeper in 12 s"), 1),
        (False, SessionLost("not asked"), 0),
    ],
    ids=["a bad znode", "ZooKeeper went away", "the session is over"],
)
def test_tries_end_with_the_session(may_have_session: bool, error: Exception, tries: int) -> None:
    """The broker tries controlled.shutdown.max.retries times, but not without ZooKeeper: then no
    other broker can become leader, and each try would wait for ZooKeeper's timeout."""
    runtime: Any = FakeRuntime()
    asked = []

    def controller() -> None:
        asked.append(runtime.monotonic())
        raise error

    zk = SimpleNamespace(may_have_session=may_have_session)
    store: Any = SimpleNamespace(controller=controller, zk=zk)
    config = BrokerConfig(
        {"broker.id": 1, "zookeeper.connect": "h:1"}, controlled_shutdown_retry_backoff_ms=100
    )
    assert not request_controlled_shutdown(config, runtime, store)
    assert len(asked) == tries


def test_the_controller_may_ask_whether_the_sender_still_waits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A ControlledShutdown is abandoned once its connection has ended."""
    world = World(tmp_path)
    asked: list[Callable[[], bool]] = []

    def controlled_shutdown(_: int, is_abandoned: Callable[[], bool]) -> set[TopicPartition]:
        asked.append(is_abandoned)
        return set()

    monkeypatch.setattr(world.controller, "controlled_shutdown", controlled_shutdown)
    client = Client(world)
    client.call(ControlledShutdownRequest(1))
    [is_abandoned] = asked
    assert not is_abandoned()
    client.close()
    assert is_abandoned()
