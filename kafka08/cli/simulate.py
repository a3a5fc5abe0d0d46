"""`kafka08 simulate`: a whole cluster in one process, run by run, each named by its seed."""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Iterator
from dataclasses import asdict

import click

from kafka08.cli.options import example, json_option
from kafka08.cli.table import show_json
from kafka08.profile import PROFILES, SAFE
from kafka08.simulation.run import Outcome
from kafka08.simulation.run import simulate as run_seed

SEED_MAX = 1_000_000_000


@click.command(epilog=example("kafka08 simulate --seed 7 --runs 20"))
@click.option("--seed", type=click.IntRange(0), help="Seed of the first run; drawn unless given.")
@click.option(
    "--runs",
    type=click.IntRange(1),
    help="Runs, of one seed after the other.",
)
@click.option(
    "--minutes", type=click.FloatRange(0), help="Begin runs for so long, instead of a number."
)
@click.option(
    "--profile",
    type=click.Choice(PROFILES),
    default=SAFE,
    show_default=True,
    help="Profile of the cluster.",
)
@click.option("--replay", is_flag=True, help="Print all that happened, line by line.")
@json_option("A JSON object for each run.")
def simulate(
    seed: int | None,
    runs: int | None,
    minutes: float | None,
    profile: str,
    replay: bool,
    as_json: bool,
) -> None:
    """Run brokers and clients on simulated time, network and ZooKeeper.

    Everything that happens in a run follows from its seed: faults, delays, and who runs when. One
    line per run; a run that breaks a rule prints the rule, and the command that repeats the run.
    Exit code 1 if there was one.
    """
    if replay and as_json:
        raise click.UsageError("use one of --replay and --json")
    # What brokers log about faults is theirs, not the run's.
    logging.getLogger().setLevel(logging.CRITICAL + 1)
    failed = 0
    for one in _seeds(seed, runs, minutes):
        outcome = run_seed(one, profile=profile, tell=click.echo if replay else None)
        failed += outcome.verdict is not None
        if as_json:
            show_json(asdict(outcome))
            continue
        click.echo(_line(outcome))
        if outcome.verdict is not None:
            click.echo(f"    {outcome.verdict}")
            click.echo(f"    kafka08 simulate --seed {one} --profile {profile} --replay")
    if failed:
        raise SystemExit(1)


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
