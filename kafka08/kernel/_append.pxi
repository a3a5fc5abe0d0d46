# Plain sets to the ends of many logs. Part of _native.pyx; the docstrings are in _python_append.py.

cdef class SegmentTail:
    cdef public int64_t size, end_offset, tail_offset, tail_position, bytes_since_index
    cdef public int64_t created_ms, first_ms, max_timestamp_ms, max_timestamp_offset
    cdef public int64_t max_entry_bytes, segment_bytes, index_interval_bytes, age_max_ms
    cdef public bint takes_plain_sets, is_full, index_is_due
    cdef public object rules, write


def append_plain_sets(list tails, list sets, int64_t now_ms):
    cdef Py_ssize_t i
    cdef SegmentTail tail
    cdef list base_offsets = []
    if len(tails) != len(sets):
        raise ValueError("as many tails as sets")
    for i in range(len(tails)):
        tail = <SegmentTail?>tails[i] if tails[i] is not None else None
        base_offsets.append(-1 if tail is None else append_plain(tail, sets[i], now_ms))
    return base_offsets


cdef int64_t append_plain(SegmentTail tail, object data, int64_t now_ms) except -2:
    # The base offset; -1 if it is left.
    cdef Py_buffer view
    cdef Walk walk
    cdef int64_t size, base_offset = tail.end_offset
    cdef bint is_taken
    PyObject_GetBuffer(data, &view, PyBUF_WRITABLE)
    try:
        size = view.len
        is_taken = (
            has_room(tail, &view)
            and number_plain(tail, &view, now_ms, &walk)
            and age_of(tail, &walk, now_ms) <= tail.age_max_ms
        )
    finally:
        PyBuffer_Release(&view)
    if not is_taken:
        return -1
    try:
        tail.write(data, tail.size)
    except OSError:
        return -1
    if tail.rules is not None and walk.max_timestamp_ms > tail.max_timestamp_ms:
        tail.max_timestamp_ms = walk.max_timestamp_ms
        tail.max_timestamp_offset = walk.max_timestamp_offset
    tail.tail_offset = base_offset
    tail.tail_position = tail.size
    if tail.bytes_since_index > tail.index_interval_bytes:
        tail.index_is_due = True
        tail.bytes_since_index = 0
    tail.bytes_since_index += size
    tail.size += size
    tail.end_offset = walk.last_offset + 1
    return base_offset


cdef inline bint has_room(SegmentTail tail, const Py_buffer* view):
    return (
        tail.takes_plain_sets
        and not tail.is_full
        and tail.size > 0
        and ENTRY_HEADER_BYTES + MIN_MESSAGE_BYTES <= view.len < GIL_RELEASE_BYTES
        and view.len <= tail.segment_bytes - tail.size
        and not (<const uint8_t*>view.buf)[ATTRIBUTES_POSITION] & CODEC_MASK
        and 0 <= tail.end_offset <= INT64_MAX - view.len
    )


cdef bint number_plain(
    SegmentTail tail, const Py_buffer* view, int64_t now_ms, Walk* walk
) except -1:
    # Whether the whole set was checked and numbered, and is such as the topic keeps.
    cdef uint8_t* data = <uint8_t*>view.buf
    cdef RuleSet rules
    cdef Refusal refusal
    if tail.rules is None:
        walk_set(data, view.len, tail.max_entry_bytes, True, tail.end_offset, walk)
    else:
        rules = read_rules(tail.rules, now_ms)
        # Stamped twice, a set would be refused: whoever gets one that is left stamps it.
        if rules.log_append_time or data[MAGIC_POSITION] != rules.magic:
            return False
        take_in_and_stamp(
            data, view.len, tail.end_offset, tail.max_entry_bytes, &rules, walk, &refusal
        )
        if refusal.fault != SOUND or magics_of(walk) != 1 << rules.magic:
            return False
    return walk.fault == SOUND and not walk.codec and walk.size == view.len


cdef inline int64_t age_of(SegmentTail tail, const Walk* walk, int64_t now_ms):
    # Between timestamps, or if the first message has none between clock times.
    if tail.first_ms < 0:
        return now_ms - tail.created_ms
    return walk.max_timestamp_ms - tail.first_ms
