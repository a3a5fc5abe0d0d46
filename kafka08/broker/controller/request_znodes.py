"""RequestZnodes: the requests of tools to the controller in ZooKeeper: read, watched and removed.

/admin/reassign_partitions and /admin/preferred_replica_election hold one request at a time; the
controller removes it when it is done. A request that cannot be decoded is logged and removed: it
cannot be executed, and it would block the next one. All writes are conditional on the controller
epoch. A removed znode goes with everything below it: any client can create znodes there. Source:
kafka.controller 0.8.2.2.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, TypeVar

from kafka08.broker.controller.leadership import MAX_ROUNDS, while_controller
from kafka08.errors import BadVersion, NoNode, ZooKeeperError
from kafka08.structs import LeaderAndIsr, TopicPartition
from kafka08.zk import nodes, paths
from kafka08.zk.errors import OF_ONE_ZNODE, NotEmpty, unless_gone
from kafka08.zk.operations import ANY_VERSION, Check, Delete, Get, Set, WatchCallback, Write
from kafka08.zk.store import ClusterStore
from kafka08.zk.typed_reads import read_all

logger = logging.getLogger(__name__)

T = TypeVar("T")


class RequestZnodes:
    """`changed` is called with the path of every znode read here when it changes. All methods
    switch. Writes raise ControllerMoved if /controller_epoch was written since ours.

    epoch_zk_version   the version of /controller_epoch that this controller wrote
    """

    def __init__(self, store: ClusterStore, epoch_zk_version: int, changed: WatchCallback) -> None:
        self._store = store
        self._zk = store.zk
        self._epoch_check = Check(paths.CONTROLLER_EPOCH, epoch_zk_version)
        self._changed = changed

    def reassignments(self) -> dict[TopicPartition, tuple[int, ...]]:
        """The requested moves; {} without a request."""
        return self._request(paths.REASSIGN_PARTITIONS, nodes.decode_reassignment) or {}

    def preferred_elections(self) -> Collection[TopicPartition]:
        """The partitions of the requested preferred elections."""
        return self._request(paths.PREFERRED_ELECTION, nodes.decode_preferred_election) or ()

    def remove_preferred_elections(self) -> None:
        self._remove([paths.PREFERRED_ELECTION])

    def _request(self, path: str, decode: Callable[[str | None], T]) -> T | None:
        node = self._zk.watch_data(path, self._changed)
        if node is None:
            return None
        try:
            if found := decode(node.data):
                return found
            logger.error("Removing %s, which requests nothing", path)
        except ZooKeeperError as error:
            logger.error("Removing %s, which cannot be read: %s", path, error)
        # By version: a request that was written meanwhile stays.
        self._remove([path], node.version)
        return None

    def isr_changes(self, names: Iterable[str]) -> set[TopicPartition]:
        """The partitions in the notifications of these names. An unreadable one is logged."""
        found: set[TopicPartition] = set()
        for name, node in read_all(self._zk, {n: paths.isr_change(n) for n in names}).items():
            try:
                found.update(nodes.decode_isr_changes(node.data))
            except ZooKeeperError as error:
                logger.error("Removing %s, which cannot be read: %s", paths.isr_change(name), error)
        return found

    def remove_isr_changes(self, names: Iterable[str]) -> None:
        """Remove the notifications of these names."""
        self._remove([paths.isr_change(name) for name in names])

    def watch_states(
        self, partitions: Collection[TopicPartition]
    ) -> dict[TopicPartition, LeaderAndIsr]:
        """The existing states of partitions that are moved; the next change of each is an event."""
        return self._store.leader_and_isr(partitions, self._changed)

    def write_assignments(self, replicas: Mapping[TopicPartition, tuple[int, ...]]) -> None:
        """Write the assignment of these partitions; the others of their topics, known here or not,
        keep theirs."""
        todo: dict[str, dict[int, tuple[int, ...]]] = {}
        for tp, wanted in replicas.items():
            todo.setdefault(tp.topic, {})[tp.partition] = wanted
        for _ in range(MAX_ROUNDS):
            writes = self._assignment_writes(todo)
            lost = {}
            for topic, result in zip(writes, self._write(writes.values()), strict=True):
                # A tool has added partitions meanwhile: read and merge again.
                if isinstance(result, BadVersion):
                    lost[topic] = todo[topic]
                else:
                    unless_gone(result, None)
            if not lost:
                return
            todo = lost
        raise changed_too_often(paths.topic(min(todo)))

    def _assignment_writes(
        self, replicas: Mapping[str, Mapping[int, tuple[int, ...]]]
    ) -> dict[str, Write]:
        """topic → its znode with these replicas; a deleted topic and, with an error in the log, one
        that cannot be read are left out."""
        found = self._zk.pipeline([Get(paths.topic(topic)) for topic in replicas])
        writes: dict[str, Write] = {}
        for (topic, wanted), reply in zip(replicas.items(), found, strict=True):
            node = unless_gone(reply, None)
            if node is None:
                continue
            try:
                assignment = {**nodes.decode_assignment(node.data), **wanted}
            except ZooKeeperError as error:
                logger.error(
                    "%s: %s. New replicas of its partitions are not written: restore its former "
                    "assignment",
                    paths.topic(topic),
                    error,
                )
                continue
            text = nodes.encode_assignment(dict(sorted(assignment.items())))
            writes[topic] = Set(paths.topic(topic), text, node.version)
        return writes

    def remove_reassignments(self, partitions: Collection[TopicPartition]) -> None:
        """Remove partitions from the request; with the last ones the znode is deleted."""
        path, removed = paths.REASSIGN_PARTITIONS, set(partitions)
        for _ in range(MAX_ROUNDS):
            node = self._zk.get_or_none(path)
            if node is None:
                return
            try:
                requested = nodes.decode_reassignment(node.data)
            except ZooKeeperError:
                return  # written meanwhile: its watch has posted an event, which removes it
            left = {tp: replicas for tp, replicas in requested.items() if tp not in removed}
            text = nodes.encode_reassignment(left)
            write = Set(path, text, node.version) if left else Delete(path, node.version)
            [result] = self._write([write])
            if isinstance(result, NotEmpty):
                # Another client created znodes below the request.
                with while_controller():
                    self._zk.delete_below(path, self._epoch_check)
            elif not isinstance(result, BadVersion):
                unless_gone(result, None)
                return
        raise changed_too_often(path)

    def remove_topic(self, topic: str) -> None:
        """Remove the znodes of a deleted topic; NotEmpty if other clients create znodes below it
        all the time, NotAllowed. The topic and the request go last, and together: if
        this controller dies, the next one continues, or the topic may be created again. If the
        connection is lost then, the second attempt finds no request, and a topic of that name is
        new. 0.8.2.2 removes the topic, its configuration and the request one after the other, so
        that the next controller may leave the configuration, and either may delete a new topic."""
        request, found = paths.delete_topic(topic), paths.topic(topic)
        with while_controller():
            self._zk.delete_recursive(paths.topic_config(topic), self._epoch_check)
            for path in (found, request):
                self._zk.delete_below(path, self._epoch_check)
            try:
                last = [Delete(request), Delete(found)]
                self._zk.multi([self._epoch_check, *last], again=True)
            except NoNode as error:
                if error.path == found:
                    self._remove([request])
                elif error.path != request:
                    raise

    def remove_deletion(self, topic: str) -> None:
        """The request to delete a topic."""
        self._remove([paths.delete_topic(topic)])

    def _remove(self, znodes: Sequence[str], version: int = ANY_VERSION) -> None:
        """Remove these znodes with everything below them. One that is gone counts as removed, and
        one of another version is to be read again; one that cannot be removed is logged, and
        stays."""
        results = self._write([Delete(path, version) for path in znodes])
        for path, result in zip(znodes, results, strict=True):
            try:
                if isinstance(result, NotEmpty):
                    with while_controller():
                        self._zk.delete_recursive(path, self._epoch_check)
                elif not isinstance(result, BadVersion):
                    unless_gone(result, None)
            except OF_ONE_ZNODE as error:
                logger.error("%s. It stays: delete it", error)

    def _write(self, writes: Iterable[Write]) -> list[Any]:
        with while_controller():
            return self._zk.write_all(writes, self._epoch_check)


def changed_too_often(path: str) -> ZooKeeperError:
    return ZooKeeperError(f"{path}: changed {MAX_ROUNDS} times while it was being written")
