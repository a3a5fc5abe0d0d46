"""`kafka08 doctor`."""

from __future__ import annotations

import sys

import click

from kafka08.cli.echo import show
from kafka08.cli.options import (
    cluster_options,
    cluster_place,
    example,
    json_option,
    log_dirs_option,
)
from kafka08.cli.table import show_json
from kafka08.listing import counted

FILE = click.Path(dir_okay=False)


def list_checks(context: click.Context, _: click.Parameter, wanted: bool) -> None:
    """Print the names of all checks, and why they matter."""
    if not wanted or context.resilient_parsing:
        return
    from kafka08.doctor import CHECKS

    for check in CHECKS:
        show(f"{check.name} ({check.severity.value}): {check.why}")
    context.exit()


@click.command(epilog=example("kafka08 doctor --zookeeper localhost:2181"))
@log_dirs_option
@click.option("--broker", "brokers", multiple=True, type=FILE, help="A broker's properties file.")
@click.option(
    "--consumer", "consumers", multiple=True, type=FILE, help="A consumer's properties file."
)
@click.option(
    "--producer", "producers", multiple=True, type=FILE, help="A producer's properties file."
)
@click.option(
    "--checks",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=list_checks,
    help="List all checks and end.",
)
@json_option("One JSON object.")
@cluster_options
def doctor(
    log_dirs: tuple[str, ...],
    brokers: tuple[str, ...],
    consumers: tuple[str, ...],
    producers: tuple[str, ...],
    as_json: bool,
) -> None:
    """Check a whole cluster: say what is wrong, why it matters, and what to do. Changes nothing.

    Exits 1 if there is a problem; notes alone are not problems. It reads ZooKeeper if there is
    one, asks each broker for metadata, says what is wrong with brokers, and checks groups, and the
    directories and files that you give.
    """
    from kafka08.doctor import (
        CHECKS,
        EARLY_CHECKS,
        Finding,
        Snapshot,
        SnapshotReader,
        findings_of,
    )

    shown: list[Finding] = []

    def show_early(part: Snapshot) -> None:
        shown.extend(findings_of(part, EARLY_CHECKS))
        for finding in shown:
            show(str(finding))

    files = {
        **dict.fromkeys(brokers, "broker"),
        **dict.fromkeys(consumers, "consumer"),
        **dict.fromkeys(producers, "producer"),
    }
    with SnapshotReader(*cluster_place(), log_directories=log_dirs, files=files) as reader:
        snapshot = reader.read_snapshot() if as_json else reader.read_snapshot(show_early)
    findings = findings_of(snapshot)
    problems = sum(finding.is_problem for finding in findings)
    partitions = sum(1 for _ in snapshot.partitions())
    if as_json:
        rows = [finding.as_dict() for finding in findings]
        counts = {"brokers": len(snapshot.brokers), "partitions": partitions}
        show_json({"problems": problems, "checks": len(CHECKS), **counts, "findings": rows})
    else:
        for finding in findings:
            if finding not in shown:
                show(str(finding))
        groups = len({*snapshot.groups, *snapshot.coordinated})
        show(
            f"{counted(len(CHECKS), 'check')} of {counted(len(snapshot.brokers), 'broker')}, "
            f"{counted(partitions, 'partition')}, {counted(groups, 'group')}: "
            f"{counted(problems, 'problem')}, {counted(len(findings) - problems, 'note')}."
        )
    sys.exit(1 if problems else 0)
