"""The commands on groups that have a coordinator: a live broker of 0.10.2, librdkafka's members,
and no ZooKeeper but where a test says so."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer

from kafka08.admin.connections import Connections
from kafka08.admin.group_offsets import GroupOffsets
from kafka08.cli.http_server import serve_http
from kafka08.client import ClusterClient, parse_bootstrap
from kafka08.embedded import EmbeddedCluster
from kafka08.errors import RequestTimeout
from kafka08.exporter import Watch
from kafka08.observe.place import ClusterPlace
from kafka08.pages.console import Console
from kafka08.pages.details import group_details
from kafka08.pages.guard import Guard
from kafka08.pages.live import Live
from kafka08.pages.messages import Browser, SearchRequest, Start
from kafka08.runtime.threads import THREADS
from kafka08.structs import TopicPartition
from kafka08.zk.client import ZkClient
from kafka08.zk.group_store import GroupStore
from tests.pages.chromium import Chromium

PARTITIONS = 3
MESSAGES = 30
"""Ten in each partition."""


@pytest.fixture(scope="module")
def cluster() -> Iterator[EmbeddedCluster]:
    keys = {"offsets.topic.num.partitions": 4}
    with EmbeddedCluster(brokers=2, level="0.10.2", config=keys) as cluster:
        cluster.create_topic("t", PARTITIONS)
        producer = Producer({"bootstrap.servers": cluster.bootstrap})
        for n in range(MESSAGES):
            producer.produce("t", b"x", partition=n % PARTITIONS)
        assert producer.flush(20) == 0
        yield cluster


class Kafka08:
    """The commands as processes, with --bootstrap alone unless `zookeeper`."""

    def __init__(self, cluster: EmbeddedCluster) -> None:
        self._cluster = cluster

    def run(self, *words: str, zookeeper: bool = False) -> subprocess.CompletedProcess[str]:
        where = ["--bootstrap", self._cluster.bootstrap]
        if zookeeper:
            where += ["--zookeeper", self._cluster.zookeeper.connect_string]
        return subprocess.run(
            [sys.executable, "-m", "kafka08.cli", *words, *where],
            capture_output=True,
            text=True,
            check=False,
        )

    def __call__(self, *words: str, zookeeper: bool = False) -> str:
        """The output of a command that must succeed."""
        done = self.run(*words, zookeeper=zookeeper)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def json(self, *words: str, zookeeper: bool = False) -> Any:
        return json.loads(self(*words, "--json", zookeeper=zookeeper))


@pytest.fixture
def kafka08(cluster: EmbeddedCluster) -> Kafka08:
    return Kafka08(cluster)


class Member:
    """A member of its own group that has read all and committed it, until it leaves."""

    def __init__(self, cluster: EmbeddedCluster, group: str) -> None:
        keys = {"group.id": group, "auto.offset.reset": "earliest", "enable.auto.commit": False}
        self._consumer = Consumer({"bootstrap.servers": cluster.bootstrap, **keys})
        self._consumer.subscribe(["t"])
        read = 0
        while read < MESSAGES:
            read += sum(m.error() is None for m in self._consumer.consume(MESSAGES, timeout=20))
        self._consumer.commit(asynchronous=False)

    def leave(self) -> None:
        self._consumer.close()


@pytest.fixture
def member(cluster: EmbeddedCluster, request: pytest.FixtureRequest) -> Iterator[Member]:
    """Of a group named after the test."""
    member = Member(cluster, group_of(request))
    yield member
    member.leave()


@pytest.fixture
def group(request: pytest.FixtureRequest) -> str:
    return group_of(request)


def group_of(request: pytest.FixtureRequest) -> str:
    name = request.node.name
    assert isinstance(name, str)
    return name.removeprefix("test_")


def test_a_group_is_listed_described_and_explained(
    kafka08: Kafka08, member: Member, group: str
) -> None:
    """State, protocol, members, what each owns, offsets and lag."""
    [listed] = [row for row in kafka08.json("group", "list") if row["group"] == group]
    assert listed == {
        "group": group,
        "kind": "coordinator",
        "state": "Stable",
        "members": 1,
        "topics": ["t"],
    }
    found = kafka08.json("group", "describe", group)
    assert (found["state"], found["protocol_type"], found["protocol"]) == (
        "Stable",
        "consumer",
        "range",
    )
    [one] = found["members"]
    assert one["subscribes"] == ["t"]
    assert [tp["partition"] for tp in one["owns"]] == [0, 1, 2]
    rows = [(p["partition"], p["owner"], p["kafka"], p["lag"]) for p in found["partitions"]]
    assert rows == [(n, one["member"], 10, 0) for n in range(PARTITIONS)]
    assert kafka08("group", "explain", group) == "No problems: 1 member owns 3 partitions.\n"
    table = kafka08("group", "describe", group).splitlines()
    assert table[0].split() == ["coordinator", "state", "protocol_type", "protocol", "members"]
    assert kafka08.json("offsets", "lag", group) == [
        {"topic": "t", "partitions": 3, "never_committed": 0, "largest": 0, "lag": 0}
    ]


def test_offsets_are_not_changed_under_a_member(
    kafka08: Kafka08, member: Member, group: str
) -> None:
    """It is refused with the member's name by each command; nothing is written."""
    for words in (
        ("offsets", "set", group, "t:0=3"),
        ("offsets", "reset", group, "--to", "earliest", "--execute"),
        ("group", "reset", group, "--to", "earliest", "--execute"),
    ):
        for zookeeper in (False, True):
            done = kafka08.run(*words, zookeeper=zookeeper)
            assert done.returncode == 1
            assert "the group has live members, stop them first: rdkafka-" in done.stderr
    assert {row["kafka"] for row in kafka08.json("offsets", "get", group)} == {10}


def test_a_stopped_group_is_reset(
    kafka08: Kafka08, cluster: EmbeddedCluster, member: Member, group: str, tmp_path: Path
) -> None:
    """Nothing changes without --execute. The reset may be a shift, an offset, or an exported plan,
    and the next member starts there."""
    member.leave()

    def offsets() -> list[int]:
        return [row["kafka"] for row in kafka08.json("offsets", "get", group)]

    done = kafka08.run("group", "reset", group, "--to", "-4")
    assert "Nothing was changed" in done.stderr
    assert offsets() == [10, 10, 10]
    plan = tmp_path / "plan.csv"
    plan.write_text(kafka08("group", "reset", group, "--to", "-4", "--export"))
    assert plan.read_text() == "t,0,6\nt,1,6\nt,2,6\n"
    kafka08("group", "reset", group, "--from-file", str(plan), "--execute")
    assert offsets() == [6, 6, 6]
    kafka08("offsets", "set", group, "t:1=2")
    assert offsets() == [6, 2, 6]
    assert kafka08.run("offsets", "lag", group, "--fail-above", "15").returncode == 1
    explained = kafka08.run("group", "explain", group)
    assert explained.returncode == 1
    assert "the group has no members; 16 messages are unread" in explained.stdout
    kafka08("group", "reset", group, "--to", "latest", "--execute")
    assert offsets() == [10, 10, 10]


def test_a_reset_to_a_time_is_exact(kafka08: Kafka08, cluster: EmbeddedCluster) -> None:
    """The first message of that time or later, of one segment; behind the last one the log's end.
    The broker of 0.8 knows no better than the segment."""
    cluster.create_topic("timed", config={"retention.ms": -1})  # its times are of 1970
    producer = Producer({"bootstrap.servers": cluster.bootstrap})
    for second in range(10):
        producer.produce("timed", b"x", timestamp=(1000 + second) * 1000)
    assert producer.flush(20) == 0
    kafka08("offsets", "set", "by-time", "timed:0=0")

    def planned(second: int, *, zookeeper: bool) -> int:
        time = f"1970-01-01T00:16:{second:02d}.500+00:00"
        words = ("group", "reset", "by-time", "--to", time)
        [row] = kafka08.json(*words, zookeeper=zookeeper)
        offset = row["new"]
        assert isinstance(offset, int)
        return offset

    for zookeeper in (False, True):
        found = [planned(second, zookeeper=zookeeper) for second in (30, 40, 43, 48, 49, 55)]
        assert found == [0, 1, 4, 9, 10, 10]


def test_a_group_of_the_coordinator_stays_out_of_zookeeper(
    kafka08: Kafka08, cluster: EmbeddedCluster, member: Member, group: str
) -> None:
    """With ZooKeeper at hand too its offsets are set where it has them, and nowhere else."""
    member.leave()
    kafka08("offsets", "set", group, "t:0=5", zookeeper=True)
    with ZkClient(cluster.zookeeper.connect_string) as zk:
        assert group not in GroupStore(zk).groups()
    row = kafka08.json("offsets", "get", group, zookeeper=True)[0]
    assert (row["zookeeper"], row["kafka"]) == (None, 5)


def test_both_kinds_are_listed_together(
    kafka08: Kafka08, cluster: EmbeddedCluster, member: Member, group: str
) -> None:
    """A group of ZooKeeper that commits to both stores is one row. Of two groups with the same
    name, the one with members is shown, and --kind shows the other."""
    with ZkClient(cluster.zookeeper.connect_string) as zk:
        store = GroupStore(zk)
        for name in (group, "of-zookeeper"):
            for error in store.commit_offsets(name, {TopicPartition("t", 0): 3}).values():
                raise error
    kafka08("offsets", "set", "of-zookeeper", "t:0=4", zookeeper=True)
    rows = kafka08.json("group", "list", zookeeper=True)
    kinds = sorted((r["group"], r["kind"]) for r in rows if r["group"] in {group, "of-zookeeper"})
    assert kinds == [
        (group, "coordinator"),
        (group, "zookeeper"),
        ("of-zookeeper", "zookeeper"),
    ]
    shown = kafka08.json("group", "describe", group, zookeeper=True)
    assert (shown["kind"], len(shown["members"])) == ("coordinator", 1)
    other = kafka08.json("group", "describe", group, "--kind", "zookeeper", zookeeper=True)
    assert (other["kind"], other["partitions"][0]["zookeeper"]) == ("zookeeper", 3)
    assert kafka08.json("group", "describe", "of-zookeeper", zookeeper=True)["kind"] == "zookeeper"


def test_a_missing_group_is_an_error(kafka08: Kafka08) -> None:
    """It is an error of describe, explain, get and lag; no address at all is misuse."""
    for words in (
        ("group", "describe"),
        ("group", "explain"),
        ("offsets", "get"),
        ("offsets", "lag"),
    ):
        done = kafka08.run(*words, "nobody")
        assert (done.returncode, "there is no group nobody" in done.stderr) == (1, True)
    bare = subprocess.run(
        [sys.executable, "-m", "kafka08.cli", "group", "list"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert bare.returncode == 2
    assert "Give --bootstrap" in bare.stderr


def test_a_plan_that_is_no_plan_is_refused(kafka08: Kafka08, tmp_path: Path) -> None:
    """With the file, the line and what it says."""
    plan = tmp_path / "plan.csv"
    plan.write_text("t,0,6\nt,one,6\n")
    done = kafka08.run("group", "reset", "g", "--from-file", str(plan))
    assert done.returncode == 2
    assert "line 2: 't,one,6' is not topic,partition,offset" in done.stderr
    for content, said in ((b"", "no offsets in it"), (b"t,\xff,6", "not a file of --export")):
        plan.write_bytes(content)
        done = kafka08.run("group", "reset", "g", "--from-file", str(plan))
        assert (done.returncode, said in done.stderr) == (2, True), done.stderr
    assert kafka08.run("group", "reset", "g").returncode == 2


def test_a_plan_is_limited_to_topics(kafka08: Kafka08, tmp_path: Path) -> None:
    """--topic takes the lines of these topics alone, and there must be some of each."""
    plan = tmp_path / "plan.csv"
    plan.write_text("t,0,6\nt,1,6\nu,0,6\n")
    words = ("group", "reset", "g", "--from-file", str(plan), "--topic")
    assert [0, 1] == [row["partition"] for row in kafka08.json(*words, "t")]
    done = kafka08.run(*words, "t", "--topic", "pages")
    assert (2, True) == (done.returncode, "no offsets of topic pages in it" in done.stderr)


@pytest.fixture
def live(cluster: EmbeddedCluster) -> Iterator[Live]:
    """The console's view of the cluster."""
    connect = cluster.zookeeper.connect_string
    with Live(ClusterPlace(connect), Watch(connect), THREADS) as live:
        live.look()
        yield live


@pytest.mark.usefixtures("member")
def test_the_console_shows_the_owners(live: Live, group: str) -> None:
    """The group is known to its coordinator alone, not to ZooKeeper, and has read all messages."""
    details = group_details(live, group)
    [kind] = details["kinds"]
    [member] = kind["members"]
    assert ("coordinator", "Stable") == (kind["kind"], kind["state"])
    assert [(member["member"], 0)] * PARTITIONS == [
        (row["owner"], row["lag"]) for row in kind["partitions"]
    ]
    assert [["t", n, "OK", 0.0] for n in range(PARTITIONS)] == details["verdicts"]


def test_the_console_shows_when_messages_were_written(cluster: EmbeddedCluster, live: Live) -> None:
    """Brokers of 0.10.2 tell their versions, so they are asked for timestamps."""
    assert live.view is not None
    assert live.view.negotiates
    with closing(ClusterClient(parse_bootstrap(cluster.bootstrap), negotiates=True)) as client:
        response = Browser(client, THREADS, negotiates=True).search(SearchRequest("t"))
    times = [message["time_ms"] for message in response["messages"]]
    assert MESSAGES == len(times)
    assert all(0 <= live.view.now_ms - time_ms < 3_600_000 for time_ms in times)


def test_a_group_whose_members_left_stays_one_of_its_coordinator(
    cluster: EmbeddedCluster, kafka08: Kafka08, group: str
) -> None:
    """Its offsets in Kafka do not make it a group of ZooKeeper, which does not know it. Their
    expiry, a day after the commit, is shown."""
    Member(cluster, group).leave()
    found = kafka08.json("group", "describe", group, zookeeper=True)
    assert ("coordinator", "Empty") == (found["kind"], found["state"])
    for row in found["partitions"]:
        assert row["kafka_expires_ms"] - row["kafka_committed_ms"] == 24 * 3_600_000
    assert "in 24.0 h" in kafka08("group", "describe", group, zookeeper=True)


def test_a_coordinator_that_does_not_respond_is_reported(
    cluster: EmbeddedCluster, group: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A group without members, whose offsets could not be read, is distinguished from one without
    offsets."""
    Member(cluster, group).leave()
    with Connections(None, cluster.bootstrap) as connections:
        fetch = connections.coordinators.fetch
        responses = iter([{group: RequestTimeout("no broker responded")}])
        monkeypatch.setattr(
            connections.coordinators, "fetch", lambda wanted: next(responses, None) or fetch(wanted)
        )
        facts = GroupOffsets(connections, group).facts()
    assert facts.unavailable == "no broker responded"


PER_PARTITION = 70
START_MS = 1_500_000_000_000
KEPT = {"retention.ms": -1}
"""For messages of 2017: thirty seconds after its start a broker deletes what is a week old."""
NEWEST = PER_PARTITION * PARTITIONS


@pytest.fixture(scope="module")
def interleaved(cluster: EmbeddedCluster) -> str:
    """A topic whose message number n has the time START_MS + n, in partition n % PARTITIONS."""
    cluster.create_topic("interleaved", PARTITIONS, config=KEPT)
    producer = Producer({"bootstrap.servers": cluster.bootstrap})
    for n in range(NEWEST):
        number, time_ms = n % PARTITIONS, START_MS + n
        producer.produce("interleaved", b"even" * (n % 2), partition=number, timestamp=time_ms)
    assert producer.flush(20) == 0
    return "interleaved"


def search(cluster: EmbeddedCluster, request: SearchRequest) -> tuple[list[int], dict[str, Any]]:
    """(the numbers of the messages that were found, the whole response)."""
    with closing(ClusterClient(parse_bootstrap(cluster.bootstrap), negotiates=True)) as client:
        response = Browser(client, THREADS, negotiates=True).search(request)
    assert response["order"] == "time"
    assert not response["faults"]
    return [message["time_ms"] - START_MS for message in response["messages"]], response


def test_messages_of_all_partitions_are_merged_by_time(
    cluster: EmbeddedCluster, interleaved: str
) -> None:
    """From the first one on, from a time on, on from where a response stopped, the last ones, and
    those with a text."""
    every = list(range(NEWEST))
    found, response = search(cluster, SearchRequest(interleaved, start=Start.EARLIEST, limit=100))
    assert every[:100] == found
    assert {0: 34, 1: 33, 2: 33} == response["next"]
    rest = SearchRequest(interleaved, start=Start.AT, at=response["next"], limit=200)
    found, response = search(cluster, rest)
    assert (every[100:], [0, 1, 2]) == (found, sorted(response["ended"]))
    timed = SearchRequest(interleaved, start=Start.TIME, number=START_MS + 31, limit=20)
    assert every[31:51] == search(cluster, timed)[0]
    for limit in (1, 50, 200):
        found, response = search(cluster, SearchRequest(interleaved, limit=limit))
        assert every[-limit:] == found
        assert dict.fromkeys(range(PARTITIONS), PER_PARTITION) == response["next"]
    assert every[1::2][-50:] == search(cluster, SearchRequest(interleaved, text=b"even"))[0]


def test_the_last_ones_may_all_be_of_one_partition(cluster: EmbeddedCluster) -> None:
    """More than its share of what is read first."""
    cluster.create_topic("lopsided", PARTITIONS, config=KEPT)
    producer = Producer({"bootstrap.servers": cluster.bootstrap})
    for n in range(600):
        number, time_ms = (0, START_MS + n) if n >= 400 else (1 + n % 2, START_MS + n)
        producer.produce("lopsided", b"x", partition=number, timestamp=time_ms)
    assert producer.flush(20) == 0
    assert list(range(420, 600)) == search(cluster, SearchRequest("lopsided", limit=180))[0]


def test_the_page_says_that_messages_are_in_order_of_time(
    live: Live, interleaved: str, chromium: Chromium
) -> None:
    """In Chromium, as a user reads them."""
    address = serve_http(Console(live, Guard("p" * 32)), "127.0.0.1", 0, "--listen")
    page = chromium.open(f"{address}/#/messages/{interleaved}")
    page.until_shown("50 messages; all partitions by time; the end of the log is reached.")
    shown = page.evaluate(
        "[...document.querySelectorAll('ol.messages summary span:first-child')]"
        ".map(one => one.textContent)"
    )
    places = [f"{n % PARTITIONS} : {n // PARTITIONS}" for n in range(NEWEST - 50, NEWEST)]
    assert places == [text for text in shown if ":" in text]
