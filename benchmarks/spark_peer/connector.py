"""The class path of spark-sql-kafka-0-10 for the Spark that is installed."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from importlib.util import find_spec
from pathlib import Path

from tests.interop.jvm import CACHE, JvmMissing, classpath, java

HERE = Path(__file__).parent


def connector_classpath() -> str:
    """The connector, Kafka's client and our classes for it. JvmMissing: no Maven, no network or no
    compiler."""
    jars = classpath(HERE / "connector.xml")
    return os.pathsep.join([str(_compiled(sorted((HERE / "java").glob("*.java")))), jars])


def _compiled(sources: list[Path]) -> Path:
    """The directory with the classes of `sources`; compiled once per checkout and version."""
    text = b"".join(source.read_bytes() for source in sources)
    classes = CACHE / f"spark-peer-{hashlib.sha256(text).hexdigest()[:12]}"
    if classes.exists():
        return classes
    fresh = classes.with_suffix(f".{os.getpid()}")
    done = subprocess.run(
        [
            java(),
            *("-m", "jdk.compiler/com.sun.tools.javac.Main"),
            *("-cp", os.pathsep.join(map(str, _spark_jars().glob("*.jar")))),
            *("-d", str(fresh)),
            *map(str, sources),
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        shutil.rmtree(fresh, ignore_errors=True)
        raise JvmMissing(f"cannot compile: {done.stderr[-800:].strip()}")
    fresh.rename(classes)
    return classes


def _spark_jars() -> Path:
    spec = find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise JvmMissing("no PySpark: run scripts/install")
    return Path(spec.origin).parent / "jars"
