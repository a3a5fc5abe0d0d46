"""The soak of embedded clusters sees what a cluster leaves behind."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks import soak_embedded
from benchmarks.soak_embedded import MARK, leftovers


def test_a_leftover_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process whose parent has ended, a file and a descriptor, each by its name; nothing else,
    and not what was there before."""
    monkeypatch.setattr(soak_embedded, "LEFT_S", 0.1)
    monkeypatch.setenv(MARK, str(os.getpid()))
    (tmp_path / "before").touch()
    orphan = "import subprocess; print(subprocess.Popen(['sleep', '60'], stdout=2).pid)"
    with leftovers(tmp_path) as nothing:
        (tmp_path / "during").touch()
        (tmp_path / "during").unlink()
    with leftovers(tmp_path) as found:
        (tmp_path / "after").touch()
        opened = (tmp_path / "after").open()
        pid = int(subprocess.check_output([sys.executable, "-c", orphan]))
    try:
        assert [] == nothing
        assert [f"process {pid} sleep 60 ", f"file {tmp_path / 'after'}"] == found[:2]
        assert [f"descriptor {opened.fileno()} {tmp_path / 'after'}"] == found[2:]
    finally:
        os.kill(pid, 9)
        opened.close()
