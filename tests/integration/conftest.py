"""A cluster of each level that has groups, for the tests of KafkaConsumer. Modules with a cluster
of another kind define their own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kafka08.embedded import EmbeddedCluster
from tests.integration.polling_cluster import LEVELS, cluster_of, new_topic


@pytest.fixture(scope="module", params=LEVELS)
def cluster(request: pytest.FixtureRequest) -> Iterator[EmbeddedCluster]:
    with cluster_of(request.param) as running:
        yield running


@pytest.fixture
def topic(cluster: EmbeddedCluster) -> str:
    return new_topic(cluster)
