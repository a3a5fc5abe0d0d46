"""`python -m kafka08.kernel`: prints the version and the kernel of this install. Needs no extra."""

from __future__ import annotations

import os
import platform

from kafka08 import __version__, kernel
from kafka08.kernel.choice import why_not_native

if __name__ == "__main__":
    why = why_not_native(os.environ.get("KAFKA08_KERNEL", ""))
    print(  # noqa: T201
        f"kafka08 {__version__} ({kernel.NAME} kernel, Python {platform.python_version()})"
        + (f": {why}" if why else "")
    )
