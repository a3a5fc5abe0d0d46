"""Small defects of the model. The histories must find each of them.

Seed 1 has about 1,000 requests (all fixed seeds: 7,000). These find the defects:

    a watch stays after its event                          54
    cversion counts created children alone                 181
    a sequence is numbered by the children that are there  256
    the parents watch fires before the znodes              352
    a reply comes before the events of its write           22
    ephemerals stay after their session                    364
    ephemerals may have children                           43
    a refused write takes no zxid                          10
    a refused multi leaves its first steps                 72
    steps behind a refused one count as ok                 10
    children are checked before the version                141
    a deletion leaves the pzxid of the parent              269
    a write of null counts as no change                    277
    a write leaves the time of the last one                88
    exists sets no watch without a znode                   35
    a failed read sets a watch                             25
    two watches of one client fire twice                   22
    a deletion leaves the watch of its children            139
    set watches reports every znode as changed             184
    a wrong password is accepted                           380
    a wrong password leaves the old connection             380
    a client with a later zxid is accepted                 149
    every timeout is granted                               1
    the end of a session takes no zxid                     177
    paths are not checked                                  631
    an expired session keeps its connection                1141
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, TypeAlias

import pytest

from kafka08.zk.model import server, tree, watches
from kafka08.zk.model.messages import (
    Code,
    ConnectRequest,
    CreateRequest,
    DeleteRequest,
    EventType,
    ExistsRequest,
    GetDataRequest,
    Refused,
    Reply,
    SetWatchesRequest,
    ZnodeStat,
)
from kafka08.zk.model.server import Send, Server
from kafka08.zk.model.sessions import Sessions, password_of
from kafka08.zk.model.tree import Change, Tree, Znode
from kafka08.zk.model.watches import Watches

Plant: TypeAlias = Callable[[pytest.MonkeyPatch], None]
DEFECTS: dict[str, Plant] = {}


def defect(plant: Plant) -> Plant:
    DEFECTS[plant.__name__] = plant
    return plant


@defect
def a_watch_stays_after_its_event(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(watches._Table, "take", lambda t, path: set(t._connections.get(path, ())))


@defect
def cversion_counts_created_children_alone(patch: pytest.MonkeyPatch) -> None:
    stat = Znode.stat
    patch.setattr(Znode, "stat", lambda z: stat(z)._replace(cversion=z.created_children))


@defect
def a_sequence_is_numbered_by_the_children_that_are_there(patch: pytest.MonkeyPatch) -> None:
    create = Tree._create

    def numbered(self: Tree, request: CreateRequest, *rest: Any) -> Any:
        above = self.find(tree.parent(request.path))
        if request.sequence and above is not None:
            number = f"{len(above.children):010d}"
            request = replace(request, path=request.path + number, sequence=False)
        return create(self, request, *rest)

    patch.setattr(Tree, "_create", numbered)


@defect
def the_parents_watch_fires_before_the_znodes(patch: pytest.MonkeyPatch) -> None:
    tell = Server._notify_watchers
    patch.setattr(Server, "_notify_watchers", lambda s, changes: tell(s, list(changes)[::-1]))


@defect
def a_reply_comes_before_the_events_of_its_write(patch: pytest.MonkeyPatch) -> None:
    respond = Server._respond

    def hasty(self: Server, *arguments: Any) -> None:
        respond(self, *arguments)
        outputs = self._outputs
        outputs.sort(key=lambda o: not (isinstance(o, Send) and isinstance(o.message, Reply)))

    patch.setattr(Server, "_respond", hasty)


@defect
def ephemerals_stay_after_their_session(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Tree, "end_session", lambda *_: [])


@defect
def ephemerals_may_have_children(patch: pytest.MonkeyPatch) -> None:
    create = Tree._create

    def lenient(self: Tree, request: CreateRequest, *rest: Any) -> Any:
        above = self.find(tree.parent(request.path))
        owner = above.ephemeral_owner if above else 0
        if above:
            above.ephemeral_owner = 0
        try:
            return create(self, request, *rest)
        finally:
            if above:
                above.ephemeral_owner = owner

    patch.setattr(Tree, "_create", lenient)


@defect
def a_refused_write_takes_no_zxid(patch: pytest.MonkeyPatch) -> None:
    write = Server._write

    def frugal(self: Server, *arguments: Any) -> Any:
        try:
            return write(self, *arguments)
        except Refused:
            self.zxid -= 1
            raise

    patch.setattr(Server, "_write", frugal)


@defect
def a_refused_multi_leaves_its_first_steps(patch: pytest.MonkeyPatch) -> None:
    class Forgetful(list[Any]):
        def append(self, undo: object) -> None:
            pass

    begin = Tree._begin

    def forgetful(self: Tree) -> None:
        begin(self)
        self._undo = Forgetful()

    patch.setattr(Tree, "_begin", forgetful)


@defect
def steps_behind_a_refused_one_count_as_ok(patch: pytest.MonkeyPatch) -> None:
    write_all = Tree.write_all

    def kind(self: Tree, *arguments: Any) -> Any:
        results, changes = write_all(self, *arguments)
        wrong = Code.RUNTIME_INCONSISTENCY
        return [Code.OK if result is wrong else result for result in results], changes

    patch.setattr(Tree, "write_all", kind)


@defect
def children_are_checked_before_the_version(patch: pytest.MonkeyPatch) -> None:
    delete = Tree._delete

    def other_order(self: Tree, request: DeleteRequest, *rest: Any) -> None:
        znode = self.find(request.path)
        if request.path not in tree.SPECIAL and znode is not None and znode.children:
            raise Refused(Code.NOT_EMPTY)
        delete(self, request, *rest)

    patch.setattr(Tree, "_delete", other_order)


@defect
def a_deletion_leaves_the_pzxid_of_the_parent(patch: pytest.MonkeyPatch) -> None:
    delete = Tree._delete

    def quiet(self: Tree, request: DeleteRequest, *rest: Any) -> None:
        above = self.find(tree.parent(request.path))
        before = above.pzxid if above else 0
        delete(self, request, *rest)
        if above:
            above.pzxid = before

    patch.setattr(Tree, "_delete", quiet)


@defect
def a_write_of_null_counts_as_no_change(patch: pytest.MonkeyPatch) -> None:
    set_data = Tree._set_data

    def lazy(self: Tree, request: Any, transaction: Any) -> ZnodeStat:
        before = len(self._changes)
        stat = set_data(self, request, transaction)
        if request.data is None:
            del self._changes[before:]
        return stat

    patch.setattr(Tree, "_set_data", lazy)


@defect
def a_write_leaves_the_time_of_the_last_one(patch: pytest.MonkeyPatch) -> None:
    set_data = Tree._set_data

    def timeless(self: Tree, request: Any, *rest: Any) -> ZnodeStat:
        znode = self.find(request.path)
        before = znode.mtime if znode else 0
        stat = set_data(self, request, *rest)
        assert znode is not None
        znode.mtime = before
        return stat

    patch.setattr(Tree, "_set_data", timeless)


@defect
def exists_sets_no_watch_without_a_znode(patch: pytest.MonkeyPatch) -> None:
    carry_out = Server._carry_out

    def blind(self: Server, here: Any, request: Any, now: Any) -> Any:
        if isinstance(request, ExistsRequest) and self._tree.find(request.path) is None:
            request = replace(request, watch=False)
        return carry_out(self, here, request, now)

    patch.setattr(Server, "_carry_out", blind)


@defect
def a_failed_read_sets_a_watch(patch: pytest.MonkeyPatch) -> None:
    carry_out = Server._carry_out

    def keen(self: Server, here: Any, request: Any, now: Any) -> Any:
        if isinstance(request, GetDataRequest) and request.watch:
            self._watches.add_data_watch(request.path, here.number)
        return carry_out(self, here, request, now)

    patch.setattr(Server, "_carry_out", keen)


@defect
def two_watches_of_one_client_fire_twice(patch: pytest.MonkeyPatch) -> None:
    def twice(self: Watches, change: Change) -> Iterator[int]:
        if change.type is not EventType.CHILDREN_CHANGED:
            yield from sorted(self._data.take(change.path))
        if change.type in {EventType.CHILDREN_CHANGED, EventType.DELETED}:
            yield from sorted(self._children.take(change.path))

    patch.setattr(Watches, "take", twice)


@defect
def a_deletion_leaves_the_watch_of_its_children(patch: pytest.MonkeyPatch) -> None:
    take = Watches.take

    def partial(self: Watches, change: Change) -> Iterator[int]:
        if change.type is EventType.DELETED:
            return iter(sorted(self._data.take(change.path)))
        return take(self, change)

    patch.setattr(Watches, "take", partial)


@defect
def set_watches_reports_every_znode_as_changed(patch: pytest.MonkeyPatch) -> None:
    set_watches = Server._set_watches

    def eager(self: Server, connection: int, request: SetWatchesRequest) -> None:
        set_watches(self, connection, replace(request, relative_zxid=0))

    patch.setattr(Server, "_set_watches", eager)


@defect
def a_wrong_password_is_accepted(patch: pytest.MonkeyPatch) -> None:
    take_over = Server._take_over_session

    def trusting(self: Server, connection: int, request: ConnectRequest, *rest: Any) -> None:
        right = replace(request, password=password_of(request.session_id))
        take_over(self, connection, right, *rest)

    patch.setattr(Server, "_take_over_session", trusting)


@defect
def a_wrong_password_leaves_the_old_connection(patch: pytest.MonkeyPatch) -> None:
    take_over = Server._take_over_session

    def careful(self: Server, connection: int, request: ConnectRequest, *rest: Any) -> None:
        if request.password != password_of(request.session_id):
            request = replace(request, session_id=1)
        take_over(self, connection, request, *rest)

    patch.setattr(Server, "_take_over_session", careful)


@defect
def a_client_with_a_later_zxid_is_accepted(patch: pytest.MonkeyPatch) -> None:
    connect = Server.connect

    def lenient(self: Server, connection: int, request: ConnectRequest, *rest: Any) -> Any:
        return connect(self, connection, replace(request, last_zxid_seen=0), *rest)

    patch.setattr(Server, "connect", lenient)


@defect
def every_timeout_is_granted(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Sessions, "granted", lambda _, timeout_ms: timeout_ms)


@defect
def the_end_of_a_session_takes_no_zxid(patch: pytest.MonkeyPatch) -> None:
    end = Server._end_session

    def frugal(self: Server, *arguments: Any) -> None:
        end(self, *arguments)
        self.zxid -= 1

    patch.setattr(Server, "_end_session", frugal)


@defect
def paths_are_not_checked(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(tree, "is_valid", lambda path: True)


@defect
def an_expired_session_keeps_its_connection(patch: pytest.MonkeyPatch) -> None:
    def expire(self: Server, now: server.Instant) -> Any:
        for session in self._sessions.overdue(now.elapsed_ms):
            self._end_session(session, now)
        return self._taken_outputs()

    patch.setattr(Server, "expire", expire)
