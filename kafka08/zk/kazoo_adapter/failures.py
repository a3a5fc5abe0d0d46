"""Maps kazoo's exceptions to kafka08.zk.errors, with the path of the znode."""

from __future__ import annotations

from typing import Final

from kazoo import exceptions as kazoo_errors

from kafka08.errors import BadVersion, NodeExists, NoNode, SessionLost, ZooKeeperError
from kafka08.zk.errors import (
    BadArguments,
    ConnectionLost,
    NoChildrenForEphemerals,
    NotAllowed,
    NotEmpty,
    SessionExpired,
    failure,
)

_OURS: Final[tuple[tuple[type[Exception], type[ZooKeeperError]], ...]] = (
    (kazoo_errors.NoNodeError, NoNode),
    (kazoo_errors.NodeExistsError, NodeExists),
    (kazoo_errors.BadVersionError, BadVersion),
    (kazoo_errors.ConnectionClosedError, SessionLost),  # a subclass of the next one
    (kazoo_errors.SessionExpiredError, SessionExpired),
    (kazoo_errors.ConnectionLoss, ConnectionLost),
    (kazoo_errors.NotEmptyError, NotEmpty),
    (kazoo_errors.NoAuthError, NotAllowed),
    (kazoo_errors.NoChildrenForEphemeralsError, NoChildrenForEphemerals),
    (kazoo_errors.BadArgumentsError, BadArguments),
)


def translate(error: BaseException, path: str) -> ZooKeeperError:
    """Our error for one of kazoo's."""
    for theirs, ours in _OURS:
        if isinstance(error, theirs):
            return failure(ours, path)
    return ZooKeeperError(f"{path}: {type(error).__name__} {error}".rstrip())


def is_not_tried(error: Exception) -> bool:
    """True for the error that kazoo returns for the other steps of a transaction that failed."""
    return isinstance(error, kazoo_errors.RolledBackError | kazoo_errors.RuntimeInconsistency)
