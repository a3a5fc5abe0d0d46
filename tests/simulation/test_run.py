"""Whole runs: fixed seeds, and what makes a seed worth something."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import replace

import pytest

from kafka08.cli.simulate import LEVELS
from kafka08.profile import CLASSIC, SAFE
from kafka08.simulation import run as run_module
from kafka08.simulation.cluster import LOG_DIRECTORY
from kafka08.simulation.network import NetworkSettings
from kafka08.simulation.plan import Fault, draw_plan, with_faults
from kafka08.simulation.run import Run, Violation, simulate
from kafka08.simulation.trace import Trace
from kafka08.simulation.workload import TOPIC

SEEDS = [1, 5, 9, 13, 17, 18, 2080]
FOUND = [
    (110, SAFE),  # A partition that refuses a follower does not hold up the others
    (144, SAFE),  # A delete that a disk error interrupts leaves no log without its first messages
    (3000237, SAFE),  # The last read waits for the HW of a new leader
    (3000436, SAFE),  # A log may be extended during the last reads
    (9600646, SAFE),  # One log was extended while another was read for the last time
    (4000651, SAFE),  # A request of the controller over a connection that it has given up
    (4000025, SAFE),  # A member without a position commits nothing, so not offset 0 either
    (8350240, SAFE),  # A leader lost its last messages, and was back before anybody noticed
    (8600362, SAFE),  # A leader was replaced and elected again, and its follower heard of neither
    (8700095, CLASSIC),  # A broker heard of its successor while two leaderships waited
    (9002018, SAFE),  # A commit arrived after those of the next owner, when the network was back
    (31412, SAFE),  # A follower truncated for a leader that had been replaced long before
    (8910647, SAFE),  # A former leader, which was suspended, reset a group's position
    (11100215, SAFE),  # A former coordinator, without a session, told a member an old offset
    (8001174, SAFE),  # A request for a controlled shutdown does not outlive its broker's process
    (8001079, CLASSIC),  # A fault at a write in the moment of the repair does not happen
    (3000453, SAFE),  # A commit that was not acknowledged may be read later, and then be overtaken
]


@pytest.mark.parametrize("seed", SEEDS)
def test_a_run_breaks_no_rule(seed: int) -> None:
    """The cluster of this seed keeps its promises under its faults, and recovers after them."""
    assert simulate(seed).verdict is None


@pytest.mark.parametrize("seed", [5, 13])
def test_a_run_under_the_classic_profile_comes_right(seed: int) -> None:
    """A cluster under the classic profile may lose messages, but recovers after its faults."""
    assert simulate(seed, profile=CLASSIC).verdict is None


@pytest.mark.parametrize(("seed", "profile"), FOUND, ids=str)
def test_seeds_that_found_defects_pass(seed: int, profile: str) -> None:
    """A seed that found a defect of this project breaks no rule since the defect was mended."""
    assert simulate(seed, profile=profile).verdict is None


FOUND_BY_TOPICS = [
    (10101153, SAFE, ""),  # A topic was deleted while a broker's session was over
    (10101083, CLASSIC, ""),  # The same, elsewhere
    (210, SAFE, "topic,kill,cut,late,session"),  # A kill forgot that a truncation was not synced
    (113, SAFE, "topic,kill,expire"),  # A power failure brought a deleted log back
    (122, SAFE, "topic,kill,expire"),  # A controller ended between the znodes of a deleted topic
    (15185, SAFE, ""),  # A controlled shutdown made a replica lead that was already deleted
    (13104693, CLASSIC, ""),  # The last write of a deletion, sent again, deleted a new topic
    # A response to a deletion, from before the broker's failure, counted for the next start
    (2636, CLASSIC, "topic,kill,expire,cut,ensemble,isr"),
]


@pytest.mark.parametrize(("seed", "profile", "kinds"), FOUND_BY_TOPICS, ids=str)
def test_seeds_with_changes_of_topics_pass(seed: int, profile: str, kinds: str) -> None:
    """So does one that found a defect while topics were created, extended and deleted."""
    plan = draw_plan(seed, profile)
    if kinds:
        plan = with_faults(plan, seed, [Fault[kind.upper()] for kind in kinds.split(",")])
    assert simulate(seed, profile=profile, plan=plan).verdict is None


def test_brokers_stop_when_late_requests_are_appended() -> None:
    """The run stops its brokers only when their logs have stopped growing: an async producer with
    acks 0 fills the buffers of a broker that syncs each message, and a follower that stopped before
    their end would have a shorter log."""
    plan = with_faults(draw_plan(112, SAFE), 112, [Fault.SUSPEND, Fault.ELECT, Fault.KILL])
    assert simulate(112, plan=replace(plan, replication_factor=2)).verdict is None


@pytest.mark.parametrize(
    ("kind", "seen"),
    [
        (Fault.ISR, {"is suspended; ISRs are changed", "a state"}),
        (Fault.OUTAGE, {"ZooKeeper stops for", "ZooKeeper starts", "> zookeeper", "end of cut"}),
        (Fault.BLACKOUT, {"all brokers without power", "everything without power", "starts"}),
    ],
)
def test_faults_of_whole_clusters(kind: Fault, seen: set[str]) -> None:
    """Clusters recover from faults that concern several of their processes, and a few runs have
    all forms of such a fault."""
    lines: list[str] = []
    for seed in range(1, 4):
        plan = replace(draw_plan(seed, SAFE), brokers=3, replication_factor=2, faults_seconds=60.0)
        plan = replace(plan, pause_seconds=0.2, members=1)
        outcome = simulate(seed, plan=with_faults(plan, seed, [kind]), on_line=lines.append)
        assert outcome.verdict is None
    missing = {text for text in seen if not any(text in line for line in lines)}
    assert not missing


def test_the_story_has_controllers_elections_and_isrs() -> None:
    """The lines of a run also tell who became the controller, which leaders it elected, and how
    ISRs changed: without them a short story of faults does not explain a violation."""
    lines: list[str] = []
    plan = replace(draw_plan(1, SAFE), brokers=3, replication_factor=2, faults_seconds=30.0)
    simulate(1, plan=with_faults(plan, 1, [Fault.KILL]), on_line=lines.append)
    text = "\n".join(lines)
    assert re.search(r"broker-\d\.1 is the controller of epoch 1\n", text)
    assert re.search(r"\[t,\d\]: leader \d in epoch \d+, ISR \d, by broker-", text)
    assert re.search(r"\[t,\d\]: ISR \d, \d, by broker-", text)


def test_a_run_whose_director_never_wakes_up_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """A client that blocks for ever blocks the director too: that is a verdict, not a run without
    end, though checks and heartbeats go on."""
    run = Run(1, draw_plan(1, SAFE), Trace())
    monkeypatch.setattr(run, "_set_up", run.director.event().wait)
    assert run.go() == "the run has not ended after 10000 s"


def test_a_replica_without_a_log_breaks_a_rule(monkeypatch: pytest.MonkeyPatch) -> None:
    """The logs of a partition are equal only if each of its replicas has one."""
    run = Run(1, replace(draw_plan(1, SAFE), brokers=3, partitions=1), Trace())
    monkeypatch.setattr(run_module, "assignment_of", lambda *_: {0: (1, 2)})
    run.brokers[0].disk.make_directories(LOG_DIRECTORY / f"{TOPIC}-0")
    with pytest.raises(Violation, match=r"broker-2 lacks the log of \[t,0\]"):
        run._check_logs()


def test_a_run_leaves_no_objects() -> None:
    """Thousands of runs in one process need no more memory than one. This seed's greenlets leave
    further cycles when they are collected. The runs have a process of their own, since pytest keeps
    log records, and they keep tracebacks."""
    program = (
        "import gc; from kafka08.simulation.run import simulate; "
        "simulate(5000002); simulate(5000002, until=3.0); "
        "print(sum(type(kept).__name__ in {'Scheduler', 'SimTask'} for kept in gc.get_objects()))"
    )
    assert output_of(program) == "0"


def test_a_replica_that_was_only_stopped_follows_again() -> None:
    """A replica that was stopped but not deleted follows again when a move brings it back: the
    controller died between the two StopReplica requests of the move before."""
    plan = replace(
        draw_plan(31, SAFE),
        brokers=3,
        replication_factor=2,
        partitions=4,
        members=0,
        new_producers=1,
        old_producers=0,
        async_producers=0,
        network=NetworkSettings(),
        disorder=0.1,
        native_seconds=0.001,
        pause_seconds=0.2,
        faults_seconds=20.0,
    )
    assert simulate(31, plan=with_faults(plan, 31, [Fault.MOVE, Fault.LATE])).verdict is None


@pytest.mark.parametrize("hash_seed", ["1", "2"])
def test_a_seed_means_one_run(hash_seed: str) -> None:
    """A run has the same hash in another process whose hashes of texts differ."""
    seed = SEEDS[0]
    program = f"from kafka08.simulation.run import simulate; print(simulate({seed}).digest)"
    assert simulate(seed).digest == output_of(program, hash_seed)


@pytest.mark.parametrize("seed", [12104335, 13000010])
def test_a_seed_means_one_run_of_consumers_with_a_coordinator(seed: int) -> None:
    """So has a run whose members are KafkaConsumers. The order of paused partitions, and the
    addresses of sets of messages, made two of it."""
    level = LEVELS[seed % len(LEVELS)]
    program = (
        "from kafka08.simulation.plan import draw_plan, with_coordinator; "
        "from kafka08.simulation.run import simulate; "
        f"plan = with_coordinator(draw_plan({seed}, {SAFE!r}), {level!r}); "
        f"print(simulate({seed}, plan=plan).digest)"
    )
    assert output_of(program, "1") == output_of(program, "2")


def output_of(program: str, hash_seed: str = "0") -> str:
    """The output of a program in a process of its own."""
    result = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "PYTHONHASHSEED": hash_seed},
        capture_output=True,
        text=True,
        check=True,
    )
    return result.stdout.strip()
