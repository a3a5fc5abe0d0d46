"""scripts/release refuses a source that is not ready."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest

from kafka08 import __version__
from scripts.packaging.checks import (
    MAX_WHEEL_BYTES,
    Source,
    problems,
    sdist_problems,
    wheel_problems,
)
from tests.test_layout import ROOT

READY = Source(
    version="1.2.0",
    changes="",
    tags=frozenset({"v1.2.0"}),
    changelog="# Changelog\n\n## 1.2.0 (2026-11-30)\n\n## 1.1.0 (2026-10-01)\n",
    compose="services:\n  broker:\n    image: kafka08:1.2.0\n",
)


def test_a_ready_source_has_no_problem() -> None:
    """A clean tree with its tag, a dated section and one version everywhere passes."""
    assert list(problems(READY)) == []


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"changes": " M setup.cfg\n?? notes.txt"}, r"not clean \(setup.cfg, notes.txt\)"),
        ({"tags": frozenset({"v1.1.0"})}, "no tag v1.2.0"),
        ({"changelog": "## 1.2.0 (unreleased)\n"}, r"no section '## 1.2.0 \(YYYY-MM-DD\)'"),
        ({"changelog": "## 1.1.0 (2026-10-01)\n"}, "no section"),
        ({"compose": "    image: kafka08:1.1.0\n"}, "kafka08:1.1.0: set 1.2.0"),
        ({"notes": ("brokers.x.md",)}, r"wait \(brokers.x.md\): scripts/changes moves them"),
    ],
)
def test_each_problem_is_named(change: dict[str, Any], problem: str) -> None:
    """Each problem comes with what to do about it, and alone if there is no other."""
    (found,) = problems(replace(READY, **change))
    assert re.search(problem, found)


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (
            {"compose": "  image: kafka08:1.2.0\n  image: kafka08-spark:1.1.0\n"},
            "docker-compose.yml has the image kafka08-spark:1.1.0: set 1.2.0",
        ),
        (
            {"spark_image": "ARG KAFKA08=kafka08:1.1.0\n\nFROM ${KAFKA08}\n"},
            "image/spark.Dockerfile has the image kafka08:1.1.0: set 1.2.0",
        ),
    ],
)
def test_the_image_of_spark_has_the_version_too(change: dict[str, Any], problem: str) -> None:
    """Both its own tag and the image that it is built from: otherwise a release's image for Spark
    would have the release before."""
    assert [problem] == list(problems(replace(READY, **change)))


def test_an_sdist_has_every_file_of_the_source() -> None:
    """More may be in it: what setuptools adds."""
    archived = ["k-1", "k-1/setup.py", "k-1/tests/test_a.py", "k-1/PKG-INFO"]
    assert list(sdist_problems(["setup.py", "tests/test_a.py"], archived)) == []
    (found,) = sdist_problems(["setup.py", "docs/a.md"], archived)
    assert found == "the sdist lacks docs/a.md: name them in MANIFEST.in"


@pytest.mark.parametrize(
    ("name", "size", "count"),
    [
        ("kafka08-1-cp311-cp311-manylinux2014_x86_64.manylinux_2_17_x86_64.whl", 1, 0),
        ("kafka08-1-cp311-cp311-musllinux_1_2_aarch64.whl", MAX_WHEEL_BYTES, 0),
        ("kafka08-1-cp311-cp311-linux_x86_64.whl", 1, 1),
        ("kafka08-1-cp311-cp311-linux_x86_64.whl", MAX_WHEEL_BYTES + 1, 2),
    ],
)
def test_a_wheel_is_small_and_has_the_tag_of_a_standard(name: str, size: int, count: int) -> None:
    """An index refuses a bare Linux tag."""
    assert len(list(wheel_problems(name, size, linux=True))) == count


def test_the_version_is_the_same_everywhere() -> None:
    """kafka08/__init__.py has it, docker-compose.yml and the changelog repeat it."""
    images = re.findall(r"image: kafka08:(\S+)", (ROOT / "docker-compose.yml").read_text())
    assert set(images) == {__version__}
    sections = re.findall(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert sections[0] == __version__
    assert not re.search(r"^version", (ROOT / "setup.cfg").read_text(), re.MULTILINE)
