"""Generate the page docs/configuration.md from the keys in the code."""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any, Final

import kafka08
from kafka08.config import INT_MAX, LONG_MAX, REQUIRED, Config, Key
from kafka08.levels import Level
from kafka08.topic_config import TOPIC_KEYS

PACKAGE: Final = Path(kafka08.__file__).parent
FIRST: Final = ("broker", "consumer", "producer")
"""Packages whose configurations come first."""
DECLARATION: Final = re.compile(
    r"^class (\w+)\((?:Config|SecureClientConfig|BrokerKeys)\):", re.MULTILINE
)
HEAD: Final = """\
# Configuration

All configuration keys of brokers, consumers, producers, Spark and topics, with defaults and ranges.
`scripts/configuration` generates this page from the code.

- Keys are those of Kafka 0.8.2.2, and a file of the JVM's works unchanged. At a higher `api.level`
  a broker has the keys and defaults of that release, and no keys of other levels.
- In Python a key is also a keyword: `group.id` is `group_id=`.
- A value out of range is an error that names key, value and range. An unknown key in a file or a
  mapping is a warning, an unknown keyword is an error; both name the nearest key.
- Times are in milliseconds and sizes in bytes, as the name says.
- *No effect*: the key is accepted and listed at start, because nothing here depends on it.
"""


def page() -> str:
    """The whole page."""
    return "\n".join([HEAD, *sections()])


def configurations() -> list[type[Config]]:
    """Every configuration that the package declares: FIRST, then the others by module."""
    return [
        getattr(import_module(f"kafka08.{module}"), name)
        for path in sorted(PACKAGE.rglob("*.py"), key=_place)
        for name in DECLARATION.findall(path.read_text())
        if name not in {"KeysSince0_9", "SecureClientConfig"}
        for module in [".".join(path.relative_to(PACKAGE).with_suffix("").parts)]
    ]


def _place(path: Path) -> tuple[int, Path]:
    package = path.relative_to(PACKAGE).parts[0]
    return (FIRST.index(package) if package in FIRST else len(FIRST), path)


def sections() -> Iterator[str]:
    """One per configuration, then the overrides of a topic."""
    for declared in configurations():
        says = (declared.__doc__ or "").partition("\n\n")[0]
        yield f"## {declared.__name__}\n\n{' '.join(says.split())}\n"
        yield "| key | default | values | |\n|---|---|---|---|"
        for key, facts in declared.KEYS.items():
            idle = not any(facts.at(level).effect for level in Level)
            effect = " *No effect.*" if idle else ""
            yield (
                f"| `{key}` | {default_of(facts)} | {values_of(facts, declared._types[key])} "
                f"| {cell(facts.doc)}{effect}{levels_of(facts)} |"
            )
        yield ""
    yield (
        "## Topic\n\nOverrides of a single topic: `kafka08 topic create --config KEY=VALUE`.\n\n"
        "| key | values | default: the broker's |\n|---|---|---|"
    )
    for key, topic_key in TOPIC_KEYS.items():
        broker_key = f"`{topic_key.broker_key}`" if topic_key.broker_key else "-"
        facts = topic_key.declared
        effect = "" if facts.effect else " *No effect.*"
        values = values_of(facts, topic_key.kind)
        yield f"| `{key}` | {values} | {broker_key}{effect}{levels_of(facts)} |"


def levels_of(facts: Key) -> str:
    """The levels that have the key, if not all."""
    since = "" if facts.since is Level.V0_8_2 else f" *From {facts.since}.*"
    return since if facts.until is None else f"{since} *Below {facts.until}.*"


def default_of(facts: Key) -> str:
    """The defaults as they would stand in a file, from which level on."""
    defaults = {facts.since: facts.default}
    for level, changes in (facts.later or {}).items():
        if "default" in changes and level != facts.until:
            defaults[level] = changes["default"]
    first, *later = defaults.items()
    return "; ".join(
        [default_text(first[1]), *(f"{level}: {default_text(value)}" for level, value in later)]
    )


def default_text(default: Any) -> str:
    """*required* or - if there is none."""
    if default is REQUIRED:
        return "*required*"
    if default is None:
        return "-"
    return f"`{text_of(default)}`" if default != "" else "empty"


def values_of(facts: Key, kind: Any) -> str:
    """The values that are accepted: choices, or type and bounds."""
    if facts.choices is not None:
        return ", ".join(f"`{choice}`" for choice in facts.choices)
    name = next((t for t in (bool, int, float, str) if kind in (t, t | None)), None)
    if name is bool:
        return "`true`, `false`"
    if name is None or name is str:
        return "text"
    low = "" if facts.low is None else f"{text_of(facts.low)} "
    high = "" if facts.high in {None, INT_MAX, LONG_MAX} else f" {text_of(facts.high)}"
    bounds = f"{low}…{high}".strip()
    return "number" if bounds == "…" else bounds


def text_of(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def cell(text: str) -> str:
    return text.replace("|", "\\|")


if __name__ == "__main__":
    print(page())
