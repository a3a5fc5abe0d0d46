"""`kafka08 broker list` and `describe` on the live cluster."""

from __future__ import annotations

import json

import pytest

from kafka08.admin import BrokerDescription
from kafka08.cli.broker import description_lines
from kafka08.client import parse_bootstrap
from kafka08.config import LONG_MAX
from kafka08.zk.nodes import BrokerRegistration
from kafka08.zk.store import ClusterStore
from tests.cli.conftest import Commands


def test_the_list_has_every_broker_and_one_controller(kafka08: Commands) -> None:
    """The list has the brokers by id with the address for clients, and marks the controller. --json
    has the same."""
    heading, *rows = kafka08("broker", "list").out.decode().splitlines()
    assert heading.split()[:3] == ["broker", "address", "controller"]
    addresses = [
        f"{host}:{port}" for host, port in parse_bootstrap(kafka08.environ["KAFKA08_BOOTSTRAP"])
    ]
    assert addresses == [row.split()[1] for row in rows]
    assert 1 == sum(row.split()[2] == "yes" for row in rows)
    listed = json.loads(kafka08.refused("broker", "list", "--json").out)
    assert addresses == [f"{broker['host']}:{broker['port']}" for broker in listed]
    assert [1] == sorted({broker["version"] for broker in listed})


def test_a_missing_broker_is_listed_with_its_partitions(
    kafka08: Commands, lifeless: ClusterStore
) -> None:
    """A broker that has replicas and no registration is in the list, and its partitions are
    named."""
    lifeless.create_topic("orphan", {0: [77]}, {})
    at = ("--zookeeper", f"{lifeless.zk.hosts}{lifeless.zk.chroot}")
    listed = kafka08.refused("broker", "list", *at).out.decode()
    assert ["77", "not", "registered", "-", "0", "1", "1"] == listed.splitlines()[1].split()
    described = kafka08.refused("broker", "describe", 77, *at).out.decode()
    assert "  address: not registered\n" in described
    assert "  out of sync: 1: [orphan,0]\n" in described


def test_a_broker_that_never_was_is_refused(kafka08: Commands) -> None:
    """The error for an unknown broker lists the existing ones, and nothing is printed on stdout."""
    done = kafka08.refused("broker", "describe", 0, 4711)
    assert (1, b"") == (done.code, done.out)
    assert "Broker 4711 is not registered and has no replicas; the brokers are 0," in done.err


@pytest.mark.parametrize(
    ("time_ms", "text"),
    [
        (0, "1970-01-01 00:00:00+00:00"),
        (1_795_341_600_000_000_000, "1795341600000000000 ms since 1970"),
        (LONG_MAX, "9223372036854775807 ms since 1970"),
    ],
)
def test_a_registration_of_any_time_is_described(time_ms: int, text: str) -> None:
    """A znode may have a time that no calendar has; the other fields are shown all the same."""
    registration = BrokerRegistration("h", 9092, timestamp_ms=time_ms)
    lines = list(description_lines(BrokerDescription(1, registration, False, 0, 0, (), ())))
    assert f"  registered: {text}" in lines
    assert "  out of sync: 0" == lines[-1]
