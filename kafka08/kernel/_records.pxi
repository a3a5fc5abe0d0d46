# The records of a batch of magic 2. Part of _native.pyx; kafka08/format/v2.py is the Python twin.

cdef struct Reading:
    # A place in the fields of a record, and what is wrong with them.
    const uint8_t* at
    const uint8_t* end
    FieldsFault fault


cdef inline uint64_t read_varint(Reading* reading, int bits) noexcept nogil:
    # The bits of a zigzag varint. `fault` is FIELDS_SHORT at the end.
    cdef uint64_t value = 0
    cdef int shift = 0
    cdef uint8_t byte
    while True:
        if reading.at >= reading.end:
            reading.fault = FIELDS_SHORT
            return 0
        byte = reading.at[0]
        reading.at += 1
        value |= <uint64_t>(byte & 0x7f) << shift
        if not byte & 0x80:
            return value
        shift += 7
        if shift >= bits:
            reading.fault = FIELDS_VARINT
            return 0


cdef inline int64_t read_int(Reading* reading) noexcept nogil:
    cdef uint32_t value = <uint32_t>read_varint(reading, 32)
    return <int32_t>((value >> 1) ^ (0 - (value & 1)))


cdef inline int64_t read_long(Reading* reading) noexcept nogil:
    cdef uint64_t value = read_varint(reading, 64)
    return <int64_t>((value >> 1) ^ (0 - (value & 1)))


cdef inline int64_t read_bytes(Reading* reading, const uint8_t** data) noexcept nogil:
    # The length of a field, -1 for null.
    cdef int64_t length = read_int(reading)
    if reading.fault != FIELDS_SOUND:
        return -1
    data[0] = reading.at
    if length < 0:
        return -1
    if length > reading.end - reading.at:
        reading.fault = FIELDS_SHORT
        return -1
    reading.at += length
    return length


cdef FieldsFault read_record(
    const uint8_t* at, const uint8_t* end, int64_t* size, int64_t* offset_delta, Fields* fields
) noexcept nogil:
    # The record at `at`. `size` is that of all its bytes; its timestamp is the delta.
    cdef Reading reading = Reading(at, end, FIELDS_SOUND)
    cdef int64_t length = read_int(&reading)
    cdef int64_t number
    cdef const uint8_t* ignored
    if reading.fault != FIELDS_SOUND:
        return reading.fault
    if length < 0 or length > end - reading.at:
        return FIELDS_SHORT
    reading.end = reading.at + length
    size[0] = reading.end - at
    reading.fault = FIELDS_SHORT if length < 1 else FIELDS_SOUND
    reading.at += 1  # attributes, of which none is in use
    if reading.fault == FIELDS_SOUND:
        fields.timestamp_ms = read_long(&reading)
    if reading.fault == FIELDS_SOUND:
        offset_delta[0] = read_int(&reading)
    if reading.fault == FIELDS_SOUND:
        fields.key_length = read_bytes(&reading, &fields.key)
    if reading.fault == FIELDS_SOUND:
        fields.value_length = read_bytes(&reading, &fields.value)
    fields.headers, fields.headers_end = reading.at, reading.end
    if reading.fault == FIELDS_SOUND:
        number = read_int(&reading)
        # Each header has two lengths at least.
        if reading.fault == FIELDS_SOUND and (
            number < 0 or number > (reading.end - reading.at) // 2
        ):
            reading.fault = FIELDS_HEADERS
        fields.header_count = <int32_t>number
        while reading.fault == FIELDS_SOUND and number:
            if read_bytes(&reading, &ignored) < 0 and reading.fault == FIELDS_SOUND:
                reading.fault = FIELDS_HEADERS
            if reading.fault == FIELDS_SOUND:
                read_bytes(&reading, &ignored)
            number -= 1
    if reading.fault == FIELDS_SHORT or (
        reading.fault == FIELDS_SOUND and reading.at != reading.end
    ):
        return FIELDS_RECORD_LENGTH
    return reading.fault


cdef inline int varint_size(uint64_t value) noexcept nogil:
    cdef int size = 1
    while value > 0x7f:
        value >>= 7
        size += 1
    return size


cdef inline uint8_t* put_varint(uint8_t* at, uint64_t value) noexcept nogil:
    while value > 0x7f:
        at[0] = <uint8_t>(value & 0x7f | 0x80)
        at += 1
        value >>= 7
    at[0] = <uint8_t>value
    return at + 1


cdef inline uint64_t zigzag(int64_t value) noexcept nogil:
    return (<uint64_t>value << 1) ^ <uint64_t>(value >> 63)


cdef inline int64_t size_of_record(
    int64_t time_delta, int64_t offset_delta, int64_t key_length, int64_t value_length,
    int64_t headers_length,
) noexcept nogil:
    # Without its own length. Headers of length 0: there are none.
    return (
        1 + varint_size(zigzag(time_delta)) + varint_size(zigzag(offset_delta))
        + varint_size(zigzag(key_length)) + max(0, key_length)
        + varint_size(zigzag(value_length)) + max(0, value_length)
        + max(1, headers_length)
    )


cdef inline uint8_t* put_record_start(
    uint8_t* at, int64_t size, int64_t time_delta, int64_t offset_delta
) noexcept nogil:
    at = put_varint(at, zigzag(size))
    at[0] = 0
    at = put_varint(at + 1, zigzag(time_delta))
    return put_varint(at, zigzag(offset_delta))


cdef inline uint8_t* put_record_field(
    uint8_t* at, const uint8_t* data, int64_t length
) noexcept nogil:
    at = put_varint(at, zigzag(length))
    if length > 0:
        memcpy(at, data, length)
        return at + length
    return at


cdef uint8_t* put_record_object(uint8_t* at, object field, int64_t length) except NULL:
    # A key or value of the length that field_length has returned.
    cdef Py_buffer view
    if field is None:
        return put_record_field(at, NULL, -1)
    if type(field) is bytes:
        return put_record_field(at, <const uint8_t*>PyBytes_AS_STRING(field), length)
    PyObject_GetBuffer(field, &view, PyBUF_SIMPLE)
    try:
        if view.len != length:
            raise BufferError("a key or value changed its size while it was written")
        return put_record_field(at, <const uint8_t*>view.buf, length)
    finally:
        PyBuffer_Release(&view)


cdef void put_batch_head(
    uint8_t* batch, int64_t size, int64_t count, int64_t first_ms, int64_t max_ms
) noexcept nogil:
    # The head of a batch of `size` bytes whose records are in place: of no producer, not compressed.
    memset(batch, 0, RECORDS_CRC_END + 2)
    store32(batch + 8, <uint32_t>(size - ENTRY_HEADER_BYTES))
    store32(batch + ENTRY_HEADER_BYTES, 0xffffffff)
    batch[MAGIC_POSITION] = RECORDS_MAGIC
    store32(batch + RECORDS_LAST_DELTA, <uint32_t>(count - 1))
    store64(batch + RECORDS_FIRST_TIME, first_ms)
    store64(batch + RECORDS_MAX_TIME, max_ms)
    memset(batch + RECORDS_MAX_TIME + 8, 0xff, RECORDS_COUNT - RECORDS_MAX_TIME - 8)
    store32(batch + RECORDS_COUNT, <uint32_t>count)
    store32(
        batch + RECORDS_CRC,
        kafka08_crc32c(0, batch + RECORDS_CRC_END, size - RECORDS_CRC_END),
    )


cdef tuple headers_of(const Fields* fields):
    # The headers of a record that read_record has found.
    cdef Reading reading = Reading(fields.headers, fields.headers_end, FIELDS_SOUND)
    cdef const uint8_t* data = NULL
    cdef int64_t length
    cdef list found = []
    if not fields.header_count:
        return ()
    read_int(&reading)
    for _ in range(fields.header_count):
        length = read_bytes(&reading, &data)
        name = PyUnicode_DecodeUTF8(<const char*>data, length, "replace")
        length = read_bytes(&reading, &data)
        found.append((name, field_bytes(data, length)))
    return tuple(found)
