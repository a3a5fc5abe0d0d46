"""The reader of docs/simple-consumer.md, run as it stands there."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

from kafka08.producer import KeyedMessage
from kafka08.zk.client import ZkClient
from tests.interop.jvm import JvmKafka
from tests.interop.test_clients_on_jvm import producer_on

DOC = Path(__file__).parent.parent.parent / "docs" / "simple-consumer.md"


def test_the_reader_goes_on_where_it_stopped(jvm_kafka: JvmKafka, tmp_path: Path) -> None:
    """Two runs read 10 messages without gap or repetition; the znode has storm-kafka's fields."""
    (program,) = re.findall(r"^```python\n(.*?)^```$", DOC.read_text(), re.DOTALL | re.MULTILINE)
    script = tmp_path / "reader.py"
    script.write_text(program)
    jvm_kafka.create_topic("storm")
    with producer_on(jvm_kafka) as producer:
        producer.send([KeyedMessage("storm", f"message {n}") for n in range(10)])

    def run(count: int) -> list[str]:
        done = subprocess.run(
            [sys.executable, str(script), "storm", "0", str(count)],
            env={
                **os.environ,
                "KAFKA08_BOOTSTRAP": jvm_kafka.bootstrap,
                "KAFKA08_ZOOKEEPER": jvm_kafka.zookeeper,
            },
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.splitlines()

    assert run(4) + run(6) == [f"{n} message {n}" for n in range(10)]
    with ZkClient(jvm_kafka.zookeeper) as zk:
        stored = zk.get("/transactional/reader/partition_0").data
    assert stored is not None
    assert json.loads(stored).keys() == {"topology", "offset", "partition", "broker", "topic"}
    assert json.loads(stored)["offset"] == 10
