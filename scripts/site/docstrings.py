"""The extension that mkdocstrings loads by this path: see mkdocs.yml."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent.parent))

import griffe

from scripts.site.columns import with_lists


def on_instance(_: object, *, obj: Any, **__: Any) -> None:
    """With lists instead of columns."""
    if obj.docstring is not None:
        obj.docstring.value = with_lists(obj.docstring.value)


Columns = type("Columns", (griffe.Extension,), {"on_instance": on_instance})
