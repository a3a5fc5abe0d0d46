"""Three rules about controllers.

1. A cluster that could have a controller has one.
2. The leader epoch of a partition never falls in the metadata of a broker.
3. A broker obeys no former controller: the controller epochs of the UpdateMetadata requests that it
   applies never fall.

/controller may be absent for a while: its session must expire, and the next election takes some
requests. It must not be absent for MISSING_S while one broker could have been elected all the
time: the broker is registered, and its process, its host's network and its connection to ZooKeeper
work.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

from kafka08.protocol.update_metadata import UpdateMetadataRequest
from kafka08.simulation.cluster import SimBroker
from kafka08.simulation.process import Process
from kafka08.simulation.scheduler import Scheduler
from kafka08.simulation.zookeeper import HOST, SimZooKeeper
from kafka08.structs import TopicPartition
from kafka08.zk import paths

CHECK_S: Final = 0.1
MISSING_S: Final = 20.0
"""More than an election takes on the slowest network of a run."""


class ControllerCheck:
    """Checks the first two ten times a second, the third with each request.

    partitions     those of rule 2
    on_violation   called with a sentence that describes the violation
    """

    def __init__(
        self,
        scheduler: Scheduler,
        zookeeper: SimZooKeeper,
        brokers: Sequence[SimBroker],
        partitions: Sequence[TopicPartition],
        on_violation: Callable[[str], object],
    ) -> None:
        self._scheduler = scheduler
        self._zookeeper = zookeeper
        self._brokers = brokers
        self._partitions = partitions
        self._on_violation = on_violation
        self._known: dict[tuple[SimBroker, TopicPartition], tuple[Process, int]] = {}
        """The leader epoch that a process knows."""
        self._obeyed: dict[Process, int] = {}
        """The newest controller epoch of the UpdateMetadata requests that a process has applied; at
        first, the newest that it knows."""
        self._eligible: dict[Process, float] = {}
        """Since when a process could have been elected without an election."""
        self._check_periodically()

    def _check_periodically(self) -> None:
        self._check_presence()
        self._check_metadata()
        self._watch_new_processes()
        self._scheduler.call_later(CHECK_S, self._check_periodically)

    def _check_presence(self) -> None:
        """Rule 1."""
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
            if now - since > MISSING_S:
                self._on_violation(
                    f"there was no controller for {now - since:.0f} s, though {process.name} was "
                    "registered and connected"
                )

    def _check_metadata(self) -> None:
        """Rule 2."""
        for broker in self._brokers:
            process = broker.process
            if process is None or process.is_dead:
                continue
            for tp in self._partitions:
                state = broker.known_state(tp)
                if state is None:
                    continue
                before = self._known.get((broker, tp))
                if before is not None and before[0] is process and state.leader_epoch < before[1]:
                    self._on_violation(
                        f"{process.name}: the leader epoch of {tp} in its metadata fell from "
                        f"{before[1]} to {state.leader_epoch}"
                    )
                self._known[broker, tp] = (process, state.leader_epoch)

    def _watch_new_processes(self) -> None:
        """For rule 3."""
        for broker in self._brokers:
            process, cache = broker.process, broker.metadata_cache()
            if process is not None and cache is not None and process not in self._obeyed:
                # It may have applied requests since the last check.
                self._obeyed[process] = broker.controller_epoch()
                apply = partial(self._check_update, process, cache.update)
                cache.update = apply  # type: ignore[method-assign]

    def _check_update(
        self,
        process: Process,
        apply: Callable[[UpdateMetadataRequest], None],
        request: UpdateMetadataRequest,
    ) -> None:
        """Rule 3."""
        epoch, newest = request.controller_epoch, self._obeyed[process]
        if epoch < newest:
            self._on_violation(
                f"{process.name} obeys controller {request.controller_id} of epoch {epoch}, though "
                f"it has obeyed one of epoch {newest}"
            )
        self._obeyed[process] = max(epoch, newest)
        apply(request)

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
