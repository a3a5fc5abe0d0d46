"""`kafka08 partition`: errors name files and topics that cannot be used."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from kafka08.admin.moves import (
    ELECTIONS_FORM,
    PLAN_FORM,
    TOPICS_FORM,
    format_moves,
    parse_elections,
    parse_moves,
    parse_topics,
)
from kafka08.structs import Broker, LeaderAndIsr, TopicPartition
from kafka08.zk import nodes, paths
from kafka08.zk.store import ClusterStore
from tests.cli.conftest import Commands, Inspector


@pytest.mark.parametrize(
    "arguments",
    [("reassign", "--plan"), ("reassign", "--brokers", "1", "--topics-file"), ("elect", "--file")],
    ids=lambda arguments: arguments[-1],
)
def test_a_file_that_is_no_text_is_named(
    kafka08: Commands, tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    """The error has the file that is no text, for example a compressed plan."""
    file = tmp_path / "plan.json.gz"
    file.write_bytes(b"\x1f\x8b\x08")
    done = kafka08.refused("partition", *arguments, file)
    assert 1 == done.code
    assert f"Error: {file} is not UTF-8 text; give the JSON file" in done.err


@pytest.mark.parametrize(
    "text",
    ["[]", '{"a":1}', "{", '{"topics":1,"partitions":[5]}', "[" * 100_000],
    ids=lambda t: t[:9],
)
@pytest.mark.parametrize(
    ("arguments", "form"),
    [
        (("reassign", "--plan"), PLAN_FORM),
        (("reassign", "--brokers", "1", "--topics-file"), TOPICS_FORM),
        (("elect", "--file"), ELECTIONS_FORM),
    ],
    ids=lambda value: value[-1] if isinstance(value, tuple) else "",
)
def test_a_file_of_another_form_is_named_with_the_right_one(
    kafka08: Commands, tmp_path: Path, arguments: tuple[str, ...], form: str, text: str
) -> None:
    """The error shows the right form, in no terms of Python, also for a file without partitions."""
    file = tmp_path / "plan.json"
    file.write_text(text)
    done = kafka08.refused("partition", *arguments, file)
    assert 1 == done.code
    assert f"Error: {file}: " in done.err
    assert f" is {form}\n" in done.err


def test_the_forms_can_be_read() -> None:
    """Each form is parsed by the reader that names it."""
    tp = TopicPartition("pages", 0)
    assert {tp: (1, 2)} == parse_moves(PLAN_FORM)
    assert [tp] == parse_elections(ELECTIONS_FORM)
    assert ["pages"] == parse_topics(TOPICS_FORM)


def test_brokers_that_are_not_there_get_no_partitions(
    kafka08: Commands, inspect: Inspector, tmp_path: Path
) -> None:
    """A plan for unknown brokers is shown with a warning, for brokers that are typed it is not even
    made. --execute refuses it, as the controller would."""
    topic = inspect.create_topic("to-nobody")
    plan = tmp_path / "plan.json"
    plan.write_text(format_moves({TopicPartition(topic, 0): (9,)}))
    for made in (("--plan", plan), ("--topic", topic, "--brokers", 9)):
        says = f"broker 9 of [{topic},0] is not registered; registered are"
        shown = kafka08.refused("partition", "reassign", *made)
        assert (made[0] == "--topic") == shown.code
        assert says in shown.err
        refused = kafka08.refused("partition", "reassign", *made, "--execute")
        assert (1, b"") == (refused.code, refused.out)
        assert f"Error: broker 9 of [{topic},0] is not registered" in refused.err
    assert not inspect.zk.exists(paths.REASSIGN_PARTITIONS)


def test_a_plan_for_a_missing_partition_is_refused(
    kafka08: Commands, inspect: Inspector, tmp_path: Path
) -> None:
    """A plan that names a partition which does not exist is an error before anything is shown, with
    or without --execute. To --verify it is a move that failed."""
    topic = inspect.create_topic("to-move")
    plan = tmp_path / "plan.json"
    plan.write_text(format_moves({TopicPartition(topic, 7): (0,)}))
    for more in ((), ("--execute",)):
        refused = kafka08.refused("partition", "reassign", "--plan", plan, *more)
        assert (1, b"") == (refused.code, refused.out)
        assert f"Error: There is no partition [{topic},7]\nTry: list the" in refused.err
    verified = kafka08.refused("partition", "reassign", "--plan", plan, "--verify")
    assert (1, True) == (verified.code, b"failed" in verified.out)


def test_a_move_that_is_refused_is_not_reported_as_executed(
    kafka08: Commands, lifeless: ClusterStore, tmp_path: Path
) -> None:
    """While another move is in progress, --execute --json fails, and stdout has no plan that was
    executed, but the error."""
    lifeless.register_broker(Broker(1, "h", 9092), timestamp_ms=0)
    lifeless.create_topic("t", {0: [1]}, {})
    plan = tmp_path / "plan.json"
    plan.write_text(format_moves({TopicPartition("t", 0): (1,)}))
    at = ("--zookeeper", f"{lifeless.zk.hosts}{lifeless.zk.chroot}")
    arguments = ("partition", "reassign", "--plan", plan, "--json", "--execute", *at)
    assert json.loads(kafka08.refused(*arguments).out)["executed"]
    done = kafka08.refused(*arguments)
    assert (1, {"error", "advice"}) == (done.code, json.loads(done.out).keys())
    assert "A partition reassignment is in progress" in json.loads(done.out)["error"]
    assert json.loads(done.out)["error"] in done.err


def test_a_move_is_cancelled_by_its_request(kafka08: Commands, lifeless: ClusterStore) -> None:
    """Shown first. Then the request has the replicas that the partition keeps, and the controller,
    which does not look at it again, is replaced: both or neither."""
    lifeless.register_broker(Broker(1, "h", 9092), timestamp_ms=0)
    lifeless.create_topic("t", {0: [3, 1]}, {})
    state = nodes.encode_leader_and_isr(LeaderAndIsr(1, 0, (1,), 0, 1))
    lifeless.zk.create(paths.partition_state("t", 0), state)
    lifeless.zk.create(paths.REASSIGN_PARTITIONS, format_moves({TopicPartition("t", 0): (3,)}))
    lifeless.zk.create(paths.CONTROLLER, '{"version":1,"brokerid":1,"timestamp":"1"}')
    at = ("--cancel", "--json", "--zookeeper", f"{lifeless.zk.hosts}{lifeless.zk.chroot}")
    for more in ((), ("--execute",)):
        done = kafka08.refused("partition", "reassign", *at, *more)
        shown = json.loads(done.out)
        assert (0, bool(more)) == (done.code, shown["executed"])
        assert shown["proposed"]["partitions"][0]["replicas"] == [1]
        assert lifeless.reassignments() == {TopicPartition("t", 0): (1,) if more else (3,)}
        assert lifeless.zk.exists(paths.CONTROLLER) == (not more)
    lifeless.zk.delete(paths.REASSIGN_PARTITIONS)
    done = kafka08.refused("partition", "reassign", *at)
    assert (1, True) == (done.code, "No partition reassignment is in progress" in done.err)


def test_a_wait_names_the_broker_that_blocks(
    kafka08: Commands, lifeless: ClusterStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The target dies while it is waited for, and comes back: it was silent for ever."""
    for broker_id in (1, 2):
        lifeless.register_broker(Broker(broker_id, "h", 9092), timestamp_ms=0)
    lifeless.create_topic("t", {0: [1]}, {})
    steps: list[Callable[[], object]] = [
        lambda: lifeless.zk.delete(paths.broker(2)),
        lambda: lifeless.register_broker(Broker(2, "h", 9092), timestamp_ms=0),
        lambda: lifeless.zk.set(paths.topic("t"), nodes.encode_assignment({0: (2,)})),
        lambda: lifeless.zk.delete(paths.REASSIGN_PARTITIONS),
    ]
    clock = SimpleNamespace(sleep=lambda _: steps.pop(0)())
    monkeypatch.setattr("kafka08.cli.partition.time", clock)
    plan = tmp_path / "plan.json"
    plan.write_text(format_moves({TopicPartition("t", 0): (2,)}))
    at = ("--zookeeper", f"{lifeless.zk.hosts}{lifeless.zk.chroot}")
    done = kafka08.refused("partition", "reassign", "--plan", plan, "--execute", "--wait", *at)
    said = [line for line in done.err.splitlines() if line.startswith(("Waiting", "0 of", "1 of"))]
    assert [
        "0 of 1 partitions moved",
        "Waiting: broker 2 of [t,0] is not registered; registered are 1",
        "Waiting: all brokers are registered again",
        "1 of 1 partitions moved",
    ] == said
    assert 0 == done.code


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--cancel", "--topic", "t", "--brokers", "1"), "--cancel goes with --plan"),
        (("--cancel", "--verify", "--plan", "plan.json"), "--cancel goes with --plan"),
        (("--plan", "plan.json", "--topic", "t", "--execute"), "Give either --plan, or --brokers"),
        (("--plan", "plan.json", "--topics-file", "plan.json"), "Give either --plan, or --brokers"),
        (("--plan", "plan.json", "--wait", "--json"), "--wait needs --execute."),
        (("--plan", "plan.json", "--verify", "--wait"), "--wait needs --execute."),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_an_option_is_not_ignored(
    kafka08: Commands,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    arguments: tuple[str, ...],
    said: str,
) -> None:
    """A plan moves all its partitions, so --topic with it would move more than was asked for."""
    monkeypatch.chdir(tmp_path)
    Path("plan.json").write_text(PLAN_FORM)
    done = kafka08.refused("partition", "reassign", *arguments)
    assert (2, b"") == (done.code, done.out)
    assert said in done.err


def test_a_topic_that_cannot_be_is_refused(kafka08: Commands) -> None:
    """An illegal topic name is refused before a request to ZooKeeper."""
    done = kafka08.refused("partition", "reassign", "--topic", "..", "--brokers", "1")
    assert 2 == done.code
    assert 'topic name cannot be "." or ".."' in done.err


def test_a_dry_election_asks_for_nothing(kafka08: Commands, inspect: Inspector) -> None:
    """A dry run prints the count and requests no election. A missing partition is still an
    error."""
    topic = inspect.create_topic("dry-election", 3)
    names = [f"--partition={topic}:{number}" for number in range(3)]
    done = kafka08("partition", "elect", *names, "--dry-run", "--json")
    assert {"partitions": 3, "dry_run": True} == json.loads(done.out)
    assert not inspect.zk.exists(paths.PREFERRED_ELECTION)
    absent = kafka08.refused("partition", "elect", f"--partition={topic}:9", "--dry-run")
    assert (1, True) == (absent.code, "There is no partition" in absent.err)
