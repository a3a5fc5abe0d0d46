"""Errors of ZooKeeper operations: the classes that adapters return, each with its sentence.

    ZooKeeperError
    ├── NoNode, NodeExists, BadVersion              kafka08.errors; owners handle them by class
    ├── NotEmpty, NoChildrenForEphemerals, NotAllowed, BadArguments
    └── SessionLost                                 also after the client was closed
        ├── ConnectionLost                          the operation may have been done
        └── SessionExpired                          it was not done

Source: org.apache.zookeeper.KeeperException.
"""

from __future__ import annotations

from typing import Final, TypeVar

from kafka08.errors import BadVersion, NodeExists, NoNode, SessionLost, ZooKeeperError

T = TypeVar("T")


class NotEmpty(ZooKeeperError):
    """A znode with children cannot be deleted."""


class NoChildrenForEphemerals(ZooKeeperError):
    """An ephemeral znode cannot have children."""


class NotAllowed(ZooKeeperError):
    """The znode's access list does not allow it."""


class BadArguments(ZooKeeperError):
    """A path that is not valid, or the root where it must not be."""


class ConnectionLost(SessionLost):
    """The connection broke before the reply came: the operation may have been done."""


class SessionExpired(SessionLost):
    """The session had ended before: the operation was not done."""


SENTENCES: Final[dict[type[ZooKeeperError], str]] = {
    NoNode: "does not exist",
    NodeExists: "exists already",
    BadVersion: "was changed by another client",
    NotEmpty: "has children",
    NoChildrenForEphemerals: "cannot be made below an ephemeral znode",
    NotAllowed: "access is not allowed",
    BadArguments: "the path or version is not valid",
    ConnectionLost: "the connection to ZooKeeper was lost",
    SessionExpired: "the ZooKeeper session is over",
    SessionLost: "the ZooKeeper session is over",
}


OF_ONE_ZNODE: Final = (NotEmpty, NoChildrenForEphemerals, NotAllowed, BadArguments)
"""What another client has made of a znode. Every attempt meets it, and every process."""


def failure(kind: type[ZooKeeperError], path: str) -> ZooKeeperError:
    """An error of this class that names the znode."""
    error = kind(f"{path}: {SENTENCES[kind]}")
    error.path = path
    return error


def unless_gone(result: T | ZooKeeperError, otherwise: T) -> T:
    """The result; `otherwise` for a znode that is not there; any other error is raised."""
    if isinstance(result, NoNode):
        return otherwise
    if isinstance(result, ZooKeeperError):
        raise result
    return result
