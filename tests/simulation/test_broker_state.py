"""The metric brokerstate in the life of a broker."""

from __future__ import annotations

from typing import Any

import pytest

from kafka08.simulation.run import Run
from kafka08.simulation.trace import Trace
from tests.simulation.scripted import quiet_plan, wait_until

STEP_S = 60.0


def state_of(server: Any) -> float:
    family = next(server.families())
    assert "kafka_server_kafkaserver_brokerstate" == family.name
    [sample] = family.samples
    value: float = sample.value
    return value


@pytest.mark.parametrize(("level", "as_controller"), [("0.8.2", 4), ("0.9.0", 4), ("0.10.2", 3)])
def test_brokerstate_has_the_numbers_of_kafka(
    level: str, as_controller: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """1 starting, 3 running, 4 on the controller up to 0.9.0, 6 while its leaderships move, 7 while
    it shuts down (kafka.server.BrokerStates)."""
    run = Run(1, quiet_plan(level, {}), Trace())
    seen: dict[str, float] = {}

    def play(_seconds: float) -> None:
        servers: list[Any] = [one.server for one in run.brokers]

        def controllers() -> list[Any]:
            return [server for server in servers if server._controller.is_active]

        wait_until(run, lambda: len(controllers()) == 1, STEP_S)
        [controller] = controllers()
        seen["the controller"] = state_of(controller)
        number = next(n for n, server in enumerate(servers) if server is not controller)
        server = servers[number]
        seen["another broker"] = state_of(server)
        for step, owner, name in (
            ("controlled shutdown", server, "_controlled_shutdown"),
            ("logs close", server._log_manager, "shutdown"),
        ):
            monkeypatch.setattr(owner, name, noting(server, step, getattr(owner, name)))
        assert [] == run.brokers[number].shutdown(STEP_S)
        run.brokers[number].start()
        seen["a start"] = state_of(run.brokers[number].server)

    def noting(server: Any, step: str, call: Any) -> Any:
        def noted() -> None:
            seen[step] = state_of(server)
            call()

        return noted

    run.faults.run = play  # type: ignore[assignment, method-assign]
    assert run.go() is None
    expected = {
        "the controller": as_controller,
        "another broker": 3,
        "controlled shutdown": 6,
        "logs close": 7,
        "a start": 1,
    }
    assert expected == seen
