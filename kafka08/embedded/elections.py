"""A cluster elects no leaders while all its brokers start, or stop, at once.

The first broker that registers becomes the controller, and elects leaders among the brokers that it
sees. With Kafka's defaults it elects a replica that is not in sync if those in sync are still
starting, and acknowledged messages are lost. On a real cluster that is the operator's risk; a
cluster that starts all its brokers itself can wait for them.

When all stop, those in sync may end first. A controller that is still there would elect among the
others, or remove the brokers that stop from the ISR one by one.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Final

from kafka08.clock import SYSTEM_CLOCK
from kafka08.errors import BadVersion, KafkaError, NodeExists, NoNode
from kafka08.structs import NO_CONTROLLER
from kafka08.zk import nodes, paths
from kafka08.zk.client import ZkClient
from kafka08.zk.faults import end_session
from kafka08.zk.operations import ANY_VERSION, Create, Delete, Set, Step
from kafka08.zk.store import ClusterStore

logger = logging.getLogger(__name__)

TAKE_MS: Final = 5000
"""How long a stop waits for ZooKeeper."""
TAKE_TRIES: Final = 5


def end_former_sessions(connect: str) -> None:
    """End the ZooKeeper sessions of brokers that ended without doing so: no broker may run.

    ZooKeeper gives each session its whole timeout again with each start. A broker at another
    address would find its id taken every time, and one at the same address would count as
    registered before it has started.
    """
    with ZkClient(connect) as zk:
        brokers = [paths.broker(broker) for broker in ClusterStore(zk).broker_ids()]
        stats = [zk.stat(path) for path in (*brokers, paths.CONTROLLER)]
    for owner in {stat.ephemeral_owner for stat in stats if stat is not None}:
        end_session(connect, owner)


@contextmanager
def held_elections(connect: str) -> Iterator[None]:
    """No broker becomes controller before the end of the block: /controller is taken. Enter it
    while no broker runs, and leave it when all are registered."""
    end_former_sessions(connect)
    with ZkClient(connect) as zk:
        zk.create_ephemeral(paths.CONTROLLER, holder())
        yield


@contextmanager
def ended_elections(connect: str) -> Iterator[None]:
    """Around the stop of all brokers: /controller is taken from the broker that has it, and the
    next controller epoch fences its last writes. Without ZooKeeper it only logs that: no broker can
    elect then either."""
    with ExitStack() as held:
        try:
            zk = held.enter_context(ZkClient(connect, connection_timeout_ms=TAKE_MS))
            take_controller(zk)
        except KafkaError as error:
            logger.warning("elections go on while the brokers stop: %s", error)
        yield


def take_controller(zk: ZkClient) -> None:
    """Raises ZooKeeperError."""
    store = ClusterStore(zk)
    for _ in range(TAKE_TRIES):
        steps: list[Step] = []
        if zk.exists(paths.CONTROLLER):
            steps.append(Delete(paths.CONTROLLER, ANY_VERSION))
        steps.append(Create(paths.CONTROLLER, holder(), ephemeral=True))
        if (found := store.controller_epoch()) is not None:
            epoch, version = found
            text = nodes.encode_controller_epoch(epoch + 1)
            steps.append(Set(paths.CONTROLLER_EPOCH, text, version))
        try:
            zk.multi(steps)
            return
        except (BadVersion, NodeExists, NoNode) as error:  # an election at this moment
            refusal = error
    raise refusal


def holder() -> str:
    """The text of /controller that names no broker."""
    return nodes.encode_controller(nodes.ControllerNode(NO_CONTROLLER, SYSTEM_CLOCK.time_ms()))
