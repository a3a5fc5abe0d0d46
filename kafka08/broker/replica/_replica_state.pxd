# The types of replica_state.py, for its compiled build.

cimport cython
from libc.stdint cimport int32_t, int64_t

from kafka08.kernel._native cimport SegmentTail as Tail


cdef class FollowerReplica:
    cdef public int32_t broker_id
    cdef public double last_fetch, last_caught_up
    cdef public int64_t log_end_offset, log_start_offset, leader_log_end


cdef class LeaderState:
    cdef public object topic_partition, log
    cdef public dict followers
    cdef public tuple isr, maximal_isr
    cdef public bint is_leader, is_internal, is_queued
    cdef public int32_t reached_in_sync, leader_epoch
    cdef public int64_t high_watermark, high_watermark_max, messages_in, bytes_in, bytes_out
    cdef public int64_t produce_requests, fetch_requests

    cdef Tail _tail(self)
    cpdef int32_t min_in_sync(self) except -2
    cpdef bint has_enough_in_sync(self) except -1
    cpdef bint accepts(self, int32_t acks) except -1
    cpdef note_append(self, int64_t base_offset, int64_t size)
    cpdef count_in(self, int64_t count, int64_t size)
    @cython.locals(lowest=int64_t, follower=FollowerReplica)
    cpdef bint maybe_raise_high_watermark(self) except -1
    cpdef set_high_watermark(self, int64_t wanted)
    @cython.locals(log_end_offset=int64_t, follower=FollowerReplica)
    cpdef bint record_follower_fetch(self, int32_t broker_id, int64_t offset, double now) except -1


cdef class FollowerState:
    cdef public LeaderState partition
    cdef public object unsettled
    cdef public bint is_followed
    cdef public int64_t max_bytes, expected_bytes, lag, leader_start, frame_position

    @cython.locals(partition=LeaderState)
    cpdef bint accepts(self, int code, int64_t max_bytes) except -1
    @cython.locals(partition=LeaderState, log_end_offset=int64_t)
    cpdef int64_t note_response(self, int64_t high_watermark, int64_t size) except -2


@cython.locals(partition=LeaderState)
cpdef list append_sets(
    payload, list partitions, list starts, list sizes, int32_t acks, int64_t now_ms
)
@cython.locals(tail=Tail)
cpdef append_records(LeaderState partition, records, int32_t acks, int64_t now_ms)
@cython.locals(partition=LeaderState)
cpdef index_last_sets(list partitions)
@cython.locals(partition=LeaderState, log_end_offset=int64_t)
cpdef dict unacknowledged(list partitions)
@cython.locals(
    partition=LeaderState, tail=Tail, offset=int64_t, limit=int64_t, end_offset=int64_t
)
cpdef tuple partitions_to_read(list partitions, list offsets, list limits, bint is_follower)
@cython.locals(partition=LeaderState, follower=FollowerReplica)
cpdef tuple record_fetches(
    list partitions, list offsets, int32_t broker_id, double now, list log_starts=*
)
@cython.locals(partition=LeaderState, tail=Tail)
cpdef bint has_news(list partitions, list offsets) except -1
@cython.locals(partition=LeaderState)
cpdef respond_to_follower(
    payload, list partitions, list offsets, list limits, list positions, int64_t bytes_max,
    list high_watermarks=*,
)
@cython.locals(partition=LeaderState)
cpdef log_starts_for(payload, list partitions)
@cython.locals(partition=LeaderState)
cpdef count_fetches(list partitions, list sizes)
@cython.locals(
    item=FollowerState, found=list, codes=list, high_watermarks=list, log_starts=list, sets=list,
    taken=list, log_end_offset=int64_t, log_start=int64_t,
)
cpdef append_fetched(
    payload, int version, dict followed, int64_t max_bytes, int64_t now_ms, bytearray frame=*
)
