"""The logs that a live 0.11.0.3 wrote."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

DATA: dict[str, Any] = json.loads(
    (Path(__file__).parent.parent / "data" / "0.11-logs.json").read_text()
)
LOGS: dict[str, tuple[bytes, list[dict[str, Any]]]] = {
    f"{directory}/{name}": (bytes.fromhex(file["hex"]), file["decoded"])
    for directory, files in DATA.items()
    if isinstance(files, dict)
    for name, file in files.items()
    if name.endswith(".log") and isinstance(file, dict) and file["hex"]
}
"""Directory and name of a segment → its bytes, and each entry as the capture's reader found it."""
