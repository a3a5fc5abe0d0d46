"""Fixtures that several packages use: one ZooKeeper for the run, a chroot for each test.

`scripts/test` runs two workers of pytest-xdist. The tests of a package stay together on one of
them, because they share what is slow to start, a cluster for instance. So do packages that take
the same ports.
"""

from __future__ import annotations

import itertools
import logging
import os
import signal
import socket
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from xdist.scheduler import LoadScopeScheduling

from kafka08.embedded.embedded_zookeeper import EmbeddedZooKeeper
from kafka08.embedded.zookeeper import ZooKeeperServer
from kafka08.errors import ConfigError
from kafka08.zk.client import ZkClient
from tests.pages.chromium import Chromium
from tests.tiers import SMOKE, THIRDS, TIERS, Tier, tier_named_by

TESTS = Path(__file__).parent
SAME_WORKER = {"docs": "cli"}
"""Both run `kafka08 up`, which takes 2181 and 9092 where they are free."""
LONGEST_FIRST = ("interop", "cli", "integration", "compose", "embedded", "migration")
"""The packages that take longest, so that neither worker is left with one at the end."""
MOST_RERUNS = 3
NEEDS_SPARK = {"spark", "brokers"}
"""Fixtures of tests/spark that start a Spark session, or clusters to read from one."""
STARTED = pytest.StashKey[float]()
_numbers = itertools.count(1)

# A run in a script's background ignores Ctrl-C, one under nohup SIGHUP, and every process it starts
# would, too.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)

# Without compiled files, each process that a test starts and each collection compiles the project
# again: 0.3 s of CPU for a broker, 20 s for the tests.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

# Tests share their machine: how long one example takes says nothing about the code.
settings.register_profile("kafka08", deadline=None)
settings.load_profile("kafka08")


@pytest.hookimpl(trylast=True)
def pytest_configure(config: pytest.Config) -> None:
    """In CI a failed test runs once more, since it shares its machine with JVMs and with another
    worker. Its first failure is printed, and is to be looked into: a test that passes only the
    second time shows a race, of the product or of the test. More than a few are a failure."""
    for tier in TIERS:
        config.addinivalue_line("markers", f"{tier.name}: {tier.purpose}")
    if os.environ.get("CI") == "true":
        option = config.option
        option.reruns, option.max_suite_reruns, option.rerun_show_tracebacks = 1, MOST_RERUNS, True
        counted_in: Any = config
        if (link := getattr(counted_in.failures_db, "sock", None)) is not None:
            # A worker sends twice for each test: 40 ms, if the second waits for the first's ACK.
            link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)


def pytest_addoption(parser: pytest.Parser) -> None:
    names = (*(tier.name for tier in TIERS), "smoke")
    group = parser.getgroup("tiers", "tiers of tests (tests/tiers.py)")
    group.addoption("--tier", action="append", default=[], choices=names, help="only this tier")
    group.addoption("--third", type=int, choices=range(THIRDS), help="every third of the tests")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    wanted, third = set(config.getoption("tier")), config.getoption("third")
    items.sort(key=place_of)
    kept = []
    for item in items:
        tier = tier_of(item)
        item.add_marker(tier.name)
        if not wanted or tier.name in wanted or ("smoke" in wanted and is_smoke(item)):
            kept.append(item)
    if third is not None:
        kept = kept[third::THIRDS]
    left_out = set(items) - set(kept)
    config.hook.pytest_deselected(items=[item for item in items if item in left_out])
    items[:] = kept


def tier_of(item: pytest.Item) -> Tier:
    """The tier to which a collected test belongs."""
    if (named := tier_named_by(item.nodeid)) is not None:
        return named
    needs_spark = NEEDS_SPARK.intersection(getattr(item, "fixturenames", ()))
    is_marked = item.get_closest_marker("spark") is not None
    name = "spark" if needs_spark or is_marked else "test"
    return next(tier for tier in TIERS if tier.name == name)


def is_smoke(item: pytest.Item) -> bool:
    return item.nodeid.startswith(SMOKE)


def place_of(item: pytest.Item) -> int:
    """The place of a test in the run: what takes longest comes first."""
    tier = tier_named_by(item.nodeid)
    if tier is not None:
        return next(n for n, name in enumerate(tier.tests) if item.nodeid.startswith(name))
    package = group_of(item.nodeid).partition("/")[0]
    return LONGEST_FIRST.index(package) if package in LONGEST_FIRST else len(LONGEST_FIRST)


def pytest_sessionstart(session: pytest.Session) -> None:
    session.config.stash[STARTED] = time.monotonic()


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """The minutes that the tiers of this run may take and took."""
    wanted = config.getoption("tier")
    if not wanted or config.getoption("third") is not None:
        return
    allowed = sum(tier.minutes for tier in TIERS if tier.name in wanted)
    used = (time.monotonic() - config.stash[STARTED]) / 60
    terminalreporter.write_line(
        f"{', '.join(wanted)}: {used:.1f} minutes; {allowed:g} on two cores that do nothing else"
    )


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> LoadScopeScheduling:
    return Packages(config, log)


class Packages(LoadScopeScheduling):  # type: ignore[misc]  # it has no types
    """Gives a worker a whole package when it is about to run out of tests."""

    def _split_scope(self, nodeid: str) -> str:
        return group_of(nodeid)


def group_of(nodeid: str) -> str:
    """The tests that stay together: a package, or a file of a tier other than `test`."""
    package, _, rest = nodeid.removeprefix("tests/").partition("/")
    if package == "spark":
        # One worker has the brokers of the JVM, the other ours.
        return f"{package}/{'jvm' if '[jvm' in rest else 'ours'}"
    if package == "interop" or (package != "cli" and tier_named_by(nodeid) is not None):
        # Module by module: none needs what another has started.
        return f"{package}/{rest.partition('::')[0]}"
    return SAME_WORKER.get(package, package)


@pytest.fixture(autouse=True)
def logging_as_it_was() -> Iterator[None]:
    """A command that runs in the test's process sets up logging for itself: undo it, or the tests
    behind it hear nothing."""
    loggers = [logging.getLogger(name) for name in ("", "kafka08")]
    disabled, levels = logging.root.manager.disable, [logger.level for logger in loggers]
    yield
    logging.disable(disabled)
    for logger, level in zip(loggers, levels, strict=True):
        logger.setLevel(level)


class DeadThreads(logging.Handler):
    """Collects the exceptions that ended a thread of ours, which are logged."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.said: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.said.append(f"{record.getMessage()}: {record.exc_info and record.exc_info[1]!r}")


@pytest.fixture(autouse=True)
def dead_threads() -> Iterator[DeadThreads]:
    """No thread of ours ends with an exception. (Of other threads pytest sees it by itself.)"""
    handler, logger = DeadThreads(), logging.getLogger("kafka08.runtime.threads")
    logger.addHandler(handler)
    yield handler
    logger.removeHandler(handler)
    assert [] == handler.said


@pytest.fixture(scope="session")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chromium]:
    """One Chromium for all tests of pages. Skipped where there is none, unless CI=true."""
    with Chromium(tmp_path_factory.mktemp("chromium")) as browser:
        yield browser


@pytest.fixture(scope="session")
def zookeeper() -> Iterator[EmbeddedZooKeeper]:
    """One ZooKeeper server of ours for the whole run."""
    with EmbeddedZooKeeper() as server:
        yield server


@pytest.fixture(scope="session")
def apache_zookeeper() -> Iterator[ZooKeeperServer]:
    """One ZooKeeper server of Apache's for the whole run, for tests of ZooKeeper itself. Skipped
    without Java or jars, unless CI=true."""
    try:
        with ZooKeeperServer() as server:
            yield server
    except ConfigError as error:
        if os.environ.get("CI") == "true":
            raise
        pytest.skip(str(error))


@pytest.fixture
def zk_connect(zookeeper: EmbeddedZooKeeper) -> str:
    """A connect string whose chroot exists and belongs to this test alone."""
    connect = f"{zookeeper.connect_string}/test-{os.getpid()}-{next(_numbers)}"
    with ZkClient(connect, make_chroot=True):
        return connect


@pytest.fixture
def zk(zk_connect: str) -> Iterator[ZkClient]:
    """A started client below this test's chroot."""
    with ZkClient(zk_connect, name="test") as client:
        yield client
