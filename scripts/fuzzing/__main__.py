"""Run one target with atheris: `python -m scripts.fuzzing TARGET [libFuzzer options] [FILES]`."""

from __future__ import annotations

import gc
import sys
from pathlib import Path
from types import FunctionType

import atheris

with atheris.instrument_imports(include=["kafka08"]):
    from scripts.fuzzing.targets import TARGETS, seeds

CORPORA = Path(__file__).parent.parent.parent / ".fuzz" / "corpora"


def instrument_generated() -> None:
    """Count the branches of functions that are compiled at run time: the decoders of messages."""
    for found in gc.get_objects():
        if isinstance(found, FunctionType) and found.__code__.co_filename.startswith("<kafka08"):
            atheris.instrument_func(found)


def main() -> None:
    name = sys.argv[1]
    corpus = CORPORA / name
    corpus.mkdir(parents=True, exist_ok=True)
    for number, seed in enumerate(seeds(name)):
        (corpus / f"seed-{number}").write_bytes(seed)
        TARGETS[name](seed)
    instrument_generated()
    arguments = sys.argv[2:]
    if not any(Path(argument).is_file() for argument in arguments):
        arguments.append(str(corpus))
    atheris.Setup([sys.argv[0], *arguments], TARGETS[name])
    atheris.Fuzz()


if __name__ == "__main__":
    main()
