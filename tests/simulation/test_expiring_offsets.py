"""The rule for offsets that expire while a run lasts."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kafka08.profile import SAFE
from kafka08.simulation.expiring_offsets import CHECK_MS, SLACK_MS, Committed, ExpiringOffsets
from kafka08.simulation.plan import draw_plan
from kafka08.simulation.run import Run
from kafka08.simulation.trace import Trace

DUE_MS = 100_000


@pytest.fixture
def offsets() -> ExpiringOffsets:
    """Those of a run that has not begun."""
    return Run(1, replace(draw_plan(1, SAFE), expiring=True), Trace()).expiring


@pytest.mark.parametrize(
    ("is_short", "found", "late_ms", "is_wrong"),
    [
        (True, 7, 0, False),
        (True, 7, CHECK_MS + SLACK_MS, True),
        (True, -1, 0, False),
        (False, 7, 0, False),
        (False, -1, 0, True),
        (False, 6, 0, True),
    ],
)
def test_an_offset_is_there_until_it_expires(
    offsets: ExpiringOffsets,
    monkeypatch: pytest.MonkeyPatch,
    is_short: bool,
    found: int,
    late_ms: int,
    is_wrong: bool,
) -> None:
    """One that is not due must be there, and one that is due must soon be gone."""
    offsets._committed["brief"] = Committed(7, DUE_MS, is_short)
    monkeypatch.setattr(offsets, "_found", lambda _: (found, DUE_MS + late_ms))
    assert bool(offsets.problem()) is is_wrong
