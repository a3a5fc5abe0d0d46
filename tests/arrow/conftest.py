"""Without pyarrow the tests that make batches are left out; with CI=true they fail."""

from __future__ import annotations

import os
from importlib.util import find_spec

if find_spec("pyarrow") is None and os.environ.get("CI") != "true":
    collect_ignore = ["test_batches.py", "test_topic_scan.py"]
