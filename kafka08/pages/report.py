"""Writes the report, and reads its data back: the console's pages as one HTML file that needs no
network, with the state and the answers that the console would give its pages.

Its Content-Security-Policy allows only the page's own script and style, by their hashes: no other
script runs, and nothing can be loaded.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
import stat
from pathlib import Path
from typing import Any, Final, NamedTuple

from kafka08.errors import ConfigError
from kafka08.observe.snapshot import ClusterView
from kafka08.pages.overview import Overview, overview_of
from kafka08.pages.trends import Trends
from kafka08.pages.view_json import view_as_json, view_of_json

STATIC: Final = Path(__file__).with_name("static")
REPORT_BYTES_MAX: Final = 256 * 1024 * 1024
KEPT: Final = ('<script type="application/json" id="kept">', "</script>")
"""The markup around the JSON that the next report reads."""


class Kept(NamedTuple):
    """The data that a report keeps for the next one."""

    connect: str
    view: ClusterView
    trends: Trends


def page_of(facts: Overview) -> str:
    """The HTML."""
    style, script = static("page.css"), static("parts.js") + static("console.js")
    state = {"connect": facts.connect, "overview": overview_of(facts)}
    kept = {"connect": facts.connect, "view": view_as_json(facts.view)}
    parts = {
        "/*STYLE_HASH*/": hash_of(style),
        "/*SCRIPT_HASH*/": hash_of(script),
        "/*STYLE*/": style,
        "/*SCRIPT*/": script,
        "/*SNAPSHOT*/": json_text({"state": state, "answers": facts.answers}),
        "/*KEPT*/": json_text(kept | {"trends": facts.trends.as_dict()}),
    }
    # In one pass: a group may have the name of a placeholder.
    return re.sub(r"/\*[A-Z_]+\*/", lambda found: parts[found[0]], static("report.html"))


def read_report(path: Path) -> Kept | None:
    """The data that the report at `path` keeps; None without a file. ConfigError if the file is not
    a report: it must not be overwritten."""
    try:
        found_file = path.stat()
        if not stat.S_ISREG(found_file.st_mode):
            raise ValueError("it is no regular file")  # a device or a pipe may have no end
        if found_file.st_size > REPORT_BYTES_MAX:
            raise ValueError(f"it has more than {REPORT_BYTES_MAX} bytes")
        text = path.read_text(encoding="utf-8")
        _, found, rest = text.partition(KEPT[0])
        if not found:
            raise ValueError("it keeps nothing for a next one")
        kept = json.loads(rest.partition(KEPT[1])[0])
        view, trends = view_of_json(kept["view"]), Trends.of_dict(kept["trends"])
        return Kept(str(kept["connect"]), view, trends)
    except FileNotFoundError:
        return None
    except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise ConfigError(
            f"{path} exists and is not a report of kafka08 ({error}). Give another name, or remove "
            "the file"
        ) from error


def json_text(value: Any) -> str:
    """JSON for a script element: without "<" it can neither end nor nest one."""
    return json.dumps(value, separators=(",", ":")).replace("<", "\\u003c")


def hash_of(text: str) -> str:
    """A hash in the form of Content-Security-Policy."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def static(name: str) -> str:
    return (STATIC / name).read_text(encoding="utf-8")
