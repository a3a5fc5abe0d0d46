"""Second processes of a broker's id, which must refuse to start while the first one has it.

One whose first process has lost its session may take the id, as in Kafka. It ends there: a cluster
in which two directories of an id take turns loses messages, and nobody promises otherwise.
"""

from __future__ import annotations

from random import Random
from typing import Final

from kafka08.simulation.cluster import Hosts, SimBroker
from kafka08.simulation.process import Process

TWIN_S: Final = 3.0
"""After this time a twin is killed, if it has not ended."""


class Twins:
    def __init__(self, hosts: Hosts) -> None:
        self._hosts = hosts
        self._processes: dict[str, Process] = {}
        """The process of each twin's host."""

    def start(self, broker: SimBroker, random: Random) -> str:
        """Start one of this broker, on a host of its own. Returns how."""
        host = f"twin-{len(self._processes)}"
        twin = SimBroker(self._hosts, broker.id, broker.properties, loses_writes=False, host=host)
        is_copy = random.random() < 0.7
        if is_copy:
            twin.disk.copy_from(broker.disk)
        twin.start()
        assert twin.process is not None
        self._processes[host] = twin.process
        self._hosts.world.network.scheduler.call_later(TWIN_S, twin.process.die)
        return f"another broker {broker.id} starts on {'a copy' if is_copy else 'an empty disk'}"

    def registered(self, host: str) -> None:
        """A broker has registered at this host: a twin ends."""
        if host in self._processes:
            self._processes[host].die()
