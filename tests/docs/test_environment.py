"""docs/reference/environment.md names every environment variable of the package."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
PAGE = ROOT / "docs/reference/environment.md"


def test_the_page_names_each_variable_that_the_package_reads() -> None:
    """The page names no other variable of ours. Variables that begin with an underscore are
    internal."""
    sources = (path.read_text() for path in ROOT.glob("kafka08/**/*.py"))
    read = {name for source in sources for name in re.findall(r'"(KAFKA08_[A-Z_]+)"', source)}
    assert read == set(re.findall(r"^\| `(KAFKA08_[A-Z_]+)` \|", PAGE.read_text(), re.MULTILINE))
