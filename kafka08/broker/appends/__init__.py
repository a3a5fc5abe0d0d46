"""Appends to the partitions that this broker leads: `appender` for requests and for records of the
broker itself, `inline_appends` for what takes little time, `append_queue` for what a native thread
does."""
