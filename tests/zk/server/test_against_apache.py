"""What the random histories leave out is the same on both servers: access lists, identities, and
the requests whose replies have a Stat too."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import pytest
from kazoo.client import KazooClient
from kazoo.exceptions import KazooException
from kazoo.security import ACL, Id, make_digest_acl

from kafka08.embedded.embedded_zookeeper import EmbeddedZooKeeper
from kafka08.embedded.zookeeper import ZooKeeperServer

READ_ONLY = [ACL(1, Id("world", "anyone"))]
MINE = [make_digest_acl("me", "secret", all=True)]
MINE_AND_READ = [*MINE, *READ_ONLY]


@contextmanager
def session(connect: str, *credentials: str) -> Iterator[Any]:
    client = KazooClient(connect, timeout=30)
    client.start(timeout=30)
    for one in credentials:
        client.add_auth("digest", one)
    try:
        yield client
    finally:
        client.stop()
        client.close()


def outcome(call: Callable[[], Any]) -> Any:
    try:
        return without_times(call())
    except KazooException as error:
        return type(error).__name__


def without_times(result: Any) -> Any:
    """zxids and times differ between servers."""
    if hasattr(result, "czxid"):
        return result._replace(czxid=0, mzxid=0, pzxid=0, ctime=0, mtime=0)
    if type(result) in {tuple, list}:
        return [without_times(one) for one in result]
    return result


def story(connect: str) -> list[Any]:
    """The outcomes of the same calls, by the owner of a list and by another client."""
    seen: list[Any] = []

    def note(call: Callable[..., Any], *arguments: Any, **named: Any) -> None:
        seen.append(outcome(partial(call, *arguments, **named)))

    with session(connect, "me:secret") as me, session(connect, "other:word") as other:
        note(me.create, "/s", b"x", include_data=True)
        note(me.create, "/s/own", b"x", acl=MINE)
        note(me.create, "/s/seen", b"x", acl=MINE_AND_READ, include_data=True)
        note(me.create, "/s/auth", b"", acl=[ACL(31, Id("auth", ""))])
        note(me.create, "/s/twice", b"", acl=[*MINE, *MINE])
        for bad in ("nobody", "digest", "world", "ip"):
            note(me.create, "/s/bad", b"", acl=[ACL(31, Id(bad, "x"))])
        note(me.create, "/s/ip", b"", acl=[ACL(31, Id("ip", "127.0.0.1"))])
        for client in (me, other):
            for name in ("own", "seen", "auth", "twice", "ip", "none"):
                path = f"/s/{name}"
                note(client.get_acls, path)
                note(client.get, path)
                note(client.exists, path)
                note(client.get_children, path, include_data=True)
                note(client.set, path, b"y")
                note(client.create, f"{path}/below", b"")
                note(client.delete, f"{path}/below")
        note(other.set_acls, "/s/seen", READ_ONLY)
        note(me.set_acls, "/s/seen", READ_ONLY, version=5)
        note(me.set_acls, "/s/seen", READ_ONLY, version=0)
        note(me.set_acls, "/s/seen", MINE)
        note(me.set_acls, "/s", READ_ONLY)
        note(other.delete, "/s/ip")
        note(lambda: me.get_children("/s", include_data=True)[1])
        note(me.sync, "/s")
        note(me.sync, "/none")
    return seen


def test_access_lists_and_stats_are_those_of_apache(apache_zookeeper: ZooKeeperServer) -> None:
    """The same results, refusals and versions, call by call."""
    with EmbeddedZooKeeper() as server:
        ours = story(server.connect_string)
    with ZooKeeperServer() as real:
        theirs = story(real.connect_string)
    differing = [pair for pair in zip(ours, theirs, strict=True) if pair[0] != pair[1]]
    assert differing == []
    assert len(ours) > 90


@pytest.fixture(autouse=True)
def quiet(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("ERROR", "kazoo")
