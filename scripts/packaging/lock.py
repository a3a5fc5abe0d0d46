"""The lock file's text from pip's report of what it would install."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any, Final

HEAD: Final = """\
# The versions that development and the tests use: constraints of scripts/install, by scripts/lock.
# setup.cfg has the ranges that kafka08 itself asks for.
"""


def lock_text(report: dict[str, Any]) -> str:
    """One constraint per package of the report and for pip, by name, without kafka08 itself."""
    packages = [item["metadata"] for item in report["install"]]
    pins = {canonical(package["name"]): package["version"] for package in packages}
    pins.pop("kafka08", None)
    pins["pip"] = report["pip_version"]
    return HEAD + "".join(f"{name}=={version}\n" for name, version in sorted(pins.items()))


def canonical(name: str) -> str:
    """The name as pip compares it."""
    return re.sub(r"[-_.]+", "-", name).lower()


if __name__ == "__main__":
    print(lock_text(json.loads(Path(sys.argv[1]).read_text())), end="")
