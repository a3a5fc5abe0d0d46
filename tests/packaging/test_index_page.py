"""The README as a package index shows it."""

from __future__ import annotations

import re
import runpy
from typing import Any

import pytest

from kafka08 import __version__
from tests.test_layout import ROOT

README = (ROOT / "README.md").read_text()
URL = "https://example.org/kafka08"


@pytest.fixture(scope="module")
def setup_py() -> dict[str, Any]:
    """The functions of setup.py, which calls setup() only as a program."""
    return runpy.run_path(str(ROOT / "setup.py"), run_name="setup_py")


def test_setup_finds_the_version(setup_py: dict[str, Any]) -> None:
    """It does so without an import, because no dependency is installed during a build."""
    assert setup_py["version"]() == __version__


def test_links_and_pictures_lead_to_files_of_the_release(setup_py: dict[str, Any]) -> None:
    """Every target that is not absolute is a file here, and is at that tag of the repository."""
    targets = set(re.findall(r"\]\((?!https?:)([^)]*)\)", README))
    page = setup_py["page"](README, URL, "v9")
    found = re.findall(rf"(!?)\[[^\]]*\]\({URL}/(blob|raw)/v9/([^)]*)\)", page)
    assert {path for _, _, path in found} == targets
    assert all((ROOT / path.partition("#")[0]).exists() for path in targets)
    assert {kind for picture, kind, _ in found if picture} == {"raw"}
    assert {kind for picture, kind, _ in found if not picture} == {"blob"}


def test_without_a_repository_nothing_is_broken(setup_py: dict[str, Any]) -> None:
    """A wheel that is built from a checkout has text instead of links, and no pictures."""
    page = setup_py["page"](README, "", "v9")
    assert re.findall(r"\]\((?!https?:)", page) == []
    assert "ARCHITECTURE.md" in page


def test_a_link_elsewhere_stays(setup_py: dict[str, Any]) -> None:
    """Absolute links and those within the page stay as they are."""
    text = "[a](https://a.example/b) [c](#install) [d](docs/d.md#e)"
    expected = f"[a](https://a.example/b) [c](#install) [d]({URL}/blob/v9/docs/d.md#e)"
    assert setup_py["page"](text, URL, "v9") == expected
