"""kafka08.cli.key_splitter splits lines into key and value."""

from __future__ import annotations

import os

from kafka08.cli.key_splitter import KeySplitter


def test_a_separator_may_be_any_bytes() -> None:
    """A separator of the command line that is not UTF-8 is the bytes that were given."""
    assert (b"k", b"v\xff") == KeySplitter(os.fsdecode(b"\xff")).split(b"k\xffv\xff")
    assert (b"k", b"v") == KeySplitter("\u00fc").split(b"k\xc3\xbcv")
