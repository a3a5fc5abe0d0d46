"""OffsetMigration on a real ZooKeeper and a coordinator in memory, broken off at every write."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Literal

import pytest

from kafka08.admin.group_facts import read_many
from kafka08.admin.group_offsets import GroupOffsets
from kafka08.client.coordinators import Coordinators
from kafka08.errors import (
    ConfigError,
    ConsumerCoordinatorNotAvailable,
    MigrationError,
    SessionLost,
)
from kafka08.migration import OffsetMigration, State
from kafka08.migration.journal import Entry, Journal
from kafka08.migration.mirror import Mirror
from kafka08.migration.preview import preview_finish, preview_forget, preview_mirror
from kafka08.migration.proof import StoreThatCounts
from kafka08.observe.coordinated import STABLE, CoordinatedGroup, CoordinatedMember
from kafka08.observe.group_states import GroupStates
from kafka08.observe.trees import read_commits
from kafka08.structs import OFFSETS_TOPIC, Broker, TopicPartition
from kafka08.zk import nodes, paths
from kafka08.zk.client import ZkClient
from kafka08.zk.group_store import GroupStore
from kafka08.zk.migration_protocol import OffsetStorage
from tests.consumer.store_cluster import HOST, PORT, StoreCluster
from tests.migration.killing import Killed, Killer

TPS = [TopicPartition("t", number) for number in range(4)]
IN_ZOOKEEPER = {TPS[0]: 10, TPS[1]: 20, TPS[2]: 30}
IN_KAFKA = {TPS[1]: 25, TPS[2]: 5}
REGISTRATION = '{"version":1,"subscription":{"t":1},"kafka08":{"offsets.storage":"zookeeper"}}'
"""Of a kafka08 member that is configured for ZooKeeper."""
NEWEST_COUNTS = StoreThatCounts.NEWEST
NEWEST = {TPS[0]: 10, TPS[1]: 25, TPS[2]: 30}


@pytest.fixture
def cluster(zk: ZkClient) -> StoreCluster:
    """A stopped group `g`: in partition 0 only ZooKeeper has an offset, in 1 Kafka is ahead, in 2
    ZooKeeper is, in 3 no store has one."""
    cluster = StoreCluster()
    cluster.create_topic(zk, "t", 4)
    cluster.create_topic(zk, OFFSETS_TOPIC, 1)
    GroupStore(zk).commit_offsets("g", IN_ZOOKEEPER)
    cluster.committed.update(IN_KAFKA)
    return cluster


@pytest.fixture
def migration(
    cluster: StoreCluster, zk_connect: str, monkeypatch: pytest.MonkeyPatch
) -> Iterator[OffsetMigration]:
    monkeypatch.setattr("kafka08.migration.waiting.POLL_S", 5.0)
    with connected(cluster, zk_connect) as migration:
        yield migration


def connected(cluster: StoreCluster, zk_connect: str) -> OffsetMigration:
    return OffsetMigration(
        zk_connect,
        "g",
        f"{HOST}:{PORT}",
        runtime=cluster.runtime,
    )


def in_zookeeper(zk: ZkClient) -> dict[TopicPartition, int]:
    return {tp: at.offset for tp, at in read_commits(zk, ["g"])["g"].values.items()}


def state_of(entry: Entry | None) -> State | None:
    return None if entry is None else entry.state


def test_a_plan_changes_nothing(
    zk: ZkClient, cluster: StoreCluster, migration: OffsetMigration
) -> None:
    """The plan says what start would copy, and writes neither store nor journal."""
    plan = migration.plan(store_that_counts=NEWEST_COUNTS)
    assert (plan.copies, plan.copies_back) == ({TPS[0]: 10, TPS[2]: 30}, {TPS[1]: (25, 20)})
    assert (cluster.committed, in_zookeeper(zk)) == (IN_KAFKA, IN_ZOOKEEPER)
    assert migration.journal() is None


def test_reading_does_not_create_the_offsets_topic(
    zk: ZkClient, cluster: StoreCluster, migration: OffsetMigration
) -> None:
    """The search for a coordinator would, on a cluster without one. Kafka has nothing then; start
    is the first to look for the coordinator."""
    zk.delete_recursive(paths.topic(OFFSETS_TOPIC))
    cluster.committed.clear()
    found = GroupOffsets(migration.connections, "g")
    for facts in (found.facts(), found.facts(["t"]), *read_many(["g"], migration.connections)):
        assert [(p.zookeeper, p.kafka) for p in facts.partitions][:3] == [
            (10, None),
            (20, None),
            (30, None),
        ]
        assert facts.unavailable is None
    assert migration.plan().copies == IN_ZOOKEEPER
    assert cluster.searches == 0
    migration.start(store_that_counts=NEWEST_COUNTS)
    assert cluster.committed == IN_ZOOKEEPER


def test_the_whole_migration(
    zk: ZkClient, cluster: StoreCluster, migration: OffsetMigration
) -> None:
    """start raises both stores to the offset that was said to count, verify and finish find no
    problem, and rollback raises ZooKeeper to the group's later offsets."""
    migration.start(store_that_counts=NEWEST_COUNTS)
    assert cluster.committed == NEWEST
    assert in_zookeeper(zk) == NEWEST
    assert migration.verify().is_verified
    assert state_of(migration.journal()) is State.VERIFIED
    assert migration.finish().is_verified
    assert state_of(migration.journal()) is State.FINISHED
    cluster.committed[TPS[3]] = 77
    assert migration.rollback().to_zookeeper == {TPS[3]: 77}
    assert in_zookeeper(zk) == NEWEST | {TPS[3]: 77}


@pytest.mark.parametrize("state", [State.VERIFIED, State.FINISHING, State.FINISHED])
def test_finish_ends_with_offsets_in_kafka(
    zk: ZkClient, cluster: StoreCluster, migration: OffsetMigration, state: State
) -> None:
    """If Kafka loses offsets after verify, finish and its repetition restore a stopped group's
    offsets there, the offset 0 too."""
    GroupStore(zk).commit_offsets("g", {TPS[0]: 0})
    migration.start(store_that_counts=NEWEST_COUNTS)
    migration.verify()
    entry = migration.journal()
    assert entry is not None
    journal = Journal(zk, "g")
    if state is not State.VERIFIED:
        entry = journal.enter(State.FINISHING, entry, 1)
    if state is State.FINISHED:
        journal.enter(State.FINISHED, entry, 1)
    del cluster.committed[TPS[0]], cluster.committed[TPS[2]]
    assert migration.finish().is_verified
    assert cluster.committed == {TPS[0]: 0, TPS[1]: 25, TPS[2]: 30}
    assert state_of(migration.journal()) is State.FINISHED


def test_offsets_that_kafka_loses_after_the_cutover_are_a_problem(
    cluster: StoreCluster, migration: OffsetMigration, monkeypatch: pytest.MonkeyPatch
) -> None:
    """finish reports it and stays unfinished."""
    migration.start(store_that_counts=NEWEST_COUNTS)
    migration.verify()
    enter = Journal.enter

    def lose_and_enter(*args: Any) -> Any:
        cluster.committed.pop(TPS[0], None)
        return enter(*args)

    monkeypatch.setattr(Journal, "enter", lose_and_enter)
    assert migration.finish().problems == ("[t,0]: ZooKeeper has 10, Kafka nothing",)
    assert state_of(migration.journal()) is State.FINISHING


def test_finish_says_why_kafka_cannot_be_compared(
    zk: ZkClient, cluster: StoreCluster, migration: OffsetMigration
) -> None:
    """A loading coordinator is distinguished from one without offsets."""
    migration.start(store_that_counts=NEWEST_COUNTS)
    migration.verify()
    cluster.refuse(TPS[0], *[14] * 10_000)
    with pytest.raises(MigrationError) as refused:
        migration.finish()
    assert "the group's coordinator is not available" in str(refused.value)
    assert "Kafka nothing" not in str(refused.value)
    assert state_of(migration.journal()) is State.VERIFIED


def test_a_finished_group_that_was_set_back_stays_there(
    cluster: StoreCluster, migration: OffsetMigration
) -> None:
    """Only Kafka counts by then: a repeated finish does not raise it to ZooKeeper's old offset."""
    migration.start(store_that_counts=NEWEST_COUNTS)
    migration.verify()
    migration.finish()
    cluster.committed[TPS[2]] = 3
    assert migration.finish().is_verified
    assert cluster.committed[TPS[2]] == 3


def test_a_finished_group_that_was_set_back_returns_there(
    zk: ZkClient,
    cluster: StoreCluster,
    migration: OffsetMigration,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A rollback lowers ZooKeeper's old offset to Kafka's. It does so before members use both
    stores again, since these would start from the larger one, and skip messages."""
    migration.start(store_that_counts=NEWEST_COUNTS)
    migration.verify()
    migration.finish()
    cluster.committed[TPS[2]] = 3
    enter = Journal.enter
    seen = {}

    def look_and_enter(journal: Journal, state: State, *args: Any) -> Any:
        seen[state] = in_zookeeper(zk)[TPS[2]]
        return enter(journal, state, *args)

    monkeypatch.setattr(Journal, "enter", look_and_enter)
    assert migration.plan_rollback().to_zookeeper == {TPS[2]: 3}
    assert migration.rollback().to_zookeeper == {TPS[2]: 3}
    assert seen[State.ROLLING_TO_NEWEST] == 3
    assert in_zookeeper(zk) == NEWEST | {TPS[2]: 3}


def test_a_repeated_rollback_writes_no_offsets(
    zk: ZkClient, cluster: StoreCluster, migration: OffsetMigration
) -> None:
    """Only ZooKeeper counts by then: an offset that was set back there is not raised to Kafka's old
    one."""
    migration.start(store_that_counts=NEWEST_COUNTS)
    migration.rollback()
    GroupStore(zk).commit_offsets("g", {TPS[2]: 3})
    assert migration.rollback().to_zookeeper == {}
    assert in_zookeeper(zk)[TPS[2]] == 3
    assert state_of(migration.journal()) is State.ROLLED_BACK


def test_back_to_the_snapshot(
    zk: ZkClient, cluster: StoreCluster, migration: OffsetMigration
) -> None:
    """Both stores have their former offsets, whatever was read since; where Kafka had none it has
    ZooKeeper's."""
    migration.start(store_that_counts=NEWEST_COUNTS)
    cluster.committed.update({TPS[0]: 500, TPS[1]: 501})
    GroupStore(zk).commit_offsets("g", {TPS[0]: 400, TPS[3]: 3})
    migration.rollback("snapshot")
    assert in_zookeeper(zk) == IN_ZOOKEEPER | {TPS[3]: 3}
    assert cluster.committed == {TPS[0]: 10, TPS[1]: 25, TPS[2]: 5}


def test_offsets_that_both_stores_lost_are_restored(
    zk: ZkClient, cluster: StoreCluster, migration: OffsetMigration
) -> None:
    """The snapshot has partitions that neither store has any more."""
    migration.start(store_that_counts=NEWEST_COUNTS)
    zk.delete_recursive(paths.offsets("g"))
    cluster.committed.clear()
    migration.rollback("snapshot")
    assert in_zookeeper(zk) == IN_ZOOKEEPER
    assert cluster.committed == IN_KAFKA


def test_an_offset_of_zookeeper_above_the_log_is_replaced(
    zk: ZkClient, cluster: StoreCluster, migration: OffsetMigration
) -> None:
    """After a topic was recreated, Kafka's offset is the one inside the log. A commit before the
    write is not lowered."""
    migration.start(store_that_counts=NEWEST_COUNTS)
    GroupStore(zk).commit_offsets("g", {TPS[0]: 5000, TPS[2]: 5000})
    fetch = Coordinators.fetch

    def commit_and_fetch(self: Coordinators, wanted: Any) -> Any:
        GroupStore(zk).commit_offsets("g", {TPS[2]: 900})
        return fetch(self, wanted)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Coordinators, "fetch", commit_and_fetch)
        assert migration.rollback().to_zookeeper == {TPS[0]: 10}
    assert in_zookeeper(zk) == {TPS[0]: 10, TPS[1]: 25, TPS[2]: 900}


@pytest.mark.parametrize("group", ["", ".", "..", "a/b", "../.."])
def test_an_illegal_group_name_is_refused(group: str) -> None:
    """The error comes before any request or write: such a name would be a path to other znodes."""
    with pytest.raises(ConfigError, match=r"group\.id"):
        OffsetMigration("127.0.0.1:1", group)


def test_steps_out_of_order_are_refused(migration: OffsetMigration) -> None:
    """verify and rollback need a migration that has begun."""
    with pytest.raises(MigrationError, match="start it first"):
        migration.verify()
    with pytest.raises(MigrationError, match="start it first"):
        migration.rollback()


def test_forget_removes_the_journal_of_a_finished_migration(
    zk: ZkClient, migration: OffsetMigration
) -> None:
    """The members' acknowledgements go too, so another migration can begin. An unfinished journal
    stays."""
    with pytest.raises(MigrationError, match="has not begun"):
        migration.forget()
    migration.start(store_that_counts=NEWEST_COUNTS)
    with pytest.raises(MigrationError, match="verify it, or roll it back"):
        migration.forget()
    migration.rollback()
    zk.create(paths.migration_confirmation("g", "g_gone"), "x")
    assert migration.status().state is State.ROLLED_BACK
    assert migration.forget().state is State.ROLLED_BACK
    assert migration.status().state is None, "a program may ask after forget, too"
    assert not zk.exists(paths.migration("g"))
    migration.start(store_that_counts=NEWEST_COUNTS)


def test_forget_is_refused_while_a_member_would_go_back(
    zk: ZkClient, migration: OffsetMigration
) -> None:
    """Without the journal a restarted member follows its configuration: here to an old offset in
    ZooKeeper."""
    migration.start(store_that_counts=NEWEST_COUNTS)
    migration.verify()
    migration.finish()
    zk.create(paths.consumer_id("g", "g_a"), REGISTRATION, ephemeral=True)
    with pytest.raises(MigrationError, match="g_a is configured otherwise"):
        migration.forget()
    assert state_of(migration.journal()) is State.FINISHED
    zk.delete(paths.consumer_id("g", "g_a"))
    migration.forget()
    assert migration.journal() is None


def test_a_preview_of_start_refuses_a_later_state(
    cluster: StoreCluster, migration: OffsetMigration
) -> None:
    """The plan, which is the preview of start, has the refusal of start: the state of the
    migration, or a journal that cannot be read."""
    migration.start(store_that_counts=NEWEST_COUNTS)
    assert migration.plan().is_allowed
    migration.verify()
    assert migration.plan().is_allowed
    migration.finish()
    [refusal] = migration.plan().refusals
    with pytest.raises(MigrationError, match="it is done, or can be rolled back") as refused:
        migration.start(store_that_counts=NEWEST_COUNTS)
    assert refusal == str(refused.value)
    migration.connections.zk.set(paths.migration("g"), "garbage")
    [refusal] = migration.plan().refusals
    assert "/kafka08/migrations/g cannot be read" in refusal


@pytest.mark.parametrize("in_the_way", ["mirror", "member", "offset"])
def test_a_preview_of_finish_refuses_what_finish_refuses(
    zk: ZkClient, cluster: StoreCluster, migration: OffsetMigration, in_the_way: str
) -> None:
    """A mirror that runs, a member that has not confirmed, or an offset that is newer in ZooKeeper
    and that a live owner is to copy."""
    migration.start(store_that_counts=NEWEST_COUNTS)
    migration.verify()
    if in_the_way == "mirror":
        zk.create(paths.migration_mirror("g"), ephemeral=True)
    elif in_the_way == "member":
        zk.create(paths.consumer_id("g", "g_a"), REGISTRATION, ephemeral=True)
    else:
        own(zk, TPS[1])
        GroupStore(zk).commit_offsets("g", {TPS[1]: 26})
    with pytest.raises(MigrationError) as refused:
        migration.finish()
    with pytest.raises(MigrationError) as foreseen:
        preview_finish(migration)
    assert str(foreseen.value) == str(refused.value)


def test_a_preview_of_forget_refuses_what_forget_refuses(
    zk: ZkClient, migration: OffsetMigration
) -> None:
    """A migration that is not done, and a member that is configured otherwise."""
    migration.start(store_that_counts=NEWEST_COUNTS)
    with pytest.raises(MigrationError, match="verify it, or roll it back"):
        preview_forget(migration)
    migration.verify()
    migration.finish()
    zk.create(paths.consumer_id("g", "g_a"), REGISTRATION, ephemeral=True)
    with pytest.raises(MigrationError, match="g_a is configured otherwise"):
        preview_forget(migration)
    zk.delete(paths.consumer_id("g", "g_a"))
    assert preview_forget(migration).state is State.FINISHED


def test_a_mirror_that_outlived_its_session_commits_nothing(
    zk: ZkClient, cluster: StoreCluster, migration: OffsetMigration, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was suspended: another tool may have finished the migration, and members commit to Kafka
    alone. It lowers none of their offsets, and its successor's mark stays."""
    migration.start(store_that_counts=NEWEST_COUNTS)
    mark = paths.migration_mirror("g")

    def resume_in_a_new_session(_: object) -> None:
        monkeypatch.setattr(ZkClient, "session_id", property(lambda self: 1))
        zk.delete(mark)
        zk.create(mark, ephemeral=True)
        GroupStore(zk).commit_offsets("g", {TPS[2]: 150})

    with pytest.raises(SessionLost):
        Mirror(migration).run(0.0, resume_in_a_new_session)
    assert cluster.committed == NEWEST
    assert zk.exists(mark)


def test_a_member_that_joins_during_a_change_of_offsets_is_noticed(
    zk: ZkClient, migration: OffsetMigration, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may have read one store before the other one was written, or overwritten one."""
    commit = Coordinators.commit

    def join_and_commit(self: Coordinators, *args: Any) -> Any:
        zk.create(paths.consumer_id("g", "g_a"), '{"subscription":{"t":1}}', ephemeral=True)
        return commit(self, *args)

    monkeypatch.setattr(Coordinators, "commit", join_and_commit)
    offsets = GroupOffsets(migration.connections, "g")
    with pytest.raises(MigrationError, match=r"joined while its offsets were written.*g_a"):
        offsets.carry_out(offsets.plan_set({TPS[0]: 0}), OffsetStorage.DUAL)


def test_a_second_mirror_is_refused_by_its_preview_too(
    zk: ZkClient, migration: OffsetMigration
) -> None:
    """While a mirror runs, another one and its --dry-run are refused with the same words."""
    migration.start(store_that_counts=NEWEST_COUNTS)
    zk.create(paths.migration_mirror("g"), ephemeral=True)
    with pytest.raises(MigrationError, match="another process mirrors group g") as refused:
        Mirror(migration).run(1.0, lambda _: None, rounds=1)
    with pytest.raises(MigrationError) as foreseen:
        preview_mirror(migration)
    assert str(refused.value) == str(foreseen.value)
    zk.delete(paths.migration_mirror("g"))
    assert preview_mirror(migration) == []


def test_forget_is_refused_while_a_mirror_sleeps(zk: ZkClient, migration: OffsetMigration) -> None:
    """The mirror's znode is below the journal; the error names the mirror, not the znode."""
    migration.start(store_that_counts=NEWEST_COUNTS)
    migration.rollback()
    zk.create(paths.migration_mirror("g"), ephemeral=True)
    with pytest.raises(MigrationError, match="a mirror still runs: stop it"):
        migration.forget()
    zk.delete(paths.migration_mirror("g"))
    migration.forget()


def test_a_rewind_of_a_live_group_is_refused(zk: ZkClient, migration: OffsetMigration) -> None:
    """Its members would overwrite it: the error comes before any write, with their names."""
    migration.start(store_that_counts=NEWEST_COUNTS)
    zk.create(paths.consumer_id("g", "g_a"), '{"subscription":{"t":1}}', ephemeral=True)
    with pytest.raises(MigrationError, match="g_a"):
        migration.rollback("snapshot")
    assert state_of(migration.journal()) is State.DUAL


@pytest.mark.parametrize("to", ["newest", "snapshot"])
@pytest.mark.parametrize("last", ["start", "finish"])
def test_a_rollback_under_members_with_a_coordinator_is_refused(
    migration: OffsetMigration,
    monkeypatch: pytest.MonkeyPatch,
    last: str,
    to: Literal["newest", "snapshot"],
) -> None:
    """They follow no order and go on committing to Kafka alone: ZooKeeper would get offsets that
    are old when they stop, or the coordinator would refuse those of the snapshot. The error comes
    before any write, and once they are gone the rollback works."""
    migration.start(store_that_counts=NEWEST_COUNTS)
    if last == "finish":
        migration.verify()
        migration.finish()
    before = migration.journal()
    members = (CoordinatedMember("polling-1", "polling", "/10.0.0.7"),)
    polling = CoordinatedGroup("g", Broker(1, HOST, PORT), STABLE, "consumer", "range", members)
    monkeypatch.setattr(GroupStates, "described", lambda *_: {"g": polling})
    with pytest.raises(MigrationError, match=r"stop them first: polling-1"):
        migration.plan_rollback(to)
    with pytest.raises(MigrationError, match=r"stop them first: polling-1"):
        migration.rollback(to)
    assert migration.journal() == before
    monkeypatch.undo()
    migration.rollback(to)
    assert state_of(migration.journal()) is State.ROLLED_BACK


def test_members_with_a_coordinator_stop_a_start_and_its_plan(
    migration: OffsetMigration, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They were not seen: between two runs of plan, start copied over their commits."""
    members = (CoordinatedMember("polling-1", "polling", "/127.0.0.1"),)
    polling = CoordinatedGroup("g", Broker(1, HOST, PORT), STABLE, "consumer", "range", members)
    monkeypatch.setattr(GroupStates, "described", lambda *_: {"g": polling})
    [refusal] = migration.plan(store_that_counts=NEWEST_COUNTS).refusals
    with pytest.raises(MigrationError, match="stop them first: polling-1"):
        migration.start(store_that_counts=NEWEST_COUNTS)
    assert "stop them first: polling-1" in refusal
    assert migration.journal() is None


def test_members_that_join_during_the_copy_are_noticed(
    zk: ZkClient, migration: OffsetMigration, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A foreign member that starts during the copy and uses Kafka may have read a half-copied
    offset: start reports it and stays unfinished, and can be repeated once the member is gone."""
    commit = Coordinators.commit

    def join_and_commit(self: Coordinators, *args: Any) -> Any:
        monkeypatch.undo()
        zk.create(paths.consumer_id("g", "g_a"), '{"subscription":{"t":1}}', ephemeral=True)
        return commit(self, *args)

    monkeypatch.setattr(Coordinators, "commit", join_and_commit)
    with pytest.raises(MigrationError, match="joined during this step"):
        migration.start(store_that_counts=NEWEST_COUNTS)
    assert state_of(migration.journal()) is State.COPYING
    with pytest.raises(MigrationError, match="interrupted"):
        migration.verify()
    zk.delete(paths.consumer_id("g", "g_a"))
    monkeypatch.undo()
    migration.start(store_that_counts=NEWEST_COUNTS)
    assert migration.verify().is_verified


def test_an_unreachable_coordinator_is_a_reason(
    cluster: StoreCluster, migration: OffsetMigration
) -> None:
    """plan reports it instead of failing, and start refuses."""
    cluster.coordinator_code = ConsumerCoordinatorNotAvailable.code
    plan = migration.plan()
    assert any("coordinator" in refusal for refusal in plan.refusals)
    with pytest.raises(MigrationError, match="coordinator"):
        migration.start(store_that_counts=NEWEST_COUNTS)
    assert migration.journal() is None


def test_a_partition_that_never_had_a_leader_is_not_requested(
    zk: ZkClient, cluster: StoreCluster, migration: OffsetMigration
) -> None:
    """Brokers do not know it, and another topic's does not concern the group. A partition with an
    offset of the group is named."""
    zk.create(paths.topic("ghost"), nodes.encode_assignment({0: (9,)}))
    assert migration.plan(store_that_counts=NEWEST_COUNTS).is_allowed
    assert cluster.asked
    assert not any("ghost" in str(request) for request in cluster.asked)
    GroupStore(zk).commit_offsets("g", {TopicPartition("ghost", 0): 5})
    [refusal] = migration.plan(store_that_counts=NEWEST_COUNTS).refusals
    assert refusal.startswith("[ghost,0]")
    assert "it has not had a leader yet; see kafka08 topic describe" in refusal


def test_an_unknown_partition_is_named(cluster: StoreCluster, migration: OffsetMigration) -> None:
    """The error names a partition that a broker does not learn of in time."""
    cluster.refuse(TPS[2], *[3] * 1000)
    [refusal] = migration.plan().refusals
    assert "the coordinator of group g does not know [t,2] yet" in refusal


def test_rollback_works_without_a_leader(
    zk: ZkClient, cluster: StoreCluster, migration: OffsetMigration
) -> None:
    """While members commit to ZooKeeper too, partitions that Kafka cannot return stay as they are,
    and are reported where Kafka has more. From Kafka alone the rollback is refused."""
    migration.start(store_that_counts=NEWEST_COUNTS)
    cluster.unled.update(TPS)
    cluster.committed[TPS[1]] = 26
    done = migration.rollback()
    assert [problem[:5] for problem in done.problems] == ["[t,1]"]
    assert in_zookeeper(zk) == NEWEST
    assert state_of(migration.journal()) is State.ROLLED_BACK
    cluster.unled.clear()
    migration.start(store_that_counts=NEWEST_COUNTS)
    migration.verify()
    migration.finish()
    cluster.committed[TPS[1]] = 27
    cluster.unled.update(TPS)
    with pytest.raises(MigrationError, match=r"\[t,1\]: the start and end of its log"):
        migration.rollback()


def test_an_unreadable_registration_is_a_foreign_member(
    zk: ZkClient, migration: OffsetMigration
) -> None:
    """It counts as a live member."""
    zk.create(paths.consumer_id("g", "g_odd"), "garbage", ephemeral=True)
    [member] = migration.status().members
    assert (member.consumer_id, member.is_ours) == ("g_odd", False)


def test_offsets_that_move_without_an_owner_are_a_reason(
    zk: ZkClient, cluster: StoreCluster, migration: OffsetMigration
) -> None:
    """A program that is no registered member commits them, and would not follow any order."""
    sleep = cluster.clock.sleep

    def commit_and_sleep(seconds: float) -> None:
        GroupStore(zk).commit_offsets("g", {TPS[1]: 21})
        sleep(seconds)

    cluster.clock.sleep = commit_and_sleep  # type: ignore[method-assign]
    [refusal] = migration.plan(store_that_counts=NEWEST_COUNTS).refusals
    assert "[t,1] has no owner" in refusal


def own(zk: ZkClient, tp: TopicPartition) -> None:
    """A live member that is not ours owns the partition."""
    zk.create(paths.consumer_id("g", "g_jvm"), '{"subscription":{"t":1}}', ephemeral=True)
    zk.create(paths.owner("g", *tp), "g_jvm-0", ephemeral=True)


@pytest.mark.parametrize("store", ["kafka", "both"])
def test_a_foreign_owner_is_trusted_when_its_commits_are_seen(
    zk: ZkClient, cluster: StoreCluster, migration: OffsetMigration, store: str
) -> None:
    """Kafka is ahead of ZooKeeper: start refuses while Kafka rests, and not if Kafka advances at a
    second look, or ZooKeeper follows, as with a member that commits to both."""
    del cluster.committed[TPS[2]]
    own(zk, TPS[1])
    [refusal] = migration.plan().refusals
    assert "[t,1]: ZooKeeper has 20, Kafka 25: nothing shows which" in refusal
    sleep = cluster.clock.sleep

    def commit_and_sleep(seconds: float) -> None:
        if store == "kafka":
            cluster.committed[TPS[1]] += 1
        else:
            GroupStore(zk).commit_offsets("g", {TPS[1]: 25})
        sleep(seconds)

    cluster.clock.sleep = commit_and_sleep  # type: ignore[method-assign]
    assert migration.plan().is_allowed


@pytest.mark.parametrize("is_owned", [True, False])
def test_rollback_does_not_raise_what_nobody_has_consumed(
    zk: ZkClient, migration: OffsetMigration, monkeypatch: pytest.MonkeyPatch, is_owned: bool
) -> None:
    """A JVM member that commits to ZooKeeper is at 20; Kafka's 25 is from before the migration and
    would make it skip five messages. Nor without an owner: nobody has consumed up to 25."""
    monkeypatch.setattr("kafka08.migration.starting.raise_in_zookeeper", lambda *_: {})
    migration.start(store_that_counts=NEWEST_COUNTS)
    if is_owned:
        own(zk, TPS[1])
    assert migration.rollback().to_zookeeper == {}
    assert in_zookeeper(zk) == IN_ZOOKEEPER


def steps(to: Literal["newest", "snapshot"]) -> list[Callable[[OffsetMigration], object]]:
    return [
        lambda migration: migration.start(store_that_counts=NEWEST_COUNTS),
        OffsetMigration.verify,
        OffsetMigration.finish,
        lambda migration: migration.rollback(to),
    ]


@pytest.mark.parametrize("to", ["newest", "snapshot"])
def test_interrupted_at_every_write_and_repeated(
    zk: ZkClient,
    cluster: StoreCluster,
    zk_connect: str,
    monkeypatch: pytest.MonkeyPatch,
    to: Literal["newest", "snapshot"],
) -> None:
    """After a kill before or after the n-th write, for every n, repeating the interrupted step ends
    like an undisturbed migration, and no offset goes back on the way to Kafka."""
    killer = Killer(monkeypatch)
    outcomes = set()
    for round_ in range(1, 60):
        killer.spare()
        zk.delete_recursive(paths.MIGRATIONS)
        zk.delete_recursive(paths.offsets("g"))
        GroupStore(zk).commit_offsets("g", IN_ZOOKEEPER)
        cluster.committed = dict(IN_KAFKA)
        killer.kill_at(round_)
        killed = 0
        for step in steps(to):
            for _ in range(2):
                try:
                    with connected(cluster, zk_connect) as migration:
                        step(migration)
                    break
                except Killed:
                    killed += 1
                    assert all(cluster.committed[tp] >= o for tp, o in IN_KAFKA.items())
        outcomes.add((tuple(sorted(cluster.committed.items())), tuple(in_zookeeper(zk).items())))
        assert state_of(Journal(zk, "g").read_entry()) is State.ROLLED_BACK
        if not killed:
            break
    assert not killed, "every write has had its turn"
    assert round_ > 10
    assert len(outcomes) == 1


def test_a_start_interrupted_at_every_write_and_rolled_back(
    zk: ZkClient, cluster: StoreCluster, zk_connect: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rollback, which sends an order to live members, creates the znode for their
    acknowledgements. (A `start` killed before that used to leave a live group that could not be
    rolled back.)"""
    killer = Killer(monkeypatch)
    for round_ in range(1, 60):
        killer.spare()
        zk.delete_recursive(paths.MIGRATIONS)
        killer.kill_at(round_)
        with connected(cluster, zk_connect) as migration:
            try:
                migration.start(store_that_counts=NEWEST_COUNTS)
                break
            except Killed:
                killer.spare()
            if migration.journal() is None:
                continue
            migration.rollback()
            assert zk.exists(paths.migration_members("g"))
    assert round_ > 5, "every write has had its turn"
