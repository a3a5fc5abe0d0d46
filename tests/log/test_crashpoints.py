from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

import pytest

from kafka08.log import Log, TimeRetention, crashpoints
from tests.log.conftest import CrashAt, Died, OpenLog, a_set, all_values

IN_A_LOG = [
    crashpoints.ROLL_SEALED,
    crashpoints.ROLL_LOG_CREATED,
    crashpoints.ROLL_CREATED,
    crashpoints.FLUSH_SYNCED,
    crashpoints.TRUNCATE_SEGMENTS_DELETED,
    crashpoints.TRUNCATE_INDEX_CUT,
    crashpoints.DELETE_LOG_RENAMED,
]


def _live(log: Log) -> None:
    """A life that passes every point of a log at least once."""
    for number in range(4, 8):
        log.append(a_set(b"%d" % number))
    log.roll()
    log.append(a_set(b"8", b"9"))
    log.flush()
    log.append(a_set(b"10"))
    log.truncate_to(9)
    log.delete_old_segments(_Oldest())
    log.truncate_to(7)


class _Oldest:
    def expired(self, segments: object, now_ms: int) -> int:
        return 1


def _prepared(open_log: OpenLog, crash: Callable[[str], None]) -> Log:
    """Offsets 0 to 3, flushed, in two segments."""
    log = open_log(index_interval_bytes=0, crash=lambda _name: None)
    for number in range(4):
        log.append(a_set(b"%d" % number))
        if number == 1:
            log.roll()
    log.flush()
    log._crash = crash
    return log


def test_a_life_passes_every_point(open_log: OpenLog) -> None:
    """Otherwise the test below proves nothing."""
    seen = CrashAt("never")
    _live(_prepared(open_log, seen))
    assert set(IN_A_LOG) <= set(seen.seen)


@pytest.mark.parametrize("passes", range(5))
@pytest.mark.parametrize("point", IN_A_LOG)
def test_what_was_flushed_survives_a_death_at(open_log: OpenLog, point: str, passes: int) -> None:
    """Reopened from the recovery point that was reached: the log is sound, what it holds are the
    messages written, in order, and nothing below the recovery point is missing but what retention
    or truncation was taking away."""
    log = _prepared(open_log, CrashAt(point, passes))
    with suppress(Died):
        _live(log)
    again = open_log(recovery_point=log.recovery_point, index_interval_bytes=0)
    found = all_values(again)
    assert [(offset, b"%d" % offset) for offset, _ in found] == found
    offsets = [offset for offset, _ in found]
    assert list(range(again.log_start_offset, again.log_end_offset)) == offsets
    assert again.log_start_offset <= 2
    assert again.log_end_offset >= min(4, log.recovery_point)
    again.append(a_set(b"%d" % again.log_end_offset))
    assert len(found) + 1 == len(all_values(again))


def test_retention_that_died_half_way_is_finished(open_log: OpenLog) -> None:
    """The .log is renamed, the .index is not: the segment is gone, its index is swept."""
    log = _prepared(open_log, CrashAt(crashpoints.DELETE_LOG_RENAMED))
    with pytest.raises(Died):
        log.delete_old_segments(TimeRetention(-(10**13)))
    again = open_log(recovery_point=4)
    assert (2, 4) == (again.log_start_offset, again.log_end_offset)
