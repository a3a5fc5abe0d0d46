"""A transactional KafkaProducer on brokers of ours."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from kafka08.embedded import EmbeddedCluster
from kafka08.errors import ConfigError, UnsupportedVersion
from kafka08.producer import KafkaProducer, KafkaProducerConfig
from tests.integration.transactional import SCENARIOS


@pytest.fixture(scope="module")
def bootstrap() -> Iterator[str]:
    with EmbeddedCluster(brokers=1, config={"api.level": "0.11.0"}) as cluster:
        yield cluster.bootstrap


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_at_level_0_11(bootstrap: str, scenario: Callable[[str, str], None]) -> None:
    """What each scenario says."""
    scenario(bootstrap, scenario.__name__)


def test_transactions_need_a_name_and_a_broker_that_has_them() -> None:
    """The errors say which is missing."""
    with (
        KafkaProducer(bootstrap_servers="127.0.0.1:1") as producer,
        pytest.raises(ConfigError, match=r"need transactional\.id"),
    ):
        producer.init_transactions()
    with pytest.raises(ConfigError, match=r"transactional\.id needs enable\.idempotence"):
        KafkaProducerConfig(bootstrap_servers="h:1", transactional_id="x", enable_idempotence=False)
    with (
        EmbeddedCluster(brokers=1, config={"api.level": "0.10.2"}) as cluster,
        KafkaProducer(bootstrap_servers=cluster.bootstrap, transactional_id="x") as producer,
        pytest.raises(UnsupportedVersion),
    ):
        producer.init_transactions()
