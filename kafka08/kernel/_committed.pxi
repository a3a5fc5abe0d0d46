# Sets without the messages of aborted transactions. Part of _native.pyx; the docstring is in
# _python_committed.py.

cdef enum:
    CONTROL_KEY_BYTES = 4
    ABORT_TYPE = 0


cdef bint is_abort(const uint8_t* entry, int64_t size, int64_t position) except -1:
    # Whether a control batch ends an aborted transaction. No codec: brokers write it.
    cdef Fields fields
    cdef int64_t record_size, delta
    cdef int32_t count = <int32_t>load32(entry + RECORDS_COUNT)
    cdef FieldsFault fault = FIELDS_COUNT
    if codec_of(entry) or not count:
        return False
    if count > 0:
        fault = read_record(
            entry + RECORDS_HEAD_BYTES, entry + size, &record_size, &delta, &fields
        )
    if fault != FIELDS_SOUND:
        raise CorruptMessage(position, load64(entry), fields_reason(fault, entry))
    return (
        fields.key_length >= CONTROL_KEY_BYTES and fields.key[2] << 8 | fields.key[3] == ABORT_TYPE
    )


def without_aborted(data, list aborted):
    cdef Py_buffer view
    cdef const uint8_t* entry
    cdef uint8_t* kept = NULL
    cdef int64_t size, last_offset, position = 0, kept_bytes = 0, number = 0
    cdef int64_t count = len(aborted)
    cdef int64_t next_first = aborted[0][0] if count else INT64_MAX
    cdef set open_ids = set()
    cdef object producer_id, found = None
    PyObject_GetBuffer(data, &view, PyBUF_SIMPLE)
    try:
        while view.len - position >= ENTRY_HEADER_BYTES:
            entry = <const uint8_t*>view.buf + position
            size = <int32_t>load32(entry + 8)
            if size < MIN_MESSAGE_BYTES:
                raise CorruptMessage(
                    position, load64(entry), f"message with corrupt size {size}"
                )
            if size > view.len - position - ENTRY_HEADER_BYTES:
                break
            if is_too_small(entry, size):
                raise CorruptMessage(
                    position, load64(entry), f"message with corrupt size {size}"
                )
            size += ENTRY_HEADER_BYTES
            last_offset = last_offset_of(entry)
            while number < count and next_first <= last_offset:
                open_ids.add(aborted[number][1])
                number += 1
                next_first = aborted[number][0] if number < count else INT64_MAX
            if open_ids and has_records(entry) and entry[RECORDS_ATTRIBUTES + 1] & (
                CONTROL_BIT | TRANSACTIONAL_BIT
            ):
                producer_id = <int64_t>load64(entry + RECORDS_PRODUCER)
                if entry[RECORDS_ATTRIBUTES + 1] & CONTROL_BIT:
                    if is_abort(entry, size, position):
                        open_ids.discard(producer_id)
                elif producer_id in open_ids:
                    if found is None:
                        found = PyByteArray_FromStringAndSize(NULL, view.len)
                        kept = <uint8_t*>PyByteArray_AS_STRING(found)
                        memcpy(kept, view.buf, position)
                        kept_bytes = position
                    position += size
                    continue
            if found is not None:
                memcpy(kept + kept_bytes, entry, size)
                kept_bytes += size
            position += size
        if found is None:
            return data
        PyByteArray_Resize(found, kept_bytes)
        return found
    finally:
        PyBuffer_Release(&view)
