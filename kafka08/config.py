"""Configuration by Kafka's own keys: Java .properties files, typed values, one error form.

A configuration is a class whose annotated fields are its keys: the field `group_id` is the key
`group.id`. It is made from a mapping of keys, from keywords, or from both (keywords win):

    ConsumerConfig({"group.id": "g", "zookeeper.connect": "host:2181"}, consumer_timeout_ms=100)

Values may be text, as in a properties file, or already of the field's type. An illegal value raises
ConfigError, with key, value and range. An unknown key of the mapping is kept in `unknown` and
logged as a warning, as in 0.8.2.2; an unknown keyword raises ConfigError. Both suggest the nearest
key. A known key without effect is listed in `without_effect`. Source:
kafka.utils.VerifiableProperties 0.8.2.2."""

from __future__ import annotations

import codecs
import logging
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from types import NoneType
from typing import TYPE_CHECKING, Any, ClassVar, Final, ParamSpec, Self, get_args, get_type_hints

from kafka08.errors import ConfigError
from kafka08.levels import Level
from kafka08.nearest import did_you_mean, nearest
from kafka08.safety import ALLOW, Safety, allowed_keys, refusal

if TYPE_CHECKING:
    from pathlib import Path

logger = logging.getLogger(__name__)

P = ParamSpec("P")

INT_MAX: Final = 2**31 - 1
INT_MIN: Final = -(2**31)
LONG_MAX: Final = 2**63 - 1
LONG_MIN: Final = -(2**63)
PORT_MAX: Final = 65535
STRING_BYTES_MAX: Final = 32767
"""Of an id or an override in a request: a string of the protocol has a signed 16-bit length."""
BLANKS: Final = "".join(map(chr, range(0x21)))
REQUIRED: Final[Any] = object()


@dataclass(frozen=True, slots=True)
class Key:
    """The declaration of one configuration key.

    default   value if the key is not set; REQUIRED if it must be set, or None
    low/high  inclusive bounds of a number
    choices   the only allowed texts, or None
    doc       one sentence for the configuration reference
    effect    False: accepted as in 0.8.2.2, but without a counterpart here
    since     the lowest level that has the key
    until     the lowest level above `since` that no longer has it
    later     level → the fields that differ from that level on
    exists    whether the current level has it; else its attribute is the default
    secret    its value is never shown
    """

    default: Any = REQUIRED
    low: float | None = None
    high: float | None = None
    choices: tuple[str, ...] | None = None
    doc: str = ""
    effect: bool = True
    since: Level = Level.V0_8_2
    until: Level | None = None
    later: Mapping[Level, Mapping[str, Any]] | None = None
    exists: bool = True
    secret: bool = False

    def at(self, level: Level) -> Key:
        """The key at that level."""
        changes: dict[str, Any] = {}
        for since, fields in sorted((self.later or {}).items()):
            if since <= level:
                changes.update(fields)
        exists = self.since <= level and (self.until is None or level < self.until)
        return replace(self, **changes, exists=exists)

    @property
    def levels(self) -> str:
        """A remark on a key that the current level does not have."""
        until = "" if self.until is None else f" to below {self.until}"
        return f" at this api.level: it exists from {self.since}{until}"


def _of_any_type(make: Callable[P, Key]) -> Callable[P, Any]:
    return make


key = _of_any_type(Key)
"""Declare a configuration key as the value of an annotated field of a `Config` class, of whatever
type that field is."""


class Config:
    """Base of ConsumerConfig, ProducerConfig, BrokerConfig and the like. Immutable."""

    KEYS: ClassVar[dict[str, Key]] = {}
    ALIASES: ClassVar[dict[str, str]] = {}
    """Other names of a key, read if the key itself is not set: {"log.dir": "log.dirs"}."""
    IGNORED_PREFIXES: ClassVar[tuple[str, ...]] = ("external",)
    SAFETY: ClassVar[Mapping[str, Safety]] = {}
    """Keys, known or not, some of whose values ask for safety that there is not: ConfigError."""

    unknown: dict[str, str]
    given: frozenset[str]
    """The keys that were set, under any of their names; not those that were given None in place of
    their default."""

    def __init_subclass__(cls) -> None:
        keys: dict[str, Key] = {}
        for name, declared in vars(cls).copy().items():
            if isinstance(declared, Key):
                keys[name.replace("_", ".")] = declared
                delattr(cls, name)
        cls.KEYS = {**keys, **{name: k for name, k in cls.KEYS.items() if name not in keys}}
        cls._types = {
            name.replace("_", "."): hint
            for name, hint in get_type_hints(cls).items()
            if name.replace("_", ".") in cls.KEYS
        }
        cls._never_none = {n for n, hint in cls._types.items() if NoneType not in get_args(hint)}

    _types: ClassVar[dict[str, Any]] = {}
    _never_none: ClassVar[set[str]] = set()

    def __init__(self, properties: Mapping[str, Any] | None = None, /, **keywords: Any) -> None:
        self._check_keywords(keywords)
        given: dict[str, Any] = dict(properties or {})
        given.update({name.replace("_", "."): value for name, value in keywords.items()})
        for alias, name in self.ALIASES.items():
            if alias in given:
                given.setdefault(name, given[alias])
                del given[alias]
        for name in [n for n, value in given.items() if value is None and n in self._never_none]:
            del given[name]  # as in other clients: the default
        values: dict[str, Any] = {"given": frozenset(given)}
        keys, exact = self.keys_for(given), self.is_exact(given)
        for keyword in keywords:
            declared = keys.get(keyword.replace("_", "."))
            if declared is not None and not declared.exists:
                raise ConfigError(f"{keyword.replace('_', '.')}: no such key{declared.levels}")
        for name, declared in keys.items():
            attribute = name.replace(".", "_")
            if name in given and declared.exists:
                values[attribute] = parse_value(
                    name, given.pop(name), self._types[name], declared, exact=exact
                )
            elif declared.default is REQUIRED:
                raise ConfigError(f"Missing required property '{name}'{self._typo_of(name, given)}")
            else:
                values[attribute] = declared.default
        values["unknown"] = {
            name: str(value)
            for name, value in sorted(given.items())
            if not name.startswith(self.IGNORED_PREFIXES)
        }
        self.__dict__.update(values)
        self._less_safe  # noqa: B018 - raises
        self.validate()

    @classmethod
    def given_to(cls, client: str, config: object, keywords: Mapping[str, Any]) -> Self:
        """The configuration of a client that takes one, or its keys as keywords; ConfigError for
        anything else, such as a mapping or a topic, which other libraries take in its place."""
        if config is None:
            return cls(**keywords)
        if not isinstance(config, cls):
            topics = "; topics go to its methods" if isinstance(config, str) else ""
            raise ConfigError(
                f"{client}: {config!r} is not a {cls.__name__}: pass {cls.__name__}({{...}}) or "
                f"keywords{topics}"
            )
        if keywords:
            raise ConfigError(f"give the {client} a configuration or keywords, not both")
        return config

    @classmethod
    def keys_for(cls, given: Mapping[str, Any]) -> Mapping[str, Key]:
        """The keys, given the configuration `given`. Override where the value of one key decides
        which others exist."""
        return cls.KEYS

    @classmethod
    def is_exact(cls, given: Mapping[str, Any]) -> bool:
        """Whether values keep the blanks at their ends and booleans are lower case, as in 0.8.2.2.
        Kafka's new clients, and its brokers from 0.9 on, trim values. Override where that is so."""
        return False

    @property
    def keys(self) -> Mapping[str, Key]:
        """The keys of this configuration."""
        return self.keys_for({name: getattr(self, name.replace(".", "_")) for name in self.KEYS})

    @property
    def existing(self) -> list[str]:
        """The keys that exist in this configuration, sorted."""
        return sorted(name for name, key in self.keys.items() if key.exists)

    @property
    def _known(self) -> list[str]:
        """The keys that were set and exist, sorted."""
        keys = self.keys
        return sorted(name for name in self.given if name in keys and keys[name].exists)

    @classmethod
    def _check_keywords(cls, keywords: Iterable[str]) -> None:
        names = {name.replace(".", "_") for name in (*cls.KEYS, *cls.ALIASES)}
        for keyword in keywords:
            if keyword not in names:
                raise ConfigError(
                    f"{cls.__name__} has no key {keyword.replace('_', '.')} (keyword {keyword})"
                    f"{did_you_mean(keyword, names)}"
                )

    @classmethod
    def _typo_of(cls, missing: str, given: Iterable[str]) -> str:
        """A remark on the unknown key of `given` that was probably meant to be `missing`."""
        unknown = [name for name in given if name not in cls.KEYS]
        typo = nearest(missing, unknown)
        return "" if typo is None else f"; '{typo}' is not a key: did you mean '{missing}'?"

    def validate(self) -> None:
        """Check rules for several keys. Override; raise ConfigError."""

    def with_changes(self, **keywords: Any) -> Self:
        """The same configuration with some keys changed, checked again."""
        self._check_keywords(keywords)
        values: dict[str, Any] = {
            name: getattr(self, name.replace(".", "_")) for name in self._known
        }
        values.update(self.unknown)
        values.update({name.replace("_", "."): value for name, value in keywords.items()})
        return type(self)(values)

    @property
    def _less_safe(self) -> dict[str, str]:
        """The keys that ask for safety that there is not, and are allowed to, with their values.
        ConfigError for one that is not allowed to."""
        found = {}
        allowed = allowed_keys(str(getattr(self, ALLOW.replace(".", "_"), "")))
        keys = self.keys
        for name, safety in self.SAFETY.items():
            if name in keys and not keys[name].exists:
                continue  # Kafka at this level ignores it
            value = self.unknown.get(name, getattr(self, name.replace(".", "_"), ""))
            value = str(value).lower() if isinstance(value, bool) else str(value)
            if name in self.given and safety.asks(value):
                if name not in allowed:
                    raise refusal(name, value, safety)
                found[name] = value
        return found

    @property
    def without_effect(self) -> list[str]:
        """The keys that were set but have no effect here, sorted."""
        keys = self.keys
        return [name for name in self._known if not keys[name].effect]

    def log_notes(self) -> None:
        """Log unknown keys and keys without effect. The owner calls it once at start."""
        for name, value in self._less_safe.items():
            logger.warning(
                "%s=%s has no effect, as %s allows: %s",
                *(name, value, ALLOW, self.SAFETY[name].instead),
            )
        for name in self.unknown:
            if name in self.SAFETY and name not in self.keys:
                continue  # it asks for no more than there is, or was allowed to
            # A file that is no .properties file may have any bytes, and a terminal obeys some.
            shown = name if name.isprintable() and name else repr(name)
            logger.warning("Property %s is not valid%s", shown, self._hint(name))
        for name in self._known:
            value = getattr(self, name.replace(".", "_"))
            if isinstance(value, str) and value != value.strip():
                shown = "[hidden]" if self.keys[name].secret else repr(value)
                logger.warning("Property %s has a blank at an end: %s", name, shown)
        for name in self.without_effect:
            logger.warning("Property %s is accepted but has no effect here", name)

    def _hint(self, unknown: str) -> str:
        """Returns the levels that have the key, or the key that was probably meant."""
        keys = self.keys
        if unknown not in keys:
            return did_you_mean(unknown, [name for name, key in keys.items() if key.exists])
        return keys[unknown].levels

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"{type(self).__name__} is immutable (setting {name})")

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and self.__dict__ == other.__dict__

    def __hash__(self) -> int:
        return hash(tuple(sorted((k, str(v)) for k, v in self.__dict__.items())))

    def __repr__(self) -> str:
        keys = self.keys
        shown = ", ".join(
            f"{name}={'[hidden]' if keys[name].secret else repr(getattr(self, attribute))}"
            for name in self._known
            for attribute in [name.replace(".", "_")]
        )
        return f"{type(self).__name__}({shown})"


def parse_value(name: str, value: Any, wanted: Any, declared: Key, *, exact: bool = True) -> Any:
    """`value` as the type of the field, within its bounds; ConfigError otherwise.

    exact   0.8.2.2's rule; else blanks at the ends go, as by Java's String.trim (which leaves a
            no-break space, say of a wiki), and a boolean may be in any case
    """
    if not exact and isinstance(value, str):
        value = value.strip(BLANKS)
    if value is None:
        return None
    kind = next((t for t in (bool, int, float, str) if wanted in (t, t | None)), None)
    if kind is None:
        return value
    if kind is bool:
        text = str(value).lower() if isinstance(value, bool) or not exact else str(value)
        if text not in {"true", "false"}:
            raise ConfigError(f"{name}: {value!r} is neither 'true' nor 'false'")
        return text == "true"
    if kind is str:
        if isinstance(value, bytes | Collection) and not isinstance(value, str):
            raise ConfigError(f"{name}: {value!r} is not text; separate several values by commas")
        parsed: Any = str(value)
        if declared.choices is not None and parsed not in declared.choices:
            raise ConfigError(f"{name}: {value!r} is not one of {', '.join(declared.choices)}")
        return parsed
    text = str(value).strip()
    try:
        parsed = kind(text)
        if "_" in text:  # Python's alone: 1_000
            raise ValueError
    except ValueError:
        raise ConfigError(f"{name}: {value!r} is not a number{_bounds(declared)}") from None
    low = INT_MIN if declared.low is None else declared.low
    high = INT_MAX if declared.high is None else declared.high
    if kind is int and not low <= parsed <= high:
        raise ConfigError(f"{name}: {value!r} is outside the range {low} to {high}")
    # Not a number is neither below nor above anything.
    if kind is float and declared.low is not None and not parsed >= declared.low:
        raise ConfigError(f"{name}: {value!r} is below {declared.low}")
    if kind is float and declared.high is not None and not parsed <= declared.high:
        raise ConfigError(f"{name}: {value!r} is above {declared.high}")
    return parsed


def _bounds(declared: Key) -> str:
    if declared.low is None and declared.high is None:
        return ""
    low = INT_MIN if declared.low is None else declared.low
    return f" in the range {low} to {INT_MAX if declared.high is None else declared.high}"


_ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_PAIR = re.compile(r"((?:\\.|[^\\=:\s])*)\s*[=:]?\s*(.*)", re.DOTALL)
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)
_LINE_END = re.compile(r"\r\n|\r|\n")
_TO_ESCAPE = re.compile(r"^ |[^ -~]")
"""A blank at the start of a value, and all but printable ASCII."""


def parse_properties(text: str) -> dict[str, str]:
    """The pairs of a Java .properties text. As in Java: `=`, `:` or blanks separate, a trailing
    backslash continues a line, `#` and `!` start comments, and blanks at the end of a value stay.
    ConfigError for a \\u without four hexadecimal digits.
    """
    pairs: dict[str, str] = {}
    for line in _logical_lines(_LINE_END.split(text)):
        match = _PAIR.fullmatch(line)
        assert match is not None, "the pattern matches every line"
        name, value = (_joined(_ESCAPE.sub(_unescape, part)) for part in match.groups())
        pairs[name] = value
    return pairs


def escape_property(value: str) -> str:
    """A value as it is written in a .properties file, in ASCII."""
    text = value.replace("\\", "\\\\")
    return _TO_ESCAPE.sub(lambda match: _utf_16_escapes(match[0]), text)


UTF_8_MARK: Final = codecs.BOM_UTF8.decode("latin-1")


def load_properties(path: str | Path) -> dict[str, str]:
    """The pairs of a .properties file (ISO-8859-1, as Java reads it, but without the mark that some
    editors put before UTF-8); ConfigError if unreadable."""
    try:
        with open(path, encoding="latin-1") as file:
            text = file.read()
    except OSError as error:
        raise ConfigError(f"cannot read the configuration file {path}: {error.strerror}") from error
    return parse_properties(text.removeprefix(UTF_8_MARK))


def parse_overrides(overrides: Iterable[str], option: str = "--override") -> dict[str, str]:
    """`KEY=VALUE` texts of a command line as pairs; ConfigError naming `option` for others."""
    pairs = {}
    for override in overrides:
        name, separator, value = override.partition("=")
        if not separator or not name:
            raise ConfigError(f"{option} {override!r} is not of the form KEY=VALUE")
        pairs[name] = value
    return pairs


def parse_port(text: str, source: str) -> int:
    """A port to connect to; otherwise ConfigError with `source`, the place of the text."""
    if not (text.isascii() and text.isdigit() and 1 <= int(text) <= PORT_MAX):
        raise ConfigError(f"{source}: the port must be a number from 1 to {PORT_MAX}")
    return int(text)


def check_id(name: str, text: str) -> None:
    """ConfigError for an id that no request can carry: it would look like unreachable brokers."""
    try:
        size = len(text.encode())
    except UnicodeEncodeError as error:
        raise ConfigError(f"{name}: {text!r} is not text: {error.reason}") from error
    if size > STRING_BYTES_MAX:
        raise ConfigError(f"{name}: {size} bytes are more than {STRING_BYTES_MAX}, the longest id")


def check_host(host: str, source: str) -> None:
    """ConfigError with `source`, the place of the text, for a name that no host can have."""
    try:
        host.encode("idna")
    except UnicodeError as error:
        raise ConfigError(f"{source}: {host!r} cannot be the name of a host") from error


def _logical_lines(lines: Iterable[str]) -> Iterable[str]:
    pending = ""
    for raw in lines:
        line = raw.lstrip(" \t\f")
        if not pending and (not line or line[0] in "#!"):
            continue
        trailing = len(line) - len(line.rstrip("\\"))
        if trailing % 2:
            pending += line[:-1]
            continue
        yield pending + line
        pending = ""
    if pending:
        yield pending


def _utf_16_escapes(char: str) -> str:
    units = char.encode("utf-16-be", "surrogatepass").hex(" ", 2).split()
    return "".join(f"\\u{unit}" for unit in units)


def _joined(text: str) -> str:
    """The text with each pair of surrogates as one character: Java escapes it as two."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")


def _unescape(match: re.Match[str]) -> str:
    code = match[1]
    if code == "u":
        raise ConfigError(f"malformed \\uxxxx escape in the property {match.string!r}")
    return chr(int(code[1:], 16)) if code[0] == "u" and len(code) > 1 else _ESCAPES.get(code, code)
