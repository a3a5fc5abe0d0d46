"""The same reads, streams and writes by Spark's own connector and by ours: connector_cases.py."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

import pytest

from tests.interop.jvm import POM_3_9, JvmKafka, require_jvm
from tests.spark.conftest import MISSING
from tests.test_layout import ROOT

KEYS: Final = {
    "log.retention.ms": "-1",
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
}
PAGE: Final = ROOT / "docs" / "spark.md"
SECONDS: Final = 900


def kind_of(outcome: Any) -> Any:
    """The outcome; the texts of errors are each connector's own."""
    return "error" if isinstance(outcome, dict) and "error" in outcome else outcome


def documented() -> set[str]:
    """The cases in the table of docs/spark.md."""
    table = PAGE.read_text().partition("## Beside Spark's own connector")[2].partition("\n## ")[0]
    rows = [line.split("|") for line in table.splitlines() if line.startswith("| ")]
    return {row[1].strip() for row in rows[1:]}


@pytest.mark.timeout(SECONDS)
@pytest.mark.skipif(bool(MISSING), reason="no PySpark")
def test_what_differs_is_documented(tmp_path: Path) -> None:
    """Of all cases those of the page's table, and no others, have another outcome."""
    require_jvm()
    with JvmKafka(tmp_path / "kafka", KEYS, pom=POM_3_9) as kafka:
        done = subprocess.run(
            [
                sys.executable,
                *("-m", "tests.spark.connector_cases"),
                *(kafka.brokers[0].address, kafka.zookeeper, str(tmp_path)),
            ],
            capture_output=True,
            check=False,
        )
    assert done.returncode == 0, done.stderr.decode()[-2000:]
    outcomes = json.loads(done.stdout)
    differ = {case for case, (theirs, ours) in outcomes.items() if kind_of(theirs) != kind_of(ours)}
    assert documented() == differ, {case: outcomes[case] for case in documented() ^ differ}
    assert outcomes["all of a topic"][1]["rows"] == 167
