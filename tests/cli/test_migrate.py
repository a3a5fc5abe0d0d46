"""`kafka08 migrate`: refusals, and their texts."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kafka08.structs import TopicPartition
from kafka08.zk import paths
from kafka08.zk.group_store import GroupStore
from tests.cli.conftest import Commands, Inspector


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("plan", "nobody"), 1, "no store has an offset of it"),
        (("start", "nobody"), 1, "no store has an offset of it"),
        (("verify", "nobody"), 1, "the migration of nobody has not begun; start it first"),
        (("rollback", "nobody"), 1, "the migration of nobody has not begun; start it first"),
        (("forget", "nobody"), 1, "the migration of nobody has not begun; start it first"),
        (("start", "../.."), 2, "group.id: '../..' cannot be the name of a group"),
        (("start", "g", "--max-disagreement", "-1"), 2, "--max-disagreement"),
        (("rollback", "g", "--to", "x"), 2, "'x' is not one of 'newest', 'snapshot'"),
        (("plan", "g", "--bootstrap", "h"), 2, "'h' is not of the form host:port"),
        (("plan", "g", "--zookeeper", "h:x"), 2, "the port must be a number"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else None,
)
def test_refusals(
    kafka08: Commands, inspect: Inspector, arguments: tuple[str, ...], code: int, said: str
) -> None:
    """A state that may change gives 1, misuse 2. No journal is written."""
    done = kafka08.refused("migrate", *arguments)
    assert code == done.code
    assert said in done.err
    assert "nobody" not in inspect.zk.children_or_empty("/kafka08/migrations")


def test_a_refused_zookeeper_is_said_at_once(kafka08: Commands) -> None:
    """None that is being started is waited for."""
    done = kafka08.refused("migrate", "status", "g", "--zookeeper", "127.0.0.1:1")
    assert "127.0.0.1:1 (127.0.0.1:1: connection refused)" in done.err


def test_a_refusal_prints_no_counts(kafka08: Commands) -> None:
    """After a refusal no counts are printed, as if something had been copied."""
    assert "Copied" not in kafka08.refused("migrate", "start", "nobody").err


def test_finish_accepts_an_idle_member_on_request(kafka08: Commands, inspect: Inspector) -> None:
    """With --allow-idle `finish` accepts an idle member of another program, whose offsets never
    show where it commits."""
    topic = group = inspect.create_topic("idle-by-cli")
    GroupStore(inspect.store.zk).commit_offsets(group, {TopicPartition(topic, 0): 0})
    kafka08("migrate", "start", group)
    kafka08("migrate", "verify", group)
    registration = f'{{"version":1,"subscription":{{"{topic}":1}}}}'
    inspect.zk.create(paths.consumer_id(group, f"{group}_m"), registration, ephemeral=True)
    inspect.zk.create(paths.owner(group, topic, 0), f"{group}_m-0", ephemeral=True)
    refused = kafka08.refused("migrate", "finish", group, "--seconds", "0.1")
    assert refused.code == 1
    assert "it is not proven what its owner does" in refused.err
    assert kafka08.refused("migrate", "finish", group, "--seconds", "0.1", "--allow-idle").code == 0


def test_results_for_machines(kafka08: Commands, inspect: Inspector) -> None:
    """plan has the seconds for which Kafka keeps offsets, rollback the numbers that it wrote, and
    forget leaves nothing."""
    group = inspect.create_topic("migrated-by-cli", 2)
    tps = [TopicPartition(group, number) for number in range(2)]
    GroupStore(inspect.store.zk).commit_offsets(group, {tps[0]: 0, tps[1]: 0})
    kafka08("migrate", "start", group)
    inspect.zk.delete(paths.offset(group, *tps[1]))
    planned = json.loads(kafka08("migrate", "plan", group, "--json").out)
    assert [True] * 2 == [86_000 < p["time_left"] <= 86_400 for p in planned["partitions"]]
    rolled_back = json.loads(kafka08("migrate", "rollback", group, "--json").out)
    assert rolled_back == {
        "group": group,
        "written": [{"store": "zookeeper", "topic": group, "partition": 1, "offset": 0}],
        "removed": [],
        "problems": [],
    }
    kafka08("migrate", "forget", group)
    assert not inspect.zk.exists(paths.migration(group))


def test_each_group_of_a_pattern_has_its_report(
    kafka08: Commands, inspect: Inspector, tmp_path: Path
) -> None:
    """The groups that one pattern matches are several: the last one's report must not be all that
    is left."""
    topic = inspect.create_topic("verified-with-reports")
    groups = ["reported-a", "reported-b"]
    for group in groups:
        GroupStore(inspect.store.zk).commit_offsets(group, {TopicPartition(topic, 0): 0})
    kafka08("migrate", "start", *groups)
    kafka08.refused("migrate", "verify", "--match", "reported-?", "--report", tmp_path / "r")
    written = sorted(path.name for path in tmp_path.iterdir())
    assert [f"r-{group}.{kind}" for group in groups for kind in ("json", "md")] == written


def test_a_dry_run_changes_nothing(kafka08: Commands, inspect: Inspector) -> None:
    """Each step with --dry-run prints what it would do, refuses what it would refuse, and leaves
    journal and offsets unchanged."""
    topic = group = inspect.create_topic("dry-by-cli")
    GroupStore(inspect.store.zk).commit_offsets(group, {TopicPartition(topic, 0): 0})
    dry = ("--dry-run", group)

    def journal() -> str | None:
        node = inspect.zk.get_or_none(paths.migration(group))
        return None if node is None else node.data

    assert kafka08("migrate", "start", *dry).out
    assert journal() is None
    for step in ("finish", "rollback", "forget", "mirror"):
        refused = kafka08.refused("migrate", step, *dry)
        assert (1, True) == (refused.code, "start it first" in refused.err), step
    kafka08("migrate", "start", group)
    begun = journal()
    assert "Would copy 0 offsets" in kafka08("migrate", "mirror", *dry).err
    assert "would write 0 offsets to ZooKeeper" in kafka08("migrate", "rollback", *dry).err
    GroupStore(inspect.store.zk).commit_offsets(group, {TopicPartition(topic, 0): 1})
    back = kafka08("migrate", "rollback", *dry, "--to", "snapshot", "--json")
    assert [0] == [row["offset"] for row in json.loads(back.out)["written"]]
    assert {0: 1} == inspect.committed(group)
    GroupStore(inspect.store.zk).commit_offsets(group, {TopicPartition(topic, 0): 0})
    assert begun == journal()
    kafka08("migrate", "verify", group)
    verified = journal()
    assert "would commit to Kafka alone" in kafka08("migrate", "finish", *dry).err
    assert verified == journal()
    kafka08("migrate", "rollback", group)
    done = journal()
    assert "would be forgotten" in kafka08("migrate", "forget", *dry).err
    assert done == journal()
    assert json.loads(kafka08("migrate", "forget", group, "--json").out) == {
        "group": group,
        "forgotten": "rolled back",
    }


def test_an_address_on_the_command_line_drops_the_other_one_of_the_environment(
    kafka08: Commands, monkeypatch: pytest.MonkeyPatch
) -> None:
    """KAFKA08_BOOTSTRAP may be that of another cluster: with --zookeeper it is not used. Here
    nothing listens there, and it is refused where it is used."""
    zookeeper = kafka08.environ["KAFKA08_ZOOKEEPER"]
    monkeypatch.setitem(kafka08.environ, "KAFKA08_BOOTSTRAP", "h")
    named = kafka08.refused("migrate", "plan", "nobody", "--zookeeper", zookeeper)
    assert (named.code, "no store has an offset of it" in named.err) == (1, True)
    assert "'h' is not of the form host:port" in kafka08.refused("migrate", "plan", "nobody").err


@pytest.mark.parametrize("verb", ["start", "verify", "finish", "rollback", "forget"])
def test_a_refusal_for_machines(kafka08: Commands, verb: str) -> None:
    """With --json there is one object per group, also for one that is refused."""
    done = kafka08.refused("migrate", verb, "nobody", "--json")
    assert done.code == 1
    found = json.loads(done.out)
    assert found["group"] == "nobody"
    assert found["error"] in done.err
