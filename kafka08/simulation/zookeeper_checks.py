"""The rules that a run checks after every write to ZooKeeper.

1. /controller_epoch rises by one with each controller, and one process writes each epoch.
2. A partition's leader is elected by the controller of the newest epoch alone.
3. Leader epochs never fall; the leader is in the ISR, and the ISR among the replicas.
4. An offset that a group committed in ZooKeeper never falls (safe profile only: members go back in
   a log that loses messages).
5. No process takes the session of a broker that is registered at another host.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Final

from kafka08.simulation.process import Process
from kafka08.simulation.zookeeper import SimZooKeeper
from kafka08.structs import NO_LEADER, LeaderAndIsr, TopicPartition
from kafka08.zk import nodes, paths
from kafka08.zk.model.messages import (
    CloseSessionRequest,
    ConnectRequest,
    CreateRequest,
    DeleteRequest,
    MultiRequest,
    SetDataRequest,
)
from kafka08.zk.model.session import ToServer

STATE: Final = re.compile(r"/brokers/topics/([^/]+)/partitions/(\d+)/state")
OFFSET: Final = re.compile(r"/consumers/([^/]+)/offsets/([^/]+)/(\d+)")


class ZooKeeperChecks:
    """on_violation   called with a sentence that describes a violation
    say            called with a sentence for each new controller, election and ISR
    on_state       called after each write of a partition's state
    on_deleted     called after the deletion of one
    on_offset      group → called with the writer after a write of its offset (safe profile)
    on_closed      called with a process that has closed its session
    on_registered  called with the host after a broker has registered there
    on_moves       called with the writer, after a write or removal of the request for moves
    """

    def __init__(
        self,
        zookeeper: SimZooKeeper,
        on_violation: Callable[[str], object],
        say: Callable[[str], object],
        *,
        is_safe: bool,
    ) -> None:
        self.on_state: Callable[[], object] = lambda: None
        self.on_deleted: Callable[[TopicPartition], object] = lambda _tp: None
        self.on_offset: dict[str, Callable[[str, TopicPartition, int], object]] = {}
        self.on_closed: Callable[[Process], object] = lambda _process: None
        self.on_registered: Callable[[str], object] = lambda _host: None
        self.on_moves: Callable[[str], object] = lambda _writer: None
        self._zookeeper = zookeeper
        self._is_safe = is_safe
        self._on_violation = on_violation
        self._say = say
        self._epoch = 0
        self._epoch_zxid = 0
        """The zxid of its last write."""
        self._controllers: dict[int, str] = {}
        self._states: dict[str, LeaderAndIsr] = {}
        self._offsets: dict[str, int] = {}
        self._writers: dict[str, str] = {}
        """Who wrote each offset."""
        zookeeper.on_done = self._on_done

    def _on_done(self, process: Process, message: ToServer) -> None:
        if isinstance(message, ConnectRequest):
            self._check_session(process, message.session_id)
            return
        if isinstance(message[1], CloseSessionRequest):
            self.on_closed(process)
        is_state = is_move = False
        for path in deleted_paths(message[1]):
            is_move = is_move or path == paths.REASSIGN_PARTITIONS
            match = STATE.fullmatch(path)
            if match and self._zookeeper.server.find(path) is None:
                self._states.pop(path, None)
                self.on_deleted(TopicPartition(match[1], int(match[2])))
        for path in written_paths(message[1]):
            is_move = is_move or path == paths.REASSIGN_PARTITIONS
            if path == paths.CONTROLLER_EPOCH:
                self._check_epoch(process.name)
            elif path.startswith(f"{paths.BROKER_IDS}/"):
                self._look_at_registration(process, path)
            elif match := STATE.fullmatch(path):
                self._check_state(process.name, path, match[1], int(match[2]))
                is_state = True
            elif self._is_safe and (match := OFFSET.fullmatch(path)):
                tp = TopicPartition(match[2], int(match[3]))
                self._check_offset(process.name, path, match[1], tp)
        if is_state:
            self.on_state()
        if is_move:
            self.on_moves(process.name)

    def _check_session(self, process: Process, session_id: int) -> None:
        """Rule 5."""
        ids = self._zookeeper.server.find(paths.BROKER_IDS)
        for name in () if ids is None or not session_id else ids.children:
            path = f"{paths.BROKER_IDS}/{name}"
            znode = self._zookeeper.server.find(path)
            if znode is not None and znode.ephemeral_owner == session_id:
                host = nodes.decode_broker(self._text(path)).host
                if host != process.host:
                    self._on_violation(f"{process.name} takes the session of {host}")

    def _look_at_registration(self, process: Process, path: str) -> None:
        """A process has written there, perhaps without an effect."""
        znode = self._zookeeper.server.find(path)
        if znode is not None and znode.ephemeral_owner:  # else a stranger's
            host = nodes.decode_broker(self._text(path)).host
            if host == process.host:
                self.on_registered(host)

    def _check_epoch(self, writer: str) -> None:
        znode = self._zookeeper.server.find(paths.CONTROLLER_EPOCH)
        if znode is None or znode.mzxid == self._epoch_zxid:
            return  # The write was refused.
        self._epoch_zxid = znode.mzxid
        epoch = nodes.decode_controller_epoch(self._text(paths.CONTROLLER_EPOCH))
        if epoch == self._epoch:
            owner = self._controllers.get(epoch, writer)
            if owner != writer:
                self._on_violation(
                    f"/controller_epoch has epoch {epoch} by {writer}, though it is {owner}'s"
                )
            return
        self._say(f"{writer} is the controller of epoch {epoch}")
        if epoch != self._epoch + 1:
            self._on_violation(f"/controller_epoch went from {self._epoch} to {epoch}, by {writer}")
        self._epoch = epoch
        self._controllers[epoch] = writer

    def _check_state(self, writer: str, path: str, topic: str, partition: int) -> None:
        znode = self._zookeeper.server.find(path)
        if znode is None:
            self._states.pop(path, None)
            return
        state = nodes.decode_leader_and_isr(self._text(path), znode.version)
        before = self._states.get(path)
        if before is not None and before.zk_version == state.zk_version:
            return
        self._states[path] = state
        if before is not None and (change := change_of(before, state)):
            self._say(f"{TopicPartition(topic, partition)}: {change}, by {writer}")
        if before is not None and state.leader_epoch < before.leader_epoch:
            self._on_violation(
                f"{path}: the leader epoch fell from {before} to {state}, by {writer}"
            )
        if state.leader != NO_LEADER and state.leader not in state.isr:
            self._on_violation(f"{path}: the leader is not in the ISR: {state}, by {writer}")
        assignment = nodes.decode_assignment(self._text(paths.topic(topic)))
        replicas = assignment.get(partition, ())
        if not set(state.isr) <= set(replicas):
            self._on_violation(
                f"{path}: the ISR is not among replicas {replicas}: {state}, by {writer}"
            )
        is_election = before is None or state.leader_epoch > before.leader_epoch
        if is_election and self._controllers.get(self._epoch) != writer:
            self._on_violation(
                f"{path}: {writer} elected {state}, while epoch {self._epoch} is "
                f"{self._controllers.get(self._epoch)}'s"
            )

    def _check_offset(self, writer: str, path: str, group: str, tp: TopicPartition) -> None:
        if self._zookeeper.server.find(path) is None:
            return
        offset = nodes.decode_offset(self._text(path))
        before = self._offsets.get(path, -1)
        if offset < before:
            self._on_violation(
                f"{path} went back from {before}, by {self._writers[path]}, to {offset}, by "
                f"{writer}"
            )
        if offset != before and group in self.on_offset:
            self.on_offset[group](writer, tp, offset)
        self._offsets[path] = offset
        self._writers[path] = writer

    def _text(self, path: str) -> str | None:
        znode = self._zookeeper.server.find(path)
        return None if znode is None or znode.data is None else znode.data.decode()


def change_of(before: LeaderAndIsr, state: LeaderAndIsr) -> str:
    """A new state in a few words; "" if neither leader nor ISR is new."""
    isr = f"ISR {', '.join(map(str, state.isr))}"
    if state.leader_epoch != before.leader_epoch:
        leader = "no leader" if state.leader == NO_LEADER else f"leader {state.leader}"
        return f"{leader} in epoch {state.leader_epoch}, {isr}"
    return isr if {*state.isr} != {*before.isr} else ""


def writes_state(request: object) -> bool:
    """Whether a request may have written the state of a partition: leader, epoch or ISR."""
    return any(STATE.fullmatch(path) for path in written_paths(request))


def written_paths(request: object) -> Iterator[str]:
    """The paths that a request may have written."""
    for step in _steps(request):
        if isinstance(step, CreateRequest | SetDataRequest):
            yield step.path


def deleted_paths(request: object) -> Iterator[str]:
    """The paths that a request may have deleted."""
    for step in _steps(request):
        if isinstance(step, DeleteRequest):
            yield step.path


def _steps(request: object) -> Iterable[object]:
    """The single requests of one."""
    return request.steps if isinstance(request, MultiRequest) else (request,)
