"""kafka08.nearest: what was probably meant."""

from __future__ import annotations

from kafka08.nearest import NAMES_MAX, did_you_mean, nearest


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
