"""The image of Spark, as far as that goes without building it: its profile, and its entry point."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from kafka08 import __version__

ROOT = Path(__file__).parent.parent.parent
ENTRYPOINT = ROOT / "image" / "spark-entrypoint.sh"
POD = {
    "SPARK_JAVA_OPT_0": "-Dspark.driver.port=7078",
    "SPARK_JAVA_OPT_10": "-Dlast",
    "SPARK_JAVA_OPT_2": "-Dtwo words",
    "SPARK_EXECUTOR_MEMORY": "512m",
    "SPARK_DRIVER_URL": "spark://CoarseGrainedScheduler@driver:7078",
    "SPARK_EXECUTOR_ID": "3",
    "SPARK_EXECUTOR_CORES": "1",
    "SPARK_APPLICATION_ID": "app",
    "SPARK_EXECUTOR_POD_IP": "10.0.0.9",
    "SPARK_EXECUTOR_POD_NAME": "pod-3",
    "SPARK_RESOURCE_PROFILE_ID": "0",
    "SPARK_DRIVER_BIND_ADDRESS": "10.0.0.8",
    "SPARK_HOME": "/opt/spark",
}
"""Variables that Spark sets in its pods (org.apache.spark.deploy.k8s.Constants)."""


def started_by(directory: Path, *arguments: str, **variables: str) -> list[str]:
    """The command that the entry point runs below tini, which is replaced by one that prints it."""
    tini = directory / "tini"
    tini.write_text("#!/bin/sh\nprintf '%s\\n' \"$@\"\n")
    tini.chmod(0o755)
    done = subprocess.run(
        ["bash", ENTRYPOINT, *arguments],
        env={"PATH": f"{directory}:{os.environ['PATH']}", **POD, **variables},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.splitlines()[2:]


def test_an_executors_pod(tmp_path: Path) -> None:
    """The backend of Kubernetes with the pod's values; JVM options in the order of their numbers,
    with their spaces."""
    command = started_by(tmp_path, "executor")
    options = ["-Dspark.driver.port=7078", "-Dtwo words", "-Dlast", "-Xms512m", "-Xmx512m"]
    assert command[: len(options) + 1] == ["java", *options]
    backend = command.index("org.apache.spark.scheduler.cluster.k8s.KubernetesExecutorBackend")
    named = dict(zip(command[backend + 1 :: 2], command[backend + 2 :: 2], strict=True))
    assert named == {
        "--driver-url": POD["SPARK_DRIVER_URL"],
        "--executor-id": "3",
        "--cores": "1",
        "--app-id": "app",
        "--hostname": "10.0.0.9",
        "--podName": "pod-3",
        "--resourceProfileId": "0",
    }


def test_an_executors_class_path(tmp_path: Path) -> None:
    """The jars of spark.executor.extraClassPath, which Spark passes as SPARK_CLASSPATH, come before
    Spark's own."""
    for extra, expected in (
        ({}, "/opt/spark/conf:/opt/spark/jars/*"),
        ({"SPARK_CLASSPATH": "/a/*:/b"}, "/opt/spark/conf:/a/*:/b:/opt/spark/jars/*"),
    ):
        command = started_by(tmp_path, "executor", **extra)
        assert expected == command[command.index("-cp") + 1]


def test_a_drivers_pod(tmp_path: Path) -> None:
    """spark-submit in client mode, bound to the pod's address; other commands run as they are."""
    submitted = ["--properties-file", "/opt/spark/conf/spark.properties", "job.py", "kafka1:9092"]
    assert started_by(tmp_path, "driver", *submitted) == [
        *("spark-submit", "--deploy-mode", "client"),
        *("--conf", "spark.driver.bindAddress=10.0.0.8", *submitted),
    ]
    assert started_by(tmp_path, "kafka08", "--help") == ["kafka08", "--help"]


def test_versions_are_the_packages() -> None:
    """Compose and the image name this version of kafka08."""
    compose = (ROOT / "docker-compose.yml").read_text()
    assert f"image: kafka08-spark:{__version__}\n" in compose
    assert f"ARG KAFKA08=kafka08:{__version__}\n" in (ROOT / "image/spark.Dockerfile").read_text()
