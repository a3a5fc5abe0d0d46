"""The controller: one broker decides who leads what. Start reading at `controller`, then `term`.

controller           every broker's: the event queue, the election            driver
term                 an active controller's: reads, watches, channels          driver
cluster_changes      what to do when brokers or topics come and go             recipes
topic_deletion       how a topic goes away                                     recipes
reassignment         how partitions move to other replicas                     recipes
state_changes        moves of partitions and replicas, many at once            driver
leadership           state znodes: read all, decide, write all on condition    driver
request_znodes       what tools ask for in ZooKeeper                           driver
unclean_elections    which topics may get a leader out of sync                 driver
broker_channel       one connection to each broker                             driver
context, state_table, partition_state, replica_state                           data, tables
leader_selectors, leader_balance, request_batch                                pure decisions
"""

from __future__ import annotations

from kafka08.broker.controller.controller import Controller, NotController

__all__ = ["Controller", "NotController"]
