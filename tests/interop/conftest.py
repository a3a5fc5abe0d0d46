"""Everything in this directory needs a real Apache Kafka 0.8.2.2; see jvm.py.

The modules of LATER_RELEASES also run brokers and clients of later releases. They are a tier of
their own, `scripts/test-releases`.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.interop.jvm import JvmKafka, require_jvm

HERE = Path(__file__).parent
LATER_RELEASES = {
    "test_cluster_differences_on_jvm",
    "test_configurations_on_jvm",
    "test_deleted_directories_on_jvm",
    "test_differences_on_jvm",
    "test_down_conversion",
    "test_foreign_clients",
    "test_group_assignors_on_jvm",
    "test_group_histories_on_jvm",
    "test_group_tools",
    "test_kafka_consumer_on_jvm",
    "test_layouts_on_jvm",
    "test_leader_again_on_jvm",
    "test_levels_on_jvm",
    "test_log_directories_0_10",
    "test_logs_on_jvm",
    "test_migration_path",
    "test_notifications_on_jvm",
    "test_rolling_changes",
    "test_scan_on_jvm",
    "test_served_on_jvm",
}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.interop)
            if item.path.stem in LATER_RELEASES:
                item.add_marker(pytest.mark.releases)


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
