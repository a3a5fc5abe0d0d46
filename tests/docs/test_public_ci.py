"""The public CI files run what exists, on the Pythons that the package names, without secrets."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
WORKFLOWS = {path.stem: path for path in (ROOT / ".github" / "workflows").glob("*.yml")}
TEXTS = {name: path.read_text() for name, path in WORKFLOWS.items()}
EXPECTED_SCRIPTS = {
    "audit": {"scripts/audit"},
    "ci": {"scripts/test-all", "scripts/docs", "scripts/coverage"},
    "publish": {"scripts/release", "scripts/docs"},
}


def jobs(name: str) -> dict[str, str]:
    """Job → its text."""
    _, _, text = TEXTS[name].partition("\njobs:\n")
    parts = re.split(r"^  (\w+):\n", text, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


@pytest.mark.parametrize("name", WORKFLOWS)
def test_actions_are_pinned(name: str) -> None:
    """Every action is pinned to a commit, because a tag can be moved, and a comment has its tag."""
    used = re.findall(r"uses: (.*)", TEXTS[name])
    assert used
    pinned = re.compile(r"[\w./-]+@[0-9a-f]{40}  # v\d+\.\d+\.\d+")
    assert [] == [action for action in used if not pinned.fullmatch(action)]


def test_one_commit_per_tag() -> None:
    """The same action has the same commit and tag wherever it is used."""
    used = re.findall(r"uses: (\S+)@(.*)", "".join(TEXTS.values()))
    assert len(dict(used)) == len(set(used))


@pytest.mark.parametrize("name", WORKFLOWS)
def test_scripts_exist(name: str) -> None:
    """Every script that a step runs is in the repository."""
    named = set(re.findall(r"\bscripts/[\w-]+", TEXTS[name]))
    assert EXPECTED_SCRIPTS[name] <= named
    assert [] == [script for script in named if not (ROOT / script).is_file()]


def test_the_pythons_are_those_of_the_package() -> None:
    """The matrix has the classifiers of setup.cfg."""
    classifiers = re.findall(r"Python :: (3\.\d+)$", (ROOT / "setup.cfg").read_text(), re.MULTILINE)
    [matrix] = re.findall(r"python: \[(.*)\]", jobs("ci")["quick"])
    assert classifiers == [version.strip(' "') for version in matrix.split(",")]


def test_each_pyspark_is_tried() -> None:
    """The matrix has the releases that scripts/spark-versions tries by itself."""
    script = (ROOT / "scripts" / "spark-versions").read_text()
    [tried] = re.findall(r"set -- ([\d. ]+)", script)
    [matrix] = re.findall(r"pyspark: \[(.*)\]", jobs("ci")["spark"])
    assert tried.split() == [version.strip(' "') for version in matrix.split(",")]


def test_only_a_tag_publishes_and_no_job_has_a_secret() -> None:
    """The jobs that publish are the only ones with a token of their own. They run for tags only,
    after everything is built."""
    publish = jobs("publish")
    assert ["publish", "site"] == [name for name, job in publish.items() if "permissions:" in job]
    for name, needs in (("publish", "source, wheels"), ("site", "publish")):
        assert f"    if: github.ref_type == 'tag'\n    needs: [{needs}]\n" in publish[name]
    assert not [name for name, text in TEXTS.items() if "secrets." in text]
