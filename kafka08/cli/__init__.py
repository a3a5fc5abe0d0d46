"""The `kafka08` command: click parses, a room does the work, the result is printed.

One module per noun; `root.py` has the list. No decision lives here. Results go to stdout, talk and
progress to stderr. Exit codes: 0 done, 1 failed, 2 misuse.
"""

from __future__ import annotations

import sys
from typing import NoReturn

from kafka08.cli.root import root
from kafka08.errors import ConfigError, KafkaError

__all__ = ["main", "root"]


def main() -> NoReturn:
    """Run the command line; expected errors become one sentence on stderr and an exit code."""
    try:
        root(prog_name="kafka08")
    except ConfigError as error:
        sys.stderr.write(f"Error: {error}\n")
        sys.exit(2)
    except KafkaError as error:
        sys.stderr.write(f"Error: {error}\n")
        sys.exit(1)
    raise AssertionError("click always exits")
