"""`kafka08 topic` prints results on stdout and refusals on stderr, with the right exit code."""

from __future__ import annotations

import json

import pytest

from kafka08.structs import Broker, LeaderAndIsr, TopicPartition
from kafka08.zk.store import ClusterStore
from tests.cli.conftest import Commands, Inspector


def test_a_topic_is_created_and_seen(kafka08: Commands, inspect: Inspector) -> None:
    """create, list and describe agree, and --json prints one value."""
    assert b'Created topic "seen".\n' == kafka08("topic", "create", "seen", "--partitions", 2).out
    assert b"seen" in kafka08("topic", "list").out.split()
    assert "seen" in json.loads(kafka08("topic", "list", "--json").out)
    [described] = json.loads(kafka08("topic", "describe", "seen", "--json").out)
    assert 2 == len(described["partitions"])
    assert kafka08("topic", "describe", "seen").out.startswith(b"Topic:seen\tPartitionCount:2\t")


def test_a_dry_run_changes_nothing(kafka08: Commands, inspect: Inspector) -> None:
    """A dry run prints the assignment and creates no topic."""
    done = kafka08("topic", "create", "dry", "--partitions", 2, "--dry-run")
    assert [b"partition 0", b"partition 1", b'Would create topic "dry".'] == [
        line.partition(b":")[0] for line in done.out.splitlines()
    ]
    assert "dry" not in inspect.store.topics()


def test_overrides_are_counted_that_were_there(kafka08: Commands, inspect: Inspector) -> None:
    """The count has only overrides that were set before. An unknown override is misuse."""
    topic = inspect.create_topic("counted")
    set_one = ("topic", "alter", topic, "--config", "retention.ms=1000")
    assert b"1 set, 0 dropped" in kafka08.refused(*set_one).out
    drop = ("--delete-config", "retention.ms", "--delete-config", "segment.ms")
    assert b"0 set, 1 dropped" in kafka08.refused("topic", "alter", topic, *drop).out
    done = kafka08.refused("topic", "alter", topic, "--delete-config", "retention.msec")
    assert (2, b"") == (done.code, done.out)
    assert 'Unknown configuration "retention.msec"' in done.err


def test_blanks_around_an_override_do_not_count(kafka08: Commands, inspect: Inspector) -> None:
    """As in kafka-topics, which stores neither those of the key nor those of the value."""
    topic = inspect.create_topic("blanks")
    assert 0 == kafka08.refused("topic", "alter", topic, "--config", "retention.ms = 1000").code
    assert {"retention.ms": "1000"} == inspect.store.topic_config(topic)


def test_replicas_can_be_chosen(kafka08: Commands) -> None:
    """Replicas are given per partition in the form of kafka-topics, also on brokers that are not
    running, with a warning."""
    done = kafka08("topic", "create", "chosen", "--replica-assignment", "0:7,7:0", "--dry-run")
    assert [b"partition 0: replicas 0,7", b"partition 1: replicas 7,0"] == done.out.splitlines()[:2]
    assert "WARNING: broker 7 of [chosen,0] and 1 more is not registered" in done.err


def test_filters_show_faulty_partitions_alone(kafka08: Commands, lifeless: ClusterStore) -> None:
    """The filters show partitions with fewer in-sync than assigned replicas, and those whose leader
    is not registered; together they show both. --json has the same. If there are none, stderr says
    so."""
    lifeless.register_broker(Broker(1, "h", 9092), timestamp_ms=0)
    lifeless.create_topic("t", {0: [1, 2], 1: [2, 1], 2: [1, 2]}, {})
    states = {0: LeaderAndIsr(1, 0, (1,), 0, 1), 1: LeaderAndIsr(2, 0, (2, 1), 0, 1)}
    states[2] = LeaderAndIsr(1, 0, (1, 2), 0, 1)
    lifeless.create_leader_and_isr({TopicPartition("t", n): s for n, s in states.items()})
    describe = ("topic", "describe", "--zookeeper", f"{lifeless.zk.hosts}{lifeless.zk.chroot}")
    weak, unled = "--under-replicated-partitions", "--unavailable-partitions"
    zero, one = (
        f"\tTopic: t\tPartition: {number}\tLeader: {s.leader}\tReplicas: {replicas}\tIsr: {isr}\n"
        for number, (s, replicas, isr) in enumerate(
            [(states[0], "1,2", "1"), (states[1], "2,1", "2,1")]
        )
    )
    assert zero == kafka08.refused(*describe, weak).out.decode()
    done = kafka08.refused(*describe, unled)
    assert one == done.out.decode()
    assert "Unavailable: [t,1]: broker 2, the leader, is not registered\n" in done.err
    assert zero + one == kafka08.refused(*describe, weak, unled).out.decode()
    [topic] = json.loads(kafka08.refused(*describe, unled, "--json").out)
    assert [1] == [p["partition"] for p in topic["partitions"]]
    lifeless.update_leader_and_isr({TopicPartition("t", 0): states[2]})
    clean = kafka08.refused(*describe, weak)
    assert (1, b"") == clean[:2], "a registered broker does not respond"
    assert clean.err.startswith("No partition is under-replicated among 1 topic.\nUnknown: ")


def test_topics_with_overrides_alone(kafka08: Commands, inspect: Inspector) -> None:
    """The filter shows the header lines of topics with overrides, without partitions. With a filter
    of partitions it is misuse."""
    inspect.create_topic("without")
    kafka08.refused("topic", "create", "with", "--config", "retention.ms=7000")
    arguments = ("topic", "describe", "with", "without", "--topics-with-overrides")
    line = b"Topic:with\tPartitionCount:1\tReplicationFactor:1\tConfigs:retention.ms=7000\n"
    assert line == kafka08.refused(*arguments).out
    assert 2 == kafka08.refused(*arguments, "--unavailable-partitions").code


def test_a_second_request_to_delete_is_named(kafka08: Commands, lifeless: ClusterStore) -> None:
    """In the words of kafka-topics, without the note that the first one has."""
    lifeless.create_topic("t", {0: [1]}, {})
    arguments = ("topic", "delete", "t", "--zookeeper", f"{lifeless.zk.hosts}{lifeless.zk.chroot}")
    assert kafka08.refused(*arguments).out.startswith(b"Topic t is marked for deletion.\nNote: ")
    for flags in ((), ("--dry-run",)):
        done = kafka08.refused(*arguments, *flags)
        assert (0, b"Topic t is already marked for deletion.\n") == (done.code, done.out)


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("describe", "absent"), 1, "Topic absent does not exist\nTry: list the existing topics"),
        (("delete", "absent"), 1, "Topic absent does not exist\nTry: list the existing topics"),
        (("create", "a b"), 2, "topic name a b is illegal"),
        (("create", ""), 2, "can't be empty"),
        (("describe", "../x"), 2, "topic name ../x is illegal"),
        (("delete", ".."), 2, 'cannot be "." or ".."'),
        (("alter", "..", "--partitions", 3), 2, 'cannot be "." or ".."'),
        (("alter", "", "--config", "retention.ms=1"), 2, "can't be empty"),
        (("create", "t", "--partitions", 0), 2, "--partitions"),
        (("create", "t", "--partitions", 2**31), 2, "2147483648 is not in the range"),
        (("create", "t", "--replication-factor", 2**15), 2, "32768 is not in the range"),
        (("create", "t", "--replica-assignment", "0:x"), 1, "'0:x' is not of the form 0:1,1:2"),
        (("create", "t", "--replica-assignment", "0", "--partitions", 1), 2, "with the two counts"),
        (("create", "t", "--config", "retention.ms"), 2, "--config 'retention.ms' is not of"),
        (("create", "t", "--config", "retention.ms=x"), 2, "retention.ms: 'x' is not a number"),
        (("create", "t", "--config", "no.such=1"), 2, 'Unknown configuration "no.such"'),
        (("list", "--zookeeper", "h:x"), 2, "zookeeper.connect: 'h:x': the port must be"),
        (("list", "--zookeeper", ""), 2, "zookeeper.connect: '' names no server"),
    ],
    ids=lambda value: " ".join(map(str, value)) if isinstance(value, tuple) else None,
)
def test_refusals_have_an_exit_code_and_a_reason(
    kafka08: Commands, arguments: tuple[str, ...], code: int, said: str
) -> None:
    """A refusal by the cluster's state gives 1, and an impossible value 2. Nothing is printed on
    stdout."""
    done = kafka08.refused("topic", *arguments)
    assert code == done.code
    assert said in done.err
    assert b"" == done.out


def test_an_absent_chroot_is_named(kafka08: Commands) -> None:
    """The error for a missing chroot has the path, the servers, where there are brokers, and how
    it is created."""
    connect = kafka08.environ["KAFKA08_ZOOKEEPER"]
    done = kafka08("topic", "list", "--zookeeper", f"{connect}/absent", code=1)
    there = f"the chroot /absent does not exist at {connect}, but brokers are registered at "
    assert f"{there}{connect}; the first broker" in done.err


def test_results_that_cannot_be_written_are_a_failure(kafka08: Commands) -> None:
    """If stdout is full, the error is one sentence, and the exit code is 1."""
    full = kafka08.shell("kafka08 topic list --json > /dev/full")
    assert (1, "Error: No space left on device\n") == (full.code, full.err)


def test_records_are_deleted(kafka08: Commands, inspect: Inspector) -> None:
    """By a dry run none are. What the brokers refuse stays, and the exit code is 1."""
    topic = inspect.create_topic("shorter", 2)
    refused = kafka08("topic", "delete-records", topic, "--before", 1, code=1)
    assert "older than 0.11" in refused.err
    assert 2 == kafka08("topic", "delete-records", topic, "--before", "none", code=2).code
