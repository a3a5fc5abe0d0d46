"""Planted defects are found: each rule is looked at, and a run can break it."""

from __future__ import annotations

import pytest

from tests.simulation.planted import PLANTED, Planted, found_by

OFTEN = [one for one in PLANTED if one.seed is not None and one.seed == 0]
"""Those that one run finds as a rule; scripts/simulate --planted looks for all."""
MORE_SEEDS = 20
"""After a change of anything another seed may find it: each changes what follows."""


@pytest.mark.parametrize("one", OFTEN, ids=lambda one: one.name)
def test_a_planted_defect_is_found(one: Planted) -> None:
    """By the seed that found it before, or by one of the next."""
    assert one.seed is not None
    seeds = range(one.seed, one.seed + MORE_SEEDS)
    assert any(one.verdict in (found_by(one, seed) or "-") for seed in seeds)


def test_names_are_unique() -> None:
    """Each defect is planted once."""
    names = [one.name for one in PLANTED]
    assert len(names) == len(set(names))
