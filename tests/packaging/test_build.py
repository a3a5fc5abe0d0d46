"""The files of a release that need no build tool."""

from __future__ import annotations

import json
import subprocess
import tomllib
from configparser import ConfigParser
from pathlib import Path

from scripts.packaging.__main__ import PYTHONS
from scripts.packaging.build import as_subject, sums_of
from tests.test_layout import ROOT


def test_checksums_are_those_that_sha256sum_checks(tmp_path: Path) -> None:
    """sha256sum refuses a file that has changed since."""
    (tmp_path / "b.whl").write_bytes(b"wheel")
    (tmp_path / "a.tar.gz").write_bytes(b"source")
    sums = sums_of(tmp_path.iterdir())
    (tmp_path / "SHA256SUMS").write_text(sums)
    check = ["sha256sum", "--check", "SHA256SUMS"]
    subprocess.run(check, cwd=tmp_path, check=True, capture_output=True)
    assert [line.split()[1] for line in sums.splitlines()] == ["a.tar.gz", "b.whl"]
    (tmp_path / "b.whl").write_bytes(b"other")
    assert subprocess.run(check, cwd=tmp_path, check=False, capture_output=True).returncode


def test_an_sbom_is_about_the_project() -> None:
    """It keeps the requirements as components, and no path of the machine that built it."""
    archive = {"type": "distribution", "url": "file:///home/x/kafka08.whl"}
    site = {"type": "website", "url": "https://kazoo.example"}
    components = [
        {"name": "kafka08", "version": "1", "externalReferences": [archive]},
        {"name": "kazoo", "version": "2", "externalReferences": [site]},
        {"name": "lz4", "version": "4"},
    ]
    bom = {"bomFormat": "CycloneDX", "metadata": {}, "components": components}
    made = json.loads(as_subject(json.dumps(bom), "kafka08"))
    assert made["metadata"]["component"]["name"] == "kafka08"
    assert [component["name"] for component in made["components"]] == ["kazoo", "lz4"]
    assert "file:" not in json.dumps(made)
    assert made["components"][0]["externalReferences"] == [site]


def test_the_same_pythons_everywhere() -> None:
    """Classifiers, the lowest Python of installs, mypy and ruff, and the wheels that are built."""
    setup = ConfigParser()
    setup.read(ROOT / "setup.cfg")
    named = [line.rpartition(" :: ")[2] for line in setup["metadata"]["classifiers"].split("\n")]
    versions = [name for name in named if name.startswith("3.")]
    assert [f"python{version}" for version in versions] == list(PYTHONS)
    assert setup["options"]["python_requires"] == f">={versions[0]}"
    assert setup["mypy"]["python_version"] == versions[0]
    digits = [version.replace(".", "") for version in versions]
    ruff = tomllib.loads((ROOT / "ruff.toml").read_text())
    assert ruff["target-version"] == f"py{digits[0]}"
    wheels = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["cibuildwheel"]["build"]
    assert set(wheels) == {*(f"cp{version}-*" for version in digits), "cp314t-*"}
