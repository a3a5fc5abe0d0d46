"""Planted defects are found: each rule is checked, and a run can break it."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

import pytest

from kafka08.simulation.run import simulate
from tests.simulation.planted import PLANTED, Planted

MORE_SEEDS = 20
"""Any change of the code changes all runs, so another seed may find a defect then."""
OFTEN = [one for one in PLANTED if one.seed <= MORE_SEEDS // 4]
"""Defects that so many runs find that one of the next seeds does after a change."""


@pytest.mark.parametrize("one", OFTEN, ids=lambda one: one.name)
def test_a_planted_defect_is_found(one: Planted) -> None:
    """The short run of its seed, or of one of the next, finds the defect, and breaks no rule
    without it."""
    for seed in range(one.seed, one.seed + MORE_SEEDS):
        plan = one.short_plan(seed)
        if plan is not None and one.found_by(seed, plan) is not None:
            assert simulate(seed, plan=plan).verdict is None
            return
    pytest.fail("no run finds it")


def takes_its_arguments(replaced: object, by: object) -> None:
    """TypeError unless the second, if both are functions, can be called as the first."""
    if inspect.isfunction(replaced) and inspect.isfunction(by):
        named, taken = inspect.signature(replaced).parameters.values(), inspect.signature(by)
        taken.bind(
            *(one for one in named if one.kind is one.POSITIONAL_OR_KEYWORD),
            **{
                one.name: one
                for one in named
                if one.kind is one.KEYWORD_ONLY
                and (one.default is one.empty or one.name in taken.parameters)
            },
        )


@pytest.mark.parametrize("one", PLANTED, ids=lambda one: one.name)
def test_a_patch_has_something_to_change(one: Planted, monkeypatch: pytest.MonkeyPatch) -> None:
    """The code that a patch replaces still exists and is called as the patch expects, and some of
    the first plans can show the defect."""
    replace = monkeypatch.setattr

    def replace_by_what_fits(target: Any, name: Any, *value: Any, **options: Any) -> None:
        if value:
            takes_its_arguments(inspect.getattr_static(target, name), value[0])
        replace(target, name, *value, **options)

    replace(monkeypatch, "setattr", replace_by_what_fits)
    one.plant(monkeypatch)
    assert any(one.short_plan(seed) is not None for seed in range(MORE_SEEDS))


def test_names_are_unique() -> None:
    """Each defect is planted once."""
    names = [one.name for one in PLANTED]
    assert len(names) == len(set(names))


def test_the_page_lists_them() -> None:
    """The table on the page about simulated clusters has a row for each defect, with its faults and
    its seed."""
    page = (Path(__file__).parents[2] / "docs" / "simulation.md").read_text()
    rows = page.partition("| defect | origin | faults | seed |\n|---|---|---|---|\n")[2]
    expected = [
        f"| {one.name} | {one.origin} | "
        f"{', '.join(kind.name.lower() for kind in one.kinds)} | {one.seed} |"
        for one in PLANTED
    ]
    assert expected == rows.partition("\n\n")[0].split("\n")
