"""Sends operations and waits for their replies, across lost connections.

An operation whose reply was lost is sent again, a write only in the same session, until no response
has come for the timeout (session + connection timeout); then its result is SessionLost. A conflict
with our own earlier attempt, whose reply was lost, counts as success: a conditional write that
finds its own data at the next version, a create that finds its own znode, a delete that finds none.
If the session ended in between, the result of a write is SessionLost: it may have been done, and
the caller must decide again.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

from kafka08.clock import Clock
from kafka08.errors import BadVersion, NodeExists, NoNode, SessionLost, ZooKeeperError
from kafka08.waiting import waiting_for
from kafka08.zk.errors import ConnectionLost, SessionExpired
from kafka08.zk.operations import Create, Delete, Get, Multi, Node, Operation, Set
from kafka08.zk.session import SessionTracker
from kafka08.zk.zookeeper import Event, Pending, ZooKeeper

LARGE_BYTES: Final = 1_000_000
"""Above it a lost connection is taken for the server's answer: jute.maxbuffer is 1,048,575."""


class Resender:
    """Turns operations into results.

    server              what to call the server while it is waited for
    connected           set while there is a connection
    timeout_s           how long a call waits since it began, or since the last response to one of
                        its operations: many take long, and each response renews it
    """

    def __init__(
        self,
        zookeeper: ZooKeeper,
        tracker: SessionTracker,
        connected: Event,
        *,
        server: str,
        timeout_s: float,
        clock: Clock,
    ) -> None:
        self._zookeeper = zookeeper
        self._tracker = tracker
        self._connected = connected
        self._server = server
        self._timeout_s = timeout_s
        self._clock = clock

    def run(
        self, operations: Sequence[Operation], indices: Iterable[int], window: int
    ) -> dict[int, Any]:
        """Carry out the operations with these indices, at most `window` outstanding: index → result
        or ZooKeeperError."""
        results: dict[int, Any] = {}
        session = self._tracker.sessions_ended
        patience = _Patience(self._clock, self._timeout_s)
        todo, again = list(indices), False
        while todo:
            lost: list[int] = []
            for index, reply in self._send(operations, todo, window, patience):
                operation = operations[index]
                results[index] = self._settle(operation, reply, again)
                if isinstance(reply, ConnectionLost) and _size(operation) > LARGE_BYTES:
                    # The server closes the connection of a packet that is too long, each time.
                    results[index] = _too_large(operation)
                    continue
                if isinstance(reply, ConnectionLost) or (
                    isinstance(reply, SessionExpired) and operation.repeatable
                ):
                    lost.append(index)
            if not lost:
                break
            with waiting_for(self._server):
                self._connected.wait(patience.seconds_left())
            if not patience.seconds_left():
                results |= {index: self._no_reply(operations[index]) for index in lost}
                break
            same_session = session == self._tracker.sessions_ended
            todo = [index for index in lost if same_session or operations[index].repeatable]
            again = True
        return results

    def run_one(self, operation: Operation) -> Any:
        """Its result or ZooKeeperError, returned, not raised."""
        return self.run([operation], [0], 1)[0]

    def run_once(self, operation: Operation) -> Any:
        """Like run_one, but never sends the operation again."""
        patience = _Patience(self._clock, self._timeout_s)
        return next(self._send([operation], [0], 1, patience))[1]

    def _send(
        self,
        operations: Sequence[Operation],
        indices: list[int],
        window: int,
        patience: _Patience,
    ) -> Iterator[tuple[int, Any]]:
        """(index, result or ZooKeeperError) in order; replies come in the order of requests.

        Waits for the reply in the middle, so that this thread and the adapter's switch once for
        half a window and not for each reply. Sends no more once the time is over."""
        outstanding: deque[tuple[int, Pending]] = deque()
        for index in indices:
            if len(outstanding) >= window:
                half = len(outstanding) // 2
                self._wait(outstanding[half][1], patience)
                for _ in range(half + 1):
                    yield self._take(operations, outstanding, patience)
            if not patience.seconds_left():
                while outstanding:
                    yield self._take(operations, outstanding, patience)
            if patience.seconds_left():
                outstanding.append((index, self._zookeeper.send(operations[index])))
            else:  # none of these responded either
                yield index, self._no_reply(operations[index])
        if outstanding:
            self._wait(outstanding[-1][1], patience)
        while outstanding:
            yield self._take(operations, outstanding, patience)

    def _take(
        self,
        operations: Sequence[Operation],
        outstanding: deque[tuple[int, Pending]],
        patience: _Patience,
    ) -> tuple[int, Any]:
        index, pending = outstanding.popleft()
        if not pending.ready():
            self._wait(pending, patience)
        if not pending.ready():
            return index, self._no_reply(operations[index])
        reply = pending.outcome()
        if not isinstance(reply, SessionLost):
            patience.renew()
        return index, reply

    def _no_reply(self, operation: Operation) -> SessionLost:
        return SessionLost(
            f"{operation.path}: no reply from {self._server} in {self._timeout_s:g} s"
        )

    def _wait(self, pending: Pending, patience: _Patience) -> None:
        with waiting_for(self._server):
            pending.wait(patience.seconds_left())

    def _settle(self, operation: Operation, reply: Any, again: bool) -> Any:
        """The result in a reply; `again` if an earlier attempt may have been carried out."""
        if again and not operation.repeatable and isinstance(reply, ZooKeeperError):
            return self._done_before(operation, reply)
        return reply

    def _done_before(self, operation: Operation, error: ZooKeeperError) -> Any:
        """The result of an operation whose lost first attempt succeeded; else `error`."""
        if isinstance(operation, Delete) and isinstance(error, NoNode):
            return None
        if isinstance(operation, Set) and isinstance(error, BadVersion):
            node = self.run_one(Get(operation.path))
            written = (operation.data, operation.version + 1)
            if isinstance(node, Node) and (node.data, node.version) == written:
                return node.version
        if isinstance(operation, Create) and isinstance(error, NodeExists):
            node = self.run_one(Get(operation.path))
            ours = (operation.data, self._zookeeper.session_id if operation.ephemeral else 0)
            if isinstance(node, Node) and (node.data, node.ephemeral_owner) == ours:
                return operation.path
        return error


class _Patience:
    """How long a call waits: `seconds` since it began, or since the last response."""

    def __init__(self, clock: Clock, seconds: float) -> None:
        self._clock = clock
        self._seconds = seconds
        self.renew()

    def renew(self) -> None:
        self._deadline = self._clock.monotonic() + self._seconds

    def seconds_left(self) -> float:
        return max(0.0, self._deadline - self._clock.monotonic())


def _too_large(operation: Operation) -> ZooKeeperError:
    return ZooKeeperError(
        f"{operation.path}: ZooKeeper closed the connection of a write of {_size(operation)} "
        "bytes, which was probably not done: its limit is jute.maxbuffer, 1 MB unless it was raised"
    )


def _size(operation: Operation) -> int:
    """The bytes of the data that it writes."""
    steps = operation.steps if isinstance(operation, Multi) else (operation,)
    texts = (step.data for step in steps if isinstance(step, Create | Set))
    return sum(len(text.encode()) for text in texts if text is not None)
