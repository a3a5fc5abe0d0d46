"""The text that the demo loads: every line of every file, or a reason why not."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from kafka08.demo.corpus import LINE_BYTES_MAX, lines, standard_library, text_files
from kafka08.errors import ConfigError


def test_every_line_of_a_tree_in_order(tmp_path: Path) -> None:
    """Files by name, keys relative to the root as bytes, lines without their ends, whatever is in
    them."""
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "x.bin").write_bytes(b"\xff\x00\n\nno end")
    (tmp_path / "a.txt").write_bytes(b"one\r\ntwo\n")
    Path(os.fsdecode(bytes(tmp_path) + b"/\xff")).write_bytes(b"strange\n")
    assert [
        (b"a.txt", b"one"),
        (b"a.txt", b"two"),
        (b"b/x.bin", b"\xff\x00"),
        (b"b/x.bin", b""),
        (b"b/x.bin", b"no end"),
        (b"\xff", b"strange"),
    ] == list(lines(tmp_path))


def test_a_single_file_is_its_own_tree(tmp_path: Path) -> None:
    """Its key is its name."""
    (tmp_path / "f").write_bytes(b"x\n")
    assert [(b"f", b"x")] == list(lines(tmp_path / "f"))


def test_nothing_to_read_is_an_error(tmp_path: Path) -> None:
    """No file, only empty ones, or a broken link is an error: a demo of nothing would verify
    nothing."""
    (tmp_path / "empty").touch()
    (tmp_path / "nowhere").symlink_to("absent")
    for source in (tmp_path, tmp_path / "empty", tmp_path / "nowhere"):
        with pytest.raises(ConfigError, match="no file with text in it"):
            text_files(source)


def test_a_line_that_no_broker_takes_is_named(tmp_path: Path) -> None:
    """File and number, before more of it is read than a message may have."""
    path = tmp_path / "f"
    path.write_bytes(b"short\n" + b"x" * LINE_BYTES_MAX + b"y\n")
    with pytest.raises(ConfigError, match=rf"line 2 of {path} is longer than {LINE_BYTES_MAX}"):
        list(lines(tmp_path))
    path.write_bytes(b"x" * (LINE_BYTES_MAX - 1) + b"\n")
    assert 1 == len(list(lines(tmp_path)))


def test_the_standard_library_is_there() -> None:
    """The default text has only sources of Python itself, none that was installed beside them."""
    files = text_files(standard_library())
    assert len(files) > 500
    assert {".py"} == {path.suffix for path in files}
    assert not any("site-packages" in path.parts for path in files)
