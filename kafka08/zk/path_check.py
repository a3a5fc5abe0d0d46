"""Refuses operations whose paths no znode can have.

A name in a znode or request may be any text, so a path with that name in it may be none: ZooKeeper
takes UTF-8, without the parts `.` and `..`. kazoo raises ValueError for such a part, and its
connection thread ends at a text that cannot be encoded.
"""

from __future__ import annotations

from kafka08.errors import ZooKeeperError
from kafka08.zk.errors import BadArguments, failure
from kafka08.zk.operations import Multi, Operation, Refusal
from kafka08.zk.paths import can_be_sent


def refusal_of(operation: Operation) -> ZooKeeperError | Refusal | None:
    """The outcome of an operation that must not be sent; None if it may be."""
    if not isinstance(operation, Multi):
        path = operation.path
        return None if can_be_sent(path) else failure(BadArguments, path)
    for index, step in enumerate(operation.steps):
        if not can_be_sent(step.path):
            return Refusal(index, failure(BadArguments, step.path))
    return None
