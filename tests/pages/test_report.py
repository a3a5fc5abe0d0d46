"""The report: what it keeps, what it does not overwrite, and what a browser makes of it."""

from __future__ import annotations

import os
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import quote

import pytest

from kafka08.doctor.snapshot import Snapshot, TopicFacts
from kafka08.errors import ConfigError
from kafka08.observe.snapshot import ClusterView
from kafka08.pages import page_of, read_report
from kafka08.pages.details import answers_of
from tests.pages.chromium import Chromium
from tests.pages.clusters import EMPTY, HOSTILE, overview, view


def write(directory: Path, text: str) -> Path:
    path = directory / "report.html"
    path.write_text(text)
    return path


@pytest.mark.parametrize("group", ["readers", HOSTILE, "/*KEPT*/", "/*SCRIPT*/", "\u2028ü😀"])
def test_a_report_has_the_data_of_the_next_comparison(group: str, tmp_path: Path) -> None:
    """Group names may have any characters."""
    now = view(2, group=group)
    kept = read_report(write(tmp_path, page_of(overview(now, view(1, group=group)))))
    assert kept is not None
    assert "localhost:2181" == kept.connect
    assert now.groups == kept.view.groups
    assert [group] == list(kept.trends.lags)
    assert 2 == len(kept.trends.lags[group])


def test_without_a_report_there_is_nothing_to_compare_with(tmp_path: Path) -> None:
    """That is no error."""
    assert read_report(tmp_path / "report.html") is None


@pytest.mark.parametrize(
    "text",
    [
        "",
        "my notes",
        '<script type="application/json" id="kept">{"view": [], "trends": 3}</script>',
        '<script type="application/json" id="kept">[1]</script>',
        '<script type="application/json" id="kept">{</script>',
        f'<script type="application/json" id="kept">{"[" * 100_000}</script>',
    ],
)
def test_other_files_are_not_overwritten(text: str, tmp_path: Path) -> None:
    """The file may be the user's work: the error names it, and what to do."""
    path = write(tmp_path, text)
    with pytest.raises(ConfigError, match=f"{path} exists and is not a report"):
        read_report(path)


def test_a_device_or_a_pipe_is_not_read(tmp_path: Path) -> None:
    """It may have no end, and the new page would take its place."""
    path = tmp_path / "report.html"
    os.mkfifo(path)
    with pytest.raises(ConfigError, match="it is no regular file"):
        read_report(path)


def snapshot(view: ClusterView) -> Snapshot:
    """The doctor's, with one topic's overrides, and groups that are in ZooKeeper."""
    groups = {name: replace(group, in_zookeeper=True) for name, group in view.groups.items()}
    view = replace(view, groups=groups)
    return Snapshot(view, view.now_ms, topics={"t0": TopicFacts({}, {"retention.ms": "7"})})


class Elements(HTMLParser):
    """Every element of a page, with its attributes."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attributes)))


def test_a_report_loads_nothing() -> None:
    """No address in any attribute but those of an empty icon and of the page's content; scripts
    and style are in the page."""
    for _, attributes in Elements(page_of(overview(view()))).found:
        for name in ("src", "href", "data", "action", "srcset"):
            assert attributes.get(name) in {None, "data:,", "#page"}


def test_chromium_draws_ten_thousand_partitions_of_a_hostile_cluster(
    chromium: Chromium, tmp_path: Path
) -> None:
    """Names are text: none becomes an element or runs. The first page has all brokers and the
    doctor's problems, others the first 200 topics with their total, the groups, and what is known
    of each. Nothing asks for more."""
    now, before = (view(seconds, topics=1000, partitions=10, group=HOSTILE) for seconds in (20, 10))
    facts = replace(overview(now, before), answers=answers_of(snapshot(now), lambda _: ()))
    page = chromium.open(write(tmp_path, page_of(facts)).as_uri())
    assert "Overview – localhost:2181" == page.evaluate("document.title")
    counts = {
        name: page.evaluate(f"document.querySelectorAll('main {name}').length")
        for name in ("script", "img", "section.map, .map section", "li.problem")
    }
    assert {"script": 0, "img": 0, "section.map, .map section": 3, "li.problem": 1} == counts
    assert "the doctor says" in page.text
    for place, said in (
        ("topics", "200 of 1,000"),
        ("groups", HOSTILE),
        ("doctor", "Doctor"),
        ("topic/t0", "retention.ms=7"),
        (f"group/{quote(HOSTILE, safe='')}", "It has no members."),
        ("topic/t1", "The report has no more of it"),
        ("messages/t0", "partitions\n10,000"),
    ):
        page.evaluate(f"location.hash = '#/{place}'")
        page.until_shown(said)
    assert 0 == page.evaluate("document.querySelectorAll('main script, main img').length")
    assert 0 == page.evaluate("performance.getEntriesByType('resource').length")
    assert [] == page.errors


def test_chromium_shows_an_empty_cluster_as_one(chromium: Chromium, tmp_path: Path) -> None:
    """It says what is not there, and what may be wrong."""
    page = chromium.open(write(tmp_path, page_of(overview(EMPTY))).as_uri())
    for place, said in (
        ("", "No broker is registered"),
        ("topics", "There are no topics."),
        ("groups", "There are no consumer groups"),
    ):
        page.evaluate(f"location.hash = '#/{place}'")
        page.until_shown(said)
    assert [] == page.errors
