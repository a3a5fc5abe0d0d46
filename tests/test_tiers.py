"""Every test is in a tier, and CI runs each tier as much as the table says."""

from __future__ import annotations

import pytest

from tests.in_turn import in_turn
from tests.test_layout import ROOT
from tests.tiers import SMOKE, TIERS, tier_named_by

NAMES = [*(name for tier in TIERS for name in tier.tests), *SMOKE]
CI = (ROOT / ".ci/run").read_text()


@in_turn("prefix", NAMES)
def test_what_a_tier_names_exists(prefix: str) -> None:
    """A file or test that is renamed does not leave its tier."""
    path, _, name = prefix.partition("[")[0].partition("::")
    assert (ROOT / path).exists()
    assert not name or f"def {name}" in (ROOT / path).read_text()


def test_a_test_is_named_once() -> None:
    """Two tiers with the same name of a test would both want it."""
    named = [name for tier in TIERS for name in tier.tests]
    assert len(named) == len(set(named))


@pytest.mark.parametrize(
    ("nodeid", "name"),
    [
        ("tests/log/test_log.py::test_x", None),
        ("tests/embedded/test_faults.py::test_x[1]", "faults"),
        ("tests/compose/test_cluster.py::test_x", "pages"),
    ],
)
def test_the_longest_name_counts(nodeid: str, name: str | None) -> None:
    """A folder gives its tests a tier, which the name of a file or test in it may overrule."""
    tier = tier_named_by(nodeid)
    assert (tier and tier.name) == name


def test_ci_runs_what_the_table_says() -> None:
    """The tiers that .ci/run runs whole or by thirds are those of the table."""
    whole, thirds = (line for line in CI.splitlines() if "scripts/test-tier" in line)
    assert "step scripts/test\n" in CI, "runs the tiers style and test"
    in_ci = {
        name: [tier.name for tier in TIERS if tier.in_ci == name] for name in ("whole", "third")
    }
    assert whole.split()[2:] == [*in_ci["whole"][2:], "smoke"]
    assert thirds.split()[2 : 2 + len(in_ci["third"])] == in_ci["third"]


def test_smoke_is_of_tiers_that_ci_does_not_run_whole() -> None:
    """A test that runs anyway needs no second run."""
    tiers = [tier_named_by(name) for name in SMOKE]
    assert all(tier is None or tier.in_ci != "whole" for tier in tiers)


def test_ci_needs_25_minutes() -> None:
    """The sum of what .ci/run runs leaves a few minutes for the documentation, set-up, and a
    minute of simulated clusters."""
    share = {"whole": 1, "third": 1 / 3, "none": 0}
    assert sum(tier.minutes * share[tier.in_ci] for tier in TIERS) <= 22
