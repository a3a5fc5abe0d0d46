"""Links as they stand on a code host become links of the site, and name what is there."""

from __future__ import annotations

from pathlib import Path

import pytest

from scripts.site.links import definitions, indented, line_of, links_of, rewritten, titled

ROOT = Path(__file__).parent.parent.parent
PAGES = sorted(str(path.relative_to(ROOT)) for path in ROOT.glob("docs/**/*.md"))

TEXT = """\
A [page](other.md#part), a [file](../kafka08/log/log.py), [outside](https://example.org/a.md),
[here](#below), ![picture](images/a.png) and [`Log.append`](../kafka08/log/log.py).

```python
call("[not a link](../nowhere.md)")
```
"""


def test_links_name_files_of_the_repository() -> None:
    """Those outside fences that lead to a file; labels in backquotes are names."""
    found = [(link.path, link.anchor, link.name) for link in links_of(TEXT, "docs/page.md")]
    assert found == [
        ("docs/other.md", "part", None),
        ("kafka08/log/log.py", "", None),
        ("docs/images/a.png", "", None),
        ("kafka08/log/log.py", "", "Log.append"),
    ]


def test_targets_are_relative_to_the_page() -> None:
    """A target without another place stays unchanged."""
    places = {"docs/other.md": "b/other.md#part"}
    text = rewritten(TEXT, "docs/page.md", "a/page.md", lambda link: places.get(link.path))
    assert text == TEXT.replace("(other.md#part)", "(../b/other.md#part)")


def test_a_label_that_is_a_file_name_becomes_a_title() -> None:
    """Other labels stay, and so does that of a file without a title."""
    text = "[log.md](../log.md#part), [the log](../log.md), [other.md](other.md)"
    found = titled(text, "docs/a/page.md", {"docs/log.md": "The log"}.get)
    assert found == "[The log](../log.md#part), [the log](../log.md), [other.md](other.md)"


def test_a_name_is_found_where_it_is_defined() -> None:
    """In full, or by the last part where only one class has it."""
    source = (
        "A = 1\nclass B:\n    x: int = 2\n    def f(self): ...\nclass C:\n    def g(self): ...\n"
    )
    assert definitions(source) == {"A": 1, "B": 2, "B.x": 3, "B.f": 4, "C": 5, "C.g": 6}
    assert [line_of(source, name) for name in ("B.f", "g", "h")] == [4, 6, None]


def test_lists_under_numbers_are_found() -> None:
    """Python-Markdown needs four columns, and empty lines around such a list."""
    text = "1. One\n   more\n   - a\n     on\n   - b\n2. Two\n\n```\n   - code\n```\n"
    expected = "1. One\n    more\n\n    - a\n      on\n    - b\n\n2. Two\n\n```\n   - code\n```\n"
    assert indented(text) == expected


@pytest.mark.parametrize("page", PAGES)
def test_names_in_labels_are_defined_in_the_files_linked(page: str) -> None:
    """A reader searches kafka08/log/log.py for the `Log.append` of the label."""
    for link in links_of((ROOT / page).read_text(), page):
        if link.name is not None and link.path.endswith(".py"):
            file = ROOT / link.path
            assert line_of(file.read_text(), link.name) or link.name == file.stem, link


@pytest.mark.parametrize("page", PAGES)
def test_every_page_has_its_place(page: str) -> None:
    """Every page is in the navigation of mkdocs.yml; scripts/docs fails otherwise."""
    assert f"- {page.removeprefix('docs/')}\n" in (ROOT / "mkdocs.yml").read_text()
