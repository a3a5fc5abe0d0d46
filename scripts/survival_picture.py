"""Draw what clients saw while the leader of a partition was killed: README's picture.

usage: python -m scripts.survival_picture FILE.svg

Starts three brokers, produces 500 messages a second with acks=all, reads them in a group, kills
the leader after two seconds and starts it again after five. FILE.svg shows that very run.
"""

from __future__ import annotations

import sys
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from kafka08.consumer import KafkaConsumer, KafkaConsumerConfig
from kafka08.embedded import EmbeddedCluster
from kafka08.producer import KafkaProducer, KafkaProducerConfig, ProducerRecord
from kafka08.structs import TopicPartition
from kafka08.zk.client import ZkClient
from kafka08.zk.store import ClusterStore

TOPIC: Final = "orders"
RATE: Final = 500
KILL_S, START_S, END_S = 2.0, 5.0, 8.0
STEP_S: Final = 0.1
LEFT, WIDTH, LANE, CHART = 92, 600, 20, 90
COLOURS: Final = {"leads": "#2f7d4f", "in sync": "#9fd0ae", "behind": "#e6b450", "down": "#c4453c"}


@dataclass
class Run:
    """acked, read   when each message was, in seconds since the start, by its number
    states           (seconds, what each broker is: a key of COLOURS)"""

    acked: dict[int, float] = field(default_factory=dict)
    read: list[tuple[float, int]] = field(default_factory=list)
    states: list[tuple[float, tuple[str, ...]]] = field(default_factory=list)
    killed: int = -1

    @property
    def verdict(self) -> str:
        times = Counter(number for _, number in self.read)
        lost = sum(number not in times for number in self.acked)
        twice = sum(count - 1 for count in times.values())
        return f"{len(self.acked):,} acknowledged, {lost} lost, {twice} read twice"


def recorded() -> Run:
    """A run on a cluster of its own."""
    run = Run()
    safe = {"min.insync.replicas": "2", "unclean.leader.election.enable": "false"}
    with EmbeddedCluster(brokers=3) as cluster, ZkClient(cluster.zookeeper.connect_string) as zk:
        cluster.create_topic(TOPIC, replication_factor=3, config=safe)
        store, tp = ClusterStore(zk), TopicPartition(TOPIC, 0)
        ended = threading.Event()

        keys = {"bootstrap.servers": cluster.bootstrap}

        def read() -> None:
            group = {**keys, "group.id": "readers", "auto.offset.reset": "earliest"}
            with KafkaConsumer(KafkaConsumerConfig(group)) as consumer:
                consumer.subscribe([TOPIC])
                while not (ended.is_set() and len(run.read) > len(run.acked)):
                    for message in consumer.poll(timeout=0.05):
                        run.read.append((time.monotonic(), int(message.value or b"")))

        def watch() -> None:
            state = store.leader_and_isr([tp])[tp]
            seen = []
            for broker in cluster.brokers:
                if not broker.running:
                    seen.append("down")
                elif broker.id == state.leader:
                    seen.append("leads")
                else:
                    seen.append("in sync" if broker.id in state.isr else "behind")
            run.states.append((time.monotonic() - began, tuple(seen)))

        safely = {**keys, "acks": "all", "retries": "100", "retry.backoff.ms": "20"}
        reader = threading.Thread(target=read)
        reader.start()
        with KafkaProducer(KafkaProducerConfig(safely)) as producer:
            producer.send(ProducerRecord(TOPIC, b"-1")).result(30)
            while not run.read:  # until the group is stable
                time.sleep(0.01)
            began = time.monotonic()
            sent = 0
            while (now := time.monotonic() - began) < END_S:
                if now > KILL_S and run.killed < 0:
                    leader = cluster.leader_of(TOPIC)
                    run.killed = leader.id
                    threading.Thread(target=cluster.kill, args=(leader,)).start()
                if now > START_S and not cluster.brokers[run.killed].expected_running:
                    cluster.brokers[run.killed].start()
                for number in range(sent, int(now * RATE)):
                    record = ProducerRecord(TOPIC, b"%d" % number)

                    def noted(_: object, error: Exception | None, number: int = number) -> None:
                        if error is None:
                            run.acked[number] = time.monotonic() - began

                    producer.send(record, noted)
                sent = max(sent, int(now * RATE))
                watch()
                time.sleep(0.02)
        ended.set()
        reader.join(30)
    run.read = [(at - began, number) for at, number in run.read if number >= 0]
    return run


def spans(seen: list[tuple[float, str]]) -> list[tuple[str, float, float]]:
    """(state, since, until) of what was seen at each time."""
    joined: list[tuple[str, float, float]] = []
    for at, state in seen:
        if joined and joined[-1][0] == state:
            continue
        if joined:
            joined[-1] = (*joined[-1][:2], at)
        joined.append((state, at, END_S))
    return joined


def drawn(run: Run) -> str:
    """The picture: a lane for each broker, and the messages acknowledged and read in each step."""
    scale = WIDTH / END_S
    parts = []
    for broker in range(3):
        top = 44 + broker * (LANE + 6)
        parts.append(f'<text x="10" y="{top + 14}">broker {broker}</text>')
        for state, since, until in spans([(at, states[broker]) for at, states in run.states]):
            x, width = LEFT + since * scale, (until - since) * scale
            parts.append(
                f'<rect x="{x:.1f}" y="{top}" width="{width:.1f}" height="{LANE}" '
                f'fill="{COLOURS[state]}"/>'
            )
    base = 44 + 3 * (LANE + 6) + CHART + 12
    acked = Counter(int(at / STEP_S) for at in run.acked.values())
    read = Counter(int(at / STEP_S) for at, _ in run.read)
    steps, most = range(int(END_S / STEP_S)), max(*acked.values(), *read.values())
    for counts, colour in ((acked, "#3b6fb5"), (read, "#b5533b")):
        line = " ".join(
            f"{LEFT + (n + 0.5) * STEP_S * scale:.1f},{base - CHART * counts[n] / most:.1f}"
            for n in steps
        )
        parts.append(
            f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="1.6"/>'
        )
    for label, at in ((f"kill -9 broker {run.killed}", KILL_S), ("started again", START_S)):
        x = LEFT + at * scale
        parts.append(f'<line x1="{x}" x2="{x}" y1="36" y2="{base}" class="mark"/>')
        parts.append(f'<text x="{x + 4}" y="36">{label}</text>')
    for second in range(int(END_S) + 1):
        parts.append(
            f'<text x="{LEFT + second * scale:.0f}" y="{base + 16}" class="axis">{second} s</text>'
        )
    legend = "".join(
        f'<rect x="{LEFT + n * 86}" y="{base + 26}" width="11" height="11" fill="{colour}"/>'
        f'<text x="{LEFT + n * 86 + 16}" y="{base + 36}">{name}</text>'
        for n, (name, colour) in enumerate(COLOURS.items())
    )
    lines = (
        f'<text x="10" y="{base - CHART + 10}" fill="#3b6fb5">acknowledged</text>'
        f'<text x="10" y="{base - CHART + 26}" fill="#b5533b">read</text>'
        f'<text x="10" y="{base - CHART + 42}">in {STEP_S:g} s</text>'
    )
    width, height = LEFT + WIDTH + 24, base + 46
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img">\n'
        "<!-- python -m scripts.survival_picture wrote this from a run -->\n"
        "<style>text { font: 12px sans-serif; } text:not([fill]) { fill: #222; } "
        ".title { font-weight: bold; } .axis { text-anchor: middle; } "
        ".mark { stroke: #222; stroke-dasharray: 3 3; } .page { fill: #fbfbf9; }\n"
        "@media (prefers-color-scheme: dark) { .page { fill: #1c1f22; } "
        "text:not([fill]) { fill: #ddd; } .mark { stroke: #ddd; } }</style>\n"
        f'<rect class="page" width="{width}" height="{height}" rx="6"/>\n'
        f'<text x="10" y="18" class="title">The leader is killed: {run.verdict}</text>\n'
        + "\n".join(parts)
        + f"\n{lines}{legend}\n</svg>\n"
    )


def main() -> int:
    """Exit code 1 if an acknowledged message was lost."""
    run = recorded()
    Path(sys.argv[1]).write_text(drawn(run))
    print(run.verdict)
    return int(" 0 lost" not in run.verdict)


if __name__ == "__main__":
    sys.exit(main())
