"""The cleaner under random appends, rolls, truncations, restarts and deaths: which messages it may
remove, and which it must keep."""

from __future__ import annotations

import shutil
import tempfile
from contextlib import suppress
from pathlib import Path

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from kafka08.log import crashpoints
from kafka08.log.check import check_log
from kafka08.log.cleaner_plan import first_dirty_offset
from kafka08.log.config import LogConfig
from kafka08.log.log import Log
from kafka08.protocol import message_set
from tests.log.compaction import (
    KeyedValue,
    Message,
    cleaning,
    keyed,
    keys_config,
    latest,
    messages_of,
    set_modified,
)
from tests.log.conftest import CrashAt, Deferred, Died, ManualClock

CONFIG = LogConfig(
    segment_bytes=700,
    index_interval_bytes=60,
    segment_index_bytes=80,
    delete_retention_ms=2000,
    cleanup_policy="compact",
)
CRASHES = [
    crashpoints.CLEANED_WRITTEN,
    crashpoints.SWAP_LOG_RENAMED,
    crashpoints.SWAP_BEGUN,
    crashpoints.DELETE_LOG_RENAMED,
    crashpoints.SWAP_REPLACED,
    crashpoints.ROLL_LOG_CREATED,
]
"""Every point between two effects of a cleaning (opening the new segment passes the last one)."""

keys = st.sampled_from([None, b"", b"a", b"b", b"c", b"a long key " * 9])
values = st.none() | st.binary(max_size=40)
sets = st.lists(st.tuples(keys, values), min_size=1, max_size=5)


class CleanerModel(RuleBasedStateMachine):
    """`before` is the whole log before the last step; `clean_end` is the cleaner's checkpoint."""

    @initialize()
    def start(self) -> None:
        self.root = Path(tempfile.mkdtemp(prefix="kafka08-cleaner-model-"))
        self.clock = ManualClock()
        self.clean_end: int | None = None
        self.seconds = 0
        self.crash = CrashAt("never")
        self.open(recovery_point=0, clean=False)

    def open(self, *, recovery_point: int, clean: bool) -> None:
        self.background = Deferred()
        self.crash = CrashAt("never")
        self.log = Log(
            self.root / "t-0",
            CONFIG,
            clock=self.clock,
            recovery_point=recovery_point,
            clean_shutdown=clean,
            background=self.background,
            crash=self.die,
        )

    @rule(pairs=sets, codec=st.sampled_from([0, 0, 1, 2]), gap=st.integers(0, 3))
    def append(self, pairs: list[KeyedValue], codec: int, gap: int) -> None:
        """Appends as a leader, or, where there is a gap, as the follower of a compacted leader."""
        if gap and not codec:
            end = self.log.log_end_offset + gap
            self.log.append_as_follower(keyed(*pairs, base_offset=end))
        else:
            self.log.append(keyed(*pairs, codec=codec))

    @rule(pairs=sets)
    def append_and_roll(self, pairs: list[KeyedValue]) -> None:
        self.log.append(keyed(*pairs))
        self.log.roll()
        self.seconds += 1
        times = [facts.newest_ms for facts in self.log.segment_facts[:-2]]
        set_modified(self.log, *times, self.seconds * 1000)

    @rule(room=st.integers(1, 6), chunk_bytes=st.integers(1, 500))
    def clean(self, room: int, chunk_bytes: int) -> None:
        before = messages_of(self.log)
        start, active_base = self.first_dirty(), self.log.active_base_offset
        one = cleaning(
            self.log, start, config=keys_config(room, chunk_bytes=chunk_bytes), crash=self.die
        )
        end = one.run()
        assert start <= end <= active_base
        assert start < end or start == active_base
        bases = [facts.base_offset for facts in self.log.segment_facts]
        assert end in bases
        after = messages_of(self.log)
        assert_nothing_lost(before, after, end)
        compacted = [m for m in after if start <= m[0] < end]
        assert len(latest(compacted)) == len(compacted)
        assert None not in latest([m for m in after if m[0] < end])
        self.clean_end = end

    @rule(room=st.integers(1, 6), point=st.sampled_from(CRASHES), passes=st.integers(0, 5))
    def die_while_cleaning(self, room: int, point: str, passes: int) -> None:
        """Opens the log again as after kill -9. Every message that must be there is at its
        offset."""
        self.log.flush()
        before = messages_of(self.log)
        end_offset, active_base = self.log.log_end_offset, self.log.active_base_offset
        self.crash = CrashAt(point, passes)
        one = cleaning(self.log, self.first_dirty(), config=keys_config(room), crash=self.die)
        with suppress(Died):
            self.clean_end = one.run()
        self.open(recovery_point=end_offset, clean=False)
        # A truncation into a gap is not remembered: the log ends behind its last message then.
        assert max([0, *(at + 1 for at, _, _ in before)]) <= self.log.log_end_offset <= end_offset
        assert_nothing_lost(before, messages_of(self.log), active_base)

    def die(self, name: str) -> None:
        self.crash(name)

    def first_dirty(self) -> int:
        return first_dirty_offset(
            self.clean_end, self.log.log_start_offset, self.log.active_base_offset
        )

    @rule(data=st.data())
    def truncate(self, data: st.DataObject) -> None:
        """Truncates, and lowers the checkpoint as LogManager does."""
        offset = data.draw(st.integers(self.log.log_start_offset, self.log.log_end_offset))
        if self.clean_end is not None:
            self.clean_end = min(self.clean_end, self.log.base_offset_of(offset))
        before = messages_of(self.log)
        self.log.truncate_to(offset)
        kept = messages_of(self.log)
        assert kept == before[: len(kept)]
        assert all(at < offset for at, _, _ in kept)

    @rule()
    def run_background(self) -> None:
        self.background.run_all()

    @rule()
    def restart(self) -> None:
        before = messages_of(self.log)
        self.log.flush()
        self.log.close()
        self.open(recovery_point=self.log.recovery_point, clean=True)
        assert before == messages_of(self.log)

    @rule(data=st.data(), max_bytes=st.integers(100, 500))
    def read(self, data: st.DataObject, max_bytes: int) -> None:
        """A read from any offset, also from within a gap, returns the messages that remain from
        there on."""
        start = data.draw(st.integers(self.log.log_start_offset, self.log.log_end_offset))
        expected = [m for m in messages_of(self.log) if m[0] >= start]
        content = self.log.read(start, 4096).bytes()
        found = [message.offset for message in message_set.decode(content, start)]
        assert [m[0] for m in expected][: len(found)] == found
        assert bool(expected) == bool(found)

    @invariant()
    def is_sound(self) -> None:
        if hasattr(self, "log"):
            assert [] == [str(problem) for problem in check_log(self.log.directory)]

    def teardown(self) -> None:
        if hasattr(self, "root"):
            shutil.rmtree(self.root)


def assert_nothing_lost(before: list[Message], after: list[Message], end: int) -> None:
    """A cleaning up to `end`, finished or not, leaves only messages that were there, unchanged.
    Every message from `end` on survives. A message below `end` may go only if it has no key; if a
    later message of its key stays, or went as a tombstone; or if it is a tombstone and no message
    of its key before it is left."""
    assert set(after) <= set(before)
    assert sorted(after) == after
    assert [m for m in before if m[0] >= end] == [m for m in after if m[0] >= end]
    last = latest(before)
    for message in before:
        offset, key, value = message
        if message in after or key is None:
            continue
        if last[key] == message:
            assert value is None
            assert key not in latest(after)
        else:
            assert offset < last[key][0]
    for key, message in latest(after).items():
        assert message == last[key]


TestCleanerModel = CleanerModel.TestCase
TestCleanerModel.settings = settings(max_examples=40, stateful_step_count=30, deadline=None)
