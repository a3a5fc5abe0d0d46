"""The consumer of 0.8, for groups in ZooKeeper: `ConsumerConnector`.

`connector` wires the parts, a program iterates a `kafka_stream` (behind it,
`member_stream`). `rebalancer` claims and releases
partitions (`ownership`), `registry` has the members' znodes, `offset_store` commits to ZooKeeper or
Kafka, `session` stops streams whose ZooKeeper session may be over. `assignors` and `assignment` are
pure.
"""
