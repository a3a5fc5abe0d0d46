"""Java regular expressions, as far as topic patterns use them; see pattern_matcher.py.

Supported: literals, `.`, escapes of punctuation, `\\d \\w \\s` and their opposites (ASCII, as in
Java), classes `[a-z]` and `[^...]`, `|`, groups `(...)` and `(?:...)`, look-ahead `(?=...)` and
`(?!...)`, anchors `^ $ \\b \\B \\A \\z`, and the quantifiers `* + ? {n} {n,m}`, greedy or
reluctant. An error names any other construct of Java: members of one group that understood a
pattern differently would claim each other's partitions. Syntax: java.util.regex.Pattern.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Final

from kafka08.consumer.pattern_matcher import (
    STATES_MAX,
    Anchor,
    At,
    Char,
    Choice,
    LookAhead,
    Matcher,
    Node,
    Repeat,
)
from kafka08.errors import ConfigError

_SHORTHANDS: Final = frozenset("dDwWsS")
_ANCHORS: Final[dict[str, Anchor]] = {
    "b": "b", "B": "B", "A": "A", "z": "z", "^": "^", "$": "$"
}  # fmt: skip
_GROUPS: Final = ("?:", "?=", "?!")
_NESTED_MAX: Final = 100
_TIMES: Final[dict[str, tuple[int, int | None]]] = {"*": (0, None), "+": (1, None), "?": (0, 1)}
_CONTROLS: Final = {"t": "\t", "n": "\n", "r": "\r", "f": "\f", "a": "\a", "e": "\x1b"}
_REFUSED_ESCAPES: Final = {
    "Q": "quoting \\Q...\\E",
    "E": "quoting \\Q...\\E",
    "p": "a character property \\p{...}",
    "P": "a character property \\P{...}",
    "u": "a code point escape \\u",
    "x": "a code point escape \\x",
    "0": "an octal escape \\0",
    "c": "a control escape \\c",
    "k": "a back reference \\k",
    "G": "the anchor \\G",
    "Z": "the anchor \\Z",
    "R": "the linebreak matcher \\R",
    "X": "the grapheme matcher \\X",
    "h": "the blank class \\h",
    "H": "the blank class \\H",
    "v": "the blank class \\v",
    "V": "the blank class \\V",
    "N": "a character name \\N",
}
_REPEAT: Final = re.compile(r"\{(\d+)(,(\d*))?\}")


@lru_cache(maxsize=32)
def compile_java_pattern(pattern: str) -> Matcher:
    """A matcher of the same topic names (use `fullmatch`). Members of a group have one pattern as a
    rule, and tools ask for it again and again: so those used last are kept, with their steps.

    ConfigError names the pattern, the construct and its position when it is not understood.
    """
    return Matcher(_Parser(pattern).parse(), pattern)


class _Group:
    """An open group: its alternatives so far, and the characters that opened it."""

    def __init__(self, opening: str) -> None:
        self.opening = opening
        self.sequences: list[list[Node]] = [[]]

    def node(self) -> Node:
        choice = Choice(self.sequences)
        if self.opening in {"(?=", "(?!"}:
            return LookAhead(choice, negated=self.opening == "(?!")
        return choice


class _Parser:
    """One pass from left to right; `_open` has the pattern and the groups that are open."""

    def __init__(self, pattern: str) -> None:
        self._pattern = pattern
        self._at = 0
        self._open = [_Group("")]
        self._quantifiable = False
        """Whether a quantifier may follow at this position."""

    def parse(self) -> Choice:
        while self._at < len(self._pattern):
            self._step(self._pattern[self._at])
        if len(self._open) > 1:
            raise self._refuse("an unclosed group")
        return Choice(self._open[0].sequences)

    def _step(self, char: str) -> None:
        if char == "\\":
            self._escape()
        elif char == "[":
            self._emit(Char(self._character_class()), quantifiable=True)
        elif char == "(":
            self._open_group()
        elif char == ")":
            if len(self._open) == 1:
                raise self._refuse("an unmatched ')'")
            self._at += 1
            self._emit(self._open.pop().node(), quantifiable=True)
        elif char in "*+?{":
            self._quantify(char)
        elif char == "|":
            self._at += 1
            self._open[-1].sequences.append([])
            self._quantifiable = False
        elif char in "^$":
            self._at += 1
            self._emit(At(_ANCHORS[char]), quantifiable=False)
        elif char == ".":
            self._at += 1
            self._emit(Char("\n".__ne__), quantifiable=True)
        else:
            self._at += 1
            self._emit(Char(char.__eq__), quantifiable=True)

    def _open_group(self) -> None:
        inner = self._pattern[self._at + 1 : self._at + 3]
        if inner.startswith("?") and inner not in _GROUPS:
            kind = {"?<": "look-behind or a named group", "?>": "an atomic group"}
            raise self._refuse(kind.get(inner, "an inline flag or special group"))
        if len(self._open) > _NESTED_MAX:
            raise self._refuse("a group that is nested too deeply")
        opening = f"({inner}" if inner in _GROUPS else "("
        self._open.append(_Group(opening))
        self._at += len(opening)
        self._quantifiable = False

    def _quantify(self, char: str) -> None:
        text = char
        if char == "{":
            repeat = _REPEAT.match(self._pattern, self._at)
            if repeat is None:
                # 0.8: the commas of a subscription become '|', so {2,3} cannot be written there.
                raise self._refuse("a '{' that does not open {n} or {n,m}")
            text = repeat[0]
            least, most = self._bounds(repeat)
        else:
            least, most = _TIMES[char]
        if not self._quantifiable:
            # As a shell would have it: in a pattern a character comes before.
            meant = "; .* matches everything" if text == "*" else ""
            raise self._refuse(f"a dangling {text}", meant)
        after = self._pattern[self._at + len(text) : self._at + len(text) + 1]
        if after == "+":
            raise self._refuse(f"a possessive quantifier {text}+")
        # A reluctant quantifier changes what is tried first, not whether a whole name matches.
        self._at += len(text) + (after == "?")
        sequence = self._open[-1].sequences[-1]
        sequence[-1] = Repeat(sequence[-1], least, most)
        self._quantifiable = False

    def _bounds(self, repeat: re.Match[str]) -> tuple[int, int | None]:
        """The counts of `{n}`, `{n,}` or `{n,m}`."""
        if max(len(repeat[1]), len(repeat[3] or "")) > len(str(STATES_MAX)):
            raise self._refuse("a count that is too large")
        least = int(repeat[1])
        if repeat[2] is None:
            return least, least
        most = int(repeat[3]) if repeat[3] else None
        if most is not None and most < least:
            raise self._refuse(f"{repeat[0]}: min repeat greater than max repeat")
        return least, most

    def _escape(self) -> None:
        char = self._escaped()
        if char in _ANCHORS:
            self._at += 2
            self._emit(At(_ANCHORS[char]), quantifiable=False)
        elif char.isdigit() and char != "0":
            raise self._refuse(f"a back reference \\{char}")
        else:
            self._emit(Char(one_of(self._literal(char))), quantifiable=True)

    def _character_class(self) -> Callable[[str], object]:
        out = ["["]
        self._at += 1
        if self._peek() == "^":
            out.append("^")
            self._at += 1
        if self._peek() == "]":
            raise self._refuse("a ']' as the first of a class")
        while (char := self._peek()) != "]":
            if char == "":
                raise self._refuse("an unclosed character class")
            if char == "[":
                raise self._refuse("a class inside a class")
            if char == "&" and self._pattern[self._at + 1 : self._at + 2] == "&":
                raise self._refuse("an intersection of classes &&")
            if char == "\\":
                out.append(self._literal(self._escaped()))
            else:
                out.append("-" if char == "-" else re.escape(char))
                self._at += 1
        self._at += 1
        text = f"{''.join(out)}]"
        try:
            return one_of(text)
        except re.error:
            raise self._refuse(f"a class that is not one: {text}") from None

    def _literal(self, char: str) -> str:
        """Consume an escape of one character (or a shorthand class)."""
        if char in _REFUSED_ESCAPES:
            raise self._refuse(_REFUSED_ESCAPES[char])
        if char in _SHORTHANDS:
            text = f"\\{char}"
        elif char in _CONTROLS:
            text = re.escape(_CONTROLS[char])
        elif char.isalnum():
            raise self._refuse(f"the escape \\{char}")
        else:
            text = re.escape(char)
        self._at += 2
        return text

    def _escaped(self) -> str:
        char = self._pattern[self._at + 1 : self._at + 2]
        if not char:
            raise self._refuse("a backslash at the end")
        return char

    def _peek(self) -> str:
        return self._pattern[self._at : self._at + 1]

    def _emit(self, node: Node, *, quantifiable: bool) -> None:
        self._open[-1].sequences[-1].append(node)
        self._quantifiable = quantifiable

    def _refuse(self, construct: str, meant: str = "") -> ConfigError:
        return ConfigError(
            f"topic pattern {self._pattern!r}: {construct} at position {self._at} is not supported"
            f"{meant}"
        )


def one_of(text: str) -> Callable[[str], object]:
    """Whether a character is one of a class in the syntax of `re`."""
    return re.compile(text, re.ASCII).fullmatch
