"""Hooks that mkdocs calls while it builds the site: see mkdocs.yml."""

from __future__ import annotations

import os
import posixpath
import re
import sys
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).parent.parent.parent
sys.path.insert(0, str(ROOT))  # mkdocs loads this file by its path

from mkdocs.exceptions import PluginError  # noqa: E402
from mkdocs.structure.files import File, InclusionLevel  # noqa: E402

from scripts.site import commands  # noqa: E402
from scripts.site.links import (  # noqa: E402
    Link,
    indented,
    line_of,
    links_of,
    rewritten,
    titled,
)

OUTSIDE: Final = {
    "README.md": "project/readme.md",
    "ARCHITECTURE.md": "project/architecture.md",
    "CONTRIBUTING.md": "project/contributing.md",
    "CHANGELOG.md": "project/changelog.md",
    "SECURITY.md": "project/security.md",
    "CODE_OF_CONDUCT.md": "project/conduct.md",
    "examples/README.md": "examples.md",
}
"""Pages that stand outside docs/: file → where it is on the site."""
ASSETS: Final = ROOT / "scripts" / "site" / "assets"
DIAGRAMS: Final = "KAFKA08_DOCS_DIAGRAMS"
"""The variable that names the library for diagrams; scripts/docs sets it."""
DIAGRAM: Final = re.compile(r'<pre class="mermaid">.*?</pre>', re.DOTALL)
LINE_ANCHOR: Final = re.compile(r'id="(__codelineno-0-\d+)"')
CELL: Final = re.compile(r"<td\b.*?</td>", re.DOTALL)
CODE: Final = re.compile(r"<code>[^<]*</code>")
JOINT: Final = re.compile(r"(?<=[A-Za-z][._,:/=])(?=\w)")
"""Where a name such as log.segment.bytes may break."""
TITLE: Final = re.compile(r"# (.+)")
ELSEWHERE: Final = re.compile(r" On the site, this page is made from [^.]*\.")
"""A sentence for readers of a code host."""
COMMANDS: Final = "<!-- commands -->"
API: Final = re.compile(r"^::: ", re.MULTILINE)
"""Docstrings are put in here."""
LANGUAGES: Final = {".py": "python", ".pyx": "cython", ".pxi": "cython", ".h": "c", ".yml": "yaml"}


def place_of(path: str) -> str | None:
    """Where a file of the repository is on the site; None if it has no place there."""
    if path in OUTSIDE:
        return OUTSIDE[path]
    if path.startswith("docs/"):
        return path.removeprefix("docs/")
    file = ROOT / path
    if file.is_dir() and (file / "__init__.py").exists():
        return place_of(f"{path}/__init__.py")
    return f"source/{path}.md" if file.is_file() else None


def repository_path(place: str) -> str:
    """The file of the repository that a page was made from."""
    return next((path for path, page in OUTSIDE.items() if page == place), f"docs/{place}")


def on_files(files: Any, config: Any) -> Any:
    """Add the pages outside docs/, a page for each source file that is linked, and assets."""
    for path, place in OUTSIDE.items():
        if (ROOT / path).exists():
            text = (ROOT / path).read_text()
            files.append(File.generated(config, place, content=text))
    linked = {
        link.path
        for file in list(files.documentation_pages())
        for link in links_of(file.content_string, repository_path(file.src_uri))
    }
    for target in sorted({place_of(path) or "" for path in linked}):
        if target.startswith("source/"):
            source = target.removeprefix("source/").removesuffix(".md")
            page = File.generated(config, target, content=_source_page(source))
            page.inclusion = InclusionLevel.NOT_IN_NAV
            files.append(page)
    for asset in sorted(ASSETS.iterdir()):
        files.append(File.generated(config, f"assets/{asset.name}", abs_src_path=str(asset)))
    diagrams = os.environ.get(DIAGRAMS)
    if diagrams is None:
        raise PluginError("Diagrams need a library: build with scripts/docs")
    files.append(File.generated(config, "assets/diagrams.js", abs_src_path=diagrams))
    return files


def _source_page(path: str) -> str:
    text = (ROOT / path).read_text()
    language = LANGUAGES.get(posixpath.splitext(path)[1], "bash" if text[:2] == "#!" else "text")
    fence = "`" * 8
    return (
        f"---\ntitle: {path}\nsearch: {{exclude: true}}\nhide: [navigation, toc]\n---\n\n"
        f"# `{path}` {{#file}}\n\n{fence} {{.{language} linenums=1}}\n{text}\n{fence}\n"
    )


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Links lead to pages of the site; the commands are put in."""
    place = page.file.src_uri
    if place.startswith("source/"):
        return markdown
    if COMMANDS in markdown:
        markdown = markdown.replace(COMMANDS, commands.page())
        page.meta.setdefault("search", {"boost": 2})
    if API.search(markdown):  # names of methods would hide the pages about them
        page.meta.setdefault("search", {"boost": 0.5})
    path = repository_path(place)
    markdown = ELSEWHERE.sub("", markdown)
    return indented(rewritten(titled(markdown, path, _title_of), path, place, _target_of))


def on_page_content(html: str, page: Any, **_: Any) -> str:
    """Lines of source files may be linked. A diagram that is wider than a phone scrolls in a box of
    its own."""
    page.present_anchor_ids |= set(LINE_ANCHOR.findall(html))
    return DIAGRAM.sub(r'<div class="diagram">\g<0></div>', html)


def on_post_page(output: str, page: Any, **_: Any) -> str:
    """Let long names in tables break after their dots."""
    if page.file.src_uri.startswith("source/"):
        return output

    def breakable(cell: re.Match[str]) -> str:
        return CODE.sub(lambda code: JOINT.sub("<wbr>", code[0]), cell[0])

    return CELL.sub(breakable, output)


def _title_of(path: str) -> str | None:
    if not path.endswith(".md") or not (ROOT / path).is_file():
        return None
    title = TITLE.match((ROOT / path).read_text())
    return title[1] if title else None


def _target_of(link: Link) -> str | None:
    place = place_of(link.path)
    if place is None:
        return None  # mkdocs says that it leads nowhere
    if not place.startswith("source/"):
        return f"{place}#{link.anchor}" if link.anchor else place
    if link.name is None or not link.path.endswith(".py"):
        return place
    line = line_of((ROOT / link.path).read_text(), link.name)
    if line is None and link.name == Path(link.path).stem:
        return place  # the module itself
    if line is None:
        raise PluginError(f"{link.path} does not define {link.name}")
    return f"{place}#__codelineno-0-{line}"
