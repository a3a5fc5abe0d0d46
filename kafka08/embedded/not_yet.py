"""The exception of waits."""

from __future__ import annotations


class NotYet(Exception):
    """The awaited state is not there; the message says what is instead."""
