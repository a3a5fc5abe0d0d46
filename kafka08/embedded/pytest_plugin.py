"""The pytest plugin: a real cluster for a test session, a fresh topic for a test.

    def test_it(kafka08_cluster, kafka08_topic):
        my_program(kafka08_cluster.bootstrap, kafka08_topic)
        kafka08_cluster.kill(kafka08_cluster.leader_of(kafka08_topic))
        ...

Registered as an entry point, so installing kafka08 is enough. It starts nothing and imports almost
nothing before a test requests a fixture. docs/testing.md describes it.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Generator, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

if TYPE_CHECKING:
    from kafka08.embedded.cluster import EmbeddedCluster

EXCERPT_LINES: Final = 30
"""The most lines of each process's output in the report of a failed test."""
TOPIC_NAME_LENGTH: Final = 100
REPLICAS_MAX: Final = 3
"""The most replicas of a test's topic without a marker."""

TOPIC_OPTIONS: Final = ("partitions", "replication_factor", "config")
"""The arguments of the marker kafka08_topic, in order."""

CLUSTER: Final = "kafka08_cluster"
"""The fixture."""

_CLUSTER: Final = pytest.StashKey["EmbeddedCluster"]()
_MARKS: Final = pytest.StashKey[Mapping[Path, int]]()
_NO_MARKS: Final[Mapping[Path, int]] = {}
_TOPICS: Final = pytest.StashKey[int]()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addini("kafka08_brokers", "brokers of kafka08_cluster", default="3")
    parser.addini("kafka08_level", "the release that they speak as, such as 0.8.2", default="")
    parser.addini(
        "kafka08_levels", "the releases with each of which each test of a cluster runs", type="args"
    )
    parser.addini(
        "kafka08_config", "KEY=VALUE lines: configuration of its brokers", type="linelist"
    )
    parser.getgroup("kafka08").addoption(
        "--kafka08-logs", metavar="DIR", help="keep there what the processes of clusters print"
    )


def pytest_configure(config: pytest.Config) -> None:
    brokers = config.getini("kafka08_brokers")
    if not (brokers.isdecimal() and int(brokers)):
        raise pytest.UsageError(
            f"kafka08_brokers: {brokers!r} is not a number of brokers; give 1 or more"
        )
    level, levels = config.getini("kafka08_level"), config.getini("kafka08_levels")
    if level and levels:
        raise pytest.UsageError("kafka08_level and kafka08_levels: give one of them")
    for key, given in (("kafka08_level", [level] if level else []), ("kafka08_levels", levels)):
        if fault := fault_of_levels(given):
            raise pytest.UsageError(f"{key}: {fault}")
    config.addinivalue_line(
        "markers",
        "kafka08_levels(level, ...): run the test with a cluster of each of these levels, such as "
        "0.8.2, instead of those of the configuration",
    )
    config.addinivalue_line(
        "markers",
        "kafka08_topic(partitions=1, replication_factor=min(3, brokers), config=None): "
        "options of the topic that the fixture kafka08_topic creates",
    )


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run a test of a cluster once for each level of its marker, else of `kafka08_levels`."""
    if CLUSTER not in metafunc.fixturenames:
        return
    levels = metafunc.config.getini("kafka08_levels")
    if (marker := metafunc.definition.get_closest_marker("kafka08_levels")) is not None:
        levels = list(marker.args)
        fault = "give levels alone" if marker.kwargs or not levels else fault_of_levels(levels)
        if fault:
            where = f"@pytest.mark.{marker.name} of {metafunc.definition.nodeid}"
            pytest.fail(f"{where}: {fault}", pytrace=False)
    if levels:
        metafunc.parametrize(CLUSTER, levels, indirect=True, scope="session")


def pytest_collection_finish(session: pytest.Session) -> None:
    """Import brokers in the background as soon as it is known that a test needs them."""
    if session.config.option.collectonly or not any(map(uses_cluster, session.items)):
        return
    from kafka08.embedded.fork_server import warm

    warm()


@pytest.fixture(scope="session")
def kafka08_cluster(request: pytest.FixtureRequest) -> Iterator[EmbeddedCluster]:
    """ZooKeeper and brokers for the session (one for each level), with networks that can be cut.
    Each worker of pytest-xdist has its own, so that the faults of one do not affect the tests of
    another. It is healed after each test that used it."""
    # Not at the top: every pytest run of an environment with kafka08 loads this module.
    from kafka08.config import parse_overrides
    from kafka08.embedded.cluster import EmbeddedCluster

    config = request.config
    brokers = int(config.getini("kafka08_brokers"))
    keys = parse_overrides(config.getini("kafka08_config"))
    level = getattr(request, "param", None) or config.getini("kafka08_level") or None
    logs = config.getoption("kafka08_logs")
    with EmbeddedCluster(brokers, keys, level=level, cuttable=True) as cluster:
        config.stash[_CLUSTER] = cluster
        yield cluster
        del config.stash[_CLUSTER]
        if logs:
            keep_logs(cluster, Path(logs))


@pytest.fixture
def kafka08_topic(request: pytest.FixtureRequest, kafka08_cluster: EmbeddedCluster) -> str:
    """The name of a new topic, ready to be used.

    It has one partition with a replica on each broker, on three at most, so that another broker
    leads it when its leader is killed. `@pytest.mark.kafka08_topic(partitions=4, ...)` changes
    that.
    """
    marker = request.node.get_closest_marker("kafka08_topic")
    number = request.config.stash.get(_TOPICS, 0)
    request.config.stash[_TOPICS] = number + 1
    words = re.sub(r"[^a-zA-Z0-9]+", "-", request.node.name).strip("-")
    name = f"{words[:TOPIC_NAME_LENGTH]}-{number}"
    options: dict[str, Any] = {}
    if marker is not None:
        try:
            options = topic_options(marker)
        except ValueError as error:
            where = f"@pytest.mark.{marker.name} of {request.node.nodeid}"
            pytest.fail(f"{where}: {error}", pytrace=False)
    options.setdefault("replication_factor", min(REPLICAS_MAX, len(kafka08_cluster.brokers)))
    kafka08_cluster.create_topic(name, **options)
    return name


def fault_of_levels(levels: Sequence[object]) -> str | None:
    """The fault in a list of levels, if there is one."""
    if not levels:
        return None
    from kafka08.levels import LEVELS

    for level in levels:
        if level not in LEVELS:
            return f"{level!r} is not one of {', '.join(LEVELS)}"
    return "a level is given twice" if len(set(levels)) < len(levels) else None


def topic_options(marker: pytest.Mark) -> dict[str, Any]:
    """The arguments of a marker kafka08_topic. ValueError for ones that
    `EmbeddedCluster.create_topic` does not take."""
    if len(marker.args) > len(TOPIC_OPTIONS):
        raise ValueError(f"it takes {', '.join(TOPIC_OPTIONS)}, not {len(marker.args)} arguments")
    options = dict(zip(TOPIC_OPTIONS, marker.args, strict=False))
    for name, value in marker.kwargs.items():
        if name not in TOPIC_OPTIONS:
            raise ValueError(f"{name} is none of its arguments {', '.join(TOPIC_OPTIONS)}")
        if name in options:
            raise ValueError(f"{name} is given twice")
        options[name] = value
    for name, value in options.items():
        if name == "config":
            if not (value is None or isinstance(value, Mapping)):
                raise ValueError(f"config={value!r} is not a dict of topic overrides")
        elif type(value) is not int or value < 1:
            raise ValueError(f"{name}={value!r} is not a number; give 1 or more")
    return options


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup(item: pytest.Item) -> Generator[None]:
    """Remember the sizes of the logs, so that a failure shows only the output during the test."""
    cluster = item.config.stash.get(_CLUSTER, None)
    item.stash[_MARKS] = {}
    if cluster is not None:
        item.stash[_MARKS] = sizes_of_logs(cluster)
        cluster.begin_story()
    yield


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Add the story of the cluster to the report of a failed test."""
    report = yield
    cluster = item.config.stash.get(_CLUSTER, None)
    if report.failed and cluster is not None and uses_cluster(item):
        marks = item.stash.get(_MARKS, _NO_MARKS)
        story = cluster.story(marks, EXCERPT_LINES)
        report.sections.append((f"kafka08 cluster in {cluster.data_dir}", story))
    return report


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_teardown(item: pytest.Item) -> Generator[None]:
    """Heal the cluster for the next test, before the session's last test stops it, and warn of
    fault rules that were of no use. Fixtures of the test are torn down even if that fails."""
    cluster = item.config.stash.get(_CLUSTER, None)
    try:
        if cluster is not None and uses_cluster(item):
            for rule in cluster.unused_rules():
                item.warn(pytest.PytestWarning(f"fault rule {rule} never hit a request"))
            cluster.heal()
    finally:
        yield


def uses_cluster(item: pytest.Item | pytest.Collector) -> bool:
    fixtures: Any = getattr(item, "fixturenames", ())
    return CLUSTER in fixtures


def keep_logs(cluster: EmbeddedCluster, directory: Path) -> None:
    """Copy what its processes have printed, below a directory of its own."""
    kept = directory / cluster.data_dir.name
    kept.mkdir(parents=True)
    for process in cluster.processes:
        shutil.copy(process.log, kept / f"{process.name.replace(' ', '-')}.log")


def sizes_of_logs(cluster: EmbeddedCluster) -> dict[Path, int]:
    return {process.log: process.log_size for process in cluster.processes}
