"""How a broker's replicas come to be the same as those of other brokers.

replica_manager             all partitions of this broker, and what the controller says of them
replica_fetcher_manager     which partitions are fetched from which leader
replica_fetcher             one greenlet that fetches from one leader
follower_truncation         where a follower's log and its leader's part: log_comparison (pure)
isr_changes                 changes of the ISR on their way to ZooKeeper; isr_change_notifications
high_watermark_checkpoints  `replication-offset-checkpoint` of each log directory
unconfirmed_leaderships          partitions that may have another leader by now
"""
