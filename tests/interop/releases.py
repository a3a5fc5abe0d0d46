"""A JVM broker of one of several releases, for tests that run on each."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.interop.jvm import (
    POM_0_11,
    POM_2_8,
    POM_3_9,
    JvmBroker,
    JvmMissing,
    classpath,
    knows_brokers,
    new_zookeeper,
)
from tests.interop.kraft_broker import POM_4_4, KraftBroker, authorizer
from tests.waiting import until

RELEASES = {"0.11.0.3": POM_0_11, "2.8.2": POM_2_8, "3.9.1": POM_3_9, "4.4.0": POM_4_4}
TODAYS = ("2.8.2", "3.9.1", "4.4.0")
AUTHORIZERS = {
    "0.11.0.3": "kafka.security.auth.SimpleAclAuthorizer",
    "2.8.2": "kafka.security.authorizer.AclAuthorizer",
    "3.9.1": "kafka.security.authorizer.AclAuthorizer",
}


class Running(NamedTuple):
    release: str
    address: str
    log_dir: Path


@contextmanager
def broker_of(release: str, directory: Path) -> Iterator[Running]:
    """Skips the test where it cannot be had."""
    pom = RELEASES[release]
    try:
        classpath(pom)
    except JvmMissing as missing:
        pytest.skip(str(missing))
    if pom == POM_4_4:
        with KraftBroker(directory) as modern:
            yield Running(release, modern.address["PLAINTEXT"], directory / "logs")
        return
    keys = {
        "group.initial.rebalance.delay.ms": "0",
        "delete.topic.enable": "true",
        "transaction.state.log.replication.factor": "1",
        "transaction.state.log.min.isr": "1",
        **authorizer(AUTHORIZERS[release]),
    }
    with (
        new_zookeeper(directory) as zookeeper,
        JvmBroker(directory, 1, zookeeper.connect_string, keys, pom=pom) as running,
    ):
        until(lambda: knows_brokers(running), "the broker to know itself")
        yield Running(release, running.address, running.log_dir)
