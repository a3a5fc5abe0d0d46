# Converts messages between magic 0 and magic 1. Part of _native.pyx; the docstrings are in
# _python_conversion.py.

cdef struct Conversion:
    Py_ssize_t written
    int64_t count
    bint wrapper
    FieldsFault fields_fault


cdef uint32_t crc_of_head(int magic, int attributes, int64_t timestamp_ms) noexcept nogil:
    # The CRC of a message so far, before its key.
    cdef uint8_t entry[TIMESTAMP_END]
    cdef const uint8_t* end = put_header(entry, 0, 0, magic, attributes, timestamp_ms)
    return kafka08_crc32(0, entry + CRC_END, end - entry - CRC_END)


cdef inline uint8_t* put_converted(
    uint8_t* entry, const Fields* fields, int64_t offset, int magic, int attributes,
    int64_t timestamp_ms, uint32_t head_crc,
) noexcept nogil:
    # A new entry of these fields, which read_fields has found; returns its end. `head_crc` is that of
    # crc_of_head.
    cdef int64_t message_size = size_of_message(magic, fields.key_length, fields.value_length)
    cdef uint8_t* at = put_header(entry, offset, message_size, magic, attributes, timestamp_ms)
    cdef const uint8_t* body = fields.key - 4
    at = put_field(at, fields.key, fields.key_length)
    at = put_field(at, fields.value, fields.value_length)
    if (
        load32(body) == <uint32_t>fields.key_length
        and load32(fields.value - 4) == <uint32_t>fields.value_length
    ):
        # Of the bytes that were copied: to load new ones again waits until they are stored.
        store32(
            entry + ENTRY_HEADER_BYTES,
            kafka08_crc32(head_crc, body, fields.value + max(0, fields.value_length) - body),
        )
    else:
        put_crc(entry, message_size)
    return at


cdef void convert_set(
    const uint8_t* data, Py_ssize_t size, uint8_t* output, Py_ssize_t room, int magic,
    int64_t shift, int64_t timestamp_ms, bint log_append_time, Walk* walk, Conversion* done,
) noexcept nogil:
    cdef int attributes = TIMESTAMP_TYPE_BIT if magic and log_append_time else 0
    cdef const uint8_t* entry
    cdef uint8_t* at
    cdef int64_t offset, message_size
    cdef uint32_t head_crc = crc_of_head(magic, attributes, timestamp_ms)
    cdef Fields fields
    while next_entry(data, size, walk):
        entry = data + walk.size
        if entry[ATTRIBUTES_POSITION] & CODEC_MASK:
            done.wrapper = True
            return
        done.fields_fault = read_fields(entry, walk.message_size, &fields)
        if done.fields_fault != FIELDS_SOUND:
            return
        message_size = walk.message_size
        if entry[MAGIC_POSITION] != magic:
            if not check_crc(entry, message_size, &walk.stored_crc, &walk.computed_crc):
                walk.fault = BAD_CRC
                return
            message_size = size_of_message(magic, fields.key_length, fields.value_length)
        if ENTRY_HEADER_BYTES + message_size > room - done.written:
            return
        at = output + done.written
        offset = add64(walk.offset, shift)
        if entry[MAGIC_POSITION] == magic:
            memcpy(at, entry, ENTRY_HEADER_BYTES + message_size)
            store64(at, offset)
        else:
            put_converted(
                at, &fields, offset, magic, attributes, timestamp_ms, head_crc
            )
        walk.size += ENTRY_HEADER_BYTES + walk.message_size
        done.written += ENTRY_HEADER_BYTES + message_size
        done.count += 1


def convert(
    data, output, int magic, int64_t shift=0, int64_t timestamp_ms=NO_TIMESTAMP,
    bint log_append_time=False,
):
    cdef Py_buffer view
    cdef Py_buffer target
    cdef Walk walk
    cdef Conversion done
    check_magic(magic)
    begin_walk(&walk)
    memset(&done, 0, sizeof(Conversion))
    PyObject_GetBuffer(data, &view, PyBUF_SIMPLE)
    try:
        PyObject_GetBuffer(output, &target, PyBUF_WRITABLE)
        try:
            with nogil:
                convert_set(
                    <const uint8_t*>view.buf, view.len, <uint8_t*>target.buf, target.len, magic,
                    shift, timestamp_ms, log_append_time, &walk, &done,
                )
        finally:
            PyBuffer_Release(&target)
        if walk.fault != SOUND and not done.count:
            raise walk_error(&walk, 0)
        if done.fields_fault != FIELDS_SOUND and not done.count:
            reason = fields_reason(done.fields_fault, <const uint8_t*>view.buf + walk.size)
            raise CorruptMessage(walk.size, walk.offset, reason)
    finally:
        PyBuffer_Release(&view)
    return Converted(walk.size, done.written, done.count, done.wrapper)
