"""A log against a Python list, under random appends, reads, rolls, truncations and crashes."""

from __future__ import annotations

import random
import shutil
import tempfile
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from kafka08.errors import OffsetOutOfRange
from kafka08.log.check import check_log
from kafka08.log.config import LogConfig
from kafka08.log.log import Log
from kafka08.log.retention import Retention
from kafka08.protocol import message_set
from tests.log.conftest import Deferred, ManualClock, a_set

CONFIG = LogConfig(
    segment_bytes=700, segment_ms=1000, index_interval_bytes=60, segment_index_bytes=40
)


class LogModel(RuleBasedStateMachine):
    """`model` maps each offset of the log to its value. `flushed` is the recovery point that a
    restart would find."""

    @initialize()
    def start(self) -> None:
        self.root = Path(tempfile.mkdtemp(prefix="kafka08-log-model-"))
        self.clock = ManualClock()
        self.background = Deferred()
        self.model: dict[int, bytes] = {}
        self.start_offset = self.end_offset = 0
        self.open(recovery_point=0, clean=False)

    def open(self, *, recovery_point: int, clean: bool) -> None:
        self.log = Log(
            self.root / "t-0",
            CONFIG,
            clock=self.clock,
            recovery_point=recovery_point,
            clean_shutdown=clean,
            background=self.background,
        )

    @rule(values=st.lists(st.binary(max_size=60), min_size=1, max_size=6), codec=st.integers(0, 3))
    def append(self, values: list[bytes], codec: int) -> None:
        info = self.log.append(a_set(*values, codec=codec))
        assert (self.end_offset, len(values)) == (info.first_offset, info.count)
        self._extend(values, 1)

    @rule(values=st.lists(st.binary(max_size=60), min_size=1, max_size=4), gap=st.integers(0, 5))
    def append_as_follower(self, values: list[bytes], gap: int) -> None:
        self.end_offset += gap
        self.log.append_as_follower(a_set(*values, base_offset=self.end_offset))
        self._extend(values, 1)

    def _extend(self, values: list[bytes], step: int) -> None:
        for value in values:
            self.model[self.end_offset] = value
            self.end_offset += step

    @rule(data=st.data(), max_bytes=st.integers(0, 400))
    def read(self, data: st.DataObject, max_bytes: int) -> None:
        offset = data.draw(st.integers(self.start_offset, self.end_offset))
        limit = data.draw(st.none() | st.integers(offset, self.end_offset + 1))
        content = self.log.read(offset, max_bytes, limit).bytes()
        assert len(content) <= max_bytes
        found = [(m.offset, m.value) for m in message_set.decode(content, offset)]
        rest = sorted((o, v) for o, v in self.model.items() if o >= offset)
        assert rest[: len(found)] == found
        enough = self.log.read(offset, 1 << 20).bytes()
        assert bool(rest) == bool(list(message_set.decode(enough, offset)))

    @rule(outside=st.integers(1, 5))
    def read_out_of_range(self, outside: int) -> None:
        for offset in (self.start_offset - outside, self.end_offset + outside):
            with pytest.raises(OffsetOutOfRange):
                self.log.read(offset, 100)

    @rule(seconds=st.integers(0, 3))
    def time_passes(self, seconds: int) -> None:
        self.clock.sleep(seconds)

    @rule()
    def flush(self) -> None:
        self.log.flush()

    @rule()
    def run_background(self) -> None:
        self.background.run_all()

    @rule(data=st.data())
    def truncate(self, data: st.DataObject) -> None:
        offset = data.draw(st.integers(max(0, self.start_offset - 2), self.end_offset))
        kept = self.log.position_of(offset) if offset >= self.start_offset else None
        self.log.truncate_to(offset)
        survivors = self._offsets_on_disk()
        assert all(o < offset for o in survivors)
        lost = [o for o in self.model if o not in survivors and kept is not None]
        if kept is None:
            self.start_offset = offset
        self.model = {o: v for o, v in self.model.items() if o in survivors}
        self.end_offset = self.log.log_end_offset
        assert self.end_offset <= offset
        assert not [o for o in lost if o < self.end_offset], "a hole below the log end"

    @rule(forward=st.integers(0, 20))
    def start_anew(self, forward: int) -> None:
        self.start_offset = self.end_offset = self.end_offset + forward
        self.log.truncate_fully_and_start_at(self.end_offset)
        self.model = {}

    @rule(keep=st.integers(0, 2000))
    def retain(self, keep: int) -> None:
        deleted = self.log.delete_old_segments(Retention(retention_bytes=keep))
        assert not deleted or self.log.size >= keep
        self.start_offset = self.log.log_start_offset
        self.model = {o: v for o, v in self.model.items() if o >= self.start_offset}

    @rule()
    def restart_cleanly(self) -> None:
        self.log.flush()
        self.log.close()
        self.open(recovery_point=self.log.recovery_point, clean=True)
        self._after_restart()

    @rule(seed=st.integers(0, 1000))
    def crash(self, seed: int) -> None:
        """The process dies and the machine loses some of what was not flushed."""
        flushed = self.log.recovery_point
        rng = random.Random(seed)
        base = self.log.segment_facts[-1].base_offset
        path = self.log.directory / f"{base:020d}.log"
        safe = self.log.position_of(flushed).position if flushed >= base else 0
        size = path.stat().st_size
        with path.open("r+b") as file:
            file.truncate(rng.randint(safe, size))
            file.seek(0, 2)
            file.write(rng.randbytes(rng.choice((0, 0, 7, 40))))
        self.background.flushes.clear()
        self.background.tasks.clear()
        self.open(recovery_point=flushed, clean=False)
        survivors = self._offsets_on_disk()
        assert survivors == sorted(self.model)[: len(survivors)]
        assert {o for o in self.model if o < flushed} <= set(survivors)
        self.model = {o: self.model[o] for o in survivors}
        self.end_offset = self.log.log_end_offset
        self._after_restart()

    def _after_restart(self) -> None:
        self.end_offset = self.log.log_end_offset
        last = max(self.model, default=self.start_offset - 1)
        assert last < self.end_offset

    def _offsets_on_disk(self) -> list[int]:
        found: list[int] = []
        offset = self.log.log_start_offset
        while offset < self.log.log_end_offset:
            content = self.log.read(offset, 1 << 20).bytes()
            batch = [m.offset for m in message_set.decode(content, offset)]
            if not batch:
                break
            found += batch
            offset = batch[-1] + 1
        return found

    @invariant()
    def agrees(self) -> None:
        if not hasattr(self, "log"):
            return
        assert (self.start_offset, self.end_offset) == (
            self.log.log_start_offset,
            self.log.log_end_offset,
        )
        assert self.log.recovery_point <= self.end_offset
        assert [] == [str(problem) for problem in check_log(self.log.directory)]

    def teardown(self) -> None:
        if hasattr(self, "root"):
            shutil.rmtree(self.root)


TestLogModel = LogModel.TestCase
TestLogModel.settings = settings(max_examples=40, stateful_step_count=30, deadline=None)
