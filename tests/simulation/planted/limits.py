"""Planted defects of limits, and of files and znodes of strangers."""

from __future__ import annotations

import json
from errno import ENAMETOOLONG
from pathlib import Path
from typing import Any

import pytest

from kafka08.broker.cluster import former_session
from kafka08.broker.cluster.former_session import FormerSession
from kafka08.broker.controller.request_znodes import RequestZnodes
from kafka08.broker.controller.topic_deletion import TopicDeletion
from kafka08.broker.replication.replica_manager import ReplicaManager
from kafka08.errors import InvalidMessage
from kafka08.log import files, loader
from kafka08.log.log import Log
from kafka08.log.names import base_offset_of
from kafka08.network.server import SocketServer
from kafka08.simulation.plan import Fault
from tests.simulation.planted.defect import MOVES, PLAIN, planted


@planted(
    "a follower refuses a set above a lowered segment.bytes",
    "0.8.2.2; ours",
    "in sync",
    (Fault.CONFIGURE,),
    seed=2,
    settings={**MOVES, "pause_seconds": 0.02},
)
def _(patch: pytest.MonkeyPatch) -> None:
    append = Log.append_as_follower

    def limited(self: Log, message_set: Any, **options: Any) -> Any:
        if len(message_set) > self.config.segment_bytes:
            raise InvalidMessage("larger than a segment")
        return append(self, message_set, **options)

    patch.setattr(Log, "append_as_follower", limited)


@planted(
    "a request for no move stays",
    "0.8.2.2; ours",
    "partitions to be moved",
    (Fault.STRANGER,),
    seed=2,
    settings=PLAIN,
)
def _(patch: pytest.MonkeyPatch) -> None:
    def request(self: RequestZnodes, path: str, decode: Any) -> Any:
        node = self._zk.watch_data(path, self._changed)
        return None if node is None else decode(node.data)

    patch.setattr(RequestZnodes, "_request", request)


@planted(
    "a stranger's file among a partition's is damage",
    "ours",
    "brokers to run",
    (Fault.STRAY, Fault.KILL),
    seed=3,
    settings=PLAIN,
)
def _(patch: pytest.MonkeyPatch) -> None:
    def strict(disk: Any, directory: Path) -> list[Path]:
        found = files.files_in(disk, directory)
        for path in found:
            base_offset_of(path)
        return found

    patch.setattr(loader, "files_in", strict)


@planted(
    "a name that is too long for a disk ends the broker",
    "0.8.2.2; ours",
    "brokers to run",
    (Fault.TOPIC,),
    seed=1,
    needs=lambda plan: plan.level != "0.10.2",
    settings=PLAIN,
)
def _(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(files, "NOT_THE_DISK", files.NOT_THE_DISK - {ENAMETOOLONG})


@planted(
    "a broker that lacked a descriptor accepts no more connections",
    "ours",
    "in sync",
    (Fault.DESCRIPTORS, Fault.RESET),
    seed=3,
    settings=PLAIN,
)
def _(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(SocketServer, "_pause_accepting", lambda self: self._accepting.stop())


@planted(
    "a refused state is not tried again",
    "ours",
    "whole or gone",
    (Fault.DESCRIPTORS, Fault.TOPIC),
    seed=11,
    settings=PLAIN,
)
def _(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ReplicaManager, "retry_refused", lambda _: None)


@planted(
    "a deletion that a broker refused does not start again",
    "0.8.2.2; ours",
    "has not been deleted",
    (Fault.DESCRIPTORS, Fault.TOPIC),
    seed=5,
    settings=PLAIN,
)
def _(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(TopicDeletion, "_refuse", lambda *_: None)


@planted(
    "a copy of a directory has the session of the broker that runs",
    "ours",
    "takes the session",
    (Fault.TWIN,),
    seed=0,
    settings=PLAIN,
)
def _(patch: pytest.MonkeyPatch) -> None:
    parse = FormerSession._parse

    def believed(self: FormerSession, data: bytes, connect: str) -> Any:
        content = {**json.loads(data), "lock": self._identity}
        return parse(self, json.dumps(content).encode(), connect)

    patch.setattr(FormerSession, "_parse", believed)
    patch.setattr(former_session, "_is_registered", lambda *_: True)
