"""`kafka08 simulate`: whole clusters in one process, run after run, each named by its seed."""

from __future__ import annotations

import logging
import os
import random
import time
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

import click

from kafka08.cli.echo import show
from kafka08.cli.options import DURATION, Whole, example, json_option
from kafka08.cli.table import show_json
from kafka08.profile import PROFILES, SAFE
from kafka08.simulation.plan import (
    Fault,
    Plan,
    draw_plan,
    with_coordinator,
    with_faults,
    with_record_batches,
)
from kafka08.simulation.run import Outcome
from kafka08.simulation.run import simulate as run_seed
from kafka08.simulation.shrink import Shrinker
from kafka08.simulation.timeline import Timeline

SEED_MAX = 1_000_000_000
SHRINK_S = 60.0
LEVELS = ("0.10.2", "0.9.0")
"""Those that have groups with a coordinator."""
RECORDS_SHARE = 0.3
"""The share of runs whose brokers are of level 0.11.0."""
KINDS = {kind.name.lower().replace("_", "-"): kind for kind in Fault}
NO_FAULTS = "none"
PLAN_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.command(epilog=example("kafka08 simulate --seed 7 --runs 20"))
@click.option("--seed", type=Whole(0), help="Seed of the first run; default: random.")
@click.option(
    "--runs",
    type=Whole(1),
    help="Number of runs, with consecutive seeds.",
)
@click.option(
    "--minutes",
    type=DURATION,
    help="Start runs for this long, instead of a number.",
)
@click.option(
    "--profile",
    type=click.Choice(PROFILES),
    show_default=SAFE,
    help="Profile of the cluster.",
)
@click.option(
    "--coordinated",
    is_flag=True,
    help="The members of the group are KafkaConsumers, on brokers of level 0.9.0 or 0.10.2.",
)
@click.option(
    "--faults",
    metavar="KIND,...",
    callback=lambda _context, _option, text: _kinds(text),
    help="Faults of these kinds alone, in every run: "
    f"{', '.join(sorted(KINDS))}; none: no faults. Default: drawn from the seed.",
)
@click.option(
    "--replay",
    "replayed",
    metavar="[FILE]",
    is_flag=False,
    flag_value="",
    callback=lambda context, option, text: text and PLAN_FILE.convert(text, option, context),
    help="Print all events, line by line; with FILE, of the run that --shrink wrote there.",
)
@click.option(
    "--shrink",
    is_flag=True,
    help="Reduce failing runs, and write the reduced plan to simulate-SEED.json.",
)
@click.option(
    "--plan",
    "plan_file",
    metavar="FILE",
    type=PLAN_FILE,
    help="Run the plan that --shrink wrote to FILE, without printing its events.",
)
@click.option(
    "--timeline",
    type=click.Path(dir_okay=False, writable=True, path_type=Path),
    help="Write the last failing run as an HTML page; without one, the last run.",
)
@json_option("A JSON object for each run.")
def simulate(
    seed: int | None,
    runs: int | None,
    minutes: float | None,
    profile: str | None,
    coordinated: bool,
    faults: list[str] | None,
    replayed: Path | str | None,
    shrink: bool,
    plan_file: Path | None,
    timeline: Path | None,
    as_json: bool,
) -> None:
    """Run brokers and clients on simulated time, network, disks and ZooKeeper.

    The seed decides everything that happens in a run: faults, delays, and the order of tasks. One
    line per run; a run that breaks a rule prints the rule, and the command that repeats the run.
    Exits 1 if there was one.
    """
    if replayed is not None and as_json:
        raise click.UsageError("Give only one of --replay and --json.")
    if replayed and plan_file is not None:
        raise click.UsageError("Give only one of --replay FILE and --plan FILE.")
    plan_file = Path(replayed) if replayed else plan_file
    if plan_file is not None and (
        coordinated or any(option is not None for option in (seed, runs, minutes, profile, faults))
    ):
        raise click.UsageError(
            "the file of a plan has its seed, profile, faults and members: leave out the other "
            "options"
        )
    profile = profile or SAFE
    if timeline is not None and not timeline.absolute().parent.is_dir():
        raise click.BadParameter(
            f"the directory {timeline.absolute().parent} does not exist", param_hint="--timeline"
        )
    # The logs of brokers about faults belong to the run, not to this command.
    logging.getLogger().setLevel(logging.CRITICAL + 1)
    given: Plan | None = None
    if plan_file is not None:
        seed, given = _read_plan(plan_file)
    count = failed = 0
    shown: tuple[int, Plan] | None = None
    for one in _seeds(seed, runs, minutes):
        plan = given or _draw(one, profile, faults, coordinated=coordinated)
        outcome = run_seed(one, plan=plan, on_line=None if replayed is None else show)
        count += 1
        failed += outcome.verdict is not None
        if as_json:
            show_json(asdict(outcome))
        else:
            options = [
                f"--seed {one} --profile {profile}",
                *(["--coordinated"] if coordinated else []),
                *([f"--faults {','.join(faults) or NO_FAULTS}"] if faults is not None else []),
                "--replay",
            ]
            _show(outcome, f"--replay {plan_file}" if given else " ".join(options))
        if outcome.verdict is not None and shrink:
            plan = _shrink(plan, outcome, as_json=as_json)
        if outcome.verdict is not None or not failed:
            shown = one, plan
    if timeline is not None and shown is not None:
        _write_timeline(timeline, *shown)
    if count > 1 and not as_json:
        show(f"{count} runs, {failed} failed")
    if failed:
        raise SystemExit(1)


def _draw(seed: int, profile: str, faults: list[str] | None, *, coordinated: bool) -> Plan:
    plan = draw_plan(seed, profile)
    if random.Random(f"{seed}/record batches").random() < RECORDS_SHARE:
        plan = with_record_batches(plan)
    if faults is not None:
        plan = with_faults(plan, seed, [KINDS[name] for name in faults])
    return with_coordinator(plan, LEVELS[seed % len(LEVELS)]) if coordinated else plan


def _kinds(text: str | None) -> list[str] | None:
    """The names in a list of kinds of faults."""
    if text is None:
        return None
    names = [] if text == NO_FAULTS else text.split(",")
    for name in names:
        if name not in KINDS:
            raise click.BadParameter(f"{name!r} is not one of {', '.join(sorted(KINDS))}")
    return names


def _show(outcome: Outcome, how: str) -> None:
    """`how`: the options that repeat the run."""
    show(_line(outcome))
    if outcome.verdict is not None:
        show(f"    {outcome.verdict}")
        rules = os.environ.get("KAFKA08_RULES")
        show(f"    {f'KAFKA08_RULES={rules} ' if rules else ''}kafka08 simulate {how}")


def _read_plan(file: Path) -> tuple[int, Plan]:
    """The seed and the plan in the file."""
    try:
        return Plan.from_json(file.read_text())
    except ValueError as error:
        raise click.ClickException(f"{file}: {error}. Use a file that --shrink wrote") from error


def _shrink(plan: Plan, outcome: Outcome, *, as_json: bool) -> Plan:
    """Write the reduced plan to a file, and print the reduction; returns the plan."""
    end = time.process_time() + SHRINK_S
    shrunk = Shrinker(
        plan,
        outcome,
        lambda smaller, until: run_seed(outcome.seed, plan=smaller, until=until),
        lambda: time.process_time() < end,
    ).shrink()
    file = Path(f"simulate-{outcome.seed}.json")
    file.write_text(shrunk.plan.to_json(outcome.seed))
    if not as_json:
        small = shrunk.plan
        show(
            f"    {len(plan.faults)} faults became {len(small.faults)} in {shrunk.runs} runs; "
            f"{small.brokers} brokers, {small.partitions} partitions, {small.members} members, "
            + ("tasks in plain order" if not small.disorder else "tasks in random order")
        )
        for line in shrunk.outcome.story[1:]:
            show(f"    {line}")
        show(f"    kafka08 simulate --replay {file}")
    return shrunk.plan


def _write_timeline(file: Path, seed: int, plan: Plan) -> None:
    timeline = Timeline()
    outcome = run_seed(seed, plan=plan, timeline=timeline)
    title = f"Simulated run {seed}, {plan.profile} profile"
    file.write_text(timeline.page(title, outcome.verdict, outcome.simulated_seconds))


def _seeds(first: int | None, runs: int | None, minutes: float | None) -> Iterator[int]:
    seed = random.randrange(SEED_MAX) if first is None else first
    if minutes is None:
        yield from range(seed, seed + (runs or 1))
        return
    end = time.monotonic() + minutes * 60
    last = None if runs is None else seed + runs
    while time.monotonic() < end and seed != last:
        yield seed
        seed += 1


def _line(outcome: Outcome) -> str:
    return (
        f"{'ok    ' if outcome.verdict is None else 'FAILED'} seed {outcome.seed}: "
        f"{outcome.simulated_seconds:.0f} s in {outcome.real_seconds:.1f} s, "
        f"{outcome.faults} faults, {outcome.acknowledged} acknowledged, {outcome.read} read, "
        f"hash {outcome.digest[:16]}"
    )
