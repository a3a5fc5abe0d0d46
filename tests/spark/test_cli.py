"""`kafka08 spark read | write`, as a user runs them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from kafka08.structs import TopicPartition
from tests.spark.filling import Topics, rows_of

pytestmark = pytest.mark.parametrize("brokers", ["ours"], indirect=True)


def run(brokers: Topics, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [
            sys.executable,
            "-m",
            "kafka08.cli",
            "spark",
            *arguments,
            "--bootstrap",
            brokers.bootstrap,
        ],
        capture_output=True,
        text=True,
        timeout=115,
        check=False,
    )


def test_read(brokers: Topics, tmp_path: Path) -> None:
    """The command writes a range as JSON lines, and prints its plan without Spark's own log."""
    topic = brokers.filled([30])
    output = tmp_path / "pages"
    read = run(
        brokers, "read", topic, "--range", "0:3:6", "--format", "json", "--output", str(output)
    )
    assert (read.returncode, read.stdout) == (0, "")
    assert f"task 0: [{topic},0] [3, 6), 3 offsets\n1 tasks, 3 offsets\n" in read.stderr
    assert "WARN" not in read.stderr
    lines = [
        json.loads(line) for file in output.glob("*.json") for line in file.read_text().splitlines()
    ]
    assert [(line["partition"], line["offset"], line.get("key")) for line in lines] == [
        (partition, offset, key and key.decode()) for partition, offset, key, _ in rows_of(0, 3, 6)
    ]


def test_the_plan_alone(brokers: Topics, tmp_path: Path) -> None:
    """--dry-run starts no Spark and creates no file."""
    topic = brokers.filled([30, 5])
    group = f"group-of-{topic}"
    with brokers.simple_consumer() as consumer:
        offsets = {TopicPartition(topic, 0): 10, TopicPartition(topic, 1): 5}
        consumer.commit_offsets(group, offsets)
    arguments = ["read", topic, "--output", str(tmp_path / "x"), "--dry-run", "--max-records", "10"]
    done = run(brokers, *arguments, "--group", group)
    assert done.returncode == 0, done.stderr
    assert done.stderr.splitlines() == [
        f"task 0: [{topic},0] [10, 20), 10 offsets",
        f"task 1: [{topic},0] [20, 30), 10 offsets",
        "2 tasks, 20 offsets",
    ]
    assert not (tmp_path / "x").exists()


@pytest.mark.parametrize(
    ("arguments", "fault"),
    [
        (["--range", "0:1"], "--range '0:1' is not of the form PARTITION:FROM:UNTIL"),
        (["--range", "0:1:2", "--group", "g"], "Give only one of --range and --group."),
        (["--range", "0:5:2"], "starts behind its end"),
        (["--conf", "spark.cores.max"], "--conf 'spark.cores.max' is not of the form KEY=VALUE"),
        (["--conf", "cores=1"], "--conf cores: the names of Spark's properties start with spark."),
        (["--conf", "spark.master=yarn"], "Give --master instead of --conf spark.master."),
        (["--master", "yarn", "--cores", "2"], "Give only one of --master and --cores"),
    ],
)
def test_misuse(brokers: Topics, tmp_path: Path, arguments: list[str], fault: str) -> None:
    """Misuse gives exit code 2 and one sentence."""
    done = run(brokers, "read", "t", "--output", str(tmp_path / "x"), *arguments)
    assert done.returncode == 2
    assert fault in done.stderr
