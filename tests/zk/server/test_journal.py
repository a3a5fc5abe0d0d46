"""What a ZooKeeper server for tests has acknowledged, it has after a kill."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kafka08.zk.model.messages import (
    Acl,
    ConnectRequest,
    CreateRequest,
    DeleteRequest,
    SetAclRequest,
    SetDataRequest,
)
from kafka08.zk.model.server import Instant, Server
from kafka08.zk.server.journal import NAME, Journal
from tests.zk.model.histories import Ask, Author, Drop, Open

NOW = Instant(0, 0)
LIST = (Acl(1, "world", "anyone"), Acl(31, "digest", "me:hash"))


def content(server: Server) -> dict[str, Any]:
    """All that must survive."""
    znodes = {}
    for path in server.paths():
        znode = server.find(path)
        assert znode
        znodes[path] = (znode.data, znode.stat(), znode.created_children, znode.acl)
    return {"znodes": znodes, "sessions": {s.id: s.timeout_ms for s in server.sessions()}}


def reloaded(directory: Path) -> Server:
    server = Server()
    journal = Journal(server, directory)
    journal.open(NOW)
    journal.close()
    return server


@pytest.mark.parametrize("growth_bytes", [1 << 30, 5000], ids=["one snapshot", "many snapshots"])
def test_the_state_after_any_write_is_read_back(tmp_path: Path, growth_bytes: int) -> None:
    """A random history, read back now and then, has the znodes, Stats and sessions of the server
    that wrote it; new sessions get new ids, and zxids go on."""
    server = Server()
    journal = Journal(server, tmp_path, growth_bytes)
    journal.open(NOW)
    history = Author(1 << 56).history(3, 400, 0)
    for number, step in enumerate(history):
        if isinstance(step, Open):
            server.connect(step.connection, step.request, NOW)
        elif isinstance(step, Ask):
            for xid, request in step.requests:
                server.receive(step.connection, xid, request, Instant(0, number))
        elif isinstance(step, Drop):
            server.disconnect(step.connection)
        journal.flush()
        if number % 40 == 0:
            # A copy: the start of a server writes the file anew.
            copy = tmp_path / str(number)
            copy.mkdir()
            (copy / NAME).write_bytes((tmp_path / NAME).read_bytes())
            other = reloaded(copy)
            assert content(other) == content(server)
            assert other.zxid > server.zxid
            assert content(reloaded(copy)) == content(server), "after a second start"


def test_access_lists_are_read_back(tmp_path: Path) -> None:
    """With their versions."""
    server = Server()
    journal = Journal(server, tmp_path)
    journal.open(NOW)
    server.connect(1, ConnectRequest(), NOW)
    server.receive(1, 1, CreateRequest("/a", b"", acl=LIST), NOW)
    server.receive(1, 2, CreateRequest("/b", b""), NOW)
    server.receive(1, 3, SetAclRequest("/b", LIST), NOW)
    journal.flush()
    journal.close()
    before = content(server)
    assert before["znodes"]["/b"][1].aversion == 1
    assert content(reloaded(tmp_path)) == before


def test_a_torn_end_is_ignored(tmp_path: Path) -> None:
    """A file that ends anywhere in its last frame has all that the frames before it say."""
    server = Server()
    journal = Journal(server, tmp_path)
    journal.open(NOW)
    server.connect(1, ConnectRequest(), NOW)
    server.receive(1, 1, CreateRequest("/a", b"x"), NOW)
    journal.flush()
    before, size = content(server), (tmp_path / NAME).stat().st_size
    server.receive(1, 2, SetDataRequest("/a", b"y"), NOW)
    server.receive(1, 3, DeleteRequest("/a"), NOW)
    journal.flush()
    journal.close()
    whole = (tmp_path / NAME).read_bytes()
    for end in range(size, len(whole), 3):
        (tmp_path / NAME).write_bytes(whole[:end])
        assert content(reloaded(tmp_path)) == before


def test_a_directory_is_that_of_one_server(tmp_path: Path) -> None:
    """A second one would replace the file that the first one goes on writing, which would then lose
    all that it acknowledges. Once the first one has ended, the next may begin."""
    first = Journal(Server(), tmp_path)
    first.open(NOW)
    with pytest.raises(BlockingIOError):
        Journal(Server(), tmp_path).open(NOW)
    first.close()
    reloaded(tmp_path)
