"""Planted defects of logs, where hosts lose power or truncate."""

from __future__ import annotations

from typing import Any

import pytest

from kafka08.log.log import Log
from kafka08.log.manager import LogManager
from kafka08.log.segment import LogSegment
from kafka08.profile import CLASSIC
from kafka08.simulation.memory_disk import MemoryDirectory
from kafka08.simulation.plan import Fault
from tests.simulation.planted.defect import LONG, loses_power, planted


@planted(
    "an acknowledged message is not synced",
    "durability",
    "had HW",
    (Fault.KILL,),
    seed=3,
    needs=loses_power,
)
def _(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Log, "owed_flush", lambda _: None)


@planted(
    "the name of a synced file is not synced",
    "ours",
    "with log end",
    (Fault.KILL,),
    seed=3,
    needs=loses_power,
)
def _(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(MemoryDirectory, "sync", lambda _: None)


@planted(
    "recovery keeps a torn end",
    "recovery",
    "",
    (Fault.KILL,),
    seed=17,
    profile=CLASSIC,
    needs=loses_power,
)
def _(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(LogSegment, "repair", lambda self, found, index_bytes: 0)


@planted(
    "every start counts as one after a clean stop",
    "recovery",
    "",
    (Fault.BLACKOUT,),
    seed=55,
    settings={**LONG, "silent_share": 0.5, "loses_writes": True},
    profile=CLASSIC,
)
def _(patch: pytest.MonkeyPatch) -> None:
    job = LogManager._load_job
    patch.setattr(
        LogManager,
        "_load_job",
        lambda self, path, point, start, _clean: job(self, path, point, start, True),
    )


@planted(
    "a truncation leaves its segments' index",
    "ours",
    "different messages",
    (Fault.KILL,),
    seed=55,
)
def _(patch: pytest.MonkeyPatch) -> None:
    truncate = LogSegment.truncate_to

    def without_index(self: LogSegment, offset: int, position: Any, *args: Any) -> None:
        if position is not None:
            self._drop_bytes_after(position)
        else:
            truncate(self, offset, position, *args)

    patch.setattr(LogSegment, "truncate_to", without_index)


@planted(
    "the deletion of a log is not synced",
    "0.8.2.2; ours",
    "keeps the log",
    (Fault.TOPIC, Fault.KILL),
    seed=10,
    needs=loses_power,
)
def _(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(LogManager, "sync_deletions", lambda self: self.unsynced_deletions.clear())
