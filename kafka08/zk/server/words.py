"""Four-letter words: what tools ask a ZooKeeper server without a session.

Source: the commands of org.apache.zookeeper.server.command 3.9.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from kafka08.zk.model.server import Server

VERSION: Final = "3.9.5-kafka08, built on 01/01/1970 00:00 GMT"
"""The release whose behaviour it has, in the form that clients parse."""


@dataclass(frozen=True, slots=True)
class Settings:
    """The server's configuration, in the words of zoo.cfg (and of `conf`)."""

    host: str
    port: int
    directory: str
    tick_ms: int
    max_session_ms: int


@dataclass(frozen=True, slots=True)
class Client:
    """A connection. session_id, timeout_ms 0: no session yet. received, sent: records."""

    peer: str
    session_id: int
    timeout_ms: int
    received: int
    sent: int


@dataclass(frozen=True, slots=True)
class View:
    """All that a word may tell. sent and received: records of all connections so far."""

    server: Server
    settings: Settings
    clients: Sequence[Client]
    received: int
    sent: int


def _srvr(view: View) -> str:
    return f"Zookeeper version: {VERSION}\n" + _numbers(view)


def _stat(view: View) -> str:
    clients = "".join(
        f" /{c.peer}[1](queued=0,recved={c.received},sent={c.sent})\n" for c in view.clients
    )
    return f"Zookeeper version: {VERSION}\nClients:\n{clients}\n" + _numbers(view)


def _numbers(view: View) -> str:
    return (
        "Latency min/avg/max: 0/0.0/0\n"
        f"Received: {view.received}\n"
        f"Sent: {view.sent}\n"
        f"Connections: {len(view.clients)}\n"
        "Outstanding: 0\n"
        f"Zxid: {view.server.zxid:#x}\n"
        "Mode: standalone\n"
        f"Node count: {len(view.server.paths())}\n"
    )


def _mntr(view: View) -> str:
    znodes = [(path, view.server.find(path)) for path in view.server.paths()]
    values = {
        "version": VERSION,
        "server_state": "standalone",
        "avg_latency": 0,
        "min_latency": 0,
        "max_latency": 0,
        "packets_received": view.received,
        "packets_sent": view.sent,
        "num_alive_connections": len(view.clients),
        "outstanding_requests": 0,
        "znode_count": len(znodes),
        "watch_count": view.server.watch_count(),
        "ephemerals_count": sum(bool(znode and znode.ephemeral_owner) for _, znode in znodes),
        "approximate_data_size": sum(
            len(path) + len((znode and znode.data) or b"") for path, znode in znodes
        ),
        "global_sessions": len(view.server.sessions()),
    }
    return "".join(f"zk_{name}\t{value}\n" for name, value in values.items())


def _conf(view: View) -> str:
    settings = view.settings
    return (
        f"clientPort={settings.port}\n"
        f"clientPortAddress={settings.host}\n"
        f"dataDir={settings.directory}/\n"
        f"tickTime={settings.tick_ms}\n"
        "maxClientCnxns=0\n"
        f"minSessionTimeout={2 * settings.tick_ms}\n"
        f"maxSessionTimeout={settings.max_session_ms}\n"
        "serverId=0\n"
    )


def _cons(view: View) -> str:
    return "".join(
        f" /{c.peer}[1](queued=0,recved={c.received},sent={c.sent},sid={c.session_id:#x},"
        f"to={c.timeout_ms})\n"
        for c in view.clients
    )


def _dump(view: View) -> str:
    owned: dict[int, list[str]] = {}
    for path in view.server.paths():
        znode = view.server.find(path)
        if znode is not None and znode.ephemeral_owner:
            owned.setdefault(znode.ephemeral_owner, []).append(path)
    sessions = "".join(f"{session.id:#x}\n" for session in view.server.sessions())
    ephemerals = "".join(
        f"{owner:#x}:\n" + "".join(f"\t{path}\n" for path in paths)
        for owner, paths in sorted(owned.items())
    )
    return (
        f"SessionTracker dump:\nSessions:\n{sessions}"
        f"ephemeral nodes dump:\nSessions with Ephemerals ({len(owned)}):\n{ephemerals}"
    )


WORDS: Final[dict[bytes, Callable[[View], str]]] = {
    b"envi": lambda view: f"Environment:\nzookeeper.version={VERSION}\n",
    b"ruok": lambda view: "imok",
    b"srvr": _srvr,
    b"stat": _stat,
    b"mntr": _mntr,
    b"conf": _conf,
    b"cons": _cons,
    b"dump": _dump,
    b"wchs": lambda view: f"Total watches:{view.server.watch_count()}\n",
    b"isro": lambda view: "rw",
}
"""Word → its answer. (`ctrl` is another matter: faults.py.)"""
