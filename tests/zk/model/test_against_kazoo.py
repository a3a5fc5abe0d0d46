"""The model's session returns the same results and calls the same watchers as kazoo's, for the same
random operations of two clients below a chroot."""

from __future__ import annotations

import random
import sys
from dataclasses import replace
from typing import Any

import pytest

from kafka08.errors import ZooKeeperError
from kafka08.zk.operations import (
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
    Watcher,
    Write,
)
from tests.zk.conftest import ModelSessions, RealSessions, Sessions

LENGTH = 1000
FIXED_SEEDS = (1, 2, 3)
READS: tuple[type[Get | Exists | Children], ...] = (Get, Exists, Children)


class Pair:
    """Two clients, and the calls of their watchers in order."""

    def __init__(self, sessions: Sessions) -> None:
        self.clients = [sessions.client() for _ in range(2)]
        for client in self.clients:
            client.start()
        self.called: list[list[str]] = [[], []]

    def run(self, number: int, operation: Operation) -> Any:
        if isinstance(operation, Get | Exists | Children) and operation.watch is not None:
            watch = Watcher(operation.path, self.called[number].append)
            operation = replace(operation, watch=watch)
        (result,) = self.clients[number].pipeline([operation], make_parents=False)
        return self._plain(result)

    def close(self) -> None:
        for client in self.clients:
            client.close()

    def _plain(self, result: Any) -> Any:
        """A result as it must be the same on both: owners by name, errors by class and text, no
        times."""
        if isinstance(result, ZooKeeperError):
            return type(result), str(result), result.path
        if isinstance(result, Refusal):
            return result.step_index, self._plain(result.error)
        if isinstance(result, Node):
            return result.data, result.version, self._owner(result.ephemeral_owner)
        if isinstance(result, Stat):
            return result.version, self._owner(result.ephemeral_owner), result.children
        return result

    def _owner(self, session_id: int) -> str:
        names: dict[int | None, str] = {0: "nobody"}
        names |= {client.session_id: f"client {n}" for n, client in enumerate(self.clients)}
        return names[session_id]


def operations(seed: int) -> list[tuple[int, Operation]]:
    """(client, operation). A watcher is the word "watch", which the pair replaces by its own."""
    chance = random.Random(seed)
    watch = Watcher("", lambda _: None)

    def path() -> str:
        return "".join(f"/{chance.choice('abc')}" for _ in range(chance.choice([1, 1, 2, 2, 3])))

    def version() -> int:
        return chance.choice([-1, -1, -1, 0, 1])

    def data() -> str | None:
        return chance.choice([None, "", "x", "ü"])

    def write() -> Write:
        kind = chance.choice([Create, Create, Set, Delete])
        if kind is Create:
            is_ephemeral, is_sequence = chance.random() < 0.3, chance.random() < 0.1
            return Create(path(), data(), is_ephemeral, is_sequence)
        return Set(path(), data(), version()) if kind is Set else Delete(path(), version())

    def any_one() -> Operation:
        match chance.randrange(8):
            case 0 | 1 | 2:
                return chance.choice(READS)(path(), watch if chance.random() < 0.7 else None)
            case 3:
                steps = [write() for _ in range(chance.randint(1, 3))]
                return Multi((Check(path(), version()), *steps))
            case _:
                return write()

    return [(chance.randrange(2), any_one()) for _ in range(LENGTH)]


@pytest.mark.parametrize("seed", [*FIXED_SEEDS, None])
def test_results_and_calls_are_those_of_kazoo(seed: int | None, zk_connect: str) -> None:
    """Results and calls of watchers are the same. A seed of None draws a new one and prints it."""
    seed = random.SystemRandom().getrandbits(32) if seed is None else seed
    sys.stdout.write(f"seed {seed}\n")
    real_sessions = RealSessions(zk_connect)
    real, model = Pair(real_sessions), Pair(ModelSessions())
    try:
        for number, operation in operations(seed):
            theirs, ours = real.run(number, operation), model.run(number, operation)
            assert theirs == ours, f"seed {seed}: {operation} by {number}"
        real_sessions.eventually(lambda: real.called == model.called, f"the calls of seed {seed}")
        assert min(map(len, real.called)) > 30
    finally:
        real.close()
        model.close()
