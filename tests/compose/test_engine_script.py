"""`.ci/docker-engine`, with commands that take the engine's place."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parent.parent.parent / ".ci" / "docker-engine"
COMMANDS = {
    "docker": "case $1 in image) exit 1 ;; import) cat ;; esac",
    "dockerd": "",
    "docker-compose": "",
    "debootstrap": 'mkdir -p "$4/usr/bin" "$4/usr/local/bin"; echo "$5" >> "$MIRRORS"',
}
DEB822 = "Types: deb\nURIs: http://one.example/debian\nSuites: bookworm\n"
CLASSIC = "# deb http://none.example\ndeb [arch=amd64] http://two.example/debian bookworm main\n"


def run(root: Path, *arguments: str) -> None:
    """Run the script, whose directory and apt's are below `root`."""
    path = root / "bin"
    path.mkdir()
    for name, body in COMMANDS.items():
        (path / name).write_text(f"#!/bin/sh\n{body}\n")
        (path / name).chmod(0o755)
    own = {
        "PATH": f"{path}:{os.environ['PATH']}",
        "MIRRORS": str(root / "mirrors"),
        "DOCKER_ENGINE_ROOT": str(root),
        "DOCKER_ENGINE_APT": str(root / "apt"),
        "DOCKER_ENGINE_CERTIFICATES": str(root / "none"),
        "DOCKER_ENGINE_PIP": str(root / "none"),
    }
    environ = {name: value for name, value in os.environ.items() if "DOCKER_ENGINE" not in name}
    subprocess.run([SCRIPT, *arguments], env={**environ, **own}, check=True, capture_output=True)


@pytest.mark.parametrize(
    ("name", "text", "mirror"),
    [
        ("sources.list.d/debian.sources", DEB822, "http://one.example/debian"),
        ("sources.list", CLASSIC, "http://two.example/debian"),
    ],
)
def test_the_mirror_is_apts(tmp_path: Path, name: str, text: str, mirror: str) -> None:
    """Packages come from where apt gets them, whichever of its two kinds of files has that."""
    file = tmp_path / "apt" / name
    file.parent.mkdir(parents=True)
    file.write_text(text)
    run(tmp_path)
    assert {mirror} == set((tmp_path / "mirrors").read_text().splitlines())


def test_stop_ends_an_engine_alone(tmp_path: Path) -> None:
    """The process id of an engine that has ended may be another process's."""
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE) as other:
        (tmp_path / "pid").write_text(f"{other.pid}\n")
        run(tmp_path, "stop")
        assert other.stdin is not None
        other.stdin.close()
        assert other.wait() == 0, "it was killed"
    assert not (tmp_path / "pid").exists()
