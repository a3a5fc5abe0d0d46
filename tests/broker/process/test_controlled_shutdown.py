"""A stopping broker asks for other leaders only while somebody could lead."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from kafka08.broker.process.controlled_shutdown import request_controlled_shutdown
from kafka08.broker.requests.dispatcher import Dispatcher
from kafka08.broker.requests.request_metrics import RequestMetrics
from kafka08.broker.settings.config import BrokerConfig
from kafka08.errors import SessionLost, StaleControllerEpoch, ZooKeeperError
from kafka08.protocol.controlled_shutdown import ControlledShutdownRequest
from kafka08.protocol.served import SERVED
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


@pytest.mark.parametrize(("level", "code"), [("0.8.2", -1), ("0.9.0", 11), ("0.10.2", 11)])
def test_a_broker_that_is_not_the_controller_refuses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, level: str, code: int
) -> None:
    """With the code of ControllerMovedException from 0.9 on, as the JVM's brokers."""
    world = World(tmp_path, api_level=level)

    def controlled_shutdown(*_: object) -> set[TopicPartition]:
        raise StaleControllerEpoch("Controller moved to another broker")

    monkeypatch.setattr(world.controller, "controlled_shutdown", controlled_shutdown)
    assert code == Client(world).call(ControlledShutdownRequest(1)).error_code


@pytest.mark.parametrize("takes_times", [False, True])
def test_the_controller_may_ask_whether_the_sender_still_waits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, takes_times: bool
) -> None:
    """A ControlledShutdown is abandoned once its connection has ended, also if it is timed."""
    world = World(tmp_path)
    asked: list[Callable[[], bool]] = []

    def controlled_shutdown(_: int, is_abandoned: Callable[[], bool]) -> set[TopicPartition]:
        asked.append(is_abandoned)
        return set()

    monkeypatch.setattr(world.controller, "controlled_shutdown", controlled_shutdown)
    requests = RequestMetrics(world.runtime, world.config.level, takes_times=takes_times)
    client = Client(world, Dispatcher(world.context, SERVED[world.config.level], requests))
    client.call(ControlledShutdownRequest(1))
    [is_abandoned] = asked
    assert not is_abandoned()
    client.close()
    assert is_abandoned()
