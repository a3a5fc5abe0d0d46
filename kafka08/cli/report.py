"""`kafka08 report`."""

from __future__ import annotations

import os
import stat
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click
from click.core import ParameterSource

from kafka08.cli.background import Background
from kafka08.cli.echo import pass_on, say, show
from kafka08.cli.options import (
    Number,
    cluster_options,
    cluster_place,
    example,
    log_dirs_option,
)
from kafka08.listing import counted

if TYPE_CHECKING:
    from kafka08.observe.place import ClusterPlace
    from kafka08.pages import Overview
    from kafka08.pages.report import Kept

LOOK_S = 1.0
"""Between two reads of the cluster."""


@click.command(
    epilog=example("kafka08 report --output report.html --zookeeper localhost:2181"),
)
@click.option(
    "--output",
    type=click.Path(dir_okay=False, allow_dash=True),
    default="report.html",
    show_default=True,
    help="The HTML file, which replaces an earlier report; '-', or a redirection, is stdout.",
)
@click.option(
    "--seconds",
    type=Number(0.0, 3600.0),
    default=2.0,
    show_default=True,
    help="How long to watch the cluster, reading it once a second.",
)
@log_dirs_option
@cluster_options
def report(
    output: str,
    seconds: float,
    log_dirs: tuple[str, ...],
) -> None:
    """Write one HTML page about a cluster: brokers, topics, groups, and what the doctor finds.

    Rates are those since the report that --output replaces, and its charts continue. A first report
    has rates over --seconds. The page needs no network. Exits 1 if a part is not known.
    """
    from kafka08.cli.group_view import warn_of_failed_requests
    from kafka08.pages import page_of

    place = cluster_place()
    path = None if output == "-" or is_redirected() else Path(output)
    earlier = None if path is None else read_earlier(path, place)

    def work() -> Overview:
        return read_overview(place, earlier, seconds, log_dirs)

    overview = Background(work, name="report").result()
    if path is None:
        pass_on(f"{page_of(overview)}\n")
    else:
        replace(path, page_of(overview))
    warn_of_failed_requests(overview.view.failed_requests)
    view, findings = overview.view, overview.findings or ()
    problems = sum(finding.is_problem for finding in findings)
    (say if path is None else show)(
        f"Wrote {'the report' if path is None else path}: "
        f"{counted(len(view.brokers), 'broker')}, {counted(len(view.partitions), 'partition')}, "
        f"{counted(len(view.groups), 'group')}, {counted(problems, 'problem')}.",
    )
    sys.exit(1 if view.failed_requests else 0)


def is_redirected() -> bool:
    """Whether `report > x.html` was typed: the page goes there, as whoever types it expects."""
    source = click.get_current_context().get_parameter_source("output")
    if source is not ParameterSource.DEFAULT or sys.stdout is None:
        return False
    return stat.S_ISREG(os.fstat(sys.stdout.fileno()).st_mode)


def read_earlier(path: Path, place: ClusterPlace) -> Kept | None:
    """The report that is replaced; None if there is none of this cluster. Raises BadParameter,
    ConfigError (another file)."""
    from kafka08.pages import read_report

    if not path.parent.is_dir():
        raise click.BadParameter(f"there is no directory {path.parent}.", param_hint="'--output'")
    earlier = read_report(path)
    if earlier is None or earlier.connect == str(place):
        return earlier
    say(
        f"{path} is a report of {earlier.connect}, so the new one is not compared with it.",
    )
    return None


def read_overview(
    place: ClusterPlace, earlier: Kept | None, seconds: float, log_directories: Sequence[str]
) -> Overview:
    """Read the cluster for this long, then run the doctor's checks. Raises ZooKeeperError,
    NoBrokersAvailable."""
    from kafka08.doctor import SnapshotReader, findings_of
    from kafka08.exporter import Watch
    from kafka08.pages import Overview, Trends
    from kafka08.pages.details import answers_of
    from kafka08.waiting import waiting_for

    trends = Trends() if earlier is None else earlier.trends
    with Watch(*place, earlier=None if earlier is None else earlier.view) as watch:
        first = watch.view
        ends = time.monotonic() + seconds
        while True:
            view = watch.read_view()
            watch.add(view)
            first = first or view
            if earlier is None:
                trends.add(view.now_ms, watch.summary())
            if time.monotonic() >= ends:
                break
            with waiting_for(f"rates over {seconds:g} s"):
                time.sleep(LOOK_S)
    before = None if first is view else first
    summary = watch.summary(before)
    if earlier is not None:
        trends.add(view.now_ms, summary)
    with SnapshotReader(*place, log_directories=log_directories) as doctor:
        snapshot = doctor.read_snapshot()
    findings, answers = findings_of(snapshot), answers_of(snapshot, watch.partitions_of)
    return Overview(
        str(place), view, summary, trends, before, findings, snapshot.log_directories, answers
    )


def replace(path: Path, text: str) -> None:
    """Replace the file atomically: readers get the old page or the new one. OSError names it."""
    partial = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        partial.write_text(text, encoding="utf-8")
        partial.replace(path)
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from error
    finally:
        partial.unlink(missing_ok=True)
