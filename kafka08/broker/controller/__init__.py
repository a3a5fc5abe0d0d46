"""The controller: the one broker that elects leaders. Start reading at `controller`, then `term`.

controller           on every broker: the event queue and the election        driver
term                 of an active controller: reads, watches, channels        driver
cluster_changes      the reactions to brokers and topics that come and go     procedures
topic_deletion       deletes topics                                           procedures
reassignment         moves partitions to other replicas                       procedures
state_changes        transitions of partitions and replicas, many at once     driver
leadership           state znodes: read all, decide, write conditionally      driver
request_znodes       the requests of tools in ZooKeeper                       driver
unclean_elections    which topics allow unclean elections                     driver
broker_channel       one connection to each broker                            driver
propagation          which brokers get UpdateMetadata, by level               data
context, state_table, partition_state, replica_state                          data, tables
leader_selectors, leader_balance, request_batch                               pure decisions
"""
