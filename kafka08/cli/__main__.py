"""`python -m kafka08.cli`: the command, for an interpreter whose scripts are not on PATH."""

from __future__ import annotations

from kafka08.cli import main

main()
