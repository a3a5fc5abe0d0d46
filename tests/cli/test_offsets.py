"""`kafka08 offsets` reports what it cannot know, instead of leaving it out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kafka08.admin.connections import Connections
from kafka08.network.connection import Connection
from kafka08.protocol.offset_fetch import OffsetFetchRequest
from kafka08.protocol.types import Request
from kafka08.structs import NO_OFFSET, TopicPartition
from kafka08.zk import paths
from kafka08.zk.group_store import GroupStore
from tests.cli.conftest import Commands, Inspector


def test_an_unknown_lag_is_not_zero(kafka08: Commands, inspect: Inspector) -> None:
    """get and lag print an unknown lag as such and exit with 1, as an alarm needs."""
    topic = group = inspect.create_topic("lag-by-cli")
    GroupStore(inspect.store.zk).commit_offsets(group, {TopicPartition(topic, 0): 0})
    assert kafka08.refused("offsets", "lag", group, "--fail-above", "10").code == 0
    inspect.zk.create(f"/consumers/{group}/offsets/{topic}/old", "5")
    for verb in ("get", "lag"):
        done = kafka08.refused("offsets", verb, group)
        assert done.code == 1
        assert f"Unknown: /consumers/{group}/offsets/{topic}/old" in done.err
        assert "messages behind" not in done.err


@pytest.mark.parametrize(
    ("verb", "said"),
    [
        (("lag", "raeders", "--fail-above", "0"), "Error: there is no group raeders"),
        (("lag", "raeders", "--json"), "Error: there is no group raeders"),
        (("get", "raeders"), "Error: there is no group raeders"),
        (("export", "raeders"), "Not exported: raeders: there is no group raeders"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else None,
)
def test_a_group_that_does_not_exist_is_not_behind_by_0(
    kafka08: Commands, verb: tuple[str, ...], said: str
) -> None:
    """A mistyped group in an alarm is an error, not a lag of 0."""
    done = kafka08.refused("offsets", *verb)
    assert done.code == 1
    assert said in done.err
    assert "messages behind" not in done.err


def test_a_member_without_offsets_is_behind_by_all_there_is(
    kafka08: Commands, inspect: Inspector
) -> None:
    """A member without offsets lags by at least all messages, so an alarm goes off for any
    limit."""
    topic = group = inspect.create_topic("lag-of-nothing")
    registration = f'{{"version":1,"subscription":{{"{topic}":1}}}}'
    inspect.zk.create(paths.consumer_id(group, f"{group}_m"), registration, ephemeral=True)
    kafka08("produce", topic, stdin=b"a\nb\n")
    done = kafka08.refused("offsets", "lag", group)
    assert done.code == 0
    assert f"Never committed: [{topic},0]" in done.err
    assert "at least 2 messages behind" in done.err
    done = kafka08.refused("offsets", "lag", group, "--fail-above", "1000")
    assert done.code == 1
    assert "--fail-above 1000 fails: the lag is only a lower bound" in done.err


@pytest.fixture
def grown(kafka08: Commands, inspect: Inspector) -> str:
    """A group and its topic, which was committed and then got a partition with 24 messages."""
    topic = "grown"
    if topic not in inspect.store.topics():
        inspect.create_topic(topic)
        kafka08("produce", topic, stdin=b"read\n" * 26)
        kafka08("topic", "alter", topic, "--partitions", 2)
        lines = [json.dumps({"partition": 1, "value": "unread"}) for _ in range(24)]
        kafka08("produce", topic, "--format", "json", stdin="\n".join(lines).encode())
    GroupStore(inspect.store.zk).commit_offsets(topic, {TopicPartition(topic, 0): 26})
    return topic


def test_a_partition_that_was_never_committed_is_no_lag_of_0(kafka08: Commands, grown: str) -> None:
    """A partition without a committed offset, added after the group stopped, counts into the lag.
    (It was left out, and the lag was 0.)"""
    done = kafka08.refused("offsets", "lag", grown, "--fail-above", "0", "--json")
    assert done.code == 1
    expected = {"topic": grown, "partitions": 2, "never_committed": 1, "largest": 24, "lag": 24}
    assert json.loads(done.out) == [expected]
    assert kafka08.refused("offsets", "lag", grown, "--fail-above", "1000").code == 1


def test_a_partition_that_was_never_committed_is_shown_and_reset(
    kafka08: Commands, inspect: Inspector, grown: str
) -> None:
    """get, describe and the plan of reset show the partition, and reset --execute sets it."""
    for verb in (("offsets", "get"), ("group", "describe")):
        done = kafka08.refused(*verb, grown)
        assert b"at least 24" in done.out
        assert f"Never committed: [{grown},1]" in done.err
    planned = kafka08.refused("offsets", "reset", grown, "--to", "latest", "--json")
    assert [(row["partition"], row["new"]) for row in json.loads(planned.out)] == [(0, 26), (1, 24)]
    kafka08("offsets", "reset", grown, "--to", "+0", "--store", "zookeeper", "--execute")
    assert inspect.committed(grown) == {0: 26, 1: 0}
    inspect.zk.delete(paths.offset(grown, grown, 1))


def test_a_reset_writes_where_the_group_has_offsets(kafka08: Commands, inspect: Inspector) -> None:
    """A group of ZooKeeper alone gets none in Kafka, which would make the offsets topic there; the
    plan says which stores it is for."""
    topic = inspect.create_topic("one-store")
    kafka08("produce", topic, stdin=b"a\nb\n")
    kafka08("offsets", "set", "of-zookeeper", f"{topic}:0=1", "--store", "zookeeper")
    planned = kafka08("offsets", "reset", "of-zookeeper", "--to", "earliest")
    assert "Nothing was changed; --execute sets the offsets in ZooKeeper.\n" in planned.err
    done = kafka08("offsets", "reset", "of-zookeeper", "--to", "earliest", "--execute")
    assert "of group of-zookeeper in ZooKeeper\n" in done.err
    [row] = json.loads(kafka08("offsets", "get", "of-zookeeper", "--json").out)
    assert (0, None) == (row["zookeeper"], row["kafka"])


def test_an_export_leaves_out_partitions_without_an_offset(
    kafka08: Commands, tmp_path: Path, grown: str
) -> None:
    """A partition without a committed offset is not in the exported file. An import says that it
    stays."""
    file = tmp_path / "offsets.txt"
    done = kafka08.refused("offsets", "export", grown, "--format", "jvm", "--output", file)
    assert f"Never committed, not exported: {grown}: [{grown},1]" in done.err
    assert f"so unchanged: {grown}: [{grown},1]" in kafka08.refused("offsets", "import", file).err


def test_the_offsets_of_a_topic_are_those_of_a_group_that_exists(
    kafka08: Commands, grown: str
) -> None:
    """A mistyped group is an error. (It used to list the whole topic, without offsets.)"""
    done = kafka08.refused("offsets", "get", "raeders", "--topic", grown)
    assert done.code == 1
    assert "there is no group raeders" in done.err


def test_a_list_that_no_broker_has_answered_fails(kafka08: Commands) -> None:
    """It is not that of a cluster without groups."""
    del kafka08.environ["KAFKA08_ZOOKEEPER"]
    done = kafka08("group", "list", "--bootstrap", "127.0.0.1:1", "--json", code=1)
    assert b"[]\n" == done.out
    assert "groups that brokers coordinate: " in done.err


def test_without_zookeeper_a_list_says_what_it_does_not_have(
    kafka08: Commands, inspect: Inspector
) -> None:
    """Brokers of 0.8 know no groups: with --bootstrap alone nothing is found, which is not to be
    taken for a cluster without groups. An export of all groups fails then."""
    inspect.create_topic("known")  # a broker of 0.8 learns of the others with its first partition
    said = "Groups in ZooKeeper are not listed, and the cluster has 3 brokers of 0.8"
    assert said not in kafka08.refused("group", "list").err
    del kafka08.environ["KAFKA08_ZOOKEEPER"]
    listed = kafka08("group", "list").err
    assert said in listed
    exported = kafka08("offsets", "export", code=1).err
    said = "Not exported: groups in ZooKeeper, and brokers of 0.8 have no others; give --zookeeper"
    assert said in exported


@pytest.mark.parametrize("words", [("group", "describe"), ("offsets", "get")], ids=" ".join)
def test_without_zookeeper_a_group_may_be_there(kafka08: Commands, words: tuple[str, ...]) -> None:
    """A group that no broker knows may be one in ZooKeeper; the error says how to look there."""
    del kafka08.environ["KAFKA08_ZOOKEEPER"]
    done = kafka08(*words, "raeders", code=1)
    assert "there is no group raeders that a broker knows" in done.err
    assert "To look for it in ZooKeeper, give --zookeeper" in done.err


@pytest.mark.parametrize("verb", ["describe", "explain"])
def test_a_group_of_the_other_kind_exists(kafka08: Commands, inspect: Inspector, verb: str) -> None:
    """The error says so, and not that the group does not exist, with its own name as the nearest
    one. The kind that is not looked at is misuse."""
    topic = group = inspect.create_topic(f"kind-to-{verb}")
    GroupStore(inspect.store.zk).commit_offsets(group, {TopicPartition(topic, 0): 0})
    done = kafka08.refused("group", verb, group, "--kind", "coordinator")
    assert (1, b"") == (done.code, done.out)
    assert f"group {group} exists, but is not of the kind coordinator; omit --kind" in done.err
    assert "did you mean" not in done.err
    del kafka08.environ["KAFKA08_ZOOKEEPER"]
    done = kafka08("group", verb, group, "--kind", "zookeeper", code=2)
    assert "--kind zookeeper needs --zookeeper." in done.err


def test_an_export_is_whole(kafka08: Commands, inspect: Inspector) -> None:
    """An export of several groups has also the offsets that only Kafka has. A group that cannot be
    read is left out with a message, and the exit code is 1."""
    topic = inspect.create_topic("export-by-cli", 2)
    groups = [f"{topic}-{letter}" for letter in "ab"]
    for group in groups:
        kafka08("offsets", "set", group, f"{topic}:1=0", "--store", "kafka")
    done = kafka08.refused("offsets", "export", *groups)
    assert done.code == 0
    assert json.loads(done.out)["groups"] == {g: {topic: {"1": [None, 0]}} for g in groups}
    inspect.zk.put(f"/consumers/{groups[0]}/offsets/{topic}/0", "garbage")
    done = kafka08.refused("offsets", "export", *groups)
    assert done.code == 1
    assert list(json.loads(done.out)["groups"]) == groups[1:]
    assert f"Not exported: {groups[0]}: /consumers/{groups[0]}" in done.err


def test_an_export_is_utf_8_in_every_locale(
    kafka08: Commands, inspect: Inspector, tmp_path: Path
) -> None:
    """It has the name of every group, as an import reads it; an earlier export is not cut."""
    topic = inspect.create_topic("export-in-c")
    group, file = "grüße-日本", tmp_path / "offsets.txt"
    GroupStore(inspect.zk).commit_offsets(group, {TopicPartition(topic, 0): 0})
    kafka08.environ |= {"PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "LC_ALL": "C"}
    kafka08.shell(f"kafka08 offsets export --format jvm --output {file}")
    inspect.zk.delete_recursive(paths.group(group))
    assert f"/consumers/{group}/offsets/{topic}/0:0\n" in file.read_text(encoding="utf-8")


def test_an_offset_that_cannot_be_read_is_shown_and_overwritten(
    kafka08: Commands, inspect: Inspector
) -> None:
    """describe shows the other offsets; explain names the znode and the command that repairs it,
    which works."""
    topic = group = inspect.create_topic("garbage-by-cli", 2)
    kafka08("offsets", "set", group, f"{topic}:0=0")
    inspect.zk.put(f"/consumers/{group}/offsets/{topic}/1", "garbage")
    described = kafka08("group", "describe", group, code=1)
    assert 3 == len(described.out.splitlines())
    assert f"Unknown: /consumers/{group}/offsets/{topic}/1: offset" in described.err
    explained = kafka08("group", "explain", group, code=1)
    assert f"kafka08 offsets set {group} {topic}:1=OFFSET" in explained.out.decode()
    kafka08("offsets", "set", group, f"{topic}:1=0")
    assert {0: 0, 1: 0} == inspect.committed(group)


def test_a_topic_that_does_not_exist_is_named(kafka08: Commands, inspect: Inspector) -> None:
    """The error names the missing topic, and not the group, which exists."""
    topic = group = inspect.create_topic("reset-by-cli")
    GroupStore(inspect.store.zk).commit_offsets(group, {TopicPartition(topic, 0): 0})
    done = kafka08.refused("offsets", "reset", group, "--to", "earliest", "--topic", "nosuch")
    assert done.code == 1
    assert "topic nosuch does not exist; kafka08 topic list" in done.err


def test_an_import_of_nothing_is_misuse(kafka08: Commands, tmp_path: Path) -> None:
    """An empty file, as a failed export leaves it, is misuse and not a successful import."""
    file = tmp_path / "offsets.txt"
    file.touch()
    done = kafka08.refused("offsets", "import", file, "--execute")
    assert (2, b"") == (done.code, done.out)
    assert f"Error: {file}: no offsets in it" in done.err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("offsets", "set", "g", "t:0=NUMBER"), "is not TOPIC:PARTITION=OFFSET"),
        (("offsets", "set", "g", "t:NUMBER=0"), "is not TOPIC:PARTITION=OFFSET"),
        (("offsets", "reset", "g", "--to", "NUMBER"), "is not earliest, latest, a time"),
        (("offsets", "reset", "g", "--to", "-NUMBER"), "is not earliest, latest, a time"),
        (("group", "reset", "g", "--from-file", "offsets.csv"), "is not topic,partition,offset"),
        (("partition", "elect", "--partition", "t:NUMBER"), "is not of the form TOPIC:NUMBER"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_a_number_that_none_can_be_is_misuse(
    kafka08: Commands,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    words: tuple[str, ...],
    said: str,
) -> None:
    """Python does not read more than 4,300 digits."""
    monkeypatch.chdir(tmp_path)
    Path("offsets.csv").write_text(f"t,0,{'9' * 5000}\n")
    done = kafka08.refused(*(word.replace("NUMBER", "9" * 5000) for word in words))
    assert (2, True) == (done.code, said in done.err)


@pytest.mark.parametrize(
    "command",
    [
        ("offsets", "reset", "readers", "--topic", "TOPIC", "--to", "2020-01-01T00:00"),
        ("consume", "TOPIC", "--group", "readers", "--override", "consumer.timeout.ms=5000"),
    ],
)
def test_brokers_of_0_8_are_not_taken_for_dead(
    kafka08: Commands, inspect: Inspector, command: tuple[str, ...]
) -> None:
    """A command without ZooKeeper that needs a broker of 0.9 or later says so. Those of 0.8 end the
    connection when they are asked for their versions, which looked as if none was running."""
    topic = inspect.create_topic(f"of-0-8-{command[0]}")
    del kafka08.environ["KAFKA08_ZOOKEEPER"]
    done = kafka08(*(topic if word == "TOPIC" else word for word in command), code=1)
    assert "Try: if these are brokers of 0.8" in done.err
    assert "give --zookeeper" in done.err


def test_coordinators_of_0_10_2_are_asked_for_no_partition_by_name(
    coordinating: Commands, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A request names none, and what is not in its response was never committed. (Each group was
    asked for each partition of the cluster: a thousand of both took a minute.)"""
    cluster, group = coordinating.cluster, "asked-for-all"
    cluster.create_topic("asked", partitions=2)
    tps = [TopicPartition("asked", number) for number in range(2)]
    asked: list[OffsetFetchRequest] = []
    write = Connection.write

    def noted(self: Connection, request: Request, **keys: Any) -> None:
        if isinstance(request, OffsetFetchRequest):
            asked.append(request)
        write(self, request, **keys)

    with Connections(cluster.zookeeper.connect_string) as connections:
        connections.coordinators.commit({group: {tps[1]: 7}}, lambda: None)
        monkeypatch.setattr(Connection, "write", noted)
        found = connections.coordinators.fetch({group: tps})
    assert {group: {tps[0]: NO_OFFSET, tps[1]: 7}} == found
    assert [None] == [request.topics for request in asked]
