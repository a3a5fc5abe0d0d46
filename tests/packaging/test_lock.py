"""The pinned versions, with their hashes, are all that setup.cfg asks for, and as it allows."""

from __future__ import annotations

import re
from configparser import ConfigParser
from pathlib import Path
from typing import Final

import pytest
from packaging.requirements import Requirement

from tests.test_layout import ROOT

PINNED: Final = (
    ROOT / "requirements-dev.lock",
    *(ROOT / "image").glob("*.txt"),
    *(ROOT / "scripts").glob("*/requirements.txt"),
)


def canonical(name: str) -> str:
    """The name as pip compares it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def pins_of(path: Path) -> list[str]:
    """The requirements of a file, each with its hashes in one line."""
    lines = path.read_text().replace("\\\n", "").splitlines()
    return [line for line in lines if not line.startswith("#")]


LOCK: Final = {
    name: version
    for pin in pins_of(ROOT / "requirements-dev.lock")
    for name, version in [pin.split()[0].split("==")]
}


def requirements() -> list[Requirement]:
    """Of the plain install and of all extras."""
    setup = ConfigParser()
    setup.read(ROOT / "setup.cfg")
    groups = [setup["options"]["install_requires"], *setup["options.extras_require"].values()]
    return [Requirement(line) for group in groups for line in group.split("\n") if line]


@pytest.mark.parametrize("requirement", requirements(), ids=str)
def test_the_locked_version_is_one_that_is_asked_for(requirement: Requirement) -> None:
    """Run scripts/lock --keep after a change to setup.cfg."""
    version = LOCK.get(canonical(requirement.name))
    assert version is not None
    assert requirement.specifier.contains(version, prereleases=True)


@pytest.mark.parametrize("path", PINNED, ids=lambda path: str(path.relative_to(ROOT)))
def test_each_pinned_version_has_hashes(path: Path) -> None:
    """Run scripts/lock --keep after a change to a version: pip installs no file without one."""
    pins = pins_of(path)
    assert pins
    for pin in pins:
        assert re.fullmatch(r"[a-z0-9-]+==\S+( ; .+?)?(\s+--hash=sha256:[0-9a-f]{64})+", pin), pin


def test_kazoo_has_an_upper_bound() -> None:
    """The adapter replaces methods of kazoo's connection that its documentation does not name."""
    (kazoo,) = {requirement for requirement in requirements() if requirement.name == "kazoo"}
    assert re.search(r"<2\.\d+", str(kazoo.specifier))
