"""The soak of brokers tells growth from what comes and goes."""

from __future__ import annotations

from collections import Counter

from benchmarks.soak_brokers import KB_MAX, counts, growth
from kafka08.embedded import EmbeddedCluster
from kafka08.zk.client import ZkClient


def test_what_stays_is_named() -> None:
    """A topic that is still there has a descriptor, files and znodes more than before."""
    with (
        EmbeddedCluster(brokers=1) as cluster,
        ZkClient(cluster.zookeeper.connect_string) as zk,
    ):
        before = counts(cluster, zk)
        cluster.create_topic("left")
        problems = growth([before, counts(cluster, zk)], [{}])
    names = "\n".join(problems)
    assert "znodes:" in names
    assert "/brokers/topics/left" in names
    assert "files of broker 0:" in names
    assert "descriptors of broker 0:" in names
    assert "left-0/00000000000000000000.log" in names


def test_what_goes_again_is_no_growth() -> None:
    """One cycle with more than the others is none, wherever it is; more every third cycle is."""
    steady = {"znodes": Counter(["/a"])}
    more = {"znodes": Counter(["/a", "/b"])}
    for place in range(6):
        looks = [steady] * 6
        looks[place] = more
        assert [] == growth(looks, [{}])
    stairs = [{"znodes": Counter({"/a": 1 + number // 3})} for number in range(8)]
    assert ["znodes: 2 more, as /a, /a"] == growth(stairs, [{}])


def test_memory_has_a_bound() -> None:
    """A broker may grow by that much per cycle, and no more."""
    held = [{"calm": n * KB_MAX, "leaking": n * (KB_MAX + 1)} for n in range(4)]
    assert [f"memory of leaking: {KB_MAX + 1:,.0f} kB a cycle"] == growth([{}], held)
