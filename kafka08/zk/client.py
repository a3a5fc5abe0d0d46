"""A ZooKeeper session for Kafka: text data, typed errors, bursts, rules for ephemeral znodes.

Every call waits for its reply (as its adapter waits: threads, greenlets), may be made from any
thread or greenlet but a watch callback or session listener, and raises a ZooKeeperError that names
the znode.

A call waits while the connection is lost (resender.py: how long, and what is sent again).

Source: I0Itec ZkClient 0.3 and kafka.utils.ZkUtils 0.8.2.2.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Self

from kafka08.clock import SYSTEM_CLOCK, Clock
from kafka08.errors import Closed, NodeExists, NoNode, ZooKeeperError
from kafka08.lifecycle import ProcessBound
from kafka08.waiting import waiting_for
from kafka08.zk import paths
from kafka08.zk.bulk import write_all
from kafka08.zk.errors import NotEmpty, unless_gone
from kafka08.zk.operations import (
    ANY_VERSION,
    Check,
    Children,
    Create,
    Delete,
    Exists,
    Get,
    Multi,
    Node,
    Operation,
    Refusal,
    Set,
    Stat,
    Step,
    WatchCallback,
    Watcher,
    Write,
)
from kafka08.zk.reachability import unreachable
from kafka08.zk.resender import Resender
from kafka08.zk.session import SessionEvent, SessionListener, SessionState, SessionTracker
from kafka08.zk.zookeeper import Adapter, ConnectionState, Event, SessionSettings, ZooKeeper

logger = logging.getLogger(__name__)

PIPELINE_WINDOW = 200
"""Outstanding calls of a burst: enough to hide the round trip, few enough to keep others served."""
EARLIER_SESSION_S = 120
"""How long a dead process's session may live on: longer timeouts, and a ZooKeeper that has just
started, which gives each session its whole timeout again."""


REFUSED_S = 0.2
"""The time for a first try, before an impatient client asks whether all servers refuse it."""
HASTY_CONNECT_MS = 4500
"""How long an impatient client waits for its session: kazoo gives each server two seconds, so two
that are off may come first. With HASTY_S it is less than ten seconds, after which whoever waits for
a command gives up."""
HASTY_S = 4.0
"""How long an impatient client waits for a reply, which takes milliseconds."""
DELETE_ROUNDS = 5
"""How often a recursive deletion looks again for znodes that were created meanwhile."""


class ZkClient(ProcessBound):
    """One session. `connect` is `host:port,host:port/chroot`; all paths are below the chroot.

    connect       ConfigError if it is not of that form; the default port is 2181
    adapter       makes the session (zookeeper.py); None: kazoo on threads
    name          the owner of the session, for log lines
    make_chroot   create the chroot at start (brokers do; clients fail when it is absent)
    is_patient    False, for commands: servers that refuse the first connection, or close it without
                  a reply, are not waited for, others for HASTY_CONNECT_MS; and a call gives up
                  HASTY_S after the last reply
    """

    def __init__(
        self,
        connect: str,
        *,
        session_timeout_ms: int = 6000,
        connection_timeout_ms: int | None = None,
        adapter: Adapter | None = None,
        name: str = "",
        make_chroot: bool = False,
        is_patient: bool = True,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        self.connect = connect
        self.hosts, self.chroot = paths.split_connect(connect)
        self._server = f"ZooKeeper at {self.hosts}"
        self.session_timeout_ms = session_timeout_ms
        self.connection_timeout_ms = connection_timeout_ms or session_timeout_ms
        if not is_patient:
            self.connection_timeout_ms = min(self.connection_timeout_ms, HASTY_CONNECT_MS)
        self._name = name
        self._make_chroot = make_chroot
        self._is_patient = is_patient
        self.clock = clock
        self.adapter = adapter or kazoo_on_threads
        self._tracker = SessionTracker()
        self._zookeeper = self.adapter(
            SessionSettings(self.hosts, self.chroot, session_timeout_ms, clock)
        )
        self._connected = self._zookeeper.event()
        self._settled = self._zookeeper.event()
        self._awaited_changes: set[Event] = set()
        """The events of calls that wait for a znode."""
        self._zookeeper.add_state_listener(self._on_connection_state)
        whole_s = (self.session_timeout_ms + self.connection_timeout_ms) / 1000
        self._timeout_s = whole_s if is_patient else HASTY_S
        self._resender = Resender(
            self._zookeeper,
            self._tracker,
            self._connected,
            server=self._server,
            timeout_s=self._timeout_s,
            clock=clock,
        )

    def start(self) -> None:
        """Connect. Raises ZooKeeperUnreachable with the hosts, the timeout and the fault of each
        host, NoNode with a missing chroot, and Closed as soon as `close` is called."""
        self._zookeeper.start()
        with waiting_for(self._server):
            within = self._await_connection()
        if self._tracker.state is SessionState.CLOSED:
            raise Closed(f"{self} was closed before it was connected to {self.hosts}")
        if self._tracker.state is not SessionState.CONNECTED:
            self.close()
            raise unreachable(self.hosts, self._zookeeper.why_unreachable(), within)
        # All paths are below the chroot, so "/" is the chroot itself.
        if self.chroot and not self.exists("/"):
            if not self._make_chroot:
                from kafka08.zk.chroots import absent  # it needs this module

                self.close()
                raise absent(self)
            self._create_chroot()

    def _await_connection(self) -> str:
        """Wait for it; returns how long, in words."""
        deadline = self.clock.monotonic() + self.connection_timeout_ms / 1000
        if not self._is_patient:
            self._settled.wait(REFUSED_S)
            if self._tracker.state is SessionState.NEW and self._zookeeper.is_refused():
                return ""
        self._settled.wait(max(0.0, deadline - self.clock.monotonic()))
        return f" within {self.connection_timeout_ms} ms"

    def close(self) -> None:
        """End the session: its ephemeral znodes go at once. Not to be called in a callback."""
        if self._tracker.state is SessionState.CLOSED:
            return
        self._tracker.close()
        self._settled.set()
        try:
            with waiting_for(self._server):
                self._zookeeper.close()
        finally:
            # Calls that wait for a connection, or for a znode, are sent now, and refused.
            self._connected.set()
            for change in tuple(self._awaited_changes):
                change.set()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __str__(self) -> str:
        return f"ZooKeeper session {self._name or self.connect}"

    @property
    def state(self) -> SessionState:
        return self._tracker.state

    def why_unreachable(self) -> str:
        """The outcome of a connection to each host now. May wait some seconds for each."""
        return self._zookeeper.why_unreachable()

    @property
    def session_events(self) -> Mapping[SessionEvent, int]:
        """How often each happened; without those that never did."""
        return self._tracker.told

    @property
    def session_id(self) -> int | None:
        """The id of the session, None while there is none."""
        return self._zookeeper.session_id

    @property
    def session_password(self) -> bytes:
        """The password with which another client may take the session over."""
        return self._zookeeper.session_password

    @property
    def last_contact(self) -> float:
        """The time at which the newest request with a reply was sent, in monotonic
        seconds of the clock this client was made with."""
        return self._zookeeper.last_heard

    @property
    def may_have_session(self) -> bool:
        """Whether the last contact is recent enough for the server to keep the session."""
        return self.clock.monotonic() - self.last_contact < self.granted_timeout_ms / 1000

    @property
    def granted_timeout_ms(self) -> int:
        """The session timeout that the server granted; before a connection, the requested one."""
        return self._zookeeper.granted_timeout_ms

    @property
    def requests_sent(self) -> int:
        """How many requests were sent in all sessions of this client; a transaction is one."""
        return self._zookeeper.requests_sent

    def add_session_listener(self, listener: SessionListener) -> None:
        """Call `listener` at every SessionEvent; it may only post."""
        self._tracker.add_listener(listener)

    def _on_connection_state(self, state: ConnectionState) -> None:
        if state is not ConnectionState.CONNECTED:
            self._connected.clear()
        self._tracker.on_connection_state(state)
        if state is ConnectionState.CONNECTED:  # last: who waits for it reads the state next
            self._connected.set()
            self._settled.set()

    def get(self, path: str) -> Node:
        """Data and version. NoNode."""
        node: Node = self.run(Get(path))
        return node

    def get_or_none(self, path: str) -> Node | None:
        try:
            return self.get(path)
        except NoNode:
            return None

    def exists(self, path: str) -> bool:
        return self.stat(path) is not None

    def stat(self, path: str) -> Stat | None:
        """Version, owner and times of a znode; None when it is not there."""
        stat: Stat | None = self.run(Exists(path))
        return stat

    def children(self, path: str) -> list[str]:
        """Names of the children, sorted as texts. NoNode."""
        names: list[str] = self.run(Children(path))
        return names

    def children_or_empty(self, path: str) -> list[str]:
        try:
            return self.children(path)
        except NoNode:
            return []

    def watch_data(self, path: str, callback: WatchCallback) -> Node | None:
        """Read, and watch for the next change, creation or deletion; None if it does not exist."""
        watcher = Watcher(path, callback)
        while True:
            try:
                node: Node = self.run(Get(path, watcher))
                return node
            except NoNode:
                # It may have been created between the two: then it is read again.
                if self.run(Exists(path, watcher)) is None:
                    return None

    def watch_children(self, path: str, callback: WatchCallback) -> list[str]:
        """The children, and a watch for the next change; [] (and a watch) if it does not exist."""
        watcher = Watcher(path, callback)
        while True:
            try:
                names: list[str] = self.run(Children(path, watcher))
                return names
            except NoNode:
                # It may have been created between the two: then it is read again.
                if self.run(Exists(path, watcher)) is None:
                    return []

    def create(
        self,
        path: str,
        data: str | None = "",
        *,
        ephemeral: bool = False,
        sequence: bool = False,
        make_parents: bool = True,
    ) -> str:
        """Make a znode and give its path. Missing parents are made with null data. NodeExists."""
        operation = Create(path, data, ephemeral=ephemeral, sequence=sequence)
        try:
            return str(self.run(operation))
        except NoNode:
            if not make_parents:
                raise
        self.ensure(paths.parent(path))
        return str(self.run(operation))

    def set(self, path: str, data: str | None, version: int = ANY_VERSION) -> int:
        """Write and give the new version. NoNode; BadVersion unless the version is `version`."""
        new_version: int = self.run(Set(path, data, version))
        return new_version

    def put(self, path: str, data: str | None) -> None:
        """Write, whether or not the znode exists. Source: ZkUtils.updatePersistentPath."""
        try:
            self.set(path, data)
        except NoNode:
            try:
                self.create(path, data)
            except NodeExists:
                self.set(path, data)

    def delete(self, path: str, version: int = ANY_VERSION, *, missing_ok: bool = False) -> bool:
        """Delete a znode; False if it did not exist and `missing_ok` is set. NoNode, BadVersion."""
        try:
            self.run(Delete(path, version))
        except NoNode:
            if not missing_ok:
                raise
            return False
        return True

    def delete_recursive(self, path: str, condition: Check | None = None) -> None:
        """Delete a znode and everything below it; no error if it does not exist. With a
        `condition`, its error is raised when it does not hold. NotEmpty if other clients create
        znodes below it all the time."""
        self._delete([path], condition)

    def delete_below(self, path: str, condition: Check | None = None) -> None:
        """Delete everything below a znode, as `delete_recursive`."""
        self._delete(self._children_of([path]), condition)

    def _delete(self, wanted: list[str], condition: Check | None) -> None:
        results: list[Any] = []
        for _ in range(DELETE_ROUNDS if wanted else 0):
            found, level = [], wanted
            while level:
                found += level
                level = self._children_of(level)
            results = self.write_all([Delete(one) for one in reversed(found)], condition)
            if not any(isinstance(result, NotEmpty) for result in results):
                break
        for result in results:
            unless_gone(result, None)

    def _children_of(self, znodes: Sequence[str]) -> list[str]:
        """The paths of all children; a znode that is gone has none."""
        listed = self.pipeline([Children(one) for one in znodes], make_parents=False)
        return [
            f"{one.rstrip('/')}/{name}"
            for one, names in zip(znodes, listed, strict=True)
            for name in unless_gone(names, [])
        ]

    def ensure(self, path: str) -> None:
        """Make the znode and its parents, with null data, where they are missing."""
        self._ensure_all([path])

    def run(self, operation: Operation) -> Any:
        """Carry out one operation; its result, or the error it met."""
        result = self.pipeline([operation], make_parents=False)[0]
        if isinstance(result, ZooKeeperError):
            try:
                raise result
            finally:
                del result  # with this frame it would keep what its callers hold
        return result

    def pipeline(self, operations: Iterable[Operation], *, make_parents: bool = True) -> list[Any]:
        """Carry out many operations with up to PIPELINE_WINDOW outstanding.

        Gives, in the order of the operations, the result of each or the ZooKeeperError it met; an
        error of one does not touch the others. With `make_parents`, creates whose parents are
        missing are done in a second round.
        """
        wanted = list(operations)
        results = self._resender.run(wanted, range(len(wanted)), PIPELINE_WINDOW)
        orphans = [
            index
            for index, operation in enumerate(wanted)
            if make_parents and isinstance(operation, Create) and isinstance(results[index], NoNode)
        ]
        if orphans:
            self._ensure_all([paths.parent(wanted[index].path) for index in orphans])
            results.update(self._resender.run(wanted, orphans, PIPELINE_WINDOW))
        return [results[index] for index in range(len(wanted))]

    def write_all(
        self,
        writes: Iterable[Write],
        condition: Check | None = None,
        parents: Sequence[Create] = (),
    ) -> list[Any]:
        """Carry out many small writes: as `pipeline` does, at a twentieth of its cost (bulk.py).
        parents: sent first, and may exist already."""
        return write_all(self._resender, list(writes), condition, parents=parents)

    def _ensure_all(self, wanted: Iterable[str]) -> None:
        """Create all of them and their parents, one burst for each level."""
        ancestors = sorted({path for leaf in wanted for path in _lineage(leaf)})
        found = self.pipeline([Exists(path) for path in ancestors], make_parents=False)
        missing = [path for path, stat in zip(ancestors, found, strict=True) if stat is None]
        for depth in sorted({path.count("/") for path in missing}):
            level = [Create(path, None) for path in missing if path.count("/") == depth]
            for result in self.pipeline(level, make_parents=False):
                if isinstance(result, ZooKeeperError) and not isinstance(result, NodeExists):
                    raise result

    def _create_chroot(self) -> None:
        """Through a second session: this one cannot see above its chroot."""
        plain = ZkClient(
            self.hosts,
            session_timeout_ms=self.session_timeout_ms,
            connection_timeout_ms=self.connection_timeout_ms,
            adapter=self.adapter,
        )
        with plain:
            plain.ensure(self.chroot)

    def multi(self, steps: Sequence[Step], *, again: bool = False) -> list[Any]:
        """Do all steps or none; one result for each, in order. Sent once unless `again`: then it is
        sent again after a lost connection, and a step may fail because the first attempt was done.

        If a step fails, no step is done and its error is raised, with its `path`. SessionLost: the
        connection was lost or no reply came, so the outcome is unknown until a later request of
        the same session is answered.

        Not for partition states: one stale version would fail them all (use `write_all`).
        """
        send = self._resender.run_one if again else self._resender.run_once
        outcome = send(Multi(tuple(steps)))
        if isinstance(outcome, Refusal):
            raise outcome.error
        if isinstance(outcome, ZooKeeperError):
            raise outcome
        results: list[Any] = outcome
        return results

    def create_ephemeral(
        self, path: str, data: str, *, expected_mine: Callable[[str], bool] | None = None
    ) -> None:
        """Create an ephemeral znode of this session, even if one of an earlier session is left.

        An existing znode counts as success if it belongs to this session (the reply to our create
        was lost) and has the same data, or data that `expected_mine` recognises as ours. If our
        own earlier session wrote it, the call waits until it vanishes with that session, for
        EARLIER_SESSION_S at most: one that still lives then belongs to somebody who runs.
        Otherwise NodeExists.

        Source: ZkUtils.createEphemeralPathExpectConflictHandleZKBug 0.8.2.2, but stricter on
        equal data: there the znode of an earlier session passes, and vanishes a little later. And
        there the wait has no end, so that a copy of a broker takes its place when it is restarted.
        """
        session_seconds = self.session_timeout_ms / 1000
        deadline = self.clock.monotonic() + max(EARLIER_SESSION_S, 3 * session_seconds)
        while True:
            try:
                self.create(path, data, ephemeral=True)
                return
            except NodeExists as conflict:
                stat, node = self.stat(path), self.get_or_none(path)
                if stat is None or node is None:
                    continue
                ours = expected_mine is not None and expected_mine(node.data or "")
                if stat.ephemeral_owner == self.session_id and (ours or node.data == data):
                    return
                if not ours:
                    raise NodeExists(f"{path} exists already with {node.data!r:.200}") from conflict
            if self.clock.monotonic() > deadline:
                raise NodeExists(
                    f"{path} looks like ours, but its session 0x{stat.ephemeral_owner:x} lives on: "
                    "another process with this identity runs"
                )
            logger.info("%s is left from our earlier session; waiting for its end", path)
            self._wait_for_change(path)

    def _wait_for_change(self, path: str) -> None:
        """Wait until the znode changes or goes, or the client is closed; at most one session
        timeout."""
        changed = self._zookeeper.event()
        self._awaited_changes.add(changed)
        try:
            if self.run(Exists(path, Watcher(path, lambda _: changed.set()))) is not None:
                changed.wait(self.session_timeout_ms / 1000)
        finally:
            self._awaited_changes.discard(changed)


def _lineage(path: str) -> Iterator[str]:
    """The path and all its parents except the root."""
    while path not in {"/", ""}:
        yield path
        path = paths.parent(path)


def kazoo_on_threads(settings: SessionSettings) -> ZooKeeper:
    """The adapter of a client that is given none."""
    # Imported here: kazoo takes a sixth of what `import kafka08.consumer` may take.
    from kafka08.zk.kazoo_adapter import on_threads

    return on_threads(settings)
