"""The rules about controllers, on single requests."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from kafka08.broker.cluster.metadata_cache import MetadataCache
from kafka08.protocol.update_metadata import UpdateMetadataRequest
from kafka08.simulation.controller_check import ControllerCheck
from kafka08.simulation.run import Run
from kafka08.simulation.trace import Trace
from tests.simulation.scripted import quiet_plan


@pytest.mark.parametrize(("epoch", "count"), [(4, 1), (5, 0), (6, 0)])
def test_what_a_broker_obeyed_before_it_was_watched_counts(epoch: int, count: int) -> None:
    """A broker that has started since the last check may know a controller already: it must not
    obey an earlier one then."""
    run = Run(1, quiet_plan("0.10.2", {}), Trace())
    broker: Any = run.brokers[0]
    broker.process = run.hosts.process("broker-1.1", broker.host)
    cache = MetadataCache(broker.id)
    manager = SimpleNamespace(_metadata_cache=cache, controller_epoch=5)
    broker.server = SimpleNamespace(_replica_manager=manager)
    violations: list[str] = []
    ControllerCheck(run.scheduler, run.zookeeper, [broker], [], violations.append)
    cache.update(UpdateMetadataRequest(2, epoch, [], []))
    assert count == len(violations), violations
