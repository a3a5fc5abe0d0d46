"""A real Chromium without a window. Skipped where there is none, unless CI=true: scripts/ci-setup
installs Debian's."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome")
DEADLINE_S = 100


def page_in_chromium(url: str, profile: Path, *, milliseconds: int = 2000) -> str:
    """The page's HTML, as its scripts have left it after so much time of its own clock."""
    program = next(filter(None, map(shutil.which, NAMES)), None)
    if program is None:
        if os.environ.get("CI") == "true":
            raise AssertionError("there is no Chromium: scripts/ci-setup installs it")
        pytest.skip("there is no Chromium")
    done = subprocess.run(
        [
            *(program, "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run"),
            *("--disable-dev-shm-usage", "--disable-background-networking", "--no-proxy-server"),
            *(f"--user-data-dir={profile}", f"--virtual-time-budget={milliseconds}"),
            *("--dump-dom", url),
        ],
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
