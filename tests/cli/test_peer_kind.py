"""kafka08.cli.peer_kind tells servers apart that were taken for each other."""

from __future__ import annotations

import socket
import threading
from wsgiref.simple_server import demo_app, make_server

import pytest

from kafka08.admin import AdminClient
from kafka08.cli import peer_kind
from kafka08.cli.peer_kind import PeerKind, kind_of_peer
from kafka08.client import parse_bootstrap
from kafka08.embedded import EmbeddedCluster
from kafka08.zk.reachability import explain
from tests.network.secured import SecuredPort, server_context


@pytest.mark.parametrize("level", ["0.8.2", "0.9.0", "0.11.0"])
def test_a_cluster_has_two_kinds(level: str) -> None:
    """A broker of any level, and its ZooKeeper. The questions make no topic."""
    with EmbeddedCluster(brokers=1, level=level) as cluster:
        [broker] = parse_bootstrap(cluster.bootstrap)
        assert PeerKind.KAFKA is kind_of_peer(*broker)
        [zookeeper] = parse_bootstrap(cluster.zookeeper.connect_string)
        assert PeerKind.ZOOKEEPER is kind_of_peer(*zookeeper)
        with AdminClient(cluster.zookeeper.connect_string) as admin:
            assert [] == admin.describe_topics()


def test_a_server_without_a_quorum_is_known() -> None:
    """It takes connections and starts no session: the rest of its ensemble is off."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        threading.Thread(target=refuse_to_serve, args=(server,), daemon=True).start()
        host, port = server.getsockname()
        assert PeerKind.ZOOKEEPER_WITHOUT_QUORUM is kind_of_peer(host, port)
        assert "that has no quorum: start the other servers" in explain(f"{host}:{port}")


def refuse_to_serve(server: socket.socket) -> None:
    """As ZooKeeper 3.4 to 3.9 do then."""
    for _ in range(2):
        connection, _address = server.accept()
        with connection:
            connection.recv(16)
            connection.sendall(b"This ZooKeeper instance is not currently serving requests\n")


def test_tls_is_known_before_any_request() -> None:
    """Also where nothing is behind it."""
    with SecuredPort(("127.0.0.1", 1), tls=server_context()) as port:
        assert PeerKind.TLS is kind_of_peer(*port.address)


def test_an_http_server_is_known() -> None:
    """By its reply to a request."""
    with make_server("127.0.0.1", 0, demo_app) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        assert PeerKind.HTTP is kind_of_peer("127.0.0.1", server.server_port)
        server.shutdown()


def test_a_silent_server_is_asked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """It would not reply to another question either; nor does an address without a server."""
    monkeypatch.setattr(peer_kind, "TIMEOUT_S", 0.05)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        silent.settimeout(0)
        assert None is kind_of_peer(*silent.getsockname())
        silent.accept()[0].close()
        with pytest.raises(BlockingIOError):
            silent.accept()
        refused = silent.getsockname()
    assert None is kind_of_peer(*refused)
