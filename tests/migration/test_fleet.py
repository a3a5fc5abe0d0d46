"""Many groups at once: each gets what it would get alone, whatever happens to the others."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from threading import Barrier
from typing import Any, TypeVar

import pytest

from kafka08.admin.connections import Connections
from kafka08.admin.group_facts import read_many
from kafka08.clock import Clock
from kafka08.errors import ConfigError, KafkaError, MigrationError
from kafka08.migration import OffsetMigration, Watching
from kafka08.migration.fleet import (
    Fleet,
    Outcome,
    each_group,
    find_groups,
    plan_groups,
    read_groups,
    start_groups,
    verify_groups,
)
from kafka08.migration.journal import Entry, State, read_journals
from kafka08.migration.plan import Plan
from kafka08.migration.writing import raise_in_kafka_of
from kafka08.observe.commit_times import CommitTimes, Records
from kafka08.protocol.offset_fetch import OffsetFetchRequest, OffsetFetchResponse
from kafka08.rate_limiter import RateLimiter
from kafka08.structs import NO_LEADER, OFFSETS_TOPIC, LeaderAndIsr, TopicPartition
from kafka08.zk import paths
from kafka08.zk.client import ZkClient
from kafka08.zk.group_store import GroupStore
from kafka08.zk.store import ClusterStore
from tests.consumer.store_cluster import HOST, PORT, StoreCluster
from tests.migration.killing import Killed, Killer
from tests.network.scripted import Hangup

T = TypeVar("T")
GROUPS = ["a", "b", "c", "d"]
NUMBERS = (0, 1)


@pytest.fixture
def cluster(zk: ZkClient) -> StoreCluster:
    """Four stopped groups, each with a topic of its name and offset 10 in both its partitions."""
    cluster = StoreCluster()
    cluster.is_of = lambda group, tp: group not in {*GROUPS, "e"} or tp.topic in {group, "new"}
    cluster.create_topic(zk, OFFSETS_TOPIC, 1)
    for name in GROUPS:
        cluster.create_topic(zk, name, len(NUMBERS))
        GroupStore(zk).commit_offsets(name, {TopicPartition(name, n): 10 for n in NUMBERS})
    return cluster


def on_system_clock(hosts: str, *, clock: Clock, **settings: Any) -> ZkClient:
    """A client of a real server, which answers in real time: groups that wait for a broker at once
    would let the mock clock run past its timeout."""
    return ZkClient(hosts, **settings)


@pytest.fixture
def connections(
    cluster: StoreCluster, zk_connect: str, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Connections]:
    monkeypatch.setattr("kafka08.admin.connections.ZkClient", on_system_clock)
    with Connections(
        zk_connect,
        f"{HOST}:{PORT}",
        runtime=cluster.runtime,
    ) as connections:
        yield connections


def fleet_of(connections: Connections, groups: list[str] = GROUPS) -> Fleet:
    return Fleet(connections, groups, RateLimiter(None, connections.runtime))


def start(
    connections: Connections, groups: list[str] = GROUPS, named: Collection[str] = ()
) -> list[Outcome[Plan]]:
    fleet = fleet_of(connections, groups)._replace(named=named)
    return list(start_groups(fleet, confirmation_timeout_s=1))


def states(zk: ZkClient) -> dict[str, State | None]:
    journals = read_journals(zk, GROUPS)
    return {g: entry.state if isinstance(entry, Entry) else None for g, entry in journals.items()}


def test_each_group_has_its_own_outcome(
    zk: ZkClient, cluster: StoreCluster, connections: Connections
) -> None:
    """Outcomes come in order; a group that is refused, one that is further already and one whose
    member does not respond stop no other group."""
    GroupStore(zk).commit_offsets("b", {TopicPartition("b", 0): 5000})
    registration = '{"version":1,"subscription":{"c":1},"kafka08":{"offsets.storage":"zookeeper"}}'
    zk.create(paths.consumer_id("c", "c_1"), registration, ephemeral=True)
    zk.create(paths.migration("d"), '{"version":1,"state":"finished"')
    outcomes = start(connections)
    assert [outcome.group for outcome in outcomes] == GROUPS
    assert outcomes[0].error is None
    assert [str(outcome.error).split("\n")[-1].strip() for outcome in outcomes[1:3]] == [
        "- [b,0]: the offset 5000 in ZooKeeper is out of the range 0 to 1000 of the log",
        "- c_1 has not confirmed: see its log, then repeat the step",
    ]
    assert "cannot be read" in str(outcomes[3].error)
    assert states(zk) == {"a": State.DUAL, "b": None, "c": State.DUAL, "d": None}
    assert cluster.committed == {TopicPartition(g, n): 10 for g in "ac" for n in NUMBERS}


def test_groups_without_offsets_are_skipped(
    zk: ZkClient, cluster: StoreCluster, connections: Connections
) -> None:
    """An old ZooKeeper has many of them. A group that the user named, perhaps wrongly, is not
    skipped."""
    zk.create(paths.consumer_ids("e"), None)
    [_, named] = start(connections, ["b", "e"], ["e"])
    assert "no store has an offset" in str(named.error)
    [*_, plan] = plan_groups(fleet_of(connections, ["a", "e"]))
    assert (plan.group, plan.is_allowed, plan.steps) == ("e", True, ())
    assert {o.group: o.error for o in start(connections, ["a", "e"])} == {"a": None, "e": None}
    assert read_journals(zk, ["e"]) == {"e": None}


def plans(connections: Connections) -> dict[str, Plan]:
    found = plan_groups(fleet_of(connections))
    return {plan.group: plan for plan in found}


@pytest.mark.parametrize(
    ("path", "text", "said", "cure"),
    [
        (
            "/consumers/b/offsets/b/0",
            "garbage",
            "offset: expected a number, not 'garbage'",
            "kafka08 offsets set b b:0=OFFSET",
        ),
        ("/consumers/b/offsets/b/old", "5", "is not named after a partition", "delete this znode"),
        (
            "/consumers/b/owners/b/1_0",
            "b_1-0",
            "is not named after a partition",
            "delete this znode",
        ),
    ],
)
def test_a_znode_that_cannot_be_read_stops_its_own_group(
    zk: ZkClient, connections: Connections, path: str, text: str, said: str, cure: str
) -> None:
    """The error has the znode, its fault and the cure; the other groups start."""
    zk.put(path, text)
    refused = {group: plan.refusals for group, plan in plans(connections).items() if plan.refusals}
    assert list(refused) == ["b"]
    [refusal] = refused["b"]
    assert refusal.startswith(path)
    assert said in refusal
    assert refusal.endswith(cure)
    assert [o.group for o in start(connections) if o.error is None] == ["a", "c", "d"]


def test_an_unreadable_group_is_not_skipped(zk: ZkClient, connections: Connections) -> None:
    """It is distinguished from a group without offsets."""
    zk.delete_recursive(paths.offsets("b"))
    zk.create("/consumers/b/offsets/b/x", "5")
    assert not plans(connections)["b"].is_allowed


@pytest.mark.parametrize("leader", [1, 9, NO_LEADER])
def test_a_partition_without_a_leader_stops_its_own_group(
    zk: ZkClient, cluster: StoreCluster, connections: Connections, leader: int
) -> None:
    """It does whether ZooKeeper has no leader, or the broker there responds that it does not
    lead."""
    tp = TopicPartition("b", 1)
    cluster.unled.add(tp)
    ClusterStore(zk).update_leader_and_isr({tp: LeaderAndIsr(leader, 1, (1,), 0, 1)})
    found = plans(connections)
    assert [group for group, plan in found.items() if plan.is_allowed] == ["a", "c", "d"]
    assert found["b"].refusals[-1].startswith("[b,1]: the start and end of its log are unknown")


def test_a_loading_coordinator_is_retried(
    zk: ZkClient, cluster: StoreCluster, connections: Connections
) -> None:
    """Only the remaining groups are retried; a coordinator that never finishes is an error of its
    groups."""
    respond, left = cluster.respond, {"b": [14, 16, 14], "c": [14] * 1000}

    def load(request: Any) -> Any:
        response = respond(request)
        if isinstance(request, OffsetFetchRequest) and (codes := left.get(request.group)):
            code = codes.pop()
            assert isinstance(response, OffsetFetchResponse)
            for topic in response.topics:
                for partition in topic.partitions:
                    partition.error_code = code
        return response

    cluster.network.broker(HOST, PORT, load)
    [a, b, c, d] = plan_groups(fleet_of(connections))
    assert [plan.is_allowed for plan in (a, b, c, d)] == [True, True, False, True]
    assert "coordinator is not available" in c.refusals[0]
    asked = [request.group for request in cluster.asked]  # type: ignore[attr-defined]
    assert [asked.count(group) for group in "abd"] == [1, 4, 1]


def test_an_unknown_partition_is_not_an_uncommitted_one(
    zk: ZkClient, cluster: StoreCluster, connections: Connections
) -> None:
    """A broker that just started calls a partition unknown until it learns of it: the request is
    repeated, and the broker's offset is not overwritten by an older one."""
    cluster.committed[TopicPartition("a", 0)] = 500
    cluster.refuse(TopicPartition("a", 0), 3, 3, 3)
    [outcome] = start(connections, ["a"])
    assert "[a,0]: ZooKeeper has 10, Kafka 500: nothing shows which" in str(outcome.error)
    assert cluster.committed[TopicPartition("a", 0)] == 500


def test_a_connection_that_breaks_between_responses_is_reopened(
    zk: ZkClient, cluster: StoreCluster, connections: Connections
) -> None:
    """Only the groups whose responses were lost are requested again."""
    responses = 0
    respond = cluster.respond

    def hang_up_once(request: Any) -> Any:
        nonlocal responses
        if getattr(request, "group", None) is not None and hasattr(request, "topics"):
            responses += 1
            if responses == 3:
                raise Hangup
        return respond(request)

    cluster.network.broker(HOST, PORT, hang_up_once)
    assert all(outcome.error is None for outcome in start(connections))
    assert cluster.committed == {TopicPartition(g, n): 10 for g in GROUPS for n in NUMBERS}


def test_interrupted_at_every_write_and_repeated(
    zk: ZkClient,
    cluster: StoreCluster,
    connections: Connections,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """After a kill before or after the n-th write, for every n, a second start makes all groups
    commit to both stores, and each journal has the offsets from before the first try."""
    killer = Killer(monkeypatch)
    killed = True
    rounds = 0
    while killed:
        killer.spare()
        zk.delete_recursive(paths.MIGRATIONS)
        cluster.committed.clear()
        rounds += 1
        killer.kill_at(rounds)
        try:
            start(connections)
            killed = False
        except Killed:
            killer.spare()
            assert all(outcome.error is None for outcome in start(connections))
        assert set(states(zk).values()) == {State.DUAL}
        assert cluster.committed == {TopicPartition(g, n): 10 for g in GROUPS for n in NUMBERS}
        for name, entry in read_journals(zk, GROUPS).items():
            assert isinstance(entry, Entry)
            assert entry.snapshot == {TopicPartition(name, n): (10, None) for n in NUMBERS}
    assert rounds > 6


def test_the_rate_limits_concurrent_groups(connections: Connections) -> None:
    """Two groups start together, and the next two a second later."""
    clock = connections.runtime
    began = clock.monotonic()
    batches = read_groups(Fleet(connections, GROUPS, RateLimiter(2, clock)))
    assert [[facts.group for facts in batch] for batch in batches] == [["a", "b"], ["c", "d"]]
    assert clock.monotonic() - began == pytest.approx(1.0)


@pytest.mark.parametrize("name", ["../..", "a/b", ".."])
def test_an_illegal_group_name_is_refused(connections: Connections, name: str) -> None:
    """It would be a path to other znodes: no request is sent with it."""
    with pytest.raises(ConfigError, match="kafka08 group list"):
        find_groups(connections, ["a", name], every=False)


def test_a_group_that_can_be_started_can_be_rolled_back(
    zk: ZkClient, cluster: StoreCluster, connections: Connections
) -> None:
    """Group names that only clients other than 0.8.2.2's use work in both directions."""
    odd = "team: a"
    GroupStore(zk).commit_offsets(odd, {TopicPartition("a", 0): 10})
    assert find_groups(connections, [], ["team*"]) == [odd]
    [started] = start(connections, [odd])
    assert started.error is None
    steps: list[Callable[[OffsetMigration], object]] = [
        OffsetMigration.verify,
        OffsetMigration.finish,
        OffsetMigration.rollback,
        OffsetMigration.forget,
    ]
    for step in steps:
        [done] = each_group(fleet_of(connections, [odd]), step, confirmation_timeout_s=1)
        assert done.error is None
    assert not zk.exists(paths.migration(odd))


def test_a_rollback_of_several_groups_finds_what_kafka_alone_has(
    zk: ZkClient, cluster: StoreCluster, connections: Connections
) -> None:
    """Group a has read topic c since it left ZooKeeper, where nothing names it: its offset reaches
    ZooKeeper, and the preview says so, however many groups are named."""

    def run(step: Callable[[OffsetMigration], T], groups: list[str]) -> list[T]:
        done = list(each_group(fleet_of(connections, groups), step, confirmation_timeout_s=1))
        assert [one.error for one in done] == [None] * len(groups)
        return [one.result for one in done if one.result is not None]

    start(connections)
    run(OffsetMigration.verify, GROUPS)
    run(OffsetMigration.finish, GROUPS)
    new = TopicPartition("new", 0)
    cluster.create_topic(zk, "new", 1)
    cluster.committed[new] = 500
    [alone] = run(OffsetMigration.plan_rollback, ["a"])
    assert run(OffsetMigration.plan_rollback, ["a", "b"])[0] == alone
    assert run(OffsetMigration.rollback, ["a", "b"])[0].to_zookeeper == alone.to_zookeeper
    assert GroupStore(zk).offsets("a", [new]) == {new: 500}


def test_responses_in_memory_are_bounded(
    connections: Connections, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A response names every partition of the cluster for each group: groups are asked about in
    portions, and none is missed."""
    whole = read_many(GROUPS, connections)
    monkeypatch.setattr("kafka08.observe.group_states.IN_MEMORY_MAX", 3)
    assert read_many(GROUPS, connections) == whole


def test_no_partition_of_a_group_is_missed(
    zk: ZkClient, cluster: StoreCluster, connections: Connections
) -> None:
    """Group a committed one of three partitions, b's members subscribe by a pattern, and c owned
    one: partitions without a commit are included, and no other topic's."""
    cluster.create_topic(zk, "three", 3)
    cluster.create_topic(zk, "new-1", 2)
    cluster.create_topic(zk, "old", 1)
    zk.delete_recursive(paths.offsets("a"))
    GroupStore(zk).commit_offsets("a", {TopicPartition("three", 1): 5})
    registration = '{"version":1,"subscription":{"new-.*":1},"pattern":"white_list"}'
    zk.create(paths.consumer_id("b", "b_m"), registration)
    zk.create(paths.owners("c", "old"), None)
    found = read_many(GROUPS, connections)
    never = {g.group: [p.topic_partition for p in g.partitions if p.never_committed] for g in found}
    assert never["a"] == [TopicPartition("three", 0), TopicPartition("three", 2)]
    assert never["b"] == [TopicPartition("new-1", 0), TopicPartition("new-1", 1)]
    assert never["c"] == [TopicPartition("old", 0)]


def test_an_unreadable_offset_stops_its_own_group_alone(
    zk: ZkClient, cluster: StoreCluster, connections: Connections
) -> None:
    """Kafka has an offset of that partition too, so the second pass reads its znode again."""
    broken = TopicPartition("b", 0)
    zk.set(paths.offset("b", *broken), "ten")
    cluster.committed[broken] = 10
    outcomes = start(connections)
    assert [o.group for o in outcomes if o.error is None] == ["a", "c", "d"]
    [failed] = [o for o in outcomes if o.error is not None]
    assert str(failed.error).count(paths.offset("b", *broken)) == 1


def test_an_offset_that_became_unreadable_stops_its_own_group_alone(
    zk: ZkClient, connections: Connections
) -> None:
    """Its znode changed between plan and copy."""
    zk.set(paths.offset("b", "b", 0), "ten")
    wanted = {group: [TopicPartition(group, n) for n in NUMBERS] for group in GROUPS}
    results = raise_in_kafka_of(connections, wanted, connections.gate())
    assert [g for g, result in results.items() if isinstance(result, KafkaError)] == ["b"]
    assert results["a"] == {TopicPartition("a", n): 10 for n in NUMBERS}


def test_commit_times_are_read_once_for_all_groups(
    connections: Connections, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The offsets topic consists mostly of other groups' records, so one pass reads it for all
    groups."""
    reads: list[TopicPartition] = []

    def read(self: CommitTimes, tp: TopicPartition) -> Records:
        reads.append(tp)
        return Records()

    monkeypatch.setattr(CommitTimes, "_records", read)
    monkeypatch.setattr("kafka08.observe.commit_times.group_partition", lambda group, count: 3)
    start(connections)
    verify = OffsetMigration.verify
    assert len(list(each_group(fleet_of(connections), verify, confirmation_timeout_s=1))) == 4
    assert reads == [TopicPartition(OFFSETS_TOPIC, 3)]


def test_names_and_patterns(zk: ZkClient, connections: Connections) -> None:
    """A pattern selects the groups that match; a pattern without a match is an error. A name is
    itself, whatever characters it has; one that nobody has, but that others match, is an error."""
    assert find_groups(connections, ["x"], ["[bc]"]) == ["x", "b", "c"]
    assert find_groups(connections, [], every=True) == GROUPS
    with pytest.raises(MigrationError, match=r"matches z\*"):
        find_groups(connections, [], ["z*"])
    with pytest.raises(MigrationError, match=r"no group in ZooKeeper is called a\*.*--match"):
        find_groups(connections, ["a*"])
    assert find_groups(connections, ["a[1]"]) == ["a[1]"]
    zk.create(paths.consumer_ids("[bc]"), None)
    assert find_groups(connections, ["[bc]"]) == ["[bc]"]


def live(zk: ZkClient) -> None:
    """Each group gets a member that commits to both stores and is idle."""
    keys = '{"offsets.storage":"kafka","dual.commit.enabled":"true"}'
    says = f'{{"version":1,"subscription":{{}},"kafka08":{keys}}}'
    for group in GROUPS:
        zk.create(paths.consumer_id(group, f"{group}_m"), says, ephemeral=True)
        order = '{"version":1,"step":1,"storage":"dual"}'
        zk.create(paths.migration_confirmation(group, f"{group}_m"), order, ephemeral=True)


def test_groups_are_watched_together(zk: ZkClient, connections: Connections) -> None:
    """Four groups take the time of one: one by one, a thousand took four hours."""
    start(connections)
    live(zk)
    looks: list[float] = []
    watching = Watching(
        seconds=20,
        interval_ms=1000,
        on_sample=lambda done, planned: looks.append(connections.runtime.monotonic()),
    )
    found = list(verify_groups(fleet_of(connections), watching, confirmation_timeout_s=1))
    assert [(one.group, one.error) for one in found] == [(group, None) for group in GROUPS]
    assert [one.result and one.result.problems for one in found] == [()] * 4
    assert {one.result and one.result.samples for one in found} == {len(looks)} == {21}
    assert looks[-1] - looks[0] == pytest.approx(20, abs=1)
    assert set(states(zk).values()) == {State.VERIFIED}


def test_an_interrupted_watch_enters_no_state(zk: ZkClient, connections: Connections) -> None:
    """Ctrl-C between two samples ends it there: it watched on for half a minute, and the journal
    said verified."""

    def interrupt(done: int, planned: int) -> None:
        if done == 2:
            raise KeyboardInterrupt

    start(connections)
    live(zk)
    watching = Watching(seconds=20, interval_ms=1000, on_sample=interrupt)
    with pytest.raises(KeyboardInterrupt):
        list(verify_groups(fleet_of(connections), watching, confirmation_timeout_s=1))
    assert set(states(zk).values()) == {State.DUAL}


def test_an_interrupt_ends_the_steps_of_other_threads(connections: Connections) -> None:
    """They wait for members, and would enter a state afterwards."""
    ended: list[str] = []
    begun = Barrier(3)

    def wait(migration: OffsetMigration) -> None:
        begun.wait(timeout=60.0)
        if migration.group == "a":
            return
        try:
            while True:
                connections.pause(0.01)
        finally:
            ended.append(migration.group)

    steps = each_group(fleet_of(connections, GROUPS[:3]), wait, confirmation_timeout_s=1)
    assert next(steps).group == "a"
    steps.close()  # type: ignore[attr-defined]
    assert sorted(ended) == ["b", "c"]
