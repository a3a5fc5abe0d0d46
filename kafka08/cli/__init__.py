"""The `kafka08` command: click parses, a room does the work, the result is printed.

One module per noun; `root.py` has the list. No decision lives here. Results go to stdout, talk and
progress to stderr. Exit codes: 0 done, 1 failed, 2 misuse (failures.py).
"""

from __future__ import annotations

import sys
from typing import NoReturn

from kafka08.cli.failures import drop_unwritten, missing_extra, report
from kafka08.cli.root import root
from kafka08.errors import KafkaError

__all__ = ["main", "root"]


def main() -> NoReturn:
    """Run the command line; expected errors become a sentence on stderr and an exit code."""
    try:
        root(prog_name="kafka08")
    except (KafkaError, OSError) as error:
        fail(error)
    except ModuleNotFoundError as error:
        missing = missing_extra(error)
        if missing is None:
            raise
        fail(missing)
    raise AssertionError("click always exits")


def fail(error: Exception) -> NoReturn:
    """Tell the error and end."""
    code = report(error)
    drop_unwritten()
    sys.exit(code)
