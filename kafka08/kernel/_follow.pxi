# Fetch responses to the ends of a follower's logs. Part of _native.pyx; the docstrings are in
# _python_follow.py.

cdef class FollowerState:
    cdef public object partition, unsettled
    cdef public bint is_followed
    cdef public int64_t max_bytes, expected_bytes, lag, frame_position


def append_fetched(
    payload, int version, dict followed, int64_t max_bytes, int64_t now_ms, bytearray frame=None
):
    cdef list found, codes, high_watermarks, sets, left = [], appended = [], due = []
    cdef FollowerState item
    cdef Py_ssize_t i
    response = read_fetched(payload, version, followed)
    if response is None:
        return None
    found, codes, high_watermarks, sets = response
    for i in range(len(found)):
        item = <FollowerState?>found[i]
        data = sets[i]
        if item.max_bytes != max_bytes or not take_fetched(
            item, codes[i], high_watermarks[i], data, now_ms, due
        ):
            left.append((item, codes[i], high_watermarks[i], data))
        elif data:
            appended.append(item)
            if frame is not None:
                put_offset(frame, item)
    return left, appended, due


cdef int put_offset(bytearray frame, FollowerState item) except -1:
    cdef SegmentTail tail = <SegmentTail?>item.partition.log.active_segment
    if not 0 <= item.frame_position <= len(frame) - 8:
        raise IndexError("the frame has no such position")
    store64(<uint8_t*>PyByteArray_AS_STRING(frame) + item.frame_position, tail.end_offset)
    return 0


cdef bint take_fetched(
    FollowerState item, int code, int64_t high_watermark, object data, int64_t now_ms, list due
) except -1:
    cdef LeaderState partition = <LeaderState?>item.partition
    cdef SegmentTail tail
    cdef Py_ssize_t size = len(data)
    if (
        code
        or not item.is_followed
        or item.unsettled is not None
        or partition.is_leader
        or partition.log is None
    ):
        return False
    tail = <SegmentTail?>partition.log.active_segment
    if size:
        if not append_checked(tail, data, now_ms):
            return False
        if tail.index_is_due:
            due.append(tail)
    put_high_watermark(partition, tail, high_watermark)
    item.expected_bytes = size
    item.lag = high_watermark - tail.end_offset if high_watermark > tail.end_offset else 0
    return True


cdef bint append_checked(SegmentTail tail, object data, int64_t now_ms) except -1:
    # Whether the whole entries of a set were appended as they are, at least one.
    cdef Py_buffer view
    cdef Walk walk
    if not tail.takes_plain_sets or tail.is_full or not tail.size or tail.end_offset < 0:
        return False
    PyObject_GetBuffer(data, &view, PyBUF_SIMPLE)
    try:
        if view.len >= GIL_RELEASE_BYTES:
            return False
        walk_set(<uint8_t*>view.buf, view.len, MAX_SET_BYTES, True, -1, &walk)
        return (
            walk.fault == SOUND
            and walk.count
            and walk.monotonic
            and walk.first_offset >= tail.end_offset
            and walk.last_offset - tail.base_offset <= INT32_MAX
            and walk.size <= tail.segment_bytes - tail.size
            and age_of(tail, &walk, now_ms) <= tail.age_max_ms
            and write_walked(tail, <const uint8_t*>view.buf, walk.size, data, 0, &walk)
        )
    finally:
        PyBuffer_Release(&view)
