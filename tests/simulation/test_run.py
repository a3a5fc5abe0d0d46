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
from kafka08.simulation import final_logs
from kafka08.simulation.cluster import LOG_DIRECTORY
from kafka08.simulation.plan import Fault, draw_plan, with_faults
from kafka08.simulation.run import Run, simulate
from kafka08.simulation.trace import Trace, folded
from kafka08.simulation.workload import TOPIC

SEEDS = [1, 5]
"""Any change of the code changes all runs, so a seed that once found a defect repeats nothing: what
a run found is a scripted history in this folder. `scripts/simulate` draws new seeds."""


@pytest.mark.parametrize("seed", SEEDS)
def test_a_run_breaks_no_rule(seed: int) -> None:
    """The cluster of this seed keeps its promises under its faults, and recovers after them."""
    assert simulate(seed).verdict is None


@pytest.mark.parametrize("seed", [13])
def test_a_run_under_the_classic_profile_comes_right(seed: int) -> None:
    """A cluster under the classic profile may lose messages, but recovers after its faults."""
    assert simulate(seed, profile=CLASSIC).verdict is None


@pytest.mark.parametrize(
    ("kind", "seen"),
    [
        (Fault.ISR, {"is suspended; ISRs are changed", "a state"}),
        (Fault.OUTAGE, {"ZooKeeper stops for", "ZooKeeper starts", "> zookeeper", "end of cut"}),
        (Fault.BLACKOUT, {"all brokers without power", "everything without power", "starts"}),
        (Fault.REFUSE, {"refused: ", "accepted: "}),
        (Fault.ROLL, {"when it begins a segment", ".1 loses power", "starts"}),
    ],
)
def test_faults_of_whole_clusters(kind: Fault, seen: set[str]) -> None:
    """Clusters recover from faults that take more than one step or process, and a few runs have all
    forms of such a fault."""
    lines: list[str] = []
    for seed in range(1, 4):
        plan = replace(draw_plan(seed, SAFE), brokers=3, replication_factor=2, faults_seconds=60.0)
        properties = {**plan.broker_properties, "log.segment.bytes": "4096"}
        plan = replace(plan, pause_seconds=0.2, members=1, broker_properties=properties)
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
    monkeypatch.setattr(final_logs, "assignment_of", lambda *_: {0: (1, 2)})
    run.brokers[0].disk.make_directories(LOG_DIRECTORY / f"{TOPIC}-0")
    found = final_logs.differing_logs(
        run.zookeeper, run.brokers, run.target.partitions, is_safe=True
    )
    assert found == "broker-2 lacks the log of [t,0]"


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


@pytest.mark.parametrize("hash_seed", ["1"])
def test_a_seed_means_one_run(hash_seed: str) -> None:
    """A run has the same hash in another process whose hashes of texts differ, and whose rules of
    replicas are not compiled."""
    seed = SEEDS[0]
    program = f"from kafka08.simulation.run import simulate; print(simulate({seed}).digest)"
    assert simulate(seed).digest == output_of(program, hash_seed, KAFKA08_RULES="source")


@pytest.mark.parametrize("seed", [12104335])
def test_a_seed_means_one_run_of_consumers_with_a_coordinator(seed: int) -> None:
    """So has a run whose members are KafkaConsumers, with and without compiled rules of replicas.
    The order of paused partitions, and the addresses of sets of messages, made two of it."""
    level = LEVELS[seed % len(LEVELS)]
    program = (
        "from kafka08.simulation.plan import draw_plan, with_coordinator; "
        "from kafka08.simulation.run import simulate; "
        f"plan = with_coordinator(draw_plan({seed}, {SAFE!r}), {level!r}); "
        f"print(simulate({seed}, plan=plan).digest)"
    )
    assert output_of(program, "1") == output_of(program, "2", KAFKA08_RULES="source")


def output_of(program: str, hash_seed: str = "0", **environ: str) -> str:
    """The output of a program in a process of its own."""
    result = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "PYTHONHASHSEED": hash_seed, **environ},
        capture_output=True,
        text=True,
        check=True,
    )
    return result.stdout.strip()


def test_repeated_lines_of_a_story_are_folded() -> None:
    """A line that is one of the few before it is counted, and its last time kept; other lines stay
    in their order."""
    lines = [
        f"{time:10.4f}  {text}"
        for time, text in [(1, "ISR 1"), (2, "ISR 1, 2"), (3, "ISR 1"), (4, "kill"), (5, "ISR 1")]
    ]
    assert folded(lines) == [
        "    1.0000  ISR 1 (3 times, the last at 5.0000)",
        "    2.0000  ISR 1, 2",
        "    4.0000  kill",
    ]
    apart = [lines[0], *(f"{time:10.4f}  {time}" for time in range(5)), lines[0]]
    assert folded(apart) == apart


def test_a_line_of_a_story_has_a_long_name_once() -> None:
    """Names as long as a broker takes would hide what happened."""
    trace = Trace()
    trace.event(1.0, f"topic {'s' * 249} is gone")
    assert [*trace.lines] == ["    1.0000  topic s... is gone"]
