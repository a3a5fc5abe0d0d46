"""The `kafka08` command: click parses the words, a package does the work, the result is printed.

One module per noun; `root.py` has the list. Commands contain no decisions. Results go to stdout,
messages and progress to stderr. Exit codes: 0 done, 1 failed, 2 misuse (failures.py).
"""

from __future__ import annotations

import sys

from kafka08.stop_signals import hold_stop_signals

__all__ = ["main"]


def main() -> None:
    """Run the command line; expected errors become a message on stderr and an exit code."""
    # Before anything else: the imports take a while, and a signal must not stop a command half-way.
    hold_stop_signals()
    from kafka08.cli.standard_streams import escape_what_stdout_lacks, open_closed_streams

    open_closed_streams()
    escape_what_stdout_lacks()
    from kafka08.errors import KafkaError
    from kafka08.extras import missing_extra

    try:
        from kafka08.cli.failures import fail
        from kafka08.cli.root import root
    except ModuleNotFoundError as error:
        if (missing := missing_extra(error)) is None:
            raise
        sys.exit(f"Error: {missing}")

    try:
        root(prog_name="kafka08")
    except (KafkaError, OSError) as error:
        fail(error)
    except ModuleNotFoundError as error:
        if (missing := missing_extra(error)) is None:
            raise
        fail(missing)
    raise AssertionError("click always exits")
