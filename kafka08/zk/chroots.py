"""Finds the clusters of an ensemble, for who gave the wrong chroot or none."""

from __future__ import annotations

from contextlib import closing
from typing import Final

from kafka08.errors import NoBrokerRegistered, NoChroot, ZooKeeperError
from kafka08.listing import some_of
from kafka08.zk import paths
from kafka08.zk.client import ZkClient
from kafka08.zk.errors import unless_gone
from kafka08.zk.operations import Children

LEVELS: Final = 2
"""Of znodes below the root that are looked at as chroots."""
LOOKED_AT_MAX: Final = 500


def no_brokers(zk: ZkClient) -> NoBrokerRegistered:
    """The error for a path below which no broker is registered, with those where some are."""
    there = f", but at {found}" if (found := _elsewhere(zk)) else ""
    return NoBrokerRegistered(
        f"no broker is registered in {paths.BROKER_IDS} at {zk.hosts}{zk.chroot}{there}"
    )


def absent(zk: ZkClient) -> NoChroot:
    """The error for a chroot that does not exist, with the paths below which there are brokers."""
    there = f", but brokers are registered at {found}" if (found := _elsewhere(zk)) else ""
    return NoChroot(
        f"the chroot {zk.chroot} does not exist at {zk.hosts}{there}; the first broker that has it "
        "in its zookeeper.connect creates it"
    )


def _elsewhere(zk: ZkClient) -> str:
    """The other places of the same ensemble where brokers are registered; "" if there is none."""
    try:
        found = [connect for connect in clusters_beside(zk) if connect != zk.connect]
    except ZooKeeperError:
        found = []
    return some_of(found) if found else ""


def clusters_beside(zk: ZkClient) -> list[str]:
    """The connect strings of the ensemble's clusters with a registered broker. ZooKeeperError."""
    plain = ZkClient(
        zk.hosts,
        session_timeout_ms=zk.session_timeout_ms,
        connection_timeout_ms=zk.connection_timeout_ms,
        is_patient=False,
        adapter=zk.adapter,
        name=f"{zk} beside",
        clock=zk.clock,
    )
    with closing(plain):
        plain.start()
        places, level = [""], [""]
        for _ in range(LEVELS):
            listed = plain.pipeline([Children(place or "/") for place in level])
            level = [
                f"{place}/{name}"
                for place, names in zip(level, listed, strict=True)
                for name in sorted(unless_gone(names, []))
            ][: LOOKED_AT_MAX - len(places)]
            places += level
        ids = plain.pipeline([Children(place + paths.BROKER_IDS) for place in places])
    return [
        f"{zk.hosts}{place}"
        for place, names in zip(places, ids, strict=True)
        if unless_gone(names, [])
    ]
