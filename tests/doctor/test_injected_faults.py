"""Faults that are written into a real ZooKeeper, as tools, crashes and people leave them there.

test_checks.py has every check on a snapshot. Here the reader has to find the fault: a znode that it
does not read, or reads as something else, would hide it. No broker runs behind the registrations.
test_injected_files.py has faults in files, test_injected_brokers.py those of brokers and times.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from typing import Any

import pytest

from kafka08.doctor import SnapshotReader, findings_of
from kafka08.zk.client import ZkClient

HOUR = 3_600_000
STATES = "/brokers/topics/{}/partitions/{}/state"
REASSIGN = "/admin/reassign_partitions"

Znodes = Mapping[str, Any]
"""Path → JSON, or text as it is; None: there is no such znode."""


def ago(ms: int) -> str:
    """A time in ms since the epoch, as znodes have it."""
    return str(int(time.time() * 1000) - ms)


def broker(port: int, **more: Any) -> Any:
    registration = {"version": 1, "host": "127.0.0.1", "port": port, "timestamp": ago(0)}
    return {**registration, "jmx_port": -1, **more}


def state(leader: int, *isr: int) -> Any:
    return {"version": 1, "leader": leader, "leader_epoch": 0, "isr": isr, "controller_epoch": 5}


def topic(name: str, *assignment: tuple[int, ...], first: int = 0) -> Znodes:
    """Its znodes; each partition is led by its first replica, and all are in sync."""
    numbered = {str(n): list(replicas) for n, replicas in enumerate(assignment, first)}
    return {
        f"/brokers/topics/{name}": {"version": 1, "partitions": numbered},
        f"/config/topics/{name}": {"version": 1, "config": {}},
        **{STATES.format(name, n): state(r[0], *r) for n, r in numbered.items() if r},
    }


def configured(name: str, *replicas: int, **overrides: str) -> Znodes:
    """A topic of one partition with overrides."""
    config = {key.replace("_", "."): value for key, value in overrides.items()}
    return {**topic(name, replicas), f"/config/topics/{name}": {"version": 1, "config": config}}


def reassign(name: str, *replicas: int) -> Znodes:
    return {
        REASSIGN: {
            "version": 1,
            "partitions": [{"topic": name, "partition": 0, "replicas": replicas}],
        }
    }


def member(**subscription: int) -> Any:
    return {"version": 1, "subscription": subscription, "pattern": "static", "timestamp": ago(0)}


def healthy() -> Znodes:
    return {
        **{f"/brokers/ids/{n}": broker(n) for n in (1, 2, 3)},
        **topic("t", (1, 2), (2, 3), (3, 1)),
        "/controller": {"version": 1, "brokerid": 1, "timestamp": ago(0)},
        "/controller_epoch": "5",
    }


T0 = STATES.format("t", 0)
ID = "/consumers/g/ids/g_host-1-aa"


def faults() -> Mapping[str, Znodes]:
    """Check → what it has to find, written over a healthy cluster."""
    return {
        "no-brokers": {f"/brokers/ids/{n}": None for n in (1, 2, 3)},
        "broker-unreadable": {"/brokers/ids/4": "no JSON"},
        "broker-same-address": {"/brokers/ids/3": broker(2)},
        "broker-left-behind": topic("v", (1, 9)),
        "broker-clock": {"/brokers/ids/1": broker(1, timestamp=ago(2 * HOUR))},
        "broker-protocol-ahead": {
            "/brokers/ids/1": broker(1, version=4, endpoints=["PLAINTEXT://127.0.0.1:1"])
        },
        "broker-versions-mixed": {
            "/brokers/ids/1": broker(1, version=2, endpoints=["PLAINTEXT://127.0.0.1:1"])
        },
        "controller-none": {"/controller": None},
        "controller-dead": {
            "/controller": {"version": 1, "brokerid": 8, "timestamp": ago(0)},
        },
        "controller-clock": {
            "/controller": {"version": 1, "brokerid": 1, "timestamp": ago(2 * HOUR)}
        },
        "controller-epoch": {"/controller_epoch": "4"},
        "partition-unreadable": {T0: "no JSON"},
        "partition-offline": {T0: state(-1, 2)},
        "partition-led-by-dead": {T0: state(7, 7, 2)},
        "partition-under-replicated": {T0: state(1, 1)},
        "coordinator-none": topic("__consumer_offsets", (7,)),
        "isr-foreign": {T0: state(1, 1, 2, 3)},
        "partition-without-replicas": topic("v", ()),
        "partition-gap": topic("v", (1, 2), first=1),
        "leaders-skewed": {
            **topic("v", *[(1, 2)] * 5),
            **{STATES.format("v", n): state(2, 1, 2) for n in range(5)},
        },
        "replicas-skewed": topic("v", *[(1, 2)] * 40),
        "topic-unreadable": {"/brokers/topics/v": {"version": 1, "partitions": {"0": [1, 1]}}},
        "topic-empty": {"/brokers/topics/v": {"version": 1, "partitions": {}}},
        "topic-name": topic("v:w", (1, 2)),
        "topic-names-collide": {**topic("a.b", (1, 2)), **topic("a_b", (1, 2))},
        "topic-config-unreadable": {**topic("v", (1, 2)), "/config/topics/v": "no JSON"},
        "topic-config-invalid": configured("v", 1, 2, retention_mss="5"),
        "min-insync-above-replicas": configured("v", 1, 2, min_insync_replicas="3"),
        "min-insync-not-met": {
            **configured("v", 1, 2, min_insync_replicas="2"),
            STATES.format("v", 0): state(1, 1),
        },
        "unclean-election-allowed": configured("v", 1, 2, unclean_leader_election_enable="true"),
        "retention-below-segment": configured(
            "v", 1, 2, retention_bytes="100", segment_bytes="1000"
        ),
        "replica-counts-differ": topic("v", (1, 2), (1, 2, 3)),
        "offsets-topic-one-replica": configured("__consumer_offsets", 1, cleanup_policy="compact"),
        "offsets-topic-not-compacted": topic("__consumer_offsets", (1, 2, 3)),
        "request-unreadable": {REASSIGN: "no JSON"},
        "reassignment-to-dead-broker": reassign("t", 1, 9),
        "reassignment-of-nothing": reassign("gone", 1, 2),
        "config-left-behind": {"/config/topics/gone": {"version": 1, "config": {}}},
        "group-unreadable-member": {ID: "no JSON"},
        "group-persistent-member": {ID: member(t=1)},
        "group-absent-topic": {ID: member(gone=1)},
        "group-unreadable-offset": {"/consumers/g/offsets/t/0": "no number"},
        "group-blocking-owner": {ID: member(t=1), "/consumers/g/owners/t/0": "g_gone-1-bb-0"},
        "group-gone-partition": {"/consumers/g/offsets/t/9": "5"},
        "group-stray-znode": {"/consumers/g/owners/t/x": "y"},
    }


def names_of(zk_connect: str) -> set[str]:
    """By a reader of its own: one that goes on reading sees a change when its watch has fired,
    which may be after the write has returned to another session."""
    with SnapshotReader(zk_connect) as reader:
        return {finding.check for finding in findings_of(reader.read_snapshot())}


def write(zk: ZkClient, znodes: Znodes) -> None:
    for path, value in znodes.items():
        if value is None:
            zk.delete(path)
        else:
            zk.put(path, value if isinstance(value, str) else json.dumps(value))


@pytest.mark.parametrize("name", sorted(faults()))
def test_a_fault_in_zookeeper_is_found(name: str, zk: ZkClient, zk_connect: str) -> None:
    """Only after it was written."""
    write(zk, healthy())
    assert name not in names_of(zk_connect)
    write(zk, faults()[name])
    assert name in names_of(zk_connect)
