"""Print the figures of scripts/coverage: by package, then the files with the largest gaps."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

GAPS_SHOWN: Final = 15


def measured() -> Mapping[str, Any]:
    """path → coverage.py's summary of the file."""
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "coverage.json"
        command = [sys.executable, "-m", "coverage", "json", "--quiet", "-o", str(path)]
        subprocess.run(command, check=True)
        files: dict[str, Any] = json.loads(path.read_text())["files"]
    return {name: facts["summary"] for name, facts in files.items()}


def report(files: Mapping[str, Any]) -> list[str]:
    """The lines of the report. A share counts lines and branches together."""
    wanted: Counter[str] = Counter()
    hit: Counter[str] = Counter()
    gaps: Counter[str] = Counter()
    for name, summary in files.items():
        parts = Path(name).parts
        package = parts[1] if len(parts) > 2 else "(modules)"
        count = summary["num_statements"] + summary["num_branches"]
        covered = summary["covered_lines"] + summary["covered_branches"]
        for row in (package, "all"):
            wanted[row] += count
            hit[row] += covered
        gaps[name] = summary["missing_lines"]
    lines = [
        f"{row:12} {100 * hit[row] / wanted[row]:6.1f} %  of {wanted[row]:6,}"
        for row in sorted(wanted, key=lambda row: (row != "all", row))
        if wanted[row]
    ]
    lines.append("lines that no quick test runs:")
    lines += [f"  {missing:5}  {name}" for name, missing in gaps.most_common(GAPS_SHOWN) if missing]
    return lines


if __name__ == "__main__":
    print(*report(measured()), sep="\n")
