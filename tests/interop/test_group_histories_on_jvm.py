"""The group of tests/integration/test_group_histories.py on brokers of Apache Kafka's."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.histories.group_clusters import of_jvm
from tests.interop.jvm import POM_0_10_2, POM_3_9


@pytest.mark.parametrize("pom", [POM_0_10_2, POM_3_9], ids=lambda pom: pom.stem)
def test_members_and_coordinators_that_fail_break_no_rule(pom: Path, tmp_path: Path) -> None:
    """Histories of members and coordinators that fail obey the rules of
    tests/integration/test_group_histories.py on brokers of the JVM too."""
    with of_jvm(tmp_path, pom) as cluster:
        told, problems = cluster.history("history", tmp_path / "run", random.Random(2), 10.0)
    assert problems == [], told
