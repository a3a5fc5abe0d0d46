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
    if reading.fault == FIELDS_SOUND:
        number = read_int(&reading)
        # Each header has two lengths at least.
        if reading.fault == FIELDS_SOUND and (
            number < 0 or number > (reading.end - reading.at) // 2
        ):
            reading.fault = FIELDS_HEADERS
        fields.headers, fields.headers_end = reading.at, reading.end
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


cdef tuple headers_of(const Fields* fields):
    # The headers of a record that read_record has found.
    cdef Reading reading = Reading(fields.headers, fields.headers_end, FIELDS_SOUND)
    cdef const uint8_t* data = NULL
    cdef int64_t length
    cdef list found = []
    if not fields.header_count:
        return ()
    for _ in range(fields.header_count):
        length = read_bytes(&reading, &data)
        name = PyUnicode_DecodeUTF8(<const char*>data, length, "replace")
        length = read_bytes(&reading, &data)
        found.append((name, field_bytes(data, length)))
    return tuple(found)
