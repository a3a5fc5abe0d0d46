"""The tiers of tests: what each is for, how long it may take, and which tests it has.

A test belongs to the tier whose `tests` name it, by the longest name if several do, else to
`spark` if it needs a Spark session, else to `test`. tests/conftest.py gives it a mark of that name,
and prints at the end of a run the minutes that its tiers may take and took. If a tier takes more,
move a test to another, or make one faster.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True)
class Tier:
    """Tests that run together.

    name      what `--tier` and the mark are called
    purpose   for a reader of the table
    minutes   at most, on two cores that do nothing else; downloads are not counted
    in_ci     how much of it `.ci/run` runs: "whole", "third" (another with each commit) or "none"
    tests     folders, files, or tests of a file (`file::name`), as pytest names them
    """

    name: str
    purpose: str
    minutes: float
    in_ci: str
    tests: tuple[str, ...] = ()


TIERS: Final = (
    Tier(
        "style",
        "what may import what, docstrings, roots of tasks: scripts/lint",
        0.5,
        "whole",
        ("tests/test_docstrings.py", "tests/test_layout.py", "tests/test_roots.py"),
    ),
    Tier(
        "test",
        "whether a change broke something: scripts/test",
        5.5,
        "whole",
        (  # what no tier names, and the main path of files that another tier names
            "tests/broker/test_fuzzed_directories.py::test_no_file_holds_up_a_broker[0.11.0-killed]",
            "tests/cli/test_consume.py::test_a_signal_ends_it_cleanly",
            "tests/cli/test_consume.py::test_the_limit_is_exact",
            "tests/cli/test_consume_polling.py::test_json_has_the_times",
            "tests/cli/test_migrate.py::test_a_dry_run_changes_nothing",
            "tests/cli/test_offsets.py::test_an_export_is_whole",
            "tests/cli/test_report.py::test_a_report_goes_to_stdout",
            "tests/cli/test_top.py::test_once_prints_json",
            "tests/cli/test_up.py::test_a_cluster_that_stays",
            "tests/embedded/test_cluster.py::test_nothing_remains_after_any_signal[9]",
            "tests/embedded/test_cluster.py::test_start_returns_a_usable_cluster",
            "tests/embedded/test_fork_server.py::test_forked_brokers_share_nothing",
            "tests/embedded/test_fork_server.py::test_no_fork_server_outlives_its_parent",
            "tests/embedded/test_pytest_plugin.py::test_each_test_gets_a_new_topic",
            "tests/embedded/test_reset.py::test_a_reset_cluster_is_as_new[0.10.2]",
            "tests/groups/test_coordinated_groups.py::test_a_group_is_listed_described",
            "tests/integration/test_broker_admin.py::test_a_topic_lives_without_zookeeper",
            "tests/integration/test_broker_process.py::test_a_killed_broker_is_back",
            "tests/integration/test_doctor.py::test_each_fault_is_found_by_name",
            "tests/integration/test_drills.py::test_every_view_says_it[a broker hangs]",
            "tests/integration/test_exporter.py::test_groups_of_both_stores_have_their_lag[0.10.2]",
            "tests/integration/test_kafka_consumer.py::test_guarantee_1_kill_9",
            "tests/integration/test_probe.py::test_every_message_comes_back[0.10.2]",
            "tests/integration/test_transactions.py::test_what_is_committed_is_read",
            "tests/interop/test_clients_on_jvm.py::test_the_jvm_consumer_reads_our",
            "tests/interop/test_clients_on_jvm.py::test_we_read_the_jvm_producers_messages[gzip]",
            "tests/interop/test_jvm_on_ours.py::test_new_producer_under_load",
            "tests/interop/test_log_directories.py",
            "tests/spark/test_exactly_once_sink.py::test_a_driver_is_killed",
        ),
    ),
    Tier(
        "cluster",
        "more of commands, integration, the fixture, and JVM 0.8.2.2: each on real processes",
        7,
        "third",
        (
            "tests/arrow/test_topic_scan.py::test_every_tool_shows_the_lag",
            "tests/cli/test_completion_source.py",
            "tests/cli/test_consume.py",
            "tests/cli/test_consume_partition.py",
            "tests/cli/test_consume_polling.py",
            "tests/cli/test_migrate.py",
            "tests/cli/test_mute_peers.py",
            "tests/cli/test_offsets.py",
            "tests/cli/test_perf.py",
            "tests/cli/test_report.py",
            "tests/cli/test_simulate.py",
            "tests/cli/test_top.py",
            "tests/cli/test_up.py",
            "tests/docs/test_examples.py",
            "tests/embedded/test_cluster.py",
            "tests/embedded/test_fork_server.py",
            "tests/embedded/test_pytest_plugin.py",
            "tests/embedded/test_reset.py",
            "tests/embedded/test_waits.py::test_a_dead_broker",
            "tests/embedded/test_waits.py::test_a_group_of",
            "tests/embedded/test_zookeeper.py",
            "tests/groups/test_coordinated_groups.py",
            "tests/integration/test_broker_admin.py",
            "tests/integration/test_broker_process.py",
            "tests/integration/test_consumer_on_moving_brokers.py",
            "tests/integration/test_deleted_records.py",
            "tests/integration/test_doctor.py",
            "tests/integration/test_exporter.py",
            "tests/integration/test_from_confluent_kafka.py",
            "tests/integration/test_kafka_consumer.py",
            "tests/integration/test_kafka_consumer_reads.py",
            "tests/integration/test_librdkafka_groups.py",
            "tests/integration/test_log_cleaner.py",
            "tests/integration/test_partition_reader.py",
            "tests/integration/test_probe.py",
            "tests/integration/test_transactions.py",
            "tests/interop/",
            "tests/spark/test_exactly_once_sink.py",
            "tests/zk/model/test_against_zookeeper.py",
        ),
    ),
    Tier(
        "differences",
        "our answers beside a JVM of each level",
        3,
        "whole",
        (
            "tests/interop/test_cluster_differences_on_jvm.py",
            "tests/interop/test_differences_on_jvm.py",
        ),
    ),
    Tier(
        "faults",
        "killed, paused and cut-off processes, and real timeouts",
        8,
        "third",
        (
            "tests/migration/test_live.py",  # takes longest
            "tests/cli/test_consume_polling.py::test_a_signal_ends_it_although_no_broker_answers",
            "tests/cli/test_early_signals.py",
            "tests/embedded/test_faults.py",
            "tests/integration/test_coordinator_failover.py",
            "tests/integration/test_group_histories.py",
            "tests/integration/test_network_cuts.py",
            "tests/integration/test_producer_faults.py",
            "tests/integration/test_replication_faults.py",
            "tests/integration/test_transaction_histories.py",
            "tests/interop/test_consumer_groups.py",
            "tests/interop/test_live_migration.py",
            "tests/interop/test_mixed_clusters.py",
            "tests/mirror/test_two_clusters.py",
            "tests/spark/test_exactly_once_kills.py",
        ),
    ),
    Tier(
        "releases",
        "brokers and clients of Kafka 0.9 to 4.4 (Maven Central, npm, PyPI)",
        12,
        "third",
        (
            "tests/interop/test_async_on_jvm.py",
            "tests/interop/test_broker_admin_on_jvm.py",
            "tests/interop/test_move_on_jvm.py",
            "tests/interop/test_configurations_on_jvm.py",
            "tests/interop/test_damage_on_jvm.py",
            "tests/interop/test_deleted_directories_on_jvm.py",
            "tests/interop/test_down_conversion.py",
            "tests/interop/test_foreign_clients.py",
            "tests/interop/test_foreign_systems.py",
            "tests/interop/test_group_assignors_on_jvm.py",
            "tests/interop/test_group_histories_on_jvm.py",
            "tests/interop/test_group_members_on_jvm.py",
            "tests/interop/test_group_tools.py",
            "tests/interop/test_kafka_consumer_on_jvm.py",
            "tests/interop/test_later_protocol.py",
            "tests/interop/test_layouts_on_jvm.py",
            "tests/interop/test_leader_again_on_jvm.py",
            "tests/interop/test_levels_on_jvm.py",
            "tests/interop/test_log_directories_0_10.py",
            "tests/interop/test_log_directories_0_11.py",
            "tests/interop/test_logs_on_jvm.py",
            "tests/interop/test_migration_path.py",
            "tests/interop/test_missed_restarts.py",
            "tests/interop/test_nearest_replica.py",
            "tests/interop/test_modern_kafka.py",
            "tests/interop/test_moves.py",
            "tests/interop/test_notifications_on_jvm.py",
            "tests/interop/test_rolling_changes.py",
            "tests/interop/test_scan_on_jvm.py",
            "tests/interop/test_security_on_jvm.py",
            "tests/interop/test_served_on_jvm.py",
            "tests/interop/test_transactional_groups_on_jvm.py",
            "tests/interop/test_transactions_mixed.py",
            "tests/interop/test_truncation_on_jvm.py",
            "tests/interop/test_transactions_on_ours.py",
            "tests/interop/test_zookeeper_clients.py",
            "tests/spark/test_exactly_once_sink_on_jvm.py",
            "tests/spark/test_secrets_on_jvm.py",
            "tests/spark/test_sink_on_jvm.py",
        ),
    ),
    Tier("spark", "what needs a Spark session (its fixture, or the mark)", 8, "third"),
    Tier(
        "pages",
        "what a reader runs: the documentation's commands, containers, the demo",
        9,
        "none",
        (
            "tests/compose/",
            "tests/demo/test_demo.py",
            "tests/docs/test_pages.py::test_the_page_runs",
            "tests/spark/test_exactly_once.py",
        ),
    ),
    Tier(
        "long",
        "matrices, planted defects, drills, requests of 10,000 partitions",
        18,
        "none",
        (
            "tests/benchmarks/test_growth.py",
            "tests/broker/controller/test_controller_holds.py",
            "tests/broker/groups/test_many_groups.py",
            "tests/broker/requests/test_recorded_requests.py::test_every_history",
            "tests/broker/test_fuzzed_directories.py",
            "tests/broker/test_hub_holds.py",
            "tests/integration/test_converted_fetches.py",
            "tests/integration/test_drills.py",
            "tests/kernel/test_build.py",
            "tests/migration/test_offset_migration.py::test_interrupted_at_every_write",
            "tests/packaging/test_fuzzing.py",
            "tests/simulation/test_other_hand.py",
            "tests/simulation/test_rules.py::test_a_planted_defect_is_found",
            "tests/spark/test_beside_sparks_connector.py",
            "tests/zk/server/test_kazoo_suite.py",
        ),
    ),
)


SMOKE: Final = (
    "tests/compose/test_cluster.py::test_one_address_serves_host_and_containers",
    "tests/docs/test_pages.py::test_the_page_runs[docs/quickstart.md]",
    "tests/spark/test_batch.py::test_exact_ranges",
)
"""What `.ci/run` runs each time of Spark, pages and containers: `--tier smoke`."""

THIRDS: Final = 3
"""`--third N` runs every third test, from the N-th on: three commits in a row run them all."""


def tier_named_by(nodeid: str) -> Tier | None:
    """The tier that names a test; None if no tier does."""
    named = [(len(name), tier) for tier in TIERS for name in tier.tests if nodeid.startswith(name)]
    return max(named, key=lambda pair: pair[0])[1] if named else None
