"""A topic that is deleted while a broker that has no replica of it cannot hear of that.

Drawn runs hardly ever find this, so these have a script instead of faults.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import pytest

from kafka08.admin.client import AdminClient
from kafka08.broker.topics.deleted_topics import DeletedTopics
from kafka08.simulation.cluster import SimBroker
from kafka08.simulation.plan import Plan
from kafka08.simulation.run import Run
from kafka08.simulation.trace import Trace
from kafka08.simulation.watched_logs import watched_logs
from kafka08.simulation.zookeeper import ADDRESS, HOST
from kafka08.structs import TopicPartition
from kafka08.zk import nodes, paths
from tests.simulation.scripted import quiet_plan, wait_until

STEP_S: Final = 60.0
GONE: Final = TopicPartition("gone", 0)


def plan_without_faults(level: str) -> Plan:
    return quiet_plan(level, {}, pause_seconds=0.5)


class Script:
    """What happens in the run: `away` cannot hear of the deletion of the topic. Of the two others
    one is the controller, and one has the only replica.

    loses_session        `away` has no session meanwhile; else the controller cannot reach it
    changes_controller   afterwards, another broker is the controller
    """

    def __init__(self, run: Run, *, loses_session: bool, changes_controller: bool) -> None:
        self._run = run
        self._loses_session = loses_session
        self._changes_controller = changes_controller
        run.faults.run = self._play  # type: ignore[assignment, method-assign]

    def _play(self, _seconds: float) -> None:
        run = self._run
        controller = self._controller()
        replica, away = (one for one in run.brokers if one is not controller)
        far = HOST if self._loses_session else controller.host
        with AdminClient(ADDRESS, runtime=run.director) as admin:
            admin.create_topic(GONE.topic, assignment={0: [replica.id]})
            self._until(lambda: away.known_state(GONE) is not None)
            self._cut(away.host, far)
            if self._loses_session:
                self._until(lambda: run.zookeeper.server.find(paths.broker(away.id)) is None)
            admin.delete_topic(GONE.topic)
            self._until(lambda: run.zookeeper.server.find(paths.topic(GONE.topic)) is None)
        if self._changes_controller:
            self._cut(controller.host, HOST)
            self._until(lambda: self._controller_id() not in (None, controller.id))
            self._mend(controller.host, HOST)
        self._mend(away.host, far)

    def _cut(self, one: str, other: str) -> None:
        self._run.network.cut(one, other)
        self._run.network.cut(other, one)

    def _mend(self, one: str, other: str) -> None:
        self._run.network.mend(one, other)
        self._run.network.mend(other, one)

    def _controller(self) -> SimBroker:
        broker_id = self._controller_id()
        return next(one for one in self._run.brokers if one.id == broker_id)

    def _controller_id(self) -> int | None:
        znode = self._run.zookeeper.server.find(paths.CONTROLLER)
        if znode is None:
            return None
        assert znode.data is not None
        return nodes.decode_controller(znode.data.decode()).broker_id

    def _until(self, happens: Callable[[], bool]) -> None:
        wait_until(self._run, happens, STEP_S)


def verdict_of_run(level: str, *, loses_session: bool, changes_controller: bool) -> str | None:
    run = Run(1, plan_without_faults(level), Trace())
    Script(run, loses_session=loses_session, changes_controller=changes_controller)
    with watched_logs(run.on_caught):
        return run.go()


@pytest.mark.parametrize("level", ["0.8.2", "0.10.2"])
@pytest.mark.parametrize(
    ("loses_session", "changes_controller"), [(True, False), (True, True), (False, True)]
)
def test_a_topic_deleted_meanwhile_is_gone_everywhere(
    level: str, *, loses_session: bool, changes_controller: bool
) -> None:
    """A broker that comes back with a new session drops it from its metadata, also if there is
    another controller, which has never known it. So does one that the former controller could not
    reach before its end. 0.8.2.2 to 0.10.2.2 keep it for ever."""
    verdict = verdict_of_run(
        level, loses_session=loses_session, changes_controller=changes_controller
    )
    assert verdict is None


def test_a_broker_that_keeps_it_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without looking it up, the broker names the topic for ever."""
    monkeypatch.setattr(DeletedTopics, "check", lambda *_: None)
    verdict = verdict_of_run("0.8.2", loses_session=True, changes_controller=False)
    assert verdict is not None
    assert "has [gone,0] in its metadata, though the topic is gone" in verdict
