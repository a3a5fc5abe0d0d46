"""`scripts/changes`: moves the change notes of `changes/` into CHANGELOG.md."""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parent.parent
NOTES: Final = ROOT / "changes"
_HEADING: Final = re.compile(r"^### (.+)$", re.MULTILINE)


def notes_of(folder: Path) -> dict[Path, str]:
    """Change note → its text, in the order of their names."""
    return {
        path: path.read_text().strip()
        for path in sorted(folder.glob("*.md"))
        if path.name != "README.md"
    }


def anchor(heading: str) -> str:
    """The section as a link to its heading says it, and as the names of its notes begin."""
    return re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-")


def with_notes(changelog: str, notes: dict[str, list[str]]) -> str:
    """The text of CHANGELOG.md with each note at the end of its section's first list.

    notes   section, as `anchor` names it → the texts of its notes

    Raises ValueError for a section that the newest version lacks.
    """
    left = dict(notes)
    version_end = changelog.find("\n## ", changelog.index("\n## ") + 1)
    body, older = (
        (changelog, "") if version_end < 0 else (changelog[:version_end], changelog[version_end:])
    )
    parts = _HEADING.split(body)
    for number in range(1, len(parts), 2):
        if found := left.pop(anchor(parts[number]), None):
            head, blank, rest = parts[number + 1].lstrip("\n").partition("\n\n")
            items = [f"- {text.replace(chr(10), chr(10) + '  ')}" for text in found]
            parts[number + 1] = "\n\n" + "\n".join([head.rstrip("\n"), *items]) + (blank + rest)
            if not blank:
                parts[number + 1] += "\n"
    if left:
        raise ValueError(f"CHANGELOG.md has no section {', '.join(sorted(left))}")
    joined = parts[0] + "".join(
        f"### {heading}{text}" for heading, text in zip(parts[1::2], parts[2::2], strict=True)
    )
    return joined + older


def main() -> int:
    argparse.ArgumentParser(prog="scripts/changes", description=__doc__).parse_args()
    found = notes_of(NOTES)
    notes: dict[str, list[str]] = {}
    for path, text in found.items():
        notes.setdefault(path.name.partition(".")[0], []).append(text)
    page = ROOT / "CHANGELOG.md"
    try:
        page.write_text(with_notes(page.read_text(), notes))
    except ValueError as error:
        print(f"changes/: {error}; changes/README.md names the sections", file=sys.stderr)
        return 1
    for path in found:
        path.unlink()
    print(f"moved {len(found)} change notes into CHANGELOG.md")
    return 0


if __name__ == "__main__":
    sys.exit(main())
