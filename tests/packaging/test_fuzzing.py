"""The fuzz targets without a fuzzer: their seeds, and seeds that are cut and changed at random."""

from __future__ import annotations

import random

import pytest

from kafka08 import kernel
from scripts.fuzzing import targets
from scripts.fuzzing.targets import SET_USES, TARGETS, seeds

MUTATIONS = 200


@pytest.mark.parametrize("name", TARGETS)
def test_seeds_and_their_mutations_find_no_defect(name: str) -> None:
    """Malformed bytes raise nothing but the documented errors, and both kernels agree."""
    drawn, inputs = random.Random(name), list(seeds(name))
    assert inputs
    for seed in inputs:
        TARGETS[name](seed)
    for _ in range(MUTATIONS):
        changed = bytearray(drawn.choice(inputs))
        for _ in range(drawn.randint(1, 4)):
            changed[drawn.randrange(len(changed))] = drawn.choice((0, 1, 127, 128, 255))
        TARGETS[name](bytes(changed[: drawn.randint(1, len(changed))]))


def test_a_difference_between_the_kernels_is_a_defect(monkeypatch: pytest.MonkeyPatch) -> None:
    """The set target fails where the results of the kernels differ."""
    monkeypatch.setattr(targets, "kernel", _Other())
    with pytest.raises(AssertionError, match=SET_USES[-1].__name__):
        TARGETS["set"](next(seeds("set")))


class _Other:
    """The kernel, but for one wrong result."""

    def __getattr__(self, name: str) -> object:
        return getattr(kernel, name)

    def runs(self, _data: bytes) -> str:
        return "perhaps"
