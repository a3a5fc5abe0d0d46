"""The znodes, and the effects of a write on them.

A write returns its result and the changes that trigger watches, or raises Refused and changes
nothing. It makes its checks in ZooKeeper's order, since the first that fails determines the error.

Source: PrepRequestProcessor.pRequest2Txn, DataTree, DataNode, PathUtils 3.9.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from kafka08.zk.model.access import (
    ADMIN,
    CREATE,
    DELETE,
    NO_IDENTITIES,
    READ,
    WRITE,
    check_access,
    fix_acl,
)
from kafka08.zk.model.messages import (
    OPEN_ACL,
    Acl,
    CheckVersionRequest,
    Code,
    CreateRequest,
    DeleteRequest,
    EventType,
    Identity,
    Refused,
    SetAclRequest,
    SetDataRequest,
    SingleWrite,
    StepRequest,
    StepResult,
    ZnodeStat,
)

ROOT: Final = "/"
SPECIAL: Final = ("/", "/zookeeper", "/zookeeper/config", "/zookeeper/quota")
"""They always exist, and cannot be deleted."""
ANY_VERSION: Final = -1
_INVALID: Final = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\uf8ff\ufff0-\U0010ffff]")
"""Java writes a character above \\uffff as two surrogates, so ZooKeeper takes none of these."""


class Change(NamedTuple):
    """A change by a write, which may trigger watches; type None: none, since it is of an access
    list."""

    type: EventType | None
    path: str


class Transaction(NamedTuple):
    """The transaction of a write: its zxid, its wall-clock time, and the session that requested
    it, with the identities of its connection."""

    zxid: int
    time_ms: int
    session_id: int
    identities: frozenset[Identity] = NO_IDENTITIES


@dataclass(slots=True)
class Znode:
    """created_children counts all children ever created, for the numbers of sequential znodes; the
    cversion of a Stat also counts the deleted ones."""

    data: bytes | None
    czxid: int = 0
    mzxid: int = 0
    pzxid: int = 0
    ctime: int = 0
    mtime: int = 0
    version: int = 0
    created_children: int = 0
    ephemeral_owner: int = 0
    acl: tuple[Acl, ...] = OPEN_ACL
    aversion: int = 0
    children: set[str] = field(default_factory=set)

    def stat(self) -> ZnodeStat:
        return ZnodeStat(
            czxid=self.czxid,
            mzxid=self.mzxid,
            ctime=self.ctime,
            mtime=self.mtime,
            version=self.version,
            cversion=2 * self.created_children - len(self.children),
            aversion=self.aversion,
            ephemeral_owner=self.ephemeral_owner,
            data_length=len(self.data or b""),
            num_children=len(self.children),
            pzxid=self.pzxid,
        )


class Tree:
    """path → znode. An ephemeral znode is also in `ephemerals` of its session."""

    def __init__(self) -> None:
        self._znodes = {path: Znode(b"") for path in SPECIAL}
        self._znodes[ROOT].children.add("zookeeper")
        self._znodes["/zookeeper"].children.update({"config", "quota"})
        self._ephemerals: dict[int, set[str]] = {}
        # Of the present transaction:
        self._changes: list[Change] = []
        self._undo: list[Callable[[], object]] = []

    def find(self, path: str) -> Znode | None:
        return self._znodes.get(path)

    def ephemerals(self, session_id: int) -> list[str]:
        """Paths of the session's znodes, sorted."""
        return sorted(self._ephemerals.get(session_id, ()))

    def paths(self) -> list[str]:
        """All of them; a parent before its children."""
        return sorted(self._znodes)

    def load(self, path: str, znode: Znode) -> None:
        """Put a stored znode in its place; its parent is there already."""
        if path in self._znodes:
            znode.children = self._znodes[path].children
            self._znodes[path] = znode
        else:
            self._add(path, znode)

    def write(self, step: SingleWrite, transaction: Transaction) -> tuple[StepResult, list[Change]]:
        """Its result, and the changes in the order in which they trigger watches. Raises
        Refused."""
        results, changes = self.write_all((step,), transaction)
        result = results[0]
        if isinstance(result, Code):
            raise Refused(result)
        return result, changes

    def write_all(
        self, steps: tuple[StepRequest | SetAclRequest, ...], transaction: Transaction
    ) -> tuple[list[StepResult], list[Change]]:
        """Apply all steps or none. If one is refused: a Code for each (see MultiRequest), and no
        change."""
        results: list[StepResult] = []
        self._begin()
        for index, step in enumerate(steps):
            try:
                results.append(self._do(step, transaction))
            except Refused as refused:
                while self._undo:
                    self._undo.pop()()
                behind = len(steps) - index - 1
                codes = [Code.OK] * index + [refused.code] + [Code.RUNTIME_INCONSISTENCY] * behind
                return [*codes], []
        return results, self._changes

    def end_session(self, transaction: Transaction) -> list[Change]:
        """Delete the session's znodes, in the order of their paths (ZooKeeper: of a hash set)."""
        self._begin()
        for path in self.ephemerals(transaction.session_id):
            self._take_out(path, self._existing(path), transaction)
        self._ephemerals.pop(transaction.session_id, None)
        return self._changes

    def _begin(self) -> None:
        self._changes, self._undo = [], []

    def _do(self, step: StepRequest | SetAclRequest, transaction: Transaction) -> StepResult:
        if isinstance(step, CreateRequest):
            return self._create(step, transaction)
        if isinstance(step, SetDataRequest):
            return self._set_data(step, transaction)
        if isinstance(step, SetAclRequest):
            return self._set_acl(step, transaction)
        if isinstance(step, DeleteRequest):
            self._delete(step, transaction)
        else:
            self._check(step, transaction)
        return None

    def _create(
        self, request: CreateRequest, transaction: Transaction
    ) -> str | tuple[str, ZnodeStat]:
        if "/" not in request.path or "\0" in request.path:
            raise Refused(Code.BAD_ARGUMENTS)
        acl = fix_acl(request.acl, transaction.identities)
        above = parent(request.path)
        directory = self._existing(above)
        check_access(directory.acl, CREATE, transaction.identities)
        path = request.path
        if request.sequence:
            path += f"{directory.created_children:010d}"
        if not is_valid(path):
            raise Refused(Code.BAD_ARGUMENTS)
        if path in self._znodes:
            raise Refused(Code.NODE_EXISTS)
        if directory.ephemeral_owner:
            raise Refused(Code.NO_CHILDREN_FOR_EPHEMERALS)
        owner = transaction.session_id if request.ephemeral else 0
        zxid, now_ms = transaction.zxid, transaction.time_ms
        znode = Znode(
            request.data, zxid, zxid, zxid, now_ms, now_ms, ephemeral_owner=owner, acl=acl
        )
        before = directory.pzxid
        self._add(path, znode)
        directory.created_children += 1
        directory.pzxid = zxid

        def undo() -> None:
            self._remove(path)
            directory.created_children -= 1
            directory.pzxid = before

        self._undo.append(undo)
        self._changes += [
            Change(EventType.CREATED, path),
            Change(EventType.CHILDREN_CHANGED, above),
        ]
        return (path, znode.stat()) if request.with_stat else path

    def _set_data(self, request: SetDataRequest, transaction: Transaction) -> ZnodeStat:
        if not is_valid(request.path):
            raise Refused(Code.BAD_ARGUMENTS)
        znode = self._existing(request.path)
        check_access(znode.acl, WRITE, transaction.identities)
        _check_version(znode.version, request.version)
        before = znode.data, znode.version, znode.mzxid, znode.mtime

        def undo() -> None:
            znode.data, znode.version, znode.mzxid, znode.mtime = before

        self._undo.append(undo)
        znode.data = request.data
        znode.version += 1
        znode.mzxid, znode.mtime = transaction.zxid, transaction.time_ms
        self._changes.append(Change(EventType.DATA_CHANGED, request.path))
        return znode.stat()

    def _set_acl(self, request: SetAclRequest, transaction: Transaction) -> ZnodeStat:
        if not is_valid(request.path):
            raise Refused(Code.BAD_ARGUMENTS)
        acl = fix_acl(request.acl, transaction.identities)
        znode = self._existing(request.path)
        check_access(znode.acl, ADMIN, transaction.identities)
        _check_version(znode.aversion, request.version)
        znode.acl = acl
        znode.aversion += 1
        self._changes.append(Change(None, request.path))
        return znode.stat()

    def _delete(self, request: DeleteRequest, transaction: Transaction) -> None:
        path = request.path
        if "/" not in path or "\0" in path or path in SPECIAL:
            raise Refused(Code.BAD_ARGUMENTS)
        directory = self._existing(parent(path))
        check_access(directory.acl, DELETE, transaction.identities)
        znode = self._existing(path)
        _check_version(znode.version, request.version)
        if znode.children:
            raise Refused(Code.NOT_EMPTY)
        self._take_out(path, znode, transaction)

    def _take_out(self, path: str, znode: Znode, transaction: Transaction) -> None:
        above = parent(path)
        directory = self._existing(above)
        before = directory.pzxid
        self._remove(path)
        directory.pzxid = transaction.zxid

        def undo() -> None:
            self._add(path, znode)
            directory.pzxid = before

        self._undo.append(undo)
        self._changes += [
            Change(EventType.DELETED, path),
            Change(EventType.CHILDREN_CHANGED, above),
        ]

    def _check(self, request: CheckVersionRequest, transaction: Transaction) -> None:
        if not is_valid(request.path):
            raise Refused(Code.BAD_ARGUMENTS)
        znode = self._existing(request.path)
        check_access(znode.acl, READ, transaction.identities)
        _check_version(znode.version, request.version)

    def _existing(self, path: str) -> Znode:
        znode = self._znodes.get(path)
        if znode is None:
            raise Refused(Code.NO_NODE)
        return znode

    def _add(self, path: str, znode: Znode) -> None:
        self._znodes[path] = znode
        self._znodes[parent(path)].children.add(path.rpartition("/")[2])
        if znode.ephemeral_owner:
            self._ephemerals.setdefault(znode.ephemeral_owner, set()).add(path)

    def _remove(self, path: str) -> None:
        znode = self._znodes.pop(path)
        self._znodes[parent(path)].children.remove(path.rpartition("/")[2])
        if znode.ephemeral_owner:
            self._ephemerals[znode.ephemeral_owner].remove(path)


def parent(path: str) -> str:
    return path.rpartition("/")[0] or ROOT


def is_valid(path: str) -> bool:
    """Whether a znode may have this path."""
    if path == ROOT:
        return True
    if not path.startswith("/") or _INVALID.search(path):
        return False
    return not {"", ".", ".."}.intersection(path.split("/")[1:])


def _check_version(version: int, wanted: int) -> None:
    if wanted not in {ANY_VERSION, version}:
        raise Refused(Code.BAD_VERSION)
