"""AsyncKafkaConsumer and AsyncKafkaProducer at JVM brokers of today."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count

import pytest

from kafka08.admin import BrokerAdmin
from kafka08.client import parse_bootstrap
from tests.integration.async_scenarios import ON_ANY, Scenario, run, transactions
from tests.interop.releases import TODAYS, Running, broker_of

_names = count()


@pytest.fixture(scope="module", params=TODAYS)
def broker(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Running]:
    with broker_of(request.param, tmp_path_factory.mktemp("jvm")) as running:
        yield running


@pytest.mark.parametrize("scenario", [*ON_ANY, transactions])
def test_clients(broker: Running, scenario: Scenario) -> None:
    """What each scenario says."""
    topic = f"t{next(_names)}"
    with BrokerAdmin(parse_bootstrap(broker.address)) as admin:
        admin.create_topic(topic, 4)
    run(scenario, broker.address, topic)
