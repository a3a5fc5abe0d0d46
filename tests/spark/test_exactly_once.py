"""The program of docs/spark-exactly-once.md on two executors, one of which is killed half way."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import AbstractContextManager, closing
from pathlib import Path

import pytest

from kafka08.arrow import scan
from kafka08.embedded.cluster import EmbeddedCluster
from kafka08.embedded.java import find_java
from kafka08.embedded.spark_java import make_java_home
from tests.docs.snippets import blocks
from tests.spark.filling import Topics, pair
from tests.spark.program import spark_program
from tests.waiting import until

PAGE = Path(__file__).parent.parent.parent / "docs" / "spark-exactly-once.md"
COUNTS = (200_000, 20_000)
"""Messages of the partitions: the tasks of the first are so long that speculation copies them."""
QUICK_JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
CONF = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.executor.memory": "512m",
    "spark.ui.enabled": "false",
    "spark.driver.extraJavaOptions": QUICK_JAVA,
    "spark.executor.extraJavaOptions": QUICK_JAVA,
    "spark.speculation": "true",
    "spark.speculation.interval": "50ms",
    "spark.speculation.quantile": "0.1",
    "spark.speculation.multiplier": "1.01",
    "spark.speculation.minTaskRuntime": "50ms",
}


@pytest.fixture
def topics() -> Iterator[Topics]:
    with EmbeddedCluster(1, {"num.partitions": "2"}) as cluster:
        found = Topics(cluster.bootstrap, cluster.zookeeper.connect_string)
        yield found
        found.close()


def executors(of: int) -> list[int]:
    """Process ids of the executors that the driver's Java has started."""
    listed = subprocess.run(
        ["ps", "-wweo", "pid,ppid,args"], capture_output=True, text=True, check=True
    ).stdout
    rows = [line.split(None, 2) for line in listed.splitlines()[1:]]
    children = {of}
    for _ in range(4):
        children |= {int(pid) for pid, parent, _ in rows if int(parent) in children}
    return [
        int(pid)
        for pid, _, args in rows
        if int(pid) in children and "CoarseGrainedExecutor" in args
    ]


@pytest.mark.timeout(900)
def test_results_hold_every_message_once(topics: Topics, tmp_path: Path) -> None:
    """An executor dies by SIGKILL while rows are written, and slow tasks run twice; then the query
    runs again as if its driver had died before the batch was in the checkpoint. The table and the
    counts have each message once; the second topic has each at least twice, with a key by which its
    duplicates are counted."""
    script = tmp_path / "exactly_once.py"
    [code] = [block.code for block in blocks(PAGE.read_text()) if block.file == script.name]
    script.write_text(code)
    topic, copies = topics.filled(COUNTS, set_size=500), topics.new_topic(2)
    database = tmp_path / "results.db"
    log = tmp_path / "spark.log"
    environ = {
        **os.environ,
        "JAVA_HOME": str(make_java_home(tmp_path / "java", find_java(), log)),
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_WORKER_DIR": str(tmp_path / "work"),
    }
    command = [sys.executable, str(script), topics.bootstrap, topic, copies, str(database)]
    checkpoint = tmp_path / "checkpoint"
    command.append(str(checkpoint))

    def started(master: str) -> AbstractContextManager[subprocess.Popen[bytes]]:
        return spark_program(command, master, CONF, environ=environ, log=log)

    def ended_well(driver: subprocess.Popen[bytes]) -> None:
        assert driver.wait(300) == 0, log.read_text()[-4000:]

    def written() -> int:
        if not database.exists():
            return 0
        with closing(sqlite3.connect(database)) as db:
            tables = db.execute("SELECT count(*) FROM sqlite_master WHERE name = 'messages'")
            if not tables.fetchone()[0]:
                return 0
            return int(db.execute("SELECT count(*) FROM messages").fetchone()[0])

    with started("local-cluster[2,1,512]") as driver:
        until(lambda: written() > 0 or driver.poll() is not None, "the first rows", 300)
        os.kill(executors(driver.pid)[0], signal.SIGKILL)
        assert written() < sum(COUNTS), "too late: give it more messages"
        ended_well(driver)
    for name in ("0", ".0.crc"):
        (checkpoint / "commits" / name).unlink()
    with started("local[2]") as driver:
        ended_well(driver)
    with closing(sqlite3.connect(database)) as db:
        rows = db.execute('SELECT partition, "offset", value FROM messages').fetchall()
        counts = dict(db.execute("SELECT partition, messages FROM counts").fetchall())
    assert counts == dict(enumerate(COUNTS))
    expected = {(p, n, pair(p, n)[1]) for p, count in enumerate(COUNTS) for n in range(count)}
    assert set(rows) == expected
    assert len(rows) == len(expected)
    with scan(topics.bootstrap, copies, columns=["key"]) as found:
        keys = Counter(key for batch in found for key in batch["key"].to_pylist())
    assert set(keys) == {b"%s-%d-%d" % (topic.encode(), p, n) for p, n, _ in expected}
    assert min(keys.values()) >= 2
