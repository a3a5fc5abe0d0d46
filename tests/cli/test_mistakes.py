"""Mistakes that are easily made, and the tests of what is said then: cause, place, next act."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from kafka08.structs import Broker, LeaderAndIsr
from kafka08.zk import nodes, paths
from kafka08.zk.store import ClusterStore
from tests.cli.conftest import Commands
from tests.in_turn import in_turn

HERE: Final = Path(__file__).parent
FAILURES: Final = "cli/test_failures.py::test_"
CONSUME: Final = "cli/test_consume.py::test_"
GROUPS: Final = "cli/test_consume_polling.py::test_"
DRILLS: Final = "integration/test_drills.py::test_every_view_says_it"
MISTAKES: Final = {
    "a chroot that is forgotten": DRILLS,
    "a chroot that does not exist": "cli/test_topic.py::test_an_absent_chroot_is_named",
    "a chroot behind each host": "zk/test_paths.py::test_a_chroot_behind_each_address_is_refused",
    "a port of ZooKeeper that refuses": DRILLS,
    "a host of ZooKeeper that is unknown": DRILLS,
    "a broker's address that is wrong": f"{GROUPS}addresses_without_a_broker_are_refused_at_once",
    "a group without members that is taken for healthy": DRILLS,
    "a broker that hangs, taken for a group that is up to date": DRILLS,
    "consume through an outage of ZooKeeper": f"{CONSUME}a_member_without_zookeeper_keeps_trying",
    "consume --bootstrap from brokers of 0.8": (
        f"{CONSUME}brokers_of_0_8_without_zookeeper_are_refused_at_once"
    ),
    "consume of a topic that does not exist": f"{CONSUME}an_absent_topic_has_a_near_name",
    "consume --last of all partitions": (
        "cli/test_consume_partition.py::test_the_last_messages_of_each_partition"
    ),
    "--until with both addresses": (
        f"{GROUPS}of_two_addresses_in_the_environment_the_right_one_is_used"
    ),
    "--until end, where the last message was removed": (
        f"{GROUPS}an_end_whose_last_messages_were_removed_is_reached"
    ),
    "a reset of a group that uses one store": (
        "cli/test_offsets.py::test_a_reset_writes_where_the_group_has_offsets"
    ),
    "a plan of reassign, as printed": "admin/test_moves.py::test_what_reassign_printed_is_a_plan",
    "a file that is no plan": (
        "cli/test_partition.py::test_a_file_of_another_form_is_named_with_the_right_one"
    ),
    "a move to a broker that is not there": (
        "cli/test_partition.py::test_brokers_that_are_not_there_get_no_partitions"
    ),
    "a plan taken for its execution": "cli/test_mistakes.py::test_a_plan_says_how_to_execute_it",
    "a list of what is wrong, where nothing is": (
        "cli/test_topic.py::test_filters_show_faulty_partitions_alone"
    ),
    "report > page.html": "cli/test_report.py::test_a_redirection_gets_the_page",
    "up --port": "cli/test_up.py::test_the_first_port_can_be_chosen",
    "produce to a mistyped topic": "cli/test_produce.py::test_a_topic_that_is_made_is_said",
    "a mistyped topic or group": f"{FAILURES}a_mistyped_name_has_a_near_one",
    "an option of Kafka's tools": (
        "cli/test_commands.py::test_an_option_of_kafkas_tools_names_what_does_its_work"
    ),
    "Tab without a cluster": (
        "cli/test_completion_source.py::test_a_cluster_that_is_not_there_offers_nothing"
    ),
    "prose in a narrow terminal": "cli/test_table.py::test_prose_is_folded_at_its_blanks",
    "a checkout that hides an installation": (
        "kernel/test_choice.py::test_a_checkout_that_hides_an_install_is_named"
    ),
    "ZooKeeper's address given as a broker's": f"{FAILURES}another_servers_address_is_named",
    "a broker's address given as ZooKeeper's": f"{FAILURES}a_broker_is_no_zookeeper",
    "a port with TLS, or TLS at one without it": f"{FAILURES}tls_and_its_absence_are_named",
    "a refusal of a topic's command": f"{FAILURES}each_failure_has_an_act",
    "a word for a number": ("cli/test_commands.py::test_a_word_for_a_number_is_said_to_be_none"),
    "a mirror whose source refuses": (
        "cli/test_mirror.py::test_a_source_that_is_waited_for_is_named_at_once"
    ),
    "a migration where ZooKeeper refuses": (
        "cli/test_migrate.py::test_a_refused_zookeeper_is_said_at_once"
    ),
    "files for Spark that are not there": (
        "spark/test_transfer.py::test_paths_of_this_machine_are_looked_at_before_spark_starts"
    ),
    "a broker of 0.10 among those of 0.8": (
        "broker/cluster/test_peer_protocols.py::test_brokers_of_0_8_need_pins"
    ),
    "a broker of 0.8 among later ones": (
        "broker/cluster/test_peer_protocols.py::"
        "test_an_older_broker_beside_later_ones_needs_a_level"
    ),
    "ZooKeeper without the data that brokers have seen": (
        "zk/test_client.py::test_a_server_that_has_lost_data_is_said_to_refuse_the_session"
    ),
    "an act of the doctor that cannot be run": (
        "doctor/test_checks.py::test_the_commands_of_acts_can_be_run"
    ),
    "an override that no request can carry": (
        "admin/test_broker_admin.py::test_an_override_that_no_request_can_carry"
    ),
}
"""Mistake → its test."""


@in_turn("mistake", MISTAKES)
def test_each_mistake_has_its_test(mistake: str) -> None:
    """The table is true: the tests are there, by these names."""
    file, _, name = MISTAKES[mistake].partition("::")
    assert f"def {name}(" in (HERE.parent / file).read_text(), MISTAKES[mistake]


def test_a_plan_says_how_to_execute_it(
    kafka08: Commands, lifeless: ClusterStore, tmp_path: Path
) -> None:
    """Without --execute nothing is changed, and the last line says so and names the option."""
    lifeless.register_broker(Broker(1, "h", 9092), timestamp_ms=0)
    lifeless.create_topic("t", {0: [1]}, {})
    state = nodes.encode_leader_and_isr(LeaderAndIsr(1, 0, (1,), 0, 1))
    lifeless.zk.create(paths.partition_state("t", 0), state)
    at = ("--zookeeper", f"{lifeless.zk.hosts}{lifeless.zk.chroot}")
    shown = kafka08("partition", "reassign", "--topic", "t", "--brokers", 1, *at)
    assert "Nothing was changed; --execute" in shown.err.splitlines()[-1]
    assert not lifeless.zk.exists(paths.REASSIGN_PARTITIONS)
