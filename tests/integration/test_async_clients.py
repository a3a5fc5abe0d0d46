"""AsyncKafkaConsumer and AsyncKafkaProducer on brokers of ours."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kafka08.embedded import EmbeddedCluster
from tests.integration import async_scenarios as scenarios
from tests.integration.async_scenarios import ON_ANY, Scenario, run
from tests.integration.polling_cluster import cluster_of, new_topic


@pytest.fixture(scope="module", params=["0.9.0", "0.11.0"])
def cluster(request: pytest.FixtureRequest) -> Iterator[EmbeddedCluster]:
    with cluster_of(request.param) as running:
        yield running


@pytest.mark.parametrize("scenario", ON_ANY)
def test_clients(cluster: EmbeddedCluster, topic: str, scenario: Scenario) -> None:
    """What each scenario says."""
    run(scenario, cluster.bootstrap, topic)


def test_transactions() -> None:
    """What the scenario says."""
    with cluster_of("0.11.0") as cluster:
        run(scenarios.transactions, cluster.bootstrap, new_topic(cluster))
