"""`scripts/release`: check, build, try. See CONTRIBUTING.md, "Releasing"."""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from kafka08 import __version__
from scripts.change_notes import NOTES, notes_of
from scripts.packaging.build import Builder
from scripts.packaging.checks import Source, problems, sdist_problems, wheel_problems
from scripts.packaging.smoke import Smoke, try_wheel

ROOT: Final = Path(__file__).parent.parent.parent
WORK: Final = ROOT / ".release"
DIST: Final = ROOT / "dist"
PYTHONS: Final = ("python3.11", "python3.12", "python3.13", "python3.14")
"""The releases that kafka08 supports; setup.cfg and pyproject.toml list them, too."""


def main() -> int:
    """Build and try every file. Returns 0 if all of it worked."""
    options = parser().parse_args()
    if found := list(problems(source())):
        print(*found, sep="\n", file=sys.stderr)
        if not options.draft:
            return 1
        print("a draft: built nevertheless, not to be published", file=sys.stderr)
    pythons = [python for python in options.python or PYTHONS if works(python)]
    for python in set(options.python or PYTHONS) - set(pythons):
        print(f"no {python} here: no wheel for it", file=sys.stderr)
    if not pythons or set(options.python) - set(pythons):
        return 1
    shutil.rmtree(DIST, ignore_errors=True)
    DIST.mkdir()
    WORK.mkdir(exist_ok=True)
    variables = {"KAFKA08_NATIVE": "1", "SOURCE_DATE_EPOCH": git("log", "-1", "--format=%ct")}
    variables["KAFKA08_REPOSITORY"] = options.repository
    builder = Builder(ROOT, WORK, DIST, variables)
    builder.install_tools()
    sdist = builder.sdist()
    with tarfile.open(sdist) as archive:
        bad = list(sdist_problems(git("ls-files").splitlines(), archive.getnames()))
    for number, python in enumerate(pythons):
        wheel = builder.wheel(sdist, python)
        bad += wheel_problems(wheel.name, wheel.stat().st_size, linux=sys.platform == "linux")
        with tempfile.TemporaryDirectory(dir=WORK) as directory:
            smoke = try_wheel(wheel, python, Path(directory) / "smoke")
            if not number:
                builder.sbom(smoke.clients.directory, __version__)
        print(report(wheel, smoke), flush=True)
    builder.check_pages()
    builder.checksums()
    print(*bad, sep="\n", end="\n" if bad else "", file=sys.stderr)
    print(*sorted(str(file.relative_to(ROOT)) for file in DIST.iterdir()), sep="\n")
    return int(bool(bad))


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(prog="scripts/release")
    made.add_argument("--draft", action="store_true", help="go on if a check of the source fails")
    made.add_argument("--repository", default="", help="its URL, for the links of the index's page")
    made.add_argument(
        "--python", action="append", default=[], help=f"default: those of {', '.join(PYTHONS)}"
    )
    return made


def source() -> Source:
    """The source that is checked out."""
    return Source(
        version=__version__,
        changes=git("status", "--porcelain"),
        tags=frozenset(git("tag", "--points-at", "HEAD").split()),
        changelog=(ROOT / "CHANGELOG.md").read_text(),
        compose=(ROOT / "docker-compose.yml").read_text(),
        spark_image=(ROOT / "image" / "spark.Dockerfile").read_text(),
        notes=tuple(path.name for path in notes_of(NOTES)),
    )


def git(*arguments: str) -> str:
    return output(["git", "-C", str(ROOT), *arguments]).strip("\n")


def works(python: str) -> bool:
    """Whether this Python runs: a shim of pyenv on the PATH may run nothing."""
    try:
        output([python, "-c", "import venv, ensurepip"])
    except (OSError, subprocess.CalledProcessError):
        return False
    return True


def output(command: Sequence[str]) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def report(wheel: Path, smoke: Smoke) -> str:
    return f"{wheel.name}  {wheel.stat().st_size / 1e6:.2f} MB\n{smoke}"


if __name__ == "__main__":
    sys.exit(main())
