"""Java patterns match the same topics as java.util.regex, and errors name what is not supported."""

from __future__ import annotations

import random
import re
import time
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka08.consumer import pattern_matcher
from kafka08.consumer.java_pattern import compile_java_pattern
from kafka08.consumer.subscription import Whitelist
from kafka08.errors import ConfigError
from tests.cpu_speed import slowdown

MATCHES = [
    ("tt|uu", "tt uu", "t ttuu"),
    (".*", "a a.b", ""),
    ("test.*", "test test-1 testing", "atest"),
    (r"test\..*", "test.1", "test-1 testX"),
    ("[a-c]+", "abc c", "abcd"),
    ("[^a-c]+", "xyz", "xa"),
    ("[a.b-]+", "a.b- -", "c"),
    (r"[\w\-]+", "a_b-9", "a.b"),
    (r"\d{2}", "42", "4 423"),
    (r"\d{2,3}", "42 423", "4 4234"),
    (r"\d{2,}", "42 4234", "4"),
    ("a?b*?c+?", "abbc c bcc", "ab"),
    ("(a|b)(?:c|d)", "ac bd", "ab cd"),
    ("^tt$", "tt", "ttt"),
    ("(?!secret).*", "public", "secret secret.more"),
    ("(?=a)[ab]+", "ab a", "ba"),
    (r"\Aab\z", "ab", "abc"),
    ("a}b", "a}b", "ab"),
    ("a]b", "a]b", "ab"),
    ("日+", "日 日日", "a"),
]
REFUSED = [
    ("(a)\\1", "back reference"),
    ("(?i)abc", "inline flag"),
    ("(?<=a)b", "look-behind"),
    ("(?<name>a)", "named group"),
    ("(?>a)", "atomic"),
    ("a*+", "possessive"),
    ("a{2}+", "possessive"),
    ("[a&&b]", "intersection"),
    ("[a[b]]", "class inside a class"),
    ("[]a]", "first of a class"),
    (r"\p{Alpha}", "property"),
    (r"\Qa\E", "quoting"),
    (r"\u0041", "code point"),
    (r"\x41", "code point"),
    (r"\07", "octal"),
    (r"\y", "escape"),
    ("a{2|3}", "{n}"),
    ("{a", "{n}"),
    ("a**", "dangling"),
    ("*a", "dangling"),
    ("(a", "unclosed group"),
    ("a)", "unmatched"),
    ("[a", "unclosed character class"),
    ("[z-a]", "class that is not one"),
    ("a\\", "backslash"),
    ("a{5000000000}", "too large"),
    ("a{3,2}", "min repeat greater than max repeat"),
    ("(" * 2000 + "a" + ")" * 2000, "too deep"),
]


@pytest.mark.parametrize(("pattern", "yes", "no"), MATCHES)
def test_matches_whole_names_as_java_does(pattern: str, yes: str, no: str) -> None:
    """Each pattern matches exactly the names that java.util.regex matches."""
    compiled = compile_java_pattern(pattern)
    assert all(compiled.fullmatch(name) for name in yes.split())
    assert not any(compiled.fullmatch(name) for name in no.split())


@pytest.mark.parametrize(("pattern", "construct"), REFUSED)
def test_refuses_by_name(pattern: str, construct: str) -> None:
    """Syntax that is not supported is refused with its name and position."""
    with pytest.raises(ConfigError, match=re.escape(construct)):
        compile_java_pattern(pattern)


@given(st.text(st.characters(codec="ascii"), max_size=12))
def test_never_raises_anything_else(pattern: str) -> None:
    """Any text is translated or refused with ConfigError, and every translation compiles."""
    with suppress(ConfigError):
        compile_java_pattern(pattern)


@given(st.text("ab._-", min_size=1, max_size=8))
def test_escaped_text_matches_itself(name: str) -> None:
    """A topic name with its dots escaped matches this name alone."""
    compiled = compile_java_pattern(name.replace(".", "\\."))
    assert compiled.fullmatch(name)
    assert not compiled.fullmatch(name + "x")


ATOMS = st.sampled_from(
    ["a", "b", ".", "[ab]", "[^a]", r"\w", r"\d", "-", r"\b", r"\B", "^", "$", r"\A"]
)
PATTERNS = st.recursive(
    ATOMS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3).map("".join),
        st.lists(inner, min_size=1, max_size=3).map(lambda some: f"({'|'.join(some)})"),
        st.builds(
            "(?:{}){}".format,
            inner,
            st.sampled_from(["*", "+", "?", "{2}", "{1,3}", "{0,1}", "{1,}", "*?", "{2,3}?"]),
        ),
        st.builds("(?{}{})".format, st.sampled_from("=!"), inner),
    ),
    max_leaves=8,
)


@given(PATTERNS, st.lists(st.text("ab-1\n", max_size=6), min_size=1, max_size=4))
def test_matches_what_re_matches(pattern: str, names: list[str]) -> None:
    """In the syntax that both have alike, on names short enough for `re`. One matcher reads several
    names, and uses its steps again."""
    compiled = compile_java_pattern(pattern)
    expected = re.compile(pattern, re.ASCII)
    for name in [*names, *names]:
        if name or r"\B" not in pattern:  # Java's and ours is at the end of an empty name, too
            assert compiled.fullmatch(name) == (expected.fullmatch(name) is not None), name


@pytest.mark.parametrize(
    "pattern",
    ["(a|a)*b", "(a*)*b", "(a+)+b", "((a?){30}){30}b", "(a|aa)+b", "(?!(a|a)*b)(a*)*c", "(.*)*.*x"],
)
def test_no_pattern_takes_long(pattern: str) -> None:
    """Those for which `re` takes 2^n steps, against the longest topic name."""
    compiled = compile_java_pattern(pattern)
    began = time.process_time()
    assert not compiled.fullmatch("a" * 249)
    assert time.process_time() - began < 2 * slowdown()


@pytest.mark.parametrize("pattern", ["(.?){4000}x", "((.?){99}){60}x", ".?" * 4000 + "x"])
def test_a_pattern_that_takes_too_long_is_an_error(
    pattern: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each took seconds for every name that it had not seen: a member's held up all that look at
    its group. The error has the pattern."""
    monkeypatch.setattr(pattern_matcher, "WORK_MAX", 100_000)
    with pytest.raises(ConfigError, match=re.escape(f"{pattern!r} takes too long")):
        Whitelist(pattern).matches("a" * 248 + "x")


def test_a_long_list_of_names_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor are many names that it has not seen. As a white list, and as topics that are left out."""
    monkeypatch.setattr(pattern_matcher, "WORK_MAX", 100_000)
    names = "|".join(f"service-{number}.events" for number in range(100))
    for pattern in (names, f"(?!{names}).*"):
        matches = compile_java_pattern(pattern).fullmatch
        found = [matches(f"service-{number}.events") for number in range(500)]
        assert found == [(number < 100) == (pattern == names) for number in range(500)]


def test_members_with_one_pattern_share_its_automaton() -> None:
    """A tool asks each member for its topics again and again, and one of 300 names takes 20 ms."""
    assert compile_java_pattern("logs.*") is compile_java_pattern("logs.*")


def test_the_automaton_is_bounded() -> None:
    """Its states, however counts are nested, and what it keeps of all names that it has seen."""
    for pattern in ("((a{100}){100}){100}", "a{20001}", "(a|b){9999}"):
        with pytest.raises(ConfigError, match="too large"):
            compile_java_pattern(pattern)
    compiled = compile_java_pattern("(a|b)*a(a|b){9}")
    names = ["".join(random.Random(seed).choices("ab", k=200)) for seed in range(200)]
    assert [compiled.fullmatch(name) for name in names] == [name[-10] == "a" for name in names]
