"""`python -m kafka08.cli`: the command, for those who know an interpreter but not its PATH."""

from __future__ import annotations

from kafka08.cli import main

main()
