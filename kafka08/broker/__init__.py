"""One broker. Start reading at `server` (startup and shutdown), then `dispatcher` and `handlers`,
then `replica_manager` with `partition`. All I/O goes through kafka08.runtime; `timer` and
`purgatory` hold delayed operations, `controller` and `coordinator` are packages of their own.
`main` is the process.

Importing this patches nothing and starts nothing.
"""
