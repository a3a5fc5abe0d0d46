"""The rule that a cluster which could have a controller has one.

/controller may be absent for a while: its session must expire, and the next election takes some
requests. It must not be absent for MISSING_SECONDS while one broker could have been elected all the
time: the broker is registered, and its process, its host's network and its connection to ZooKeeper
work.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from kafka08.simulation.cluster import SimBroker
from kafka08.simulation.process import Process
from kafka08.simulation.scheduler import Scheduler
from kafka08.simulation.zookeeper import HOST, SimZooKeeper
from kafka08.zk import paths

CHECK_SECONDS: Final = 0.5
MISSING_SECONDS: Final = 20.0
"""More than an election takes on the slowest network of a run."""


class ControllerCheck:
    """Checks twice a second.

    on_violation   called with a sentence that describes the violation
    """

    def __init__(
        self,
        scheduler: Scheduler,
        zookeeper: SimZooKeeper,
        brokers: Sequence[SimBroker],
        on_violation: Callable[[str], object],
    ) -> None:
        self._scheduler = scheduler
        self._zookeeper = zookeeper
        self._brokers = brokers
        self._on_violation = on_violation
        self._eligible: dict[Process, float] = {}
        """Since when a process could have been elected without an election."""
        self._check_periodically()

    def _check_periodically(self) -> None:
        self._check()
        self._scheduler.call_later(CHECK_SECONDS, self._check_periodically)

    def _check(self) -> None:
        now = self._scheduler.now
        if self._zookeeper.server.find(paths.CONTROLLER) is not None:
            self._eligible.clear()
            return
        connected = {link.process for link in self._zookeeper.links.values()}
        found = [broker for broker in self._brokers if self._is_eligible(broker, connected)]
        self._eligible = {
            broker.process: self._eligible.get(broker.process, now)
            for broker in found
            if broker.process is not None
        }
        for process, since in self._eligible.items():
            if now - since > MISSING_SECONDS:
                self._on_violation(
                    f"there was no controller for {now - since:.0f} s, though {process.name} was "
                    "registered and connected"
                )

    def _is_eligible(self, broker: SimBroker, connected: set[Process]) -> bool:
        process, network = broker.process, self._zookeeper.network
        return (
            process in connected
            and process is not None
            and not process.is_dead
            and not process.is_stopped
            and not network.is_cut(broker.host, HOST)
            and not network.is_cut(HOST, broker.host)
            and self._zookeeper.server.find(paths.broker(broker.id)) is not None
        )
