"""Every Python that kafka08 starts leaves the current directory out of its path."""

from __future__ import annotations

import ast
from pathlib import Path

import kafka08

SOURCE = Path(kafka08.__file__).parent


def test_children_import_nothing_from_the_current_directory() -> None:
    """`python -m` puts it first: `kafka08 up` in a directory with a logging.py would run that."""
    started = []
    for path in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.List) and "sys.executable" in map(ast.unparse, node.elts):
                words = [ast.unparse(word) for word in node.elts]
                started.append(path.name)
                assert {"'-P'", "'-I'"} & set(words), f"{path}:{node.lineno}"
    assert {"fork_server.py", "up.py", "relay.py"} <= set(started)
