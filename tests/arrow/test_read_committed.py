"""Committed messages alone, from brokers of ours."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from kafka08.arrow.options import parse_read_options
from kafka08.arrow.settings import ReadSettings
from kafka08.embedded import EmbeddedCluster
from kafka08.errors import ConfigError
from tests.arrow.transactional_scans import SCENARIOS


@pytest.fixture(scope="module")
def cluster() -> Iterator[EmbeddedCluster]:
    with EmbeddedCluster(brokers=1, config={"api.level": "0.11.0"}) as cluster:
        yield cluster


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_scans_at_level_0_11(
    cluster: EmbeddedCluster, scenario: Callable[[str, str], None]
) -> None:
    """What each scenario says."""
    cluster.create_topic(scenario.__name__)
    scenario(cluster.bootstrap, scenario.__name__)


def test_it_needs_versions() -> None:
    """Requests of 0.8 cannot ask for committed messages: with them the option is refused, never
    ignored."""
    given = {"subscribe": "t", "kafka.bootstrap.servers": "h:1"}
    given["kafka.isolation.level"] = "read_committed"
    assert parse_read_options(given).settings.isolation_level == "read_committed"
    with pytest.raises(ConfigError, match=r"remove api\.version\.request=false"):
        parse_read_options({**given, "kafka.api.version.request": "false"})


def test_a_level_that_does_not_exist_is_refused() -> None:
    """A misspelt one must not read what was aborted."""
    with pytest.raises(ConfigError, match="'committed' is not read_uncommitted or read_committed"):
        ReadSettings(isolation_level="committed")
