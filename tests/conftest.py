"""Fixtures that several rooms use: one real ZooKeeper for the run, a chroot for each test."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator

import pytest
from hypothesis import settings

from kafka08.embedded.zookeeper import ZooKeeperServer
from kafka08.errors import ConfigError
from kafka08.zk.client import ZkClient

_numbers = itertools.count(1)

# Tests share their machine: how long one example takes says nothing about the code.
settings.register_profile("kafka08", deadline=None)
settings.load_profile("kafka08")


@pytest.fixture(scope="session")
def zookeeper() -> Iterator[ZooKeeperServer]:
    """One real ZooKeeper server for the whole run. Skipped without Java or jars, unless CI=true."""
    try:
        with ZooKeeperServer() as server:
            yield server
    except ConfigError as error:
        if os.environ.get("CI") == "true":
            raise
        pytest.skip(str(error))


@pytest.fixture
def zk_connect(zookeeper: ZooKeeperServer) -> str:
    """A connect string whose chroot exists and belongs to this test alone."""
    connect = f"{zookeeper.connect_string}/test-{os.getpid()}-{next(_numbers)}"
    with ZkClient(connect, make_chroot=True):
        return connect


@pytest.fixture
def zk(zk_connect: str) -> Iterator[ZkClient]:
    """A started client below this test's chroot."""
    with ZkClient(zk_connect, name="test") as client:
        yield client
