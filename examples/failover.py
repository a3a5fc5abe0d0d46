"""Kill the leader of a partition while messages are written and read: none may be missing.

Starts a ZooKeeper and three brokers of its own, which speak as Kafka 0.10.2.

usage: failover.py
"""

from __future__ import annotations

import sys

from kafka08.consumer import KafkaConsumer
from kafka08.embedded import EmbeddedCluster
from kafka08.errors import KafkaError
from kafka08.producer import KafkaProducer, KafkaProducerConfig

EACH = 1000


def main() -> int:
    """Exit code 1 if a message is missing."""
    safe = {"min.insync.replicas": "2", "unclean.leader.election.enable": "false"}
    with EmbeddedCluster(brokers=3, level="0.10.2") as cluster:
        cluster.create_topic("ledger", replication_factor=3, config=safe)
        keys = {"bootstrap.servers": cluster.bootstrap, "acks": "all", "retries": 100}
        with KafkaProducer(KafkaProducerConfig(keys)) as producer:
            values = [b"%d" % number for number in range(2 * EACH)]
            producer.send_many("ledger", values[:EACH]).result(timeout=60)
            killed = cluster.leader_of("ledger")
            cluster.kill(killed)
            print(f"killed broker {killed.id}, the leader")
            producer.send_many("ledger", [b"%d" % n for n in range(EACH, 2 * EACH)]).result(
                timeout=60
            )
        seen: set[int] = set()
        with KafkaConsumer(
            bootstrap_servers=cluster.bootstrap, group_id="audit", auto_offset_reset="earliest"
        ) as consumer:
            consumer.subscribe(["ledger"])
            while len(seen) < 2 * EACH:
                messages = consumer.poll(timeout=30.0)
                if not messages:
                    break
                seen |= {int(message.value or b"") for message in messages}
        print(f"broker {cluster.leader_of('ledger').id} leads; {len(seen)} of {2 * EACH} arrived")
    return int(len(seen) < 2 * EACH)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KafkaError as error:
        sys.exit(f"Error: {error}")
    except KeyboardInterrupt:
        sys.exit(130)
