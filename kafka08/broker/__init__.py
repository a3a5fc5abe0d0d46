"""One broker. An arrow is an import; none points up.

    process        starts and ends a broker                      server.py
    requests       from bytes to a response, one file per API    dispatcher.py
    topics         create, delete, configure                     topic_creator.py
    groups         the group coordinator and its offsets         group_coordinator.py
    transactions   the transaction coordinator                   transaction_coordinator.py
    controller     elects leaders                                controller.py, term.py
    appends        appends to partitions                         appender.py
    replication    fetchers, ISR changes, checkpoints            replica_manager.py
    purgatory      requests that wait                            purgatory.py
    replica        role, ISR and HW of one replica               partition.py
    cluster        registration, metadata                        metadata_cache.py
    settings       configuration                                 config.py

All I/O goes through kafka08.runtime. Importing this patches nothing and starts nothing.
"""
