"""The adapter turns each error of kazoo into ours, with the znode's path."""

from __future__ import annotations

import pytest
from kazoo import exceptions as kazoo_errors

from kafka08.errors import BadVersion, NodeExists, NoNode, SessionLost, ZooKeeperError
from kafka08.zk.errors import BadArguments, ConnectionLost, NotEmpty, SessionExpired
from kafka08.zk.kazoo_adapter.failures import is_not_tried, translate


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        (kazoo_errors.NoNodeError, NoNode),
        (kazoo_errors.NodeExistsError, NodeExists),
        (kazoo_errors.BadVersionError, BadVersion),
        (kazoo_errors.NotEmptyError, NotEmpty),
        (kazoo_errors.BadArgumentsError, BadArguments),
        (kazoo_errors.ConnectionLoss, ConnectionLost),
        (kazoo_errors.SessionExpiredError, SessionExpired),
        (kazoo_errors.ConnectionClosedError, SessionLost),
        (kazoo_errors.MarshallingError, ZooKeeperError),
    ],
)
def test_each_error_has_its_class(theirs: type[Exception], ours: type[ZooKeeperError]) -> None:
    """Each error has exactly its own class: a closed client must not look like an expired
    session."""
    error = translate(theirs(), "/a")
    assert type(error) is ours
    assert str(error).startswith("/a: ")


def test_steps_that_were_not_tried_are_not_the_cause() -> None:
    """The error names the step that failed, and not the steps before or after it, which ZooKeeper
    did not try."""
    assert is_not_tried(kazoo_errors.RolledBackError())
    assert is_not_tried(kazoo_errors.RuntimeInconsistency())
    assert not is_not_tried(kazoo_errors.NoNodeError())
