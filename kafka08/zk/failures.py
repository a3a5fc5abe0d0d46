"""kazoo's exceptions as those of kafka08.errors, with the znode named."""

from __future__ import annotations

from typing import TypeVar

from kazoo import exceptions as kazoo_errors

from kafka08.errors import BadVersion, NodeExists, NoNode, SessionLost, ZooKeeperError

T = TypeVar("T")

_TRANSLATED: tuple[tuple[type[Exception], type[ZooKeeperError], str], ...] = (
    (kazoo_errors.NoNodeError, NoNode, "does not exist"),
    (kazoo_errors.NodeExistsError, NodeExists, "exists already"),
    (kazoo_errors.BadVersionError, BadVersion, "was changed by somebody else"),
    (kazoo_errors.SessionExpiredError, SessionLost, "the ZooKeeper session is over"),
    (kazoo_errors.ConnectionLoss, SessionLost, "the connection to ZooKeeper was lost"),
    (kazoo_errors.NotEmptyError, ZooKeeperError, "has children"),
    (kazoo_errors.NoAuthError, ZooKeeperError, "access is not allowed"),
    (
        kazoo_errors.NoChildrenForEphemeralsError,
        ZooKeeperError,
        "cannot be made below an ephemeral znode",
    ),
)


def is_connection_loss(error: object) -> bool:
    """True when the connection broke in between: the operation may or may not have been done."""
    return isinstance(error, kazoo_errors.ConnectionLoss)


def is_expiry(error: object) -> bool:
    """True when the session had ended: the operation was not done. False for a closed client."""
    return isinstance(error, kazoo_errors.SessionExpiredError) and not isinstance(
        error, kazoo_errors.ConnectionClosedError
    )


def translate(error: BaseException, path: str) -> ZooKeeperError:
    """The error of ours for one of kazoo's. SessionExpiredError includes a closed client."""
    for theirs, ours, text in _TRANSLATED:
        if isinstance(error, theirs):
            return ours(f"{path}: {text}")
    return ZooKeeperError(f"{path}: {type(error).__name__} {error}".rstrip())


def unless_gone(result: T | ZooKeeperError, otherwise: T) -> T:
    """The result; `otherwise` for a znode that is not there; any other error is raised."""
    if isinstance(result, NoNode):
        return otherwise
    if isinstance(result, ZooKeeperError):
        raise result
    return result
