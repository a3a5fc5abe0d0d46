"""The rules about writes to ZooKeeper, on single writes."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count

import pytest

from kafka08.simulation.network import Network
from kafka08.simulation.zookeeper import SimZooKeeper
from kafka08.simulation.zookeeper_checks import ZooKeeperChecks
from kafka08.structs import LeaderAndIsr
from kafka08.zk import nodes, paths
from kafka08.zk.model.messages import ConnectRequest, CreateRequest, SetDataRequest, WriteRequest
from kafka08.zk.model.server import Instant, Server
from tests.simulation.conftest import NewProcess

NOW = Instant(0, 0)
Write = Callable[[str, WriteRequest], None]


@pytest.fixture
def violations() -> list[str]:
    return []


@pytest.fixture
def write(network: Network, new_process: NewProcess, violations: list[str]) -> Write:
    """Makes a write of the process with that name, and checks it."""
    zookeeper = SimZooKeeper(network, Server())
    ZooKeeperChecks(zookeeper, violations.append, lambda _: None, is_safe=True)
    zookeeper.server.connect(1, ConnectRequest(), NOW)
    xids = count(1)

    def make(writer: str, request: WriteRequest) -> None:
        message = next(xids), request
        zookeeper.server.receive(1, *message, NOW)
        zookeeper.on_done(new_process(writer), message)

    return make


def test_one_process_writes_each_controller_epoch(write: Write, violations: list[str]) -> None:
    """A second process that writes the epoch of the first one breaks a rule; a write that was
    refused, and the same one again, do not."""
    write("one", CreateRequest(paths.CONTROLLER_EPOCH, b"1"))
    write("two", CreateRequest(paths.CONTROLLER_EPOCH, b"1"))
    write("two", SetDataRequest(paths.CONTROLLER_EPOCH, b"2", version=7))
    write("one", SetDataRequest(paths.CONTROLLER_EPOCH, b"1"))
    assert [] == violations
    write("two", SetDataRequest(paths.CONTROLLER_EPOCH, b"1"))
    assert ["/controller_epoch has epoch 1 by two, though it is one's"] == violations


@pytest.mark.parametrize("assignment", [b"", nodes.encode_assignment({1: (1, 2)}).encode()])
def test_a_state_without_an_assignment_breaks_a_rule(
    write: Write, violations: list[str], assignment: bytes
) -> None:
    """A run in which a controller writes the state of a partition that its topic does not have
    breaks a rule, and does not crash."""
    write("one", CreateRequest(paths.CONTROLLER_EPOCH, b"1"))
    state = nodes.encode_leader_and_isr(LeaderAndIsr(1, 0, (1,), 0, 1)).encode()
    for path in ("/brokers", paths.BROKER_TOPICS):
        write("one", CreateRequest(path, b""))
    write("one", CreateRequest(paths.topic("t"), assignment))
    for path in (f"{paths.topic('t')}/partitions", f"{paths.topic('t')}/partitions/0"):
        write("one", CreateRequest(path, b""))
    path = paths.partition_state("t", 0)
    write("one", CreateRequest(path, state))
    [violation] = violations
    assert violation.startswith(f"{path}: the ISR is not among replicas ()")
