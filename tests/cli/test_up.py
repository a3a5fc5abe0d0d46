"""`kafka08 up --detach | status | down` as a user types them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from kafka08.admin import AdminClient
from tests.embedded.test_process import state_of


class Commands:
    """kafka08 in an environment whose default directory is the test's."""

    def __init__(self, state_home: Path) -> None:
        self._environ = {**os.environ, "XDG_STATE_HOME": str(state_home)}
        self._environ.pop("KAFKA08_DATA_DIR", None)

    def __call__(self, *arguments: str, code: int = 0) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            [sys.executable, "-m", "kafka08.cli", *arguments],
            env=self._environ,
            capture_output=True,
            text=True,
            timeout=100,
            check=False,
        )
        assert done.returncode == code, done.stderr
        return done


@pytest.fixture
def kafka08(tmp_path: Path) -> Iterator[Commands]:
    commands = Commands(tmp_path)
    yield commands
    commands("down")


def test_a_cluster_that_stays(kafka08: Commands, tmp_path: Path) -> None:
    """up --detach returns when it can be used, a second up names it, down keeps its data."""
    up = kafka08("up", "--detach", "--brokers", "1")
    standing = json.loads(kafka08("status", "--json").stdout)
    assert standing["directory"] == str(tmp_path / "kafka08" / "cluster")
    assert f"ZooKeeper  {standing['zookeeper']}\n" in up.stdout
    assert f"brokers    {standing['bootstrap']}\n" in up.stdout
    assert kafka08("status").stdout == up.stdout
    with AdminClient(standing["zookeeper"]) as admin:
        admin.create_topic("kept")

    for again in (["--detach"], ["--data-dir", standing["directory"]]):
        second = kafka08("up", *again)
        assert second.stdout == up.stdout
        assert "nothing was started" in second.stderr

    assert "Stopped the cluster" in kafka08("down").stderr
    assert not state_of(standing["pid"])
    assert "No cluster runs in" in kafka08("status", code=1).stderr
    assert "No cluster runs in" in kafka08("down").stderr

    kafka08("up", "--detach", "--brokers", "1")
    lines = kafka08("status", "--env").stdout.splitlines()
    assert lines == [
        f"export KAFKA08_ZOOKEEPER={standing['zookeeper']}",
        f"export KAFKA08_BOOTSTRAP={standing['bootstrap']}",
    ]
    with AdminClient(standing["zookeeper"]) as admin:
        assert admin.list_topics() == ["kept"]


def test_a_cluster_that_was_killed_does_not_count(kafka08: Commands) -> None:
    """The lock ends with its owner, so nothing has to be cleaned up before the next up."""
    kafka08("up", "--detach", "--brokers", "1")
    os.kill(json.loads(kafka08("status", "--json").stdout)["pid"], 9)
    kafka08("status", code=1)
    kafka08("up", "--detach", "--brokers", "1")


def test_a_cluster_that_cannot_start_says_why(kafka08: Commands) -> None:
    """The end of the broker's log is in the error, and nothing is left."""
    failed = kafka08("up", "--detach", "--brokers", "1", "--override", "num.partitions=0", code=1)
    assert "num.partitions: '0' is outside the range" in failed.stderr
    kafka08("status", code=1)


def test_ping_tells_the_broker_that_is_silent(kafka08: Commands) -> None:
    """Each broker is asked by itself; one that does not answer makes it fail."""
    kafka08("up", "--detach", "--brokers", "1")
    address = json.loads(kafka08("status", "--json").stdout)["bootstrap"]
    assert kafka08("broker", "ping", address).stdout.startswith(f"{address} brokers ")
    failed = kafka08("broker", "ping", f"{address},127.0.0.1:1", code=1)
    assert "127.0.0.1:1 does not answer" in failed.stderr
    assert failed.stdout.startswith(f"{address} brokers ")
