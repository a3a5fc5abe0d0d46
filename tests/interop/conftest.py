"""Everything in this directory needs a real Apache Kafka 0.8.2.2 (jvm.py); the tier `releases` also
runs brokers and clients of later releases (tests/tiers.py)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.interop.jvm import JvmKafka, require_jvm

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.interop)


@pytest.fixture(scope="session", autouse=True)
def jvm() -> None:
    """Skips (CI=true: fails) the tests here when there is no Kafka 0.8.2.2 to be had."""
    require_jvm()


@pytest.fixture(scope="session")
def jvm_kafka(jvm: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[JvmKafka]:
    """One JVM broker with its ZooKeeper, shared by the session: use topics of your own name.
    Topics made by a Metadata request get three partitions."""
    with JvmKafka(tmp_path_factory.mktemp("jvm-kafka"), {"num.partitions": "3"}) as kafka:
        yield kafka
