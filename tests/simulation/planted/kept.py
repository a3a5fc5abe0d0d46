"""Planted defects of retention and compaction."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import pytest

from kafka08.broker.replication.replica_fetcher import ReplicaFetcher
from kafka08.format import batches
from kafka08.log.cleaned_segment import CleanedSegment
from kafka08.log.log import Log
from kafka08.log.retention import Retention, SegmentFacts
from kafka08.simulation.kept_topic import COMPACT, DELETE
from kafka08.simulation.memory_disk import MemoryFile
from kafka08.simulation.plan import Fault
from tests.simulation.planted.defect import LONG, loses_power, planted, replicated

RETENTION: Final = {**LONG, "cleanup": DELETE}
COMPACTION: Final = {**LONG, "cleanup": COMPACT}


@planted(
    "retention deletes a segment too many",
    "retention",
    "retention has left",
    (),
    seed=6,
    settings=RETENTION,
)
def _(patch: pytest.MonkeyPatch) -> None:
    expired = Retention.expired

    def more(self: Retention, segments: Sequence[SegmentFacts], now_ms: int) -> int:
        count = expired(self, segments, now_ms)
        return count + (0 < count < len(segments))

    patch.setattr(Retention, "expired", more)


@planted(
    "retention deletes nothing", "retention", "retention to delete", (), seed=0, settings=RETENTION
)
def _(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Log, "delete_old_segments", lambda *_: 0)


@planted(
    "a follower whose log ends before its leader's begins asks again for ever",
    "replication",
    "is not whole",
    (Fault.KILL,),
    seed=8,
    needs=replicated,
    settings={**RETENTION, "replication_factor": 3},
)
def _(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ReplicaFetcher, "_reset", lambda self, _tp, followed: self._pause(followed))


@planted(
    "a compacted segment is not synced",
    "durability",
    "had HW",
    (Fault.KILL,),
    seed=10,
    needs=loses_power,
    settings=COMPACTION,
)
def _(patch: pytest.MonkeyPatch) -> None:
    finish = CleanedSegment.finish

    def unsynced(self: CleanedSegment, modified_ns: int) -> None:
        with pytest.MonkeyPatch.context() as without:
            without.setattr(MemoryFile, "sync", lambda _: None)
            finish(self, modified_ns)

    patch.setattr(CleanedSegment, "finish", unsynced)


@planted(
    "a compaction loses the last message of a segment",
    "compaction",
    "compacted",
    (),
    seed=0,
    settings=COMPACTION,
)
def _(patch: pytest.MonkeyPatch) -> None:
    append = CleanedSegment.append

    def without_last(self: CleanedSegment, survivors: Any) -> None:
        *kept, last = batches(survivors)
        append(self, memoryview(survivors)[: last.position] if kept else survivors)

    patch.setattr(CleanedSegment, "append", without_last)
