"""docs/compatibility.md can be filtered: each difference says when it can be noticed."""

from __future__ import annotations

import re
from html import escape
from pathlib import Path
from typing import Final

from tests.pages.chromium import Chromium

ROOT: Final = Path(__file__).parents[2]
PAGE: Final = (ROOT / "docs" / "compatibility.md").read_text()
SCRIPT: Final = ROOT / "scripts" / "site" / "assets" / "differences.js"
WORDS: Final = tuple(
    re.findall(r'"(\w+)"', SCRIPT.read_text().partition("boxes = [")[2].split("]")[0])
)


def tables() -> list[list[str]]:
    """The lines of each table that is folded, its head first."""
    folded = "\n\n".join(re.findall(r"<details.*?</details>", PAGE, re.DOTALL))
    return [part.splitlines() for part in folded.split("\n\n") if part.startswith("|")]


def test_each_difference_says_when_it_is_noticed() -> None:
    """By one of the words that the page explains and the filter offers; no table is left out."""
    legend = PAGE.partition("| when | you notice it |")[2].partition("\n\n")[0]
    assert WORDS == tuple(re.findall(r"^\| (\w+) \|", legend, re.MULTILINE))
    for head, _, *rows in tables():
        if not head.startswith("| statement"):
            assert head.startswith("| when | case "), head
            assert set(WORDS) >= {row.split("|")[1].strip() for row in rows}, head
    assert PAGE.count("| case |") == sum(head.startswith("| when") for head, *_ in tables())


def page_of(areas: dict[str, list[tuple[str, str]]]) -> str:
    """What the site makes of the page, without its theme."""
    parts = ['<article><div id="differences"></div>']
    for area, rows in areas.items():
        cells = "".join(f"<tr><td>{w}</td><td>{escape(c)}</td></tr>" for w, c in rows)
        head = "<thead><tr><th>when</th><th>case</th></tr></thead>"
        parts.append(f"<h2>{area}<a>¶</a></h2><details><summary>s</summary><table>{head}")
        parts.append(f"<tbody>{cells}</tbody></table></details>")
    stub = "const document$ = {subscribe: act => act()};"
    return f"{''.join(parts)}</article><script>{stub}{SCRIPT.read_text()}</script>"


def test_areas_words_and_whens_choose_rows(chromium: Chromium, tmp_path: Path) -> None:
    """Together; areas without a row go, the others open. Nothing chosen is the page as it was."""
    file = tmp_path / "page.html"
    areas = {"Log": [("fault", "a torn write"), ("rare", "a roll")], "Tools": [("use", "a code")]}
    file.write_text(f"<meta charset=utf-8>{page_of(areas)}", encoding="utf-8")
    page = chromium.open(file.as_uri())
    shown = "[...document.querySelectorAll('tbody tr')].filter(r => r.checkVisibility()).length"
    assert 0 == page.evaluate(shown)  # all are folded

    def choose(selector: str, change: str) -> str:
        page.evaluate(
            f"(at => {{ at.{change}; at.dispatchEvent(new Event('input', {{bubbles: true}})); }})"
            f"(document.querySelector('#differences {selector}'))"
        )
        return str(page.evaluate("document.querySelector('#differences output').textContent"))

    assert "1 of 3 differences" == choose("[value=fault]", "checked = true")
    assert 1 == page.evaluate(shown)
    assert "2 of 3 differences" == choose("[value=use]", "checked = true")
    assert "1 of 3 differences" == choose("select", "value = 'Tools'")
    assert "Tools¶" == page.evaluate(
        "[...document.querySelectorAll('h2')].filter(h => !h.hidden).map(h => h.textContent).join()"
    )
    assert "0 of 3 differences" == choose("[type=search]", "value = 'torn'")
    choose("[type=search]", "value = ''")
    choose("select", "value = ''")
    choose("[value=use]", "checked = false")
    assert "" == choose("[value=fault]", "checked = false")
    assert 0 == page.evaluate(shown)
    assert [] == page.errors
