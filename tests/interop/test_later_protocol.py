"""A broker that speaks a later protocol than its peers can read: both register alike, so that only
its log and the doctor say why its replicas never get in sync."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafka08.doctor import SnapshotReader, findings_of
from kafka08.doctor.check import Finding
from tests.interop.jvm import POM_0_10_2
from tests.interop.seats import MixedCluster, Release, mixed_cluster
from tests.waiting import until

TOPIC = "t"
OLD = Release(POM_0_10_2, "0.10.2")
NEW = Release(level="0.11.0")
PINS = {"inter.broker.protocol.version": "0.10.2", "log.message.format.version": "0.10.2"}
PINNED = Release(level="0.11.0", keys=PINS)
SAYS = " ".join(
    [
        "closes connections on Fetch 5 and OffsetForLeaderEpoch 0, which it does not serve: it is",
        "of an earlier release. To cure it, set inter.broker.protocol.version=0.10.2 and",
        "log.message.format.version=0.10.2 in this broker's server.properties, and restart it;",
    ]
)


@pytest.mark.parametrize("is_jvm", [False, True], ids=["ours", "JVM"])
def test_a_new_broker_among_old_ones_names_the_cause_and_the_cure(
    tmp_path: Path, is_jvm: bool
) -> None:
    """A broker of 0.11.0 with defaults joins one of 0.10.2: its log and the doctor say what that
    one cannot read, and the keys. With them its replicas get in sync, and nothing is said."""
    with mixed_cluster(tmp_path, 2, OLD) as cluster:
        old, new = cluster.seats
        if is_jvm:
            old.start_jvm()
        else:
            old.start_ours()
        new.start_ours(NEW)
        cluster.admin.create_topic(TOPIC, assignment={0: [1, 2]})
        wanted = f"broker 1 at 127.0.0.1:{old.port} {SAYS}"
        until(lambda: wanted in new.output(), explain=new.output)
        [found] = ahead(cluster)
        assert found.what.endswith("(0.11.0-IV2) to broker 1 of 0.10, which cannot read it")
        new.stop()
        new.start_ours(PINNED)
        cluster.await_isr(TOPIC, 1, 2)
        assert [] == ahead(cluster)


def ahead(cluster: MixedCluster) -> list[Finding]:
    with SnapshotReader(cluster.zookeeper.connect_string) as opened:
        found = findings_of(opened.read_snapshot())
    return [one for one in found if one.check == "broker-protocol-ahead"]
