# Finds entries by offset and by timestamp. Part of _native.pyx; the docstrings are in
# _python_search.py.

cdef struct Search:
    # The entry at `position`, or where the next header would be; `offset` is -1 if none was found.
    bint found
    int64_t position
    int64_t offset


cdef bint search(
    const uint8_t* data, Py_ssize_t size, int64_t target_offset, Search* found
) noexcept nogil:
    # False at an entry of impossible size, which is `found`. `offset` is the entry's base offset.
    cdef const uint8_t* entry
    cdef int64_t message_size
    found.found = False
    found.position = 0
    while size - found.position >= ENTRY_HEADER_BYTES:
        entry = data + found.position
        found.offset = load64(entry)
        if found.offset >= target_offset:
            found.found = True
            return True
        message_size = <int32_t>load32(entry + 8)
        if message_size < MIN_MESSAGE_BYTES:
            return False
        if size - found.position <= MAGIC_POSITION:
            break
        if unlikely(has_records(entry)):
            if size - found.position < RECORDS_HEAD_BYTES:
                break  # its last offset lies behind the data
            if is_too_small(entry, message_size):
                return False
            if last_offset_of(entry) >= target_offset:
                found.found = True
                return True
        found.position += ENTRY_HEADER_BYTES + message_size
    found.offset = -1
    return True


def find_offset(data, int64_t target_offset):
    cdef Py_buffer view
    cdef Search found
    cdef bint sound
    PyObject_GetBuffer(data, &view, PyBUF_SIMPLE)
    try:
        sound = search(<const uint8_t*>view.buf, view.len, target_offset, &found)
        if not sound:
            raise impossible_size(<const uint8_t*>view.buf + found.position, found.position)
    finally:
        PyBuffer_Release(&view)
    return (found.position, found.offset) if found.found else None


cdef object impossible_size(const uint8_t* entry, int64_t position):
    cdef int64_t message_size = <int32_t>load32(entry + 8)
    return CorruptMessage(position, load64(entry), f"message with corrupt size {message_size}")


def find_position(SegmentTail tail not None, int64_t position, int64_t target_offset):
    cdef uint8_t data[SEARCH_BYTES]
    cdef Search found
    cdef Py_ssize_t size
    while position < tail.size - ENTRY_HEADER_BYTES:
        size = read_at(tail, data, min(<int64_t>SEARCH_BYTES, tail.size - position), position)
        if size < ENTRY_HEADER_BYTES:
            raise CorruptMessage(position, -1, f"the file ends before {tail.size}")
        if not search(data, size, target_offset, &found):
            raise impossible_size(data + found.position, position + found.position)
        position += found.position
        if found.found:
            return position
        if not found.position:
            return -1  # the last entry is not whole
    return -1


cdef Py_ssize_t read_at(
    SegmentTail tail, uint8_t* target, Py_ssize_t size, int64_t position
) except -1:
    # Read up to `size` bytes of the segment; returns their number.
    cdef ssize_t count = -1
    cdef bytes data
    if tail.descriptor < 0:
        data = tail.read(size, position)
        size = min(size, PyBytes_GET_SIZE(data))
        memcpy(target, PyBytes_AS_STRING(data), size)
        return size
    with nogil:
        while count < 0:
            count = pread(tail.descriptor, target, size, position)
            if count < 0 and errno != EINTR:
                break
    if count < 0:
        PyErr_SetFromErrno(OSError)
    return count


def scan_timestamp(data, int64_t target_ms):
    cdef Py_buffer view
    cdef const uint8_t* entry
    cdef int64_t message_size, position = 0
    PyObject_GetBuffer(data, &view, PyBUF_SIMPLE)
    try:
        while view.len - position >= TIMESTAMP_END:
            entry = <const uint8_t*>view.buf + position
            if has_records(entry) and view.len - position < RECORDS_HEAD_BYTES:
                break
            message_size = <int32_t>load32(entry + 8)
            if message_size < MIN_MESSAGE_BYTES or is_too_small(entry, message_size):
                raise impossible_size(entry, position)
            if timestamp_of(entry) >= target_ms:
                return ScanResult(True, position, last_offset_of(entry))
            position += ENTRY_HEADER_BYTES + message_size
    finally:
        PyBuffer_Release(&view)
    return ScanResult(False, position, -1)
