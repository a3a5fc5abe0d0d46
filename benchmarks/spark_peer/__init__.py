"""The peer of `scripts/bench spark`: Spark's own connector on an Apache Kafka 3.9 broker.

`connector` gets the connector's jars, `broker` runs the broker. The connector wants a module for
delegation tokens that is not to be had everywhere; its three classes are here (java/), as they are
for a cluster without tokens. Both need Maven, Java and a Java compiler.
"""
