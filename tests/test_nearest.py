"""kafka08.nearest: what was probably meant."""

from __future__ import annotations

from collections.abc import Collection
from difflib import get_close_matches
from typing import Any

import pytest

from kafka08.nearest import COMPARED_MAX, NAMES_MAX, did_you_mean, nearest


def test_the_most_alike_is_found_whatever_the_case() -> None:
    """A name with one letter too few, too many or exchanged finds the right one."""
    names = ["zookeeper.connect", "zookeeper.sync.time.ms", "Words"]
    assert "zookeeper.connect" == nearest("zookeper.connect", names)
    assert "Words" == nearest("wrods", names)


def test_nothing_is_suggested_where_nothing_is_alike() -> None:
    """The sentence ends without a suggestion then."""
    assert nearest("pages", ["clicks", "words"]) is None
    assert "" == did_you_mean("pages", ["clicks"])
    assert "; did you mean clicks?" == did_you_mean("click", ["clicks"])


def test_it_does_not_search_without_bound() -> None:
    """A cluster with very many names costs no time."""
    assert nearest("n1x", [f"n{i}" for i in range(NAMES_MAX + 1)]) is None


@pytest.mark.parametrize(
    ("form", "mistyped"),
    [
        ("topic-{:05d}", "topc-01234"),
        ("org.example.team.service.{:05d}.events", "org.exmaple.team.service.01234.events"),
        ("org.example.team.service.{:05d}.events", "org.example.team.service.01234.event"),
        ("com." + "a" * 200 + "{:05d}", "com." + "a" * 199 + "01234"),
    ],
)
def test_the_names_of_a_large_cluster_are_not_all_compared(
    monkeypatch: pytest.MonkeyPatch, form: str, mistyped: str
) -> None:
    """Of many long names that are all alike the right one is found among a few, since a thorough
    comparison of all takes seconds."""
    names = [form.format(number) for number in range(NAMES_MAX)]
    compared = 0

    def few_matches(word: str, possibilities: Collection[str], **options: Any) -> list[str]:
        nonlocal compared
        compared = len(possibilities)
        return get_close_matches(word, list(possibilities)[:10], **options)

    monkeypatch.setattr("difflib.get_close_matches", few_matches)
    assert form.format(1234) == nearest(mistyped, names)
    assert compared == COMPARED_MAX
