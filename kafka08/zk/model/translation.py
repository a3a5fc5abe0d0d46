"""Translates operations to the model's requests, and its results back; applies the chroot."""

from __future__ import annotations

from typing import Any, Final, assert_never

from kafka08.errors import BadVersion, NodeExists, NoNode, ZooKeeperError
from kafka08.zk.errors import BadArguments, NoChildrenForEphemerals, NotEmpty, failure
from kafka08.zk.model.messages import (
    CheckVersionRequest,
    Code,
    CreateRequest,
    DeleteRequest,
    ExistsRequest,
    GetChildrenRequest,
    GetDataRequest,
    MultiRequest,
    Request,
    SetDataRequest,
    StepRequest,
)
from kafka08.zk.operations import (
    Check,
    Children,
    Create,
    Delete,
    Exists,
    Get,
    Multi,
    Node,
    Operation,
    Refusal,
    Set,
    Stat,
    Step,
    decode,
    encode,
)

ERRORS: Final[dict[Code, type[ZooKeeperError]]] = {
    Code.NO_NODE: NoNode,
    Code.NODE_EXISTS: NodeExists,
    Code.BAD_VERSION: BadVersion,
    Code.NOT_EMPTY: NotEmpty,
    Code.NO_CHILDREN_FOR_EPHEMERALS: NoChildrenForEphemerals,
    Code.BAD_ARGUMENTS: BadArguments,
}


class Chroot:
    """prefix: "" or `/a/b`."""

    def __init__(self, prefix: str) -> None:
        self._prefix = prefix

    def above(self, path: str) -> str:
        """The server's path for a path of the client."""
        return self._prefix or "/" if path == "/" else self._prefix + path

    def below(self, path: str) -> str:
        """The client's path for a path of the server."""
        return path.removeprefix(self._prefix) or "/"


def to_request(operation: Operation, chroot: Chroot) -> Request:
    if isinstance(operation, Multi):
        return MultiRequest(tuple(_to_step(step, chroot) for step in operation.steps))
    if isinstance(operation, Create | Set | Delete):
        return _to_write(operation, chroot)
    path, watch = chroot.above(operation.path), operation.watch is not None
    if isinstance(operation, Get):
        return GetDataRequest(path, watch)
    if isinstance(operation, Exists):
        return ExistsRequest(path, watch)
    if isinstance(operation, Children):
        return GetChildrenRequest(path, watch)
    assert_never(operation)


def _to_step(step: Step, chroot: Chroot) -> StepRequest:
    if isinstance(step, Check):
        return CheckVersionRequest(chroot.above(step.path), step.version)
    return _to_write(step, chroot)


def _to_write(
    write: Create | Set | Delete, chroot: Chroot
) -> CreateRequest | SetDataRequest | DeleteRequest:
    path = chroot.above(write.path)
    if isinstance(write, Create):
        return CreateRequest(path, encode(write.data), write.ephemeral, write.sequence)
    if isinstance(write, Set):
        return SetDataRequest(path, encode(write.data), write.version)
    return DeleteRequest(path, write.version)


def read_result(operation: Operation, result: Any, chroot: Chroot) -> Any:
    """The result that the operation's class documents; `result` is that of its request."""
    if isinstance(operation, Get):
        data, stat = result
        return Node(decode(data), stat.version, stat.ephemeral_owner, stat.czxid)
    if isinstance(operation, Exists):
        return Stat(
            result.version,
            result.ephemeral_owner,
            result.num_children,
            result.ctime,
            result.mtime,
            result.czxid,
        )
    if isinstance(operation, Multi):
        return _read_multi(operation, result, chroot)
    if isinstance(operation, Children):
        return result
    return _read_step(operation, result, chroot)


def _read_multi(multi: Multi, results: list[Any], chroot: Chroot) -> list[Any] | Refusal:
    for index, result in enumerate(results):
        if isinstance(result, Code) and result is not Code.OK:
            return Refusal(index, failure(ERRORS[result], multi.steps[index].path))
    return [
        _read_step(step, result, chroot) for step, result in zip(multi.steps, results, strict=True)
    ]


def _read_step(step: Step, result: Any, chroot: Chroot) -> Any:
    if isinstance(step, Create):
        return chroot.below(result)
    if isinstance(step, Set):
        return result.version
    return None
