"""Builds the files of a release: sdist, wheels, checksums, SBOM."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

REQUIREMENTS: Final = Path(__file__).parent / "requirements.txt"
SECONDS: Final = 1800
"""For one step: a compilation, or an installation."""


class Builder:
    """Builds one release.

    root       the checkout
    work       the directory of the tools and of unfinished files
    dist       where the files go; must be empty
    variables  KAFKA08_REPOSITORY and SOURCE_DATE_EPOCH, which the build reads
    """

    def __init__(self, root: Path, work: Path, dist: Path, variables: Mapping[str, str]) -> None:
        self._root = root
        self._work = work
        self._dist = dist
        self._environ = {**os.environ, **variables}

    def install_tools(self) -> None:
        """The tools of requirements.txt, in an environment of their own."""
        if not self._tool("python").exists():
            self._run([sys.executable, "-m", "venv", self._tool("python").parent.parent])
        self._run(
            [*self._pip(), "install", "--quiet", "--require-hashes", "--requirement", REQUIREMENTS]
        )

    def sdist(self) -> Path:
        """The source archive: all that is committed and that MANIFEST.in names."""
        options: list[str | Path] = ["--sdist", "--outdir", self._dist]
        with tempfile.TemporaryDirectory(dir=self._work) as log:
            self._run([self._tool("python"), "-m", "build", *options, self._root], Path(log, "log"))
        (archive,) = self._dist.glob("*.tar.gz")
        return archive

    def wheel(self, sdist: Path, python: str) -> Path:
        """A wheel made from the sdist, with the compiled kernel; on Linux with a manylinux tag."""
        with tempfile.TemporaryDirectory(dir=self._work) as made:
            options: list[str | Path] = [
                "--quiet",
                "--no-deps",
                "--no-cache-dir",
                "--wheel-dir",
                made,
            ]
            self._run([python, "-m", "pip", "wheel", *options, sdist])
            (wheel,) = Path(made).glob("*.whl")
            before = set(self._dist.glob("*.whl"))
            if sys.platform == "linux":
                options = ["--strip", "--wheel-dir", self._dist]
                self._run([self._tool("auditwheel"), "repair", *options, wheel], Path(made, "log"))
            else:
                wheel.rename(self._dist / wheel.name)
        (repaired,) = set(self._dist.glob("*.whl")) - before
        return repaired

    def check_pages(self) -> None:
        """Check that an index would render the description without a warning."""
        files = sorted([*self._dist.glob("*.whl"), *self._dist.glob("*.tar.gz")])
        self._run([self._tool("twine"), "check", "--strict", *files])

    def sbom(self, environment: Path, version: str) -> Path:
        """The SBOM of the plain install in CycloneDX: the packages of an environment with it."""
        bom = self._dist / f"kafka08-{version}.cdx.json"
        self._run(
            [
                *(self._tool("cyclonedx-py"), "environment", "--output-reproducible"),
                *("--output-format", "JSON", "--output-file", bom, environment / "bin/python"),
            ]
        )
        bom.write_text(as_subject(bom.read_text(), "kafka08"))
        return bom

    def checksums(self) -> Path:
        """SHA256SUMS of all files, as `sha256sum --check` reads it."""
        path = self._dist / "SHA256SUMS"
        path.write_text(sums_of(file for file in self._dist.iterdir() if file != path))
        return path

    def _tool(self, name: str) -> Path:
        return self._work / "tools" / "bin" / name

    def _pip(self) -> list[str | Path]:
        return [self._tool("python"), "-m", "pip", "--disable-pip-version-check"]

    def _run(self, command: Sequence[str | Path], log: Path | None = None) -> None:
        """Run a step. `log`: a file for what it prints, shown only if it fails."""
        done = subprocess.run(
            [str(part) for part in command],
            check=False,
            env={**self._environ, "PATH": f"{self._tool('')}:{os.environ['PATH']}"},
            stdout=None if log is None else log.open("wb"),
            stderr=None if log is None else subprocess.STDOUT,
            timeout=SECONDS,
        )
        if done.returncode and log is not None:
            print(log.read_text(errors="replace"), file=sys.stderr)
        done.check_returncode()


def as_subject(bom: str, name: str) -> str:
    """The SBOM with that component as what it is about, and without paths of this machine."""
    document = json.loads(bom)
    for component in document["components"]:
        references = component.get("externalReferences", ())
        component["externalReferences"] = [
            reference for reference in references if not reference["url"].startswith("file:")
        ]
    (subject,) = (c for c in document["components"] if c["name"] == name)
    document["components"].remove(subject)
    document["metadata"]["component"] = subject
    return json.dumps(document, indent=2) + "\n"


def sums_of(files: Iterable[Path]) -> str:
    """A line each, sorted by name."""
    lines = (
        f"{hashlib.sha256(file.read_bytes()).hexdigest()}  {file.name}\n"
        for file in sorted(files, key=lambda file: file.name)
    )
    return "".join(lines)
