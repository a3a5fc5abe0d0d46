"""What a cluster that starts again does before its brokers elect leaders.

The first broker that registers becomes the controller, and elects leaders among the brokers that it
sees. With Kafka's defaults it elects a replica that is not in sync if those in sync are still
starting, and acknowledged messages are lost. On a real cluster that is the operator's risk; a
cluster that starts all its brokers itself can wait for them.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from kafka08.clock import SYSTEM_CLOCK
from kafka08.zk import nodes, paths
from kafka08.zk.client import ZkClient
from kafka08.zk.faults import end_session
from kafka08.zk.store import ClusterStore

NO_BROKER: Final = -1
"""The id in /controller while elections are held."""


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
        holder = nodes.ControllerNode(NO_BROKER, SYSTEM_CLOCK.time_ms())
        zk.create_ephemeral(paths.CONTROLLER, nodes.encode_controller(holder))
        yield
