"""A broker's process is patched for gevent, by gevent alone."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
PROGRAM = """
from kafka08.runtime.greenlets import patch_process
patch_process()
import socket, gevent.socket
print(socket.socket is gevent.socket.socket)
from importlib import metadata
plugins = metadata.entry_points(group="gevent.plugins.monkey.will_patch_all")
print("mine" in {found.name for found in plugins})
"""


def test_no_plugin_of_gevent_is_looked_for(tmp_path: Path) -> None:
    """Another package's plugin does not run in a broker; the search for one took a quarter of its
    start. The metadata of packages is as before afterwards."""
    package = tmp_path / "plugin-1.0.dist-info"
    package.mkdir()
    (package / "METADATA").write_text("Metadata-Version: 2.1\nName: plugin\nVersion: 1.0\n")
    (package / "entry_points.txt").write_text(
        "[gevent.plugins.monkey.will_patch_all]\nmine = no_such_module:run\n"
    )
    done = subprocess.run(
        [sys.executable, "-P", "-c", PROGRAM],
        env={**os.environ, "PYTHONPATH": f"{ROOT}:{tmp_path}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ("True\nTrue\n", "") == (done.stdout, done.stderr)
