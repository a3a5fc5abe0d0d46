"""The data of the page of one group."""

from __future__ import annotations

from typing import Any

import pytest

from kafka08.exporter import Watch
from kafka08.groups import GroupReader
from kafka08.observe.coordinated import CoordinatedGroup
from kafka08.observe.place import ClusterPlace
from kafka08.observe.snapshot import ClusterView, GroupState
from kafka08.pages.details import group_details, readers_of
from kafka08.pages.live import Live
from kafka08.runtime.threads import THREADS
from kafka08.structs import Broker
from tests.pages.clusters import view


class CoordinatorOnly(GroupReader):
    """Knows each group from a coordinator. It reads no ZooKeeper: that would fail."""

    def __init__(self, *_: object, **__: object) -> None:
        super().__init__(None, "kafka1:9092")

    @property
    def has_zookeeper(self) -> bool:
        return True

    def snapshot(self, group: str) -> ClusterView:
        found = CoordinatedGroup(group, Broker(1, "kafka1", 9092), "Empty", "consumer", "", ())
        return ClusterView(0, groups={group: GroupState(coordinated=found)})


@pytest.mark.parametrize("name", ["team/readers", ".."])
def test_a_group_whose_name_no_znode_can_have_has_a_page(
    monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """A coordinator takes any name, and the list of groups links to it."""
    monkeypatch.setattr("kafka08.pages.details.GroupReader", CoordinatorOnly)
    live = Live(ClusterPlace("localhost:2181"), Watch("localhost:2181"), THREADS)
    details: dict[str, Any] = group_details(live, name)
    assert [("coordinator", "Empty")] == [(k["kind"], k["state"]) for k in details["kinds"]]


def test_a_topic_names_the_groups_that_read_it() -> None:
    """Each with its lag in this topic alone."""
    seen = view(2, partitions=3)
    one = {"group": "readers", "members": 1, "lag": 30, "is_exact": True}
    assert [one] == readers_of(seen, "t0")
    assert [] == readers_of(seen, "t1")
