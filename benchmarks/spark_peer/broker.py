"""An Apache Kafka 3.9 broker: what Spark's own connector needs, since it cannot read 0.8."""

from __future__ import annotations

import time
from pathlib import Path

from benchmarks.spark_peer.connector import HERE
from kafka08.embedded.ports import free_ports
from kafka08.embedded.process import ManagedProcess
from tests.interop.jvm import JAVA_FLAGS, START_TIMEOUT_S, classpath, guard, java

FLAGS = ("-Xmx1G", "-Xms1G", "-XX:-UseSerialGC", "-XX:+UseG1GC", "-Dkafka08.log.level=INFO")
"""The heap and the collector of its own start script."""


class ModernBroker(ManagedProcess):
    """One broker on 127.0.0.1 in `zookeeper` (with chroot). `address` is its host:port; a topic is
    made by asking for it, with `partitions` partitions."""

    def __init__(self, directory: Path, zookeeper: str, partitions: int) -> None:
        self.name = "modern"
        [port] = free_ports(1)
        self.address = f"127.0.0.1:{port}"
        self.log_dir = directory / "logs"
        directory.mkdir(parents=True)
        config = directory / "server.properties"
        keys = {
            "broker.id": 1,
            "listeners": f"PLAINTEXT://{self.address}",
            "log.dirs": self.log_dir,
            "zookeeper.connect": zookeeper,
            "num.partitions": partitions,
            "offsets.topic.replication.factor": 1,
        }
        config.write_text("".join(f"{name}={value}\n" for name, value in keys.items()))
        jars = classpath(HERE / "broker.xml")
        line = [java(), *JAVA_FLAGS, *FLAGS, "-cp", jars, "kafka.Kafka", str(config)]
        super().__init__("Kafka 3.9", line, log=directory / "broker.out", guard=guard())

    def start(self) -> None:
        """Start and wait until it serves; AssertionError with the end of its log."""
        super().start()
        deadline = time.monotonic() + START_TIMEOUT_S
        while "started (kafka.server.KafkaServer)" not in self.logged_since(0, 200):
            assert self.running, f"Kafka 3.9 ended: {self.log_excerpt()}"
            assert time.monotonic() < deadline, f"Kafka 3.9 does not start: {self.log_excerpt()}"
            time.sleep(0.05)
