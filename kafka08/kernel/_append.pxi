# Appends sets to the ends of segments, and copies them from there into responses. Part of
# _native.pyx; the fields of the classes are in _native.pxd, the docstrings in _python_append.py.

cdef struct Scratch:
    # Memory for converted sets, kept until the end of a request.
    uint8_t* data
    int64_t size


cdef class IndexTail:
    pass


cdef class SegmentTail:
    pass


def append_plain(
    payload, list tails, list starts, list sizes, int64_t now_ms, list leader_epochs=None
):
    cdef Py_buffer view
    cdef Scratch scratch
    cdef Py_ssize_t i, start, size
    cdef int32_t leader_epoch = -1
    cdef list base_offsets = []
    if not len(tails) == len(starts) == len(sizes):
        raise ValueError("as many starts and sizes as tails")
    if leader_epochs is not None and len(leader_epochs) != len(tails):
        raise ValueError("as many leader epochs as tails")
    memset(&scratch, 0, sizeof(Scratch))
    PyObject_GetBuffer(payload, &view, PyBUF_WRITABLE)
    try:
        for i in range(len(tails)):
            start, size, tail = starts[i], sizes[i], tails[i]
            if start < 0 or not 0 <= size <= view.len - start:
                raise IndexError("a set outside of the payload")
            if leader_epochs is not None:
                leader_epoch = leader_epochs[i]
            base_offsets.append(
                -1 if tail is None
                else append_at(
                    <SegmentTail?>tail, payload, &view, start, size, now_ms, leader_epoch, &scratch
                )
            )
    finally:
        free(scratch.data)
        PyBuffer_Release(&view)
    return base_offsets


def append_copies(list tails, list sets, int64_t now_ms):
    cdef Py_ssize_t i
    cdef list taken = []
    if len(tails) != len(sets):
        raise ValueError("as many sets as tails")
    for i in range(len(tails)):
        tail, data = tails[i], sets[i]
        taken.append(
            tail is not None and (not data or append_checked(<SegmentTail?>tail, data, now_ms))
        )
    return taken


def copy_fetched(
    payload, list tails, list offsets, list limits, list positions, int64_t bytes_max,
    list high_watermarks, list log_starts=None,
):
    cdef Py_buffer view
    cdef Py_ssize_t i, count = len(tails)
    cdef int64_t total = 0, limit
    cdef Slice* slices = NULL
    if not len(offsets) == len(limits) == len(positions) == len(high_watermarks) == count:
        raise ValueError("as many offsets, limits, positions and high watermarks as tails")
    if log_starts is not None and len(log_starts) != count:
        raise ValueError("as many log starts as tails")
    PyObject_GetBuffer(payload, &view, PyBUF_SIMPLE)
    try:
        slices = <Slice*>calloc(count + 1, sizeof(Slice))
        if slices == NULL:
            raise MemoryError
        for i in range(count):
            slices[i].high_watermark = high_watermarks[i]
            slices[i].log_start = -1 if log_starts is None else log_starts[i]
            if not find_slice(<SegmentTail?>tails[i], offsets[i], positions[i], &slices[i]):
                return None
            total += slices[i].size
            limit = limits[i]
            if limit < 0 or (slices[i].size and slices[i].size >= limit) or total > bytes_max:
                return None
        return fetched_frame(&view, slices, count)
    finally:
        free(slices)
        PyBuffer_Release(&view)


cdef bint find_slice(SegmentTail tail, int64_t offset, int64_t position, Slice* found) except -1:
    # Whether it is known where the messages from `offset` on begin: they end with the segment.
    if offset == tail.end_offset:
        return True
    if offset > tail.end_offset or offset < tail.base_offset:
        return False
    if offset == tail.base_offset:
        position = 0
    elif offset == tail.tail_offset:
        position = tail.tail_position
    elif position < 0:
        position = indexed_position(tail, offset)
    if tail.descriptor < 0 or not 0 <= position < tail.size:
        return False
    found.descriptor = tail.descriptor
    found.position = position
    found.size = tail.size - position
    return True


cdef int64_t indexed_position(SegmentTail tail, int64_t offset) except -2:
    # The position of this very offset in the index; -1 if it has no entry.
    cdef IndexTail index
    cdef Py_buffer view
    cdef const uint8_t* entry
    cdef int64_t low = 0, high, middle, wanted = offset - tail.base_offset, relative
    if tail.index_tail is None:
        return -1
    index = <IndexTail?>tail.index_tail
    if index.view is None or index.entries <= 0:
        return -1
    PyObject_GetBuffer(index.view, &view, PyBUF_SIMPLE)
    try:
        high = index.entries if index.entries * INDEX_ENTRY_BYTES <= view.len else 0
        while low < high:
            middle = low + (high - low) // 2
            entry = <const uint8_t*>view.buf + middle * INDEX_ENTRY_BYTES
            relative = load32(entry)
            if relative == wanted:
                return load32(entry + 4)
            if relative < wanted:
                low = middle + 1
            else:
                high = middle
    finally:
        PyBuffer_Release(&view)
    return -1


cdef int64_t append_at(
    SegmentTail tail, object payload, const Py_buffer* view, Py_ssize_t start, int64_t size,
    int64_t now_ms, int32_t leader_epoch, Scratch* scratch,
) except -2:
    # The offset of the set's first message; -1 if it was not appended.
    cdef uint8_t* data = <uint8_t*>view.buf + start
    cdef int64_t base_offset = tail.end_offset
    cdef RuleSet rules
    cdef Walk walk
    cdef object source = payload
    if not has_room(tail, data, size):
        return -1
    if tail.rules is None:
        walk_set(data, size, tail.max_entry_bytes, True, base_offset, &walk)
        if walk.fault != SOUND or walk.codec or walk.size != size:
            return -1
    else:
        rules = read_rules(tail.rules, now_ms)
        if rules.magic == RECORDS_MAGIC:
            return append_batch(tail, data, size, source, start, &rules, leader_epoch)
        if is_raised(data, &rules):
            size = raise_magic(data, size, tail, &rules, scratch, &walk)
            data, source = scratch.data, None
        elif not number_plain(tail, data, size, &rules, &walk):
            return -1
    if size <= 0 or age_of(tail, &walk, now_ms) > tail.age_max_ms:
        return -1
    return base_offset if write_walked(tail, data, size, source, start, &walk) else -1


cdef int64_t append_batch(
    SegmentTail tail, uint8_t* data, int64_t size, object source, Py_ssize_t start,
    const RuleSet* rules, int32_t leader_epoch,
) except -2:
    # `append_at` for a set that must be one batch of records. One that is left has its offset again.
    cdef Walk walk
    cdef int64_t base_offset = tail.end_offset
    cdef object batch = None
    if (
        rules.log_append_time
        or leader_epoch < 0
        or tail.noted_epoch != leader_epoch
        or not check_batch(data, size, base_offset, tail.max_entry_bytes, &walk)
        or not number_records(
            data, size, data + RECORDS_HEAD_BYTES, size - RECORDS_HEAD_BYTES, base_offset, rules,
            leader_epoch, &walk,
        )
    ):
        return -1
    if (
        walk.last_offset - tail.base_offset <= INT32_MAX
        and age_of(tail, &walk, rules.now_ms) <= tail.age_max_ms
    ):
        if <int64_t>load64(data + RECORDS_PRODUCER) == -1:
            if write_walked(tail, data, size, source, start, &walk):
                return base_offset
        else:
            batch = batch_of(tail.records, data, base_offset)
            if tail.records.is_next(batch) and write_walked(
                tail, data, size, source, start, &walk
            ):
                tail.records.note_batch(batch, rules.now_ms)
                return base_offset
    store64(data, 0)
    return -1


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
        if not (
            walk.fault == SOUND
            and walk.count
            and walk.monotonic
            and walk.first_offset >= tail.end_offset
            and walk.last_offset - tail.base_offset <= INT32_MAX
            and walk.size <= tail.segment_bytes - tail.size
            and age_of(tail, &walk, now_ms) <= tail.age_max_ms
            and has_noted_epoch(tail, <const uint8_t*>view.buf, &walk)
            and write_walked(tail, <const uint8_t*>view.buf, walk.size, data, 0, &walk)
        ):
            return False
        if walk.magics & 1 << RECORDS_MAGIC:
            note_copies(tail.records, <const uint8_t*>view.buf, walk.size, now_ms)
        return True
    finally:
        PyBuffer_Release(&view)


cdef bint has_noted_epoch(SegmentTail tail, const uint8_t* data, const Walk* walk) noexcept:
    # Whether no record batch of the set begins an epoch or ends a transaction.
    cdef const uint8_t* end = data + walk.size
    if not walk.magics & 1 << RECORDS_MAGIC:
        return True
    while data < end:
        if has_records(data) and (
            <int32_t>load32(data + RECORDS_EPOCH) != tail.noted_epoch
            or data[RECORDS_ATTRIBUTES + 1] & CONTROL_BIT
        ):
            return False
        data += ENTRY_HEADER_BYTES + <int32_t>load32(data + 8)
    return True


cdef int note_copies(
    object records, const uint8_t* data, int64_t size, int64_t now_ms
) except -1:
    # Note the batches of producers in a set that was written.
    cdef const uint8_t* end = data + size
    while data < end:
        if has_records(data) and <int64_t>load64(data + RECORDS_PRODUCER) >= 0:
            records.note_batch(batch_of(records, data, load64(data)), now_ms)
        data += ENTRY_HEADER_BYTES + <int32_t>load32(data + 8)
    return 0


cdef object batch_of(object records, const uint8_t* data, int64_t base_offset):
    # What a log keeps of a batch of a producer.
    return records.batch(
        <int64_t>load64(data + RECORDS_PRODUCER),
        <int16_t>(data[RECORDS_PRODUCER + 8] << 8 | data[RECORDS_PRODUCER + 9]),
        <int32_t>load32(data + RECORDS_SEQUENCE),
        base_offset,
        base_offset + <int32_t>load32(data + RECORDS_LAST_DELTA),
        <int64_t>load64(data + RECORDS_MAX_TIME),
        (data[RECORDS_ATTRIBUTES + 1] & TRANSACTIONAL_BIT) != 0,
    )


cdef bint write_walked(
    SegmentTail tail, const uint8_t* data, int64_t size, object source, Py_ssize_t start,
    const Walk* walk,
) except -1:
    # Write the entries of a walk; the tail then ends behind them. They are in `source` from `start`
    # on, unless that is None. False: the tail is as it was.
    cdef object written
    if tail.descriptor >= 0:
        if not write_all(tail.descriptor, data, size, tail.size):
            return False
    else:
        if source is None:
            written = PyBytes_FromStringAndSize(<const char*>data, size)
        else:
            written = source[start : start + size]
        try:
            tail.write(written, tail.size)
        except OSError:
            return False
    if tail.rules is not None and walk.max_timestamp_ms > tail.max_timestamp_ms:
        tail.max_timestamp_ms = walk.max_timestamp_ms
        tail.max_timestamp_offset = walk.max_timestamp_offset
    tail.tail_offset = tail.end_offset
    tail.tail_position = tail.size
    if tail.bytes_since_index > tail.index_interval_bytes:
        tail.index_is_due = not add_index_entry(tail)
        tail.bytes_since_index = 0
    tail.bytes_since_index += size
    tail.size += size
    tail.end_offset = walk.last_offset + 1
    return True


cdef bint add_index_entry(SegmentTail tail) except -1:
    # Add the entries of the last set to the indexes; False if this is left to the owner.
    cdef IndexTail index, times
    cdef uint8_t entry[INDEX_ENTRY_BYTES]
    cdef int64_t relative = tail.tail_offset - tail.base_offset
    if tail.index_tail is None:
        return False
    index = <IndexTail?>tail.index_tail
    if (
        tail.tail_offset <= index.last_offset
        or tail.tail_position <= index.last_position
        or not 0 < relative <= INT32_MAX
        or tail.tail_position > INT32_MAX
        or not has_entry_room(index, INDEX_ENTRY_BYTES)
    ):
        return False
    if tail.time_tail is not None:
        times = <IndexTail?>tail.time_tail
        if not add_time(tail, times):
            return False
        tail.is_full = times.entries >= times.capacity - 1
    store32(entry, <uint32_t>relative)
    store32(entry + 4, <uint32_t>tail.tail_position)
    put_entry(index, entry, INDEX_ENTRY_BYTES)
    index.last_offset = tail.tail_offset
    index.last_position = tail.tail_position
    tail.is_full = tail.is_full or index.entries >= index.capacity
    return True


cdef bint add_time(SegmentTail tail, IndexTail times) except -1:
    # Add the largest timestamp to the time index, unless its last entry has that or a later one;
    # False without room for it.
    cdef uint8_t entry[TIME_ENTRY_BYTES]
    cdef int64_t offset = tail.max_timestamp_offset
    if (
        tail.max_timestamp_ms <= times.last_ms
        or not 0 <= offset - tail.base_offset <= INT32_MAX
        or offset < times.last_offset
    ):
        return True
    if not has_entry_room(times, TIME_ENTRY_BYTES):
        return False
    store64(entry, tail.max_timestamp_ms)
    store32(entry + 8, <uint32_t>(offset - tail.base_offset))
    put_entry(times, entry, TIME_ENTRY_BYTES)
    times.last_ms = tail.max_timestamp_ms
    times.last_offset = offset
    return True


cdef bint has_entry_room(IndexTail index, int64_t entry_bytes):
    cdef int64_t end = (index.entries + 1) * entry_bytes
    return (
        index.view is not None
        and 0 <= index.entries < index.capacity
        and end <= min(index.allocated, <int64_t>len(index.view))
    )


cdef int put_entry(IndexTail index, const uint8_t* entry, int64_t entry_bytes) except -1:
    cdef Py_buffer view
    PyObject_GetBuffer(index.view, &view, PyBUF_WRITABLE)
    memcpy(<uint8_t*>view.buf + index.entries * entry_bytes, entry, entry_bytes)
    PyBuffer_Release(&view)
    index.entries += 1
    return 0


cdef bint write_all(int descriptor, const uint8_t* data, int64_t size, int64_t position) noexcept:
    # False after an error; a part may have been written. Keeps the GIL: a write of 256 KB to the page
    # cache is faster than taking the GIL back from another thread.
    cdef ssize_t written
    while size > 0:
        written = pwrite(descriptor, data, size, position)
        if written < 0:
            if errno != EINTR:
                return False
            continue
        if written == 0:
            return False
        data += written
        position += written
        size -= written
    return True


cdef inline bint has_room(SegmentTail tail, const uint8_t* data, int64_t size):
    return (
        tail.takes_plain_sets
        and not tail.is_full
        and tail.size > 0
        and ENTRY_HEADER_BYTES + MIN_MESSAGE_BYTES <= size < GIL_RELEASE_BYTES
        and size <= tail.segment_bytes - tail.size
        and not codec_of(data)
        and 0 <= tail.end_offset <= INT64_MAX - size
    )


cdef bint number_plain(
    SegmentTail tail, uint8_t* data, int64_t size, const RuleSet* rules, Walk* walk
) noexcept:
    # Whether the whole set is valid, has the topic's format, and was numbered.
    cdef Refusal refusal
    # The caller stamps these sets: a set that is stamped twice would be invalid.
    if rules.log_append_time or data[MAGIC_POSITION] != rules.magic:
        return False
    take_in_and_stamp(data, size, tail.end_offset, tail.max_entry_bytes, rules, walk, &refusal)
    return (
        refusal.fault == SOUND
        and walk.fault == SOUND
        and not walk.codec
        and walk.size == size
        and magics_of(walk) == 1 << rules.magic
    )


cdef inline bint is_raised(const uint8_t* data, const RuleSet* rules) noexcept:
    # Whether this set begins with magic 0 and its topic has magic 1 and accepts any timestamp.
    return (
        rules.magic
        and not data[MAGIC_POSITION]
        and not rules.log_append_time
        and rules.max_difference_ms == INT64_MAX
    )


cdef int64_t raise_magic(
    const uint8_t* data, int64_t size, SegmentTail tail, const RuleSet* rules, Scratch* scratch,
    Walk* walk,
) except -2:
    # Convert the set to magic 1 in `scratch`, numbered; returns its size, or -1 for a set that the
    # caller must handle. Does not change `data`.
    cdef int64_t room = size + TIMESTAMP_BYTES * (size / (ENTRY_HEADER_BYTES + MIN_MESSAGE_BYTES))
    cdef const uint8_t* entry = data
    cdef uint8_t* at
    cdef int64_t left = size, message_size
    cdef uint32_t head_crc = crc_of_head(rules.magic, 0, NO_TIMESTAMP)
    cdef Fields fields
    begin_walk(walk)
    if room > scratch.size:
        free(scratch.data)
        scratch.size = 0
        scratch.data = <uint8_t*>malloc(room)
        if scratch.data == NULL:
            raise MemoryError
        scratch.size = room
    at = scratch.data
    while left >= ENTRY_HEADER_BYTES + MIN_MESSAGE_BYTES:
        message_size = <int32_t>load32(entry + 8)
        if (
            message_size < MIN_MESSAGE_BYTES
            or message_size > left - ENTRY_HEADER_BYTES
            or ENTRY_HEADER_BYTES + message_size + TIMESTAMP_BYTES > tail.max_entry_bytes
            or entry[MAGIC_POSITION]
            or entry[ATTRIBUTES_POSITION] & CODEC_MASK
            or not check_crc(entry, message_size, &walk.stored_crc, &walk.computed_crc)
            or check_key(entry, message_size, rules) != SOUND
            or read_fields(entry, message_size, &fields) != FIELDS_SOUND
        ):
            return -1
        walk.last_offset = tail.end_offset + walk.count
        at = put_converted(
            at, &fields, walk.last_offset, rules.magic, 0, NO_TIMESTAMP, head_crc
        )
        walk.count += 1
        left -= ENTRY_HEADER_BYTES + message_size
        entry += ENTRY_HEADER_BYTES + message_size
    walk.size = at - scratch.data
    return walk.size if not left and walk.size <= tail.segment_bytes - tail.size else -1


cdef inline int64_t age_of(SegmentTail tail, const Walk* walk, int64_t now_ms):
    # By timestamps; by the clock if the first message has no timestamp.
    if tail.first_ms < 0:
        return now_ms - tail.created_ms
    return walk.max_timestamp_ms - tail.first_ms
