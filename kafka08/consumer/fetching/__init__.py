"""The way of messages from a leader to a stream, for both kinds of groups.

fetcher_manager   which fetcher has which partition; finds leaders
fetcher           one thread for one broker: long polls, and offers the sets to streams
owned_partition   one partition on its way: positions, and what was fetched
stream            fetched sets, and the reader's position in them; `batch` cuts them into batches
"""
