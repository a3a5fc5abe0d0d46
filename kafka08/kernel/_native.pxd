# What compiled rules elsewhere read of the ends of logs: see _python_append.py.

from libc.stdint cimport int32_t, int64_t


cdef class IndexTail:
    cdef public int64_t base_offset, entries, capacity, allocated, last_offset, last_position
    cdef public int64_t last_ms
    cdef public object view


cdef class SegmentTail:
    cdef public int64_t base_offset, size, end_offset, tail_offset, tail_position
    cdef public int64_t bytes_since_index
    cdef public int64_t created_ms, first_ms, max_timestamp_ms, max_timestamp_offset
    cdef public int64_t max_entry_bytes, segment_bytes, index_interval_bytes, age_max_ms
    cdef public bint takes_plain_sets, is_full, index_is_due
    cdef public int descriptor
    cdef public int32_t min_in_sync, noted_epoch
    cdef public object rules, read, write, index_tail, time_tail, records
