# What each message format says in the head of an entry. Part of _native.pyx; kafka08/format has the
# same for the Python twin, and the layouts. A new format that the compiled kernel reads by itself has
# its branch in these functions, which all walks ask.

cdef extern from "crc32c.h" nogil:
    uint32_t kafka08_crc32c(uint32_t crc, const uint8_t* data, size_t size)
    const char* kafka08_crc32c_select(bint portable)

kafka08_crc32c_select(False)

cdef enum:
    # Positions in a batch of records, magic 2.
    RECORDS_MAGIC = 2
    RECORDS_EPOCH = 12
    RECORDS_CRC = 17
    RECORDS_CRC_END = 21
    RECORDS_ATTRIBUTES = 21
    RECORDS_LAST_DELTA = 23
    RECORDS_FIRST_TIME = 27
    RECORDS_MAX_TIME = 35
    RECORDS_PRODUCER = 43
    RECORDS_SEQUENCE = 53
    RECORDS_COUNT = 57
    RECORDS_HEAD_BYTES = 61
    RECORDS_LEAST_SIZE = 49
    TRANSACTIONAL_BIT = 0x10
    CONTROL_BIT = 0x20


cdef inline bint is_one_batch(const uint8_t* data, int64_t size) noexcept nogil:
    return (
        size >= RECORDS_HEAD_BYTES
        and has_records(data)
        and <int32_t>load32(data + 8) == size - ENTRY_HEADER_BYTES
    )


cdef inline bint has_records(const uint8_t* entry) noexcept nogil:
    return entry[MAGIC_POSITION] == RECORDS_MAGIC


cdef inline int codec_of(const uint8_t* entry) noexcept nogil:
    if unlikely(has_records(entry)):
        return entry[RECORDS_ATTRIBUTES + 1] & CODEC_MASK
    return entry[ATTRIBUTES_POSITION] & CODEC_MASK


cdef inline int64_t last_offset_of(const uint8_t* entry) noexcept nogil:
    cdef int64_t base = load64(entry)
    if unlikely(has_records(entry)):
        return add64(base, <int32_t>load32(entry + RECORDS_LAST_DELTA))
    return base


cdef inline int64_t timestamp_of(const uint8_t* entry) noexcept nogil:
    # The largest inside.
    return load64(entry + RECORDS_MAX_TIME) if has_records(entry) else message_timestamp(entry)


cdef inline int64_t message_timestamp(const uint8_t* entry) noexcept nogil:
    # Even MIN_MESSAGE_BYTES have room for it.
    return load64(entry + TIMESTAMP_POSITION) if entry[MAGIC_POSITION] == 1 else NO_TIMESTAMP


cdef inline int timestamp_type_of(const uint8_t* entry) noexcept nogil:
    if entry[MAGIC_POSITION] == 1:
        return (entry[ATTRIBUTES_POSITION] & TIMESTAMP_TYPE_BIT) != 0
    if unlikely(has_records(entry)):
        return (entry[RECORDS_ATTRIBUTES + 1] & TIMESTAMP_TYPE_BIT) != 0
    return NO_TIMESTAMP_TYPE


cdef inline bint is_too_small(const uint8_t* entry, int64_t message_size) noexcept nogil:
    # Whether a complete entry is smaller than the head of its format.
    return has_records(entry) and message_size < RECORDS_LEAST_SIZE


cdef inline bint check_entry_crc(
    const uint8_t* entry, int64_t message_size, uint32_t* stored, uint32_t* computed
) noexcept nogil:
    if unlikely(has_records(entry)):
        stored[0] = load32(entry + RECORDS_CRC)
        computed[0] = kafka08_crc32c(
            0, entry + RECORDS_CRC_END, message_size + ENTRY_HEADER_BYTES - RECORDS_CRC_END
        )
        return stored[0] == computed[0]
    return check_crc(entry, message_size, stored, computed)


cdef inline bint check_crc(
    const uint8_t* entry, int64_t message_size, uint32_t* stored, uint32_t* computed
) noexcept nogil:
    # Of a message, whatever its magic.
    stored[0] = load32(entry + ENTRY_HEADER_BYTES)
    computed[0] = kafka08_crc32(0, entry + CRC_END, message_size - 4)
    return stored[0] == computed[0]


def crc32c(data, uint32_t value=0):
    cdef Py_buffer view
    PyObject_GetBuffer(data, &view, PyBUF_SIMPLE)
    try:
        if view.len >= GIL_RELEASE_BYTES:
            with nogil:
                value = kafka08_crc32c(value, <const uint8_t*>view.buf, view.len)
        else:
            value = kafka08_crc32c(value, <const uint8_t*>view.buf, view.len)
    finally:
        PyBuffer_Release(&view)
    return value
