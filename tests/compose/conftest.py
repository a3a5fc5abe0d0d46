"""A real Docker engine and the cluster of docker-compose.yml on it, once for the module."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Generator, Iterator
from typing import TYPE_CHECKING, Final

import pytest

if TYPE_CHECKING:
    from tests.compose.project import ComposeProject

HAS_FAILED: Final = pytest.StashKey[bool]()
"""Whether the last step of a test has failed."""
HINT = "no Docker engine answers `docker info`; set one up, or run scripts/ci-setup on Debian"


def missing() -> str:
    """Why these tests cannot run here, or ""."""
    try:
        import docker  # noqa: F401
    except ImportError:
        return "the package docker is missing: run scripts/install"
    try:
        info = subprocess.run(["docker", "info"], capture_output=True, check=False)
    except FileNotFoundError:
        return HINT
    return HINT if info.returncode else ""


@pytest.fixture(scope="session")
def engine() -> None:
    """Skipped without an engine, unless CI=true."""
    reason = missing()
    if reason and os.environ.get("CI") == "true":
        pytest.fail(reason)
    if reason:
        pytest.skip(reason)


@pytest.fixture(scope="session")
def project(engine: None) -> Iterator[ComposeProject]:
    """ZooKeeper and three brokers, healthy; nothing of it is left afterwards."""
    from tests.compose.project import ComposeProject

    project = ComposeProject(f"kafka08-test-{os.getpid()}")
    project.compose("build", "-q")
    try:
        project.up()
        yield project
    finally:
        project.remove_tools()
        project.down(volumes=True)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Show the end of the containers' logs with a failure."""
    report = yield
    project = getattr(item, "funcargs", {}).get("project")
    item.stash[HAS_FAILED] = report.failed
    if report.failed and project is not None:
        report.sections.append(("docker-compose logs", project.compose("logs", "--tail=25")))
    return report


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if "project" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.compose)
            item.add_marker(pytest.mark.timeout(400))
