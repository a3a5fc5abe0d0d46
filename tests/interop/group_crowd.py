"""Sixty groups that commit to Kafka, and what is read of them: the offsets of all at once, and when
each expires."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from typing import Final

from kafka08.client import ClusterClient, parse_bootstrap
from kafka08.client.requests import commit_request
from kafka08.exporter import ClusterReader
from kafka08.groups import GroupReader
from kafka08.observe.commit_times import RETENTION_MS
from kafka08.runtime.threads import THREADS
from kafka08.structs import OffsetAndMetadata, TopicPartition
from kafka08.zk.client import ZkClient

NAMES: Final = [f"crowd-{number:02}" for number in range(60)]
CLOCK_MS: Final = 600_000


def check_crowd(zookeeper: str, bootstrap: str, tps: Sequence[TopicPartition]) -> None:
    """Each group has its own offsets, also after one has moved, and expires a day after them."""

    def commit(group: str, offset: int) -> None:
        offsets = {tp: OffsetAndMetadata(offset + tp.partition) for tp in tps}
        client.ask_coordinator(group, lambda c: c.send(commit_request(group, offsets, "kafka")))

    def committed() -> dict[str, list[int]]:
        view = reader.read_view()
        assert not view.failed_requests
        return {name: [view.groups[name].kafka[tp].offset for tp in tps] for name in NAMES}

    with (
        ZkClient(zookeeper) as zk,
        ClusterReader(zookeeper) as reader,
        closing(ClusterClient(parse_bootstrap(bootstrap))) as client,
    ):
        for number, name in enumerate(NAMES):
            zk.ensure(f"/consumers/{name}/ids")  # a member of 0.8 leaves this behind
            commit(name, number)
        expected = {name: [n + tp.partition for tp in tps] for n, name in enumerate(NAMES)}
        for _ in range(3):
            assert expected == committed()
        commit(NAMES[7], 500)
        expected[NAMES[7]] = [500 + tp.partition for tp in tps]
        assert expected == committed()
        for name in NAMES:
            zk.delete_recursive(f"/consumers/{name}")
    with GroupReader(zookeeper) as groups:
        found = groups.commits(NAMES[7], groups.facts(NAMES[7]).partitions)
    left_ms = [
        (commit.expires(has_members=False) or 0) - THREADS.time_ms() for commit in found.values()
    ]
    assert len(tps) == len(left_ms)
    assert all(RETENTION_MS - CLOCK_MS < left <= RETENTION_MS for left in left_ms), left_ms
