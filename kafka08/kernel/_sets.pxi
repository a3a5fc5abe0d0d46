# Message sets without decompression: validate, number, search, recover. Part of _native.pyx; the
# docstrings are in _python_sets.py.

cdef enum Fault:
    SOUND
    BAD_SIZE
    BAD_CRC
    BAD_CODEC
    OVERSIZE
    BAD_MAGIC
    BAD_WRAPPER_MAGIC
    NESTED
    NO_KEY
    BAD_KEY
    BAD_TIME
    BAD_TIME_TYPE


cdef struct Walk:
    # A walk over entries: its summary, and, if `fault` is set, the entry at which it stopped.
    Py_ssize_t size
    int64_t count
    int64_t first_offset
    int64_t last_offset
    int64_t largest_entry
    int codec
    int magics  # without bit 0: see magics_of
    int64_t newer
    bint monotonic
    int64_t max_timestamp_ms
    int64_t max_timestamp_offset
    Fault fault
    int64_t offset
    int64_t message_size
    uint32_t stored_crc
    uint32_t computed_crc


cdef inline void begin_walk(Walk* walk) noexcept nogil:
    memset(walk, 0, sizeof(Walk))
    walk.first_offset = walk.last_offset = -1
    walk.max_timestamp_ms = NO_TIMESTAMP
    walk.max_timestamp_offset = -1
    walk.monotonic = True


cdef inline void note_timestamp(int64_t timestamp_ms, int64_t offset, Walk* walk) noexcept nogil:
    # `offset` is the last of its entry.
    if timestamp_ms > walk.max_timestamp_ms:
        walk.max_timestamp_ms = timestamp_ms
        walk.max_timestamp_offset = offset


cdef bint note_special(
    const uint8_t* entry, int codec, int max_codec, int64_t last_offset, int64_t timestamp_ms,
    Walk* walk,
) noexcept nogil:
    # Count a compressed entry, or one of another magic than 0; False: unknown codec.
    cdef int magic = entry[MAGIC_POSITION]
    if codec:
        walk.codec = codec
        if codec > max_codec:
            return False
    if magic:
        walk.newer += 1
        walk.magics |= 1 << magic if magic <= RECORDS_MAGIC else OTHER_MAGIC_BIT
        note_timestamp(timestamp_ms, last_offset, walk)
    return True


cdef inline Fault note_entry(
    const uint8_t* entry, int codec, int max_codec, int64_t base_offset, int64_t last_offset,
    int64_t timestamp_ms, int64_t message_size, Walk* walk,
) noexcept nogil:
    # Count an entry, unless its codec is unknown. Most are plain and of magic 0, which costs one
    # branch.
    if unlikely(entry[MAGIC_POSITION] | codec):
        if not note_special(entry, codec, max_codec, last_offset, timestamp_ms, walk):
            return BAD_CODEC
    if not walk.count:
        walk.first_offset = base_offset
    if base_offset <= walk.last_offset:
        walk.monotonic = False
    walk.last_offset = last_offset
    walk.count += 1
    message_size += ENTRY_HEADER_BYTES
    if message_size > walk.largest_entry:
        walk.largest_entry = message_size
    walk.size += message_size
    return SOUND


cdef inline Fault note_message(
    const uint8_t* entry, int64_t offset, int64_t message_size, Walk* walk
) noexcept nogil:
    # Count an entry that is taken for a message, whatever its magic.
    return note_entry(
        entry, entry[ATTRIBUTES_POSITION] & CODEC_MASK, MAX_CODEC, offset, offset,
        message_timestamp(entry), message_size, walk,
    )


cdef void walk_set(
    uint8_t* data, Py_ssize_t size, int64_t max_entry_bytes, bint verify_crc, int64_t base_offset,
    Walk* walk,
) noexcept nogil:
    # Check the entries of a set; or, unless base_offset is negative, the messages of a set, and number
    # them.
    cdef uint8_t* entry = data
    cdef uint8_t* end = data + size
    cdef int64_t offset, message_size
    begin_walk(walk)
    while end - entry >= ENTRY_HEADER_BYTES:
        walk.offset = offset = load64(entry)
        walk.message_size = message_size = <int32_t>load32(entry + 8)
        if message_size < MIN_MESSAGE_BYTES:
            walk.fault = BAD_SIZE
            return
        if message_size > end - entry - ENTRY_HEADER_BYTES:
            return
        if unlikely(has_records(entry)) and base_offset < 0:
            walk.fault = walk_records(entry, message_size, max_entry_bytes, verify_crc, walk)
            if walk.fault != SOUND:
                return
            entry += ENTRY_HEADER_BYTES + message_size
            continue
        if message_size + ENTRY_HEADER_BYTES > max_entry_bytes:
            walk.fault = OVERSIZE
            return
        if verify_crc and not check_crc(
            entry, message_size, &walk.stored_crc, &walk.computed_crc
        ):
            walk.fault = BAD_CRC
            return
        if base_offset >= 0:
            offset = base_offset + walk.count
            store64(entry, offset)
        if unlikely(note_message(entry, offset, message_size, walk) != SOUND):
            walk.fault = BAD_CODEC
            return
        entry += ENTRY_HEADER_BYTES + message_size


cdef Fault walk_records(
    const uint8_t* entry, int64_t message_size, int64_t max_entry_bytes, bint verify_crc, Walk* walk
) noexcept nogil:
    # Check and count one batch of records.
    if is_too_small(entry, message_size):
        return BAD_SIZE
    if message_size + ENTRY_HEADER_BYTES > max_entry_bytes:
        return OVERSIZE
    walk.offset = last_offset_of(entry)
    if verify_crc and not check_entry_crc(
        entry, message_size, &walk.stored_crc, &walk.computed_crc
    ):
        return BAD_CRC
    return note_entry(
        entry, codec_of(entry), MAX_RECORDS_CODEC, load64(entry), walk.offset, timestamp_of(entry),
        message_size, walk,
    )


cdef object walk_error(Walk* walk, int64_t limit):
    # The exception for walk.fault.
    if walk.fault == OVERSIZE:
        return EntryTooLarge(walk.size, walk.message_size + ENTRY_HEADER_BYTES, limit)
    if walk.fault == BAD_CODEC:
        return UnknownCodec(walk.codec)
    if walk.fault == BAD_CRC:
        reason = bad_crc(walk.stored_crc, walk.computed_crc)
    else:
        reason = f"message with corrupt size {walk.message_size}"
    return CorruptMessage(walk.size, walk.offset, reason)


cdef str bad_crc(uint32_t stored, uint32_t computed):
    return f"stored crc {stored} is not the computed crc {computed}"


@cython.final
cdef class SetSummary:
    cdef readonly int64_t count
    cdef readonly Py_ssize_t size
    cdef readonly int64_t first_offset
    cdef readonly int64_t last_offset
    cdef readonly int codec
    cdef readonly int64_t largest_entry
    cdef readonly bint monotonic
    cdef readonly int magics
    cdef readonly int64_t max_timestamp_ms
    cdef readonly int64_t max_timestamp_offset

    def __repr__(self):
        return (
            f"SetSummary(codec={self.codec}, count={self.count}, "
            f"first_offset={self.first_offset}, largest_entry={self.largest_entry}, "
            f"last_offset={self.last_offset}, magics={self.magics}, "
            f"max_timestamp_ms={self.max_timestamp_ms}, "
            f"max_timestamp_offset={self.max_timestamp_offset}, monotonic={self.monotonic}, "
            f"size={self.size})"
        )


cdef SetSummary summarize(
    Py_buffer* view, int64_t max_entry_bytes, bint verify_crc, int64_t base_offset
):
    cdef Walk walk
    if view.len >= GIL_RELEASE_BYTES:
        with nogil:
            walk_set(
                <uint8_t*>view.buf, view.len, max_entry_bytes, verify_crc, base_offset, &walk
            )
    else:
        walk_set(<uint8_t*>view.buf, view.len, max_entry_bytes, verify_crc, base_offset, &walk)
    if walk.fault != SOUND:
        raise walk_error(&walk, max_entry_bytes)
    return summary_of(&walk)


cdef inline int magics_of(const Walk* walk) noexcept nogil:
    return walk.magics | (walk.newer < walk.count)


cdef SetSummary summary_of(Walk* walk):
    cdef SetSummary summary = SetSummary.__new__(SetSummary)
    summary.count = walk.count
    summary.size = walk.size
    summary.first_offset = walk.first_offset
    summary.last_offset = walk.last_offset
    summary.codec = walk.codec
    summary.largest_entry = walk.largest_entry
    summary.monotonic = walk.monotonic
    summary.magics = magics_of(walk)
    summary.max_timestamp_ms = walk.max_timestamp_ms
    summary.max_timestamp_offset = walk.max_timestamp_offset
    return summary


def validate(data, int64_t max_entry_bytes, bint verify_crc=True):
    cdef Py_buffer view
    PyObject_GetBuffer(data, &view, PyBUF_SIMPLE)
    try:
        return summarize(&view, max_entry_bytes, verify_crc, -1)
    finally:
        PyBuffer_Release(&view)


def validate_and_assign(
    data, int64_t base_offset, int64_t max_entry_bytes, bint verify_crc=True
):
    cdef Py_buffer view
    PyObject_GetBuffer(data, &view, PyBUF_WRITABLE)
    try:
        check_base_offset(base_offset, view.len)
        return summarize(&view, max_entry_bytes, verify_crc, base_offset)
    finally:
        PyBuffer_Release(&view)


cdef int check_base_offset(int64_t base_offset, int64_t room) except -1:
    if base_offset < 0 or base_offset > INT64_MAX - room:
        raise OverflowError(f"base offset {base_offset} is out of range")
    return 0


cdef struct IndexPoint:
    Py_ssize_t position
    int64_t offset
    int codec
    int64_t max_timestamp_ms
    int64_t max_timestamp_offset


cdef struct Recovery:
    int64_t index_interval
    int64_t since_last_index
    IndexPoint* points
    Py_ssize_t point_count
    Py_ssize_t point_room


cdef bint add_point(Recovery* state, const uint8_t* entry, const Walk* walk) noexcept nogil:
    # False if memory runs out.
    cdef Py_ssize_t room
    cdef void* grown
    if state.point_count == state.point_room:
        room = 2 * state.point_room + 64
        grown = realloc(state.points, room * sizeof(IndexPoint))
        if grown == NULL:
            return False
        state.points = <IndexPoint*>grown
        state.point_room = room
    state.points[state.point_count] = IndexPoint(
        walk.size, load64(entry), 0 if has_records(entry) else codec_of(entry),
        walk.max_timestamp_ms, walk.max_timestamp_offset,
    )
    state.point_count += 1
    return True


cdef bint recover_set(
    const uint8_t* data, Py_ssize_t size, Walk* walk, Recovery* state
) noexcept nogil:
    # Like walk_set, with index points, without numbering and codecs. False if memory runs out. `walk`
    # starts with the largest timestamp so far.
    cdef const uint8_t* entry
    cdef int64_t message_size
    while size - walk.size >= ENTRY_HEADER_BYTES:
        entry = data + walk.size
        walk.offset = load64(entry)
        walk.message_size = message_size = <int32_t>load32(entry + 8)
        if message_size < MIN_MESSAGE_BYTES:
            walk.fault = BAD_SIZE
            return True
        if message_size > size - walk.size - ENTRY_HEADER_BYTES:
            return True
        if is_too_small(entry, message_size):
            walk.fault = BAD_SIZE
            return True
        walk.offset = last_offset_of(entry)
        if not check_entry_crc(entry, message_size, &walk.stored_crc, &walk.computed_crc):
            walk.fault = BAD_CRC
            return True
        note_timestamp(timestamp_of(entry), walk.offset, walk)
        if state.since_last_index > state.index_interval:
            if not add_point(state, entry, walk):
                return False
            state.since_last_index = 0
        state.since_last_index += ENTRY_HEADER_BYTES + message_size
        walk.size += ENTRY_HEADER_BYTES + message_size
        walk.last_offset = walk.offset
        walk.count += 1
    return True


def recover(
    data, int64_t index_interval, int64_t since_last_index,
    int64_t max_timestamp_ms=NO_TIMESTAMP, int64_t max_timestamp_offset=-1,
):
    cdef Py_buffer view
    cdef Walk walk
    cdef Recovery state = Recovery(index_interval, since_last_index, NULL, 0, 0)
    cdef bint enough_memory
    cdef Py_ssize_t i
    begin_walk(&walk)
    walk.max_timestamp_ms = max_timestamp_ms
    walk.max_timestamp_offset = max_timestamp_offset
    PyObject_GetBuffer(data, &view, PyBUF_SIMPLE)
    try:
        with nogil:
            enough_memory = recover_set(<const uint8_t*>view.buf, view.len, &walk, &state)
        if not enough_memory:
            raise MemoryError
        points = [
            (state.points[i].position, state.points[i].offset, state.points[i].codec)
            for i in range(state.point_count)
        ]
        time_points = [
            (state.points[i].max_timestamp_ms, state.points[i].max_timestamp_offset)
            for i in range(state.point_count)
        ]
    finally:
        free(state.points)
        PyBuffer_Release(&view)
    error = None if walk.fault == SOUND else walk_error(&walk, MAX_SET_BYTES)
    return RecoverResult(
        walk.size, walk.last_offset, walk.count, points, state.since_last_index, error,
        time_points, walk.max_timestamp_ms, walk.max_timestamp_offset,
    )


def runs(data):
    cdef Py_buffer view
    cdef const uint8_t* entry
    cdef Py_ssize_t position = 0, plain_start = -1
    cdef int64_t message_size
    cdef int codec
    cdef list found = []
    PyObject_GetBuffer(data, &view, PyBUF_SIMPLE)
    try:
        while view.len - position >= ENTRY_HEADER_BYTES:
            entry = <const uint8_t*>view.buf + position
            message_size = <int32_t>load32(entry + 8)
            if message_size < MIN_MESSAGE_BYTES:
                raise impossible_size(entry, position)
            if message_size > view.len - position - ENTRY_HEADER_BYTES:
                break
            if is_too_small(entry, message_size):
                raise impossible_size(entry, position)
            codec = codec_of(entry)
            if codec > (MAX_RECORDS_CODEC if has_records(entry) else MAX_CODEC):
                raise UnknownCodec(codec)
            if codec or has_records(entry):
                if plain_start >= 0:
                    found.append(Run(plain_start, position, 0, False))
                    plain_start = -1
                found.append(Run(
                    position, position + ENTRY_HEADER_BYTES + message_size, codec,
                    <bint>has_records(entry),
                ))
            elif plain_start < 0:
                plain_start = position
            position += ENTRY_HEADER_BYTES + message_size
        if plain_start >= 0:
            found.append(Run(plain_start, position, 0, False))
    finally:
        PyBuffer_Release(&view)
    return found
