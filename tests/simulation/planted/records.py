"""Planted defects of level 0.11: leader epochs, and the sequences of idempotent producers."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import Any

import pytest

from kafka08.broker.replica.partition import Partition
from kafka08.broker.replication.epoch_search import EpochSearch
from kafka08.log import producers
from kafka08.log.log import Log
from kafka08.log.producer_entries import StoredBatch
from kafka08.log.producers import Producers
from kafka08.log.record_state import RecordState
from kafka08.simulation.network import NetworkSettings
from kafka08.simulation.plan import Fault, Plan
from kafka08.structs import LeaderAndIsr
from tests.simulation.planted.defect import LONG, PLAIN, planted, replicated

RETRIED = {**LONG, "retries": 1000, "new_producers": 2, "replication_factor": 2}
"""Settings of runs with idempotent producers."""
BUSY = {
    **PLAIN,
    "new_producers": 2,
    "replication_factor": 3,
    "partitions": 4,
    "pause_seconds": 0.02,
    "network": NetworkSettings(delay_seconds=0.02),
}
"""Settings of runs in which a leader that is killed often has what no other broker has."""


def retried(plan: Plan) -> bool:
    return plan.retries > 0 and replicated(plan)


@planted(
    "a follower drops its latest epoch, though the leader has it",
    "epochs",
    "the HW of",
    (Fault.KILL,),
    seed=1,
    settings=BUSY,
    needs=replicated,
    has_records=True,
)
def _(patch: pytest.MonkeyPatch) -> None:
    look_before = EpochSearch._look_before

    def advance(self: EpochSearch, end_offset: int) -> None:
        """As if the leader never had the follower's latest epoch."""
        if self._leader_end is None and end_offset >= 0:
            self.common_end, self.is_done = min(self._entries[-1].start_offset, end_offset), True
        else:
            look_before(self)

    patch.setattr(EpochSearch, "advance", advance)


@planted(
    "a leader remembers the last batch alone",
    "0.11.0.3, KAFKA-5494",
    "at most",
    (Fault.CUT, Fault.KILL),
    seed=6,
    settings={**RETRIED, "in_flight": 5},
    needs=retried,
    has_records=True,
)
def _(patch: pytest.MonkeyPatch) -> None:
    made = producers._Producer.__init__

    def forget(self: Any, *args: Any, **keywords: Any) -> None:
        made(self, *args, **keywords)
        self.batches = deque(self.batches, maxlen=1)

    patch.setattr(producers._Producer, "__init__", forget)


@planted(
    "a batch that comes again is appended again",
    "sequences",
    "at most",
    (Fault.CUT, Fault.KILL),
    seed=1,
    settings=RETRIED,
    needs=retried,
    has_records=True,
)
def _(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Producers, "check_set", lambda self, batches: None)


@planted(
    "a restart forgets the producers",
    "sequences",
    "at most",
    (Fault.KILL,),
    seed=2,
    settings=RETRIED,
    needs=retried,
    has_records=True,
)
def _(patch: pytest.MonkeyPatch) -> None:
    restore = Log._restore_records

    def forget(self: Log, **keywords: Any) -> None:
        restore(self, **keywords)
        self.records.producers = Producers()

    patch.setattr(Log, "_restore_records", forget)


@planted(
    "an epoch begins one offset after its first batch",
    "epochs",
    "have different messages",
    (Fault.KILL,),
    seed=7,
    settings=BUSY,
    needs=replicated,
    has_records=True,
)
def _(patch: pytest.MonkeyPatch) -> None:
    note = RecordState.note_epochs

    def note_late(self: RecordState, found: Iterable[StoredBatch]) -> None:
        """The epoch begins one offset later than its first batch."""
        note(self, [one._replace(base_offset=one.base_offset + 1) for one in found])

    patch.setattr(RecordState, "note_epochs", note_late)


@planted(
    "a follower that can ask for epochs cuts its log to its HW",
    "KIP-101",
    "the HW of",
    (Fault.KILL, Fault.ELECT),
    seed=1,
    settings=RETRIED,
    needs=replicated,
    has_records=True,
)
def _(patch: pytest.MonkeyPatch) -> None:
    make_follower = Partition.make_follower

    def cut(self: Partition, state: LeaderAndIsr, *args: Any) -> bool:
        changed = make_follower(self, state, *args)
        if self.log is not None:
            self.log.truncate_to(self.high_watermark)
        return changed

    patch.setattr(Partition, "make_follower", cut)
