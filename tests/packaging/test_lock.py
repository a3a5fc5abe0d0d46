"""The lock file holds what setup.cfg allows, and all that it asks for."""

from __future__ import annotations

import re
from configparser import ConfigParser
from typing import Final

import pytest
from packaging.requirements import Requirement

from scripts.packaging.lock import canonical, lock_text
from tests.test_layout import ROOT

LOCK: Final = dict(
    line.split("==")
    for line in (ROOT / "requirements-dev.lock").read_text().splitlines()
    if not line.startswith("#")
)


def requirements() -> list[Requirement]:
    """Of the plain install and of all extras."""
    setup = ConfigParser()
    setup.read(ROOT / "setup.cfg")
    groups = [setup["options"]["install_requires"], *setup["options.extras_require"].values()]
    return [Requirement(line) for group in groups for line in group.split("\n") if line]


@pytest.mark.parametrize("requirement", requirements(), ids=str)
def test_the_locked_version_is_one_that_is_asked_for(requirement: Requirement) -> None:
    """Run scripts/lock after a change to setup.cfg."""
    version = LOCK.get(canonical(requirement.name))
    assert version is not None
    assert requirement.specifier.contains(version, prereleases=True)


def test_kazoo_has_an_upper_bound() -> None:
    """The adapter replaces methods of kazoo's connection that its documentation does not name."""
    (kazoo,) = {requirement for requirement in requirements() if requirement.name == "kazoo"}
    assert re.search(r"<2\.\d+", str(kazoo.specifier))


def test_a_lock_file_is_made_of_pips_report() -> None:
    """Names as pip compares them, sorted, pip itself, and not the project."""
    names = {"Zope.Event": "6", "attr_s": "2", "kafka08": "1"}
    install = [{"metadata": {"name": name, "version": number}} for name, number in names.items()]
    text = lock_text({"pip_version": "26.1", "install": install})
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    assert lines == ["attr-s==2", "pip==26.1", "zope-event==6"]
