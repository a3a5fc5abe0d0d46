"""The page of a run: one file with all that is needed."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kafka08.profile import SAFE
from kafka08.simulation.frames import name_of_request
from kafka08.simulation.plan import Fault, PlannedFault, draw_plan
from kafka08.simulation.run import simulate
from kafka08.simulation.timeline import Timeline
from tests.pages.chromium import Chromium


def data_of(page: str) -> dict[str, Any]:
    found = re.search(r"^const run = (.*);$", page, re.MULTILINE)
    assert found is not None
    data: dict[str, Any] = json.loads(found[1].replace("<\\/", "</"))
    return data


def test_a_run_is_on_its_page() -> None:
    """The page has the hosts with their processes, messages, faults and notes."""
    fault = PlannedFault(0, Fault.ZOOKEEPER, 1.0, 2.0)
    plan = replace(draw_plan(1, SAFE), faults=(fault,), faults_seconds=5.0, members=0)
    timeline = Timeline()
    run = simulate(1, plan=plan, timeline=timeline)
    assert run.verdict is None
    assert simulate(1, plan=plan).digest == run.digest, "looking on changes nothing"
    data = data_of(timeline.page("title", None, run.simulated_seconds))
    assert {"broker-1", "reader-0"} <= {lane["host"] for lane in data["lanes"]}
    [(start, end, text)] = data["faults"]
    assert ("ZooKeeper stops", pytest.approx(2.0)) == (text, end - start)
    names = {message[4] for message in timeline.messages}
    assert {"Produce", "Fetch", "Metadata", "Multi", "Ping"} <= names


def test_a_request_has_its_name_where_it_begins() -> None:
    """The first piece of a request that was split has the name; the zeros of a later piece do not
    make it a Produce, the first API."""
    request = b"\0\0\0\x14" + b"\0\x01\0\0" + bytes(16)
    assert name_of_request(request) == name_of_request(request[:9]) == "Fetch"
    assert name_of_request(bytes(16)) == "part of a request"
    assert name_of_request(b"\xff" * 16) == "part of a request"


def test_nothing_is_fetched_and_no_text_ends_the_script() -> None:
    """The page is whole without a network, whatever a verdict says."""
    timeline = Timeline()
    timeline.note(1.0, "</script><b>")
    page = timeline.page("title", "</script>", 2.0)
    assert [] == re.findall(r"(?:src|href)=", page)
    assert 1 == page.count("</script>")
    assert [[1.0, "</script><b>"]] == data_of(page)["notes"]


@pytest.mark.parametrize(
    ("text", "hosts"),
    [
        ("broker-1.2 is killed", ["broker-1"]),
        ("cut: broker-1 > all others", ["broker-1"]),
        ("cut: reader-0 <> broker-10", ["broker-10", "reader-0"]),
        ("all brokers without power", ["broker-1", "broker-10"]),
        ("everything without power", ["zookeeper", "broker-1", "broker-10", "reader-0"]),
        ("the ZooKeeper ensemble loses its leader", ["zookeeper"]),
        ("partitions are moved", []),
    ],
)
def test_a_fault_is_on_the_lanes_of_its_hosts(
    text: str, hosts: list[str], chromium: Chromium, tmp_path: Path
) -> None:
    """A fault has a band on the lane of each host that it hits, and is one of the listed lines."""
    timeline = Timeline()
    for host in ("broker-1", "broker-10", "reader-0"):
        timeline.begins(0.0, host, f"{host}.1")
    timeline.note(1.0, text)
    timeline.fault(1.0, 2.0, text)
    timeline.note(4.0, "violation: lost")
    file = tmp_path / "run.html"
    file.write_text(timeline.page("title", "lost", 5.0))
    page = chromium.open(file.as_uri())
    assert hosts == page.evaluate(f"hostsOf({json.dumps(text)})")
    assert text == page.evaluate("document.querySelector('tr.fault').cells[1].textContent")
    wrong = page.evaluate("document.querySelector('tr.wrong').cells[1].textContent")
    assert "violation: lost" == wrong
    assert [] == page.errors
