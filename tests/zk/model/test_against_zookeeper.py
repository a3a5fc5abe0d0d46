"""The model returns the results and events of a real ZooKeeper, in the same order, for long random
histories of several clients."""

from __future__ import annotations

import random
import sys
from collections.abc import Iterable
from contextlib import closing

import pytest

from kafka08.embedded.embedded_zookeeper import EmbeddedZooKeeper
from kafka08.embedded.zookeeper import ZooKeeperServer
from kafka08.embedded.zookeeper_process import ZooKeeperProcess
from tests.zk.model.defects import DEFECTS
from tests.zk.model.histories import (
    Author,
    Comparison,
    ModelZooKeeper,
    RealZooKeeper,
    Seen,
    Step,
)

FIXED_SEEDS = (1, 2, 3, 4, 5, 6)
NEW_SEEDS = 2
LENGTH = 700
EXPIRIES = {1: 1, 2: 1}
"""Seed → sessions that expire in it; each takes more than two seconds."""

Trace = list[tuple[Step, Seen]]


class Recording:
    """A history with the replies and events of a real server."""

    def __init__(self, first_session_id: int, first_zxid: int) -> None:
        self.first_session_id = first_session_id
        self.first_zxid = first_zxid
        self.traces: dict[int, Trace] = {}

    def replay(self, model: ModelZooKeeper) -> Comparison:
        comparison = Comparison(model)
        for seed, trace in self.traces.items():
            try:
                for step, seen in trace:
                    comparison.check(step, seen)
            except AssertionError as error:
                place = f"seed {seed}, request {comparison.requests}"
                raise AssertionError(f"{place}: {error}") from None
        return comparison

    def model(self) -> ModelZooKeeper:
        return ModelZooKeeper(self.first_session_id, self.first_zxid)


def record(server: ZooKeeperProcess, seeds: Iterable[int]) -> Recording:
    """server   one without other clients"""
    with closing(RealZooKeeper(server.host, server.port)) as real:
        recording = Recording(real.first_session_id, real.first_zxid)
        author = Author(real.first_session_id + 1)
        for seed in seeds:
            history = author.history(seed, LENGTH, EXPIRIES.get(seed, 0))
            recording.traces[seed] = [real.run(step) for step in history]
    return recording


def new_seeds() -> list[int]:
    new = [random.SystemRandom().getrandbits(32) for _ in range(NEW_SEEDS)]
    sys.stdout.write(f"new seeds: {new}\n")
    return new


@pytest.fixture(scope="module")
def recording(apache_zookeeper: ZooKeeperServer) -> Recording:
    """Of Apache's server. The fixture `apache_zookeeper` skips where none can run."""
    with ZooKeeperServer() as server:
        return record(server, (*FIXED_SEEDS, *new_seeds()))


def test_results_and_events_are_those_of_a_real_server(recording: Recording) -> None:
    """Replies with their Stats and zxids, the watch events between them, and closed connections are
    the same."""
    compared = recording.replay(recording.model())
    sys.stdout.write(f"{compared.requests} requests, {compared.events} events\n")
    assert compared.requests > 5000
    assert compared.events > 500


def test_our_server_sends_what_the_model_says() -> None:
    """Behind the wire protocol the model is the same: so our server does what a real one does."""
    with EmbeddedZooKeeper() as server:
        recording = record(server, (FIXED_SEEDS[0], *new_seeds()))
    compared = recording.replay(recording.model())
    assert compared.requests > 2000
    assert compared.events > 200


@pytest.mark.parametrize("name", DEFECTS)
def test_each_planted_defect_is_found(
    recording: Recording, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A model with the planted defect differs from the real server's recording."""
    DEFECTS[name](monkeypatch)
    with pytest.raises(AssertionError, match=r"seed \d+, request \d+: after") as found:
        recording.replay(recording.model())
    sys.stdout.write(f"{name}: {str(found.value).partition(':')[0]}\n")
