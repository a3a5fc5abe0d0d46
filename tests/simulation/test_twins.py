"""A second process of a broker's id, in a run with a script."""

from __future__ import annotations

from random import Random

from kafka08.simulation.run import Run
from kafka08.simulation.trace import Trace
from kafka08.simulation.watched_logs import watched_logs
from kafka08.zk import nodes, paths
from tests.simulation.scripted import quiet_plan, wait_until


def test_a_twin_that_gets_the_id_ends() -> None:
    """One whose first process has lost its session takes the id, and ends before it copies or
    acknowledges anything: the run breaks no rule."""
    run = Run(1, quiet_plan("0.8.2", {}), Trace())
    dead: list[bool] = []

    def play(_seconds: float) -> None:
        broker = run.brokers[0]
        run.faults.twins.start(broker, Random(1))
        [twin] = run.faults.twins._processes.values()
        for link in list(run.zookeeper.links.values()):
            if link.process is broker.process:
                run.zookeeper.expire_session(link)

        def is_taken() -> bool:
            znode = run.zookeeper.server.find(paths.broker(broker.id))
            text = "" if znode is None or znode.data is None else znode.data.decode()
            return bool(text) and nodes.decode_broker(text).host == twin.host

        wait_until(run, is_taken, 2.0)
        dead.append(twin.is_dead)

    run.faults.run = play  # type: ignore[assignment, method-assign]
    with watched_logs(run.on_caught):
        assert run.go() is None
    assert dead == [True]
