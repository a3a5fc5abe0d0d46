"""One broker as a process: `main` starts it, `server` makes the parts, in order, and ends them.

broker_metadata, missed_restart     whether this directory and this start are what they seem
controlled_shutdown                 hands leaderships over before it ends
log_background, log_cleaner         work on logs beside requests
broker_families                     the broker's metrics; event_loop_monitor, memory, descriptors
"""
