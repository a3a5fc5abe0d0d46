"""A simulated world without brokers: a scheduler, processes, a network."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import pytest

from kafka08.simulation.network import Network, NetworkSettings
from kafka08.simulation.process import Process
from kafka08.simulation.scheduler import Scheduler
from kafka08.simulation.trace import Trace

STEPS = 10_000
NewProcess = Callable[[str], Process]


@pytest.fixture
def scheduler() -> Scheduler:
    return Scheduler(Random(1), Trace(), disorder=0.0)


@pytest.fixture
def network(scheduler: Scheduler) -> Network:
    return Network(scheduler, Random(1), NetworkSettings(delay_seconds=0.001, buffer_bytes=10))


@pytest.fixture
def new_process(scheduler: Scheduler) -> NewProcess:
    """A process on a host of its name, in which no task may fail."""

    def fail(task: str, error: BaseException) -> None:
        raise AssertionError(task) from error

    return lambda name: Process(scheduler, name, name, fail)
