"""Generate the modules config_keywords.py from the keys in the code: they tell type checkers the
keywords of each configuration."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import kafka08
from kafka08.broker.config import BrokerConfig
from kafka08.config import Config
from kafka08.consumer import ConsumerConfig, KafkaConsumerConfig
from kafka08.producer import KafkaProducerConfig, ProducerConfig

PACKAGE: Final = Path(kafka08.__file__).parent
CONFIGURATIONS: Final[dict[str, tuple[type[Config], ...]]] = {
    "broker": (BrokerConfig,),
    "consumer": (ConsumerConfig, KafkaConsumerConfig),
    "producer": (KafkaProducerConfig, ProducerConfig),
}
"""Room → the configurations that its users make by keywords."""


def path_of(room: str) -> Path:
    return PACKAGE / room / "config_keywords.py"


def module(room: str) -> str:
    """The text of the module of a room."""
    classes = "\n\n".join(typed_dict(declared) for declared in CONFIGURATIONS[room])
    return (
        '"""The keywords of the configurations, for type checkers alone. Made by '
        'scripts/configuration;\na test keeps it so."""\n\n'
        "from __future__ import annotations\n\nfrom typing import TypedDict\n\n\n" + classes
    )


def typed_dict(declared: type[Config]) -> str:
    """The class; a keyword has the type of the attribute, and text where keys are read."""
    keywords = {key.replace(".", "_"): declared._types[key] for key in declared.KEYS}
    for alias, key in declared.ALIASES.items():
        keywords[alias.replace(".", "_")] = declared._types[key]
    lines = [f"class {declared.__name__}Keywords(TypedDict, total=False):"]
    lines.append(f'    """The keywords of {declared.__name__}."""\n')
    lines += [f"    {name}: {name_of(kind)}" for name, kind in keywords.items()]
    return "\n".join(lines) + "\n"


def name_of(kind: Any) -> str:
    return kind.__name__ if isinstance(kind, type) else str(kind)


if __name__ == "__main__":
    for room in CONFIGURATIONS:
        path_of(room).write_text(module(room))
