"""A broker ends the ZooKeeper session that its killed predecessor left, and no other session."""

from __future__ import annotations

import errno
import json
import logging
import os
import shutil
import stat
from pathlib import Path
from typing import Any

import pytest

from kafka08.broker.cluster import former_session
from kafka08.broker.cluster.former_session import FILE_NAME, FormerSession
from kafka08.runtime.system_disk import SYSTEM_DISK
from kafka08.runtime.threads import THREADS
from kafka08.structs import Broker
from kafka08.zk import paths
from kafka08.zk.client import ZkClient
from kafka08.zk.store import ClusterStore
from tests.zk.in_process import InProcessWorld

ADDRESS = Broker(7, "h", 9092)
PATH = paths.broker(ADDRESS.id)
LOCK = "a-boot:1:2"


class Ensemble:
    """A model of ZooKeeper and its clients. `runtime` is that of a broker beside it."""

    def __init__(self) -> None:
        self.world = InProcessWorld()
        self.runtime: Any = self
        self.zookeeper = self.world.connect
        self.monotonic = self.world.monotonic

    def client(self, connect: str = "h:1") -> ZkClient:
        client = ZkClient(connect, adapter=self.world.connect, clock=self.world)
        client.start()
        return client


@pytest.fixture
def ensemble() -> Ensemble:
    return Ensemble()


@pytest.fixture
def killed(ensemble: Ensemble, tmp_path: Path) -> ZkClient:
    """The client of a broker that was killed: its file and its znode exist."""
    client = ensemble.client()
    register(client, tmp_path)
    return client


def register(client: ZkClient, directory: Path, address: Broker = ADDRESS) -> None:
    """Does what a broker does when it starts."""
    FormerSession(directory, LOCK).keep(client)
    ClusterStore(client).register_broker(address, timestamp_ms=0)


def end(
    ensemble: Ensemble,
    directory: Path,
    successor: ZkClient,
    *,
    lock: str = LOCK,
    address: Broker = ADDRESS,
) -> None:
    """Does what a broker with this lock and address does when it starts."""
    FormerSession(directory, lock).end(ensemble.runtime, ClusterStore(successor), address)


def test_the_former_session_ends_at_once(
    ensemble: Ensemble, killed: ZkClient, tmp_path: Path
) -> None:
    """The ephemeral znodes of the session are gone when `end` returns, long before its timeout."""
    successor = ensemble.client()
    before = ensemble.world.monotonic()
    end(ensemble, tmp_path, successor)
    assert not successor.exists(PATH)
    assert ensemble.world.monotonic() - before < 1.0
    assert successor.state.name == "CONNECTED", "its own session must live on"


def test_a_full_disk_does_not_keep_a_broker_from_registering(
    ensemble: Ensemble, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: Any
) -> None:
    """A file that cannot be written is logged, with what follows from that."""

    def refuse(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(SYSTEM_DISK, "open", refuse)
    FormerSession(tmp_path, LOCK).keep(ensemble.client())
    [record] = caplog.records
    assert "No space left on device" in record.message
    assert "its next start waits" in record.message
    assert not list(tmp_path.iterdir())


def test_a_session_that_is_over_is_no_error(
    ensemble: Ensemble, killed: ZkClient, tmp_path: Path
) -> None:
    """A session that has ended is no error. A clean stop may not have deleted the file."""
    killed.close()
    end(ensemble, tmp_path, ensemble.client())
    end(ensemble, tmp_path / "none", ensemble.client())


def test_the_session_of_a_copied_directory_is_left_alone(
    ensemble: Ensemble, killed: ZkClient, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """rsync, or a snapshot, of the directory of a running broker copies its session file too. The
    lock of the copy says nothing about the original, which would halt."""
    copy = tmp_path / "copy"
    copy.mkdir()
    shutil.copy(tmp_path / FILE_NAME, copy)
    end(ensemble, copy, ensemble.client(), lock="a-boot:1:3")
    assert killed.exists(PATH)
    assert "If this directory is a copy, give this broker another broker.id" in caplog.text


@pytest.mark.parametrize("address", [ADDRESS._replace(port=9093), ADDRESS._replace(host="i")])
def test_the_session_of_a_broker_at_another_address_is_left_alone(
    ensemble: Ensemble, killed: ZkClient, tmp_path: Path, address: Broker
) -> None:
    """A start listens at its own address, so only a broker there is known to have ended."""
    end(ensemble, tmp_path, ensemble.client(), address=address)
    assert killed.exists(PATH)


def test_a_session_that_registered_nothing_is_left_alone(
    ensemble: Ensemble, killed: ZkClient, tmp_path: Path
) -> None:
    """The id is that of another session by now: which broker the file is of is not known."""
    other = ensemble.client()
    register(other, tmp_path / "elsewhere", ADDRESS._replace(id=8))
    killed.delete(PATH)
    ClusterStore(other).register_broker(ADDRESS, timestamp_ms=0)
    killed.create("/left", ephemeral=True)
    end(ensemble, tmp_path, ensemble.client())
    assert killed.exists("/left")


def test_a_session_of_another_ensemble_is_left_alone(
    ensemble: Ensemble, killed: ZkClient, tmp_path: Path
) -> None:
    """A log directory that was moved to another cluster has a session of another ensemble, which is
    left alone."""
    end(ensemble, tmp_path, ensemble.client("elsewhere:1"))
    assert killed.exists(PATH)


def test_a_wrong_password_ends_nothing(
    ensemble: Ensemble, killed: ZkClient, tmp_path: Path
) -> None:
    """With a wrong password the file ends no session, though another client may have the same
    id."""
    path = tmp_path / FILE_NAME
    path.write_text(json.dumps(json.loads(path.read_text()) | {"password": "00" * 16}))
    end(ensemble, tmp_path, ensemble.client())
    assert killed.exists(PATH)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        '{"version": 1}',
        '{"version": 2, "zookeeper": "h:1", "session_id": "7", "password": ""}',
        '{"version": 2, "zookeeper": "h:1", "session_id": 7, "password": "ab"}',
        '{"version": 2, "zookeeper": "h:1", "session_id": 1e400, "password": "' + "ab" * 16 + '"}',
        "x" * (former_session.FILE_BYTES_MAX + 1),
        "[" * 10_000,
    ],
)
def test_a_damaged_file_is_ignored(
    ensemble: Ensemble, tmp_path: Path, text: str, caplog: pytest.LogCaptureFixture
) -> None:
    """A damaged file is ignored with a warning, and the start continues."""
    (tmp_path / FILE_NAME).write_text(text)
    with caplog.at_level(logging.WARNING):
        end(ensemble, tmp_path, ensemble.client())
    assert "is not a session file" in caplog.text
    assert str(tmp_path) in caplog.text


def test_a_silent_ensemble_does_not_block_the_start(
    ensemble: Ensemble, killed: ZkClient, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """After TIMEOUT_S the start continues, and waits for the session's timeout as without
    the file."""
    successor = ensemble.client()
    ensemble.world.is_reachable = False
    before = ensemble.world.monotonic()
    end(ensemble, tmp_path, successor)
    waited = ensemble.world.monotonic() - before
    assert former_session.TIMEOUT_S <= waited < former_session.TIMEOUT_S + 1
    assert "Cannot close the former ZooKeeper session" in caplog.text


def test_only_the_owner_may_read_the_file(killed: ZkClient, tmp_path: Path) -> None:
    """Only the owner may read the file, since any client with the password can close the
    session."""
    assert 0o600 == stat.S_IMODE((tmp_path / FILE_NAME).stat().st_mode)
    FormerSession(tmp_path, LOCK).forget()
    assert [] == list(tmp_path.iterdir())


def test_the_former_session_ends_on_a_real_zookeeper(zk_connect: str, tmp_path: Path) -> None:
    """With a real ZooKeeper the znode is gone within the session's timeout."""
    runtime: Any = THREADS
    left = ZkClient(zk_connect, session_timeout_ms=30_000)
    left.start()
    register(left, tmp_path)
    with ZkClient(zk_connect) as successor:
        FormerSession(tmp_path, LOCK).end(runtime, ClusterStore(successor), ADDRESS)
        assert not successor.exists(PATH)
    left.close()
