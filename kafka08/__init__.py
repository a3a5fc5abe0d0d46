"""Apache Kafka of the ZooKeeper age, 0.8 to 0.11. Importing it patches nothing and starts nothing.

Start reading at `kafka08.consumer`, `kafka08.producer` and `kafka08.admin` (clients), or at
`kafka08.broker.process.server` (one broker). ARCHITECTURE.md describes all packages.
"""

__version__ = "0.1.0"
