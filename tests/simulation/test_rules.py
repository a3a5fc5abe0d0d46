"""Planted defects are found: each rule is checked, and a run can break it."""

from __future__ import annotations

import pytest

from tests.simulation.planted import PLANTED, Planted, found_by

OFTEN = {
    "the HW waits for no follower",
    "a broker whose session ended does not register again",
    "a lost connection counts as an acknowledgement",
    "what is sent again is overtaken",
    "batches that wait too long are never completed",
    "a closed client keeps its connections",
    "claims are left behind",
}
"""Defects that nearly every run finds; scripts/simulate --planted searches for all."""
MORE_SEEDS = 20
"""Any change of the code changes all runs, so another seed may find a defect then."""


@pytest.mark.parametrize(
    "one", [one for one in PLANTED if one.name in OFTEN], ids=lambda one: one.name
)
def test_a_planted_defect_is_found(one: Planted) -> None:
    """By its seed, or by one of the next."""
    assert one.seed is not None
    seeds = range(one.seed, one.seed + MORE_SEEDS)
    assert any(one.verdict in (found_by(one, seed) or "-") for seed in seeds)


def test_names_are_unique() -> None:
    """Each defect is planted once."""
    names = [one.name for one in PLANTED]
    assert len(names) == len(set(names))
    assert set(names) >= OFTEN
