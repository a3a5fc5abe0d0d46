"""One broker. Start reading at `server` (the recipe), then `dispatcher` and `handlers`, then
`replica_manager` with `partition`. `runtime` is the only door to the world, `timer` and `purgatory`
hold what waits, `controller` and `coordinator` are rooms of their own. `main` is the process.

Importing this patches nothing and starts nothing.
"""
