# Reads and builds single entries. Part of _native.pyx; the docstrings are in
# _python_sets.py.

cdef struct Fields:
    # Timestamp, key and value of a message; a length of -1 is null.
    int64_t timestamp_ms
    int timestamp_type
    const uint8_t* key
    int64_t key_length
    const uint8_t* value
    int64_t value_length
    int32_t header_count  # of a record; a message has none
    const uint8_t* headers
    const uint8_t* headers_end


cdef enum FieldsFault:
    FIELDS_SOUND
    FIELDS_MAGIC
    FIELDS_LENGTH
    # Of records, with the reasons of kafka08/format/v2.py:
    FIELDS_SHORT
    FIELDS_RECORD_LENGTH
    FIELDS_VARINT
    FIELDS_HEADERS
    FIELDS_REST
    FIELDS_COUNT


cdef FieldsFault read_fields(
    const uint8_t* entry, int64_t message_size, Fields* fields
) noexcept nogil:
    # The fields of a complete entry of at least MIN_MESSAGE_BYTES.
    cdef const uint8_t* at = entry + FIELDS_POSITION
    cdef const uint8_t* end = entry + ENTRY_HEADER_BYTES + message_size
    if entry[MAGIC_POSITION] > 1:
        return FIELDS_MAGIC
    fields.header_count = 0
    fields.timestamp_ms = NO_TIMESTAMP
    fields.timestamp_type = timestamp_type_of(entry)
    if entry[MAGIC_POSITION] == 1:
        fields.timestamp_ms = load64(at)  # MIN_MESSAGE_BYTES has room for it
        at += TIMESTAMP_BYTES
    if end - at < 4:
        return FIELDS_LENGTH
    fields.key_length = <int32_t>load32(at)
    at += 4
    fields.key = at
    if fields.key_length < 0:
        fields.key_length = -1
    elif fields.key_length > end - at:
        return FIELDS_LENGTH
    else:
        at += fields.key_length
    if end - at < 4:
        return FIELDS_LENGTH
    fields.value_length = <int32_t>load32(at)
    at += 4
    fields.value = at
    if fields.value_length < 0:
        fields.value_length = -1
    elif fields.value_length > end - at:
        return FIELDS_LENGTH
    return FIELDS_SOUND


cdef str fields_reason(FieldsFault fault, const uint8_t* entry):
    if fault == FIELDS_MAGIC:
        return f"magic {entry[MAGIC_POSITION]} is not known"
    if fault >= FIELDS_SHORT:
        return (SHORT, LENGTH, VARINT, HEADERS, REST, COUNT)[<int>fault - FIELDS_SHORT]
    return "key or value extends beyond the message"


cdef inline object field_bytes(const uint8_t* data, int64_t length):
    return None if length < 0 else PyBytes_FromStringAndSize(<const char*>data, length)


@cython.final
cdef class MessageAndOffset:
    cdef readonly int64_t offset
    cdef readonly int magic
    cdef readonly int attributes
    cdef readonly uint32_t crc
    cdef readonly object key
    cdef readonly object value
    cdef readonly Py_ssize_t position
    cdef readonly int64_t size
    cdef readonly int64_t timestamp_ms
    cdef readonly int timestamp_type

    @property
    def codec(self):
        return self.attributes & CODEC_MASK

    @property
    def entry_size(self):
        return ENTRY_HEADER_BYTES + self.size

    def __repr__(self):
        return (
            f"MessageAndOffset(offset={self.offset}, magic={self.magic}, "
            f"attributes={self.attributes}, key={self.key!r}, value={self.value!r})"
        )


@cython.final
cdef class EntryIterator:
    cdef Py_buffer view
    cdef Py_ssize_t position
    cdef bint verify_crc

    def __cinit__(self, data, bint verify_crc):
        PyObject_GetBuffer(data, &self.view, PyBUF_SIMPLE)
        self.verify_crc = verify_crc

    def __dealloc__(self):
        PyBuffer_Release(&self.view)

    def __iter__(self):
        return self

    @cython.critical_section
    def __next__(self):
        # Created first, because this may run the garbage collector and with it code that moves the
        # iterator.
        cdef MessageAndOffset message = MessageAndOffset.__new__(MessageAndOffset)
        cdef const uint8_t* entry = <const uint8_t*>self.view.buf + self.position
        cdef int64_t offset, message_size
        cdef uint32_t stored, computed
        cdef Fields fields
        cdef FieldsFault fault
        if self.view.len - self.position < ENTRY_HEADER_BYTES:
            raise StopIteration
        offset = load64(entry)
        message_size = <int32_t>load32(entry + 8)
        if message_size < MIN_MESSAGE_BYTES:
            raise CorruptMessage(
                self.position, offset, f"message with corrupt size {message_size}"
            )
        if message_size > self.view.len - self.position - ENTRY_HEADER_BYTES:
            raise StopIteration
        if self.verify_crc and not check_crc(entry, message_size, &stored, &computed):
            raise CorruptMessage(self.position, offset, bad_crc(stored, computed))
        fault = read_fields(entry, message_size, &fields)
        if fault != FIELDS_SOUND:
            raise CorruptMessage(self.position, offset, fields_reason(fault, entry))
        message.offset = offset
        message.magic = entry[MAGIC_POSITION]
        message.attributes = entry[ATTRIBUTES_POSITION]
        message.crc = load32(entry + ENTRY_HEADER_BYTES)
        message.key = field_bytes(fields.key, fields.key_length)
        message.value = field_bytes(fields.value, fields.value_length)
        message.position = self.position
        message.size = message_size
        message.timestamp_ms = fields.timestamp_ms
        message.timestamp_type = fields.timestamp_type
        self.position += ENTRY_HEADER_BYTES + message_size
        return message


def entries(data, bint verify_crc=False):
    return EntryIterator(data, verify_crc)


cdef inline int64_t size_of_message(
    int magic, int64_t key_length, int64_t value_length
) noexcept nogil:
    return (
        MIN_MESSAGE_BYTES + TIMESTAMP_BYTES * magic + max(0, key_length) + max(0, value_length)
    )


cdef inline uint8_t* put_header(
    uint8_t* entry, int64_t offset, int64_t message_size, int magic, int attributes,
    int64_t timestamp_ms,
) noexcept nogil:
    # Write the fields before the key, without the CRC; returns the position of the key's length.
    store64(entry, offset)
    store32(entry + 8, <uint32_t>message_size)
    entry[MAGIC_POSITION] = <uint8_t>magic
    entry[ATTRIBUTES_POSITION] = <uint8_t>attributes
    if not magic:
        return entry + FIELDS_POSITION
    store64(entry + TIMESTAMP_POSITION, timestamp_ms)
    return entry + FIELDS_POSITION + TIMESTAMP_BYTES


cdef inline uint8_t* put_field(uint8_t* at, const uint8_t* data, int64_t length) noexcept nogil:
    store32(at, <uint32_t>length)
    if length > 0:
        memcpy(at + 4, data, length)
        return at + 4 + length
    return at + 4


cdef inline void put_crc(uint8_t* entry, int64_t message_size) noexcept nogil:
    store32(entry + ENTRY_HEADER_BYTES, kafka08_crc32(0, entry + CRC_END, message_size - 4))


cdef int check_magic(int64_t magic) except -1:
    if not 0 <= magic <= MAX_MAGIC:
        raise ValueError(f"magic {magic} cannot be written")
    return 0


cdef int check_timestamps(int magic, bint given, int64_t timestamps, int64_t messages) except -1:
    if given and magic == 0:
        raise ValueError("messages of magic 0 have no timestamps")
    if timestamps != messages:
        raise ValueError(f"{timestamps} timestamps for {messages} messages")
    return 0


cdef object refuse_size():
    return OverflowError(f"a message set may have at most {MAX_SET_BYTES} bytes")


cdef int64_t field_length(object field) except -2:
    # Length of a key or value; -1 for null.
    cdef Py_buffer view
    if field is None:
        return -1
    if type(field) is bytes:
        return PyBytes_GET_SIZE(field)
    PyObject_GetBuffer(field, &view, PyBUF_SIMPLE)
    PyBuffer_Release(&view)
    return view.len


cdef uint8_t* put_object(uint8_t* at, object field, int64_t length) except NULL:
    # Write a key or value of the length that field_length has returned.
    cdef Py_buffer view
    if field is None:
        return put_field(at, NULL, -1)
    if type(field) is bytes:
        return put_field(at, <const uint8_t*>PyBytes_AS_STRING(field), length)
    PyObject_GetBuffer(field, &view, PyBUF_SIMPLE)
    try:
        if view.len != length:
            raise BufferError("a key or value changed its size while it was written")
        return put_field(at, <const uint8_t*>view.buf, length)
    finally:
        PyBuffer_Release(&view)


def build_set(
    messages, int64_t base_offset=0, int attributes=0, int magic=0, timestamps=None
):
    # Columns, not pairs: the garbage collector would traverse a tuple for each message.
    cdef list keys = []
    cdef list values = []
    for key, value in messages:
        keys.append(key)
        values.append(value)
    return build_rows(keys, values, base_offset, attributes, magic, timestamps)


def build_from_lists(
    list keys, list values not None, Py_ssize_t start, Py_ssize_t end, int magic=0,
    timestamps=None,
):
    # Lists of its own: no other code changes their lengths while they are read.
    check_rows(keys, values, start, end)
    some_keys = None if keys is None else keys[start:end]
    if magic == RECORDS_MAGIC:
        return build_records(some_keys, values[start:end], timestamps)
    return build_rows(some_keys, values[start:end], 0, 0, magic, timestamps)


cdef object build_records(list keys, list values, timestamps):
    # One batch of records; no record has a key if `keys` is None.
    cdef list times = None
    cdef int64_t size = RECORDS_HEAD_BYTES, key_length = -1, value_length, record_size
    cdef int64_t time_ms = NO_TIMESTAMP, first_ms, max_ms
    cdef Py_ssize_t number, count = len(values)
    cdef uint8_t* at
    cdef uint8_t* end
    if not count:
        raise ValueError("a batch needs a record")
    if isinstance(timestamps, int):
        time_ms = timestamps
    elif timestamps is not None:
        times = list(timestamps)
        check_timestamps(RECORDS_MAGIC, True, len(times), count)
        time_ms = times[0]
    first_ms = max_ms = time_ms
    for number in range(count):
        if keys is not None:
            key_length = field_length(keys[number])
        value_length = field_length(values[number])
        if times is not None:
            time_ms = times[number]
            max_ms = max(max_ms, time_ms)
        record_size = size_of_record(time_ms - first_ms, number, key_length, value_length, 0)
        size += varint_size(zigzag(record_size)) + record_size
    if size > MAX_SET_BYTES:
        raise refuse_size()
    built = PyByteArray_FromStringAndSize(NULL, size)
    at = <uint8_t*>PyByteArray_AS_STRING(built) + RECORDS_HEAD_BYTES
    end = at + size - RECORDS_HEAD_BYTES
    for number in range(count):
        key = None if keys is None else keys[number]
        value = values[number]
        key_length = field_length(key)
        value_length = field_length(value)
        if times is not None:
            time_ms = times[number]
        record_size = size_of_record(time_ms - first_ms, number, key_length, value_length, 0)
        if varint_size(zigzag(record_size)) + record_size > end - at:
            raise BufferError("a key or value changed its size while it was written")
        at = put_record_start(at, record_size, time_ms - first_ms, number)
        at = put_record_object(at, key, key_length)
        at = put_record_object(at, value, value_length)
        at[0] = 0
        at += 1
    if at != end:
        raise BufferError("a key or value changed its size while it was written")
    put_batch_head(<uint8_t*>PyByteArray_AS_STRING(built), size, count, first_ms, max_ms)
    return built


cdef object build_rows(
    list keys, list values, int64_t offset, int attributes, int magic, timestamps
):
    # No message has a key if `keys` is None.
    cdef list times = None
    cdef int64_t size = 0, key_length = -1, value_length, message_size
    cdef int64_t timestamp_ms = NO_TIMESTAMP
    cdef Py_ssize_t number, count = len(values)
    cdef uint8_t* entry
    cdef uint8_t* at
    check_magic(magic)
    check_base_offset(offset, count)
    if isinstance(timestamps, int):
        check_timestamps(magic, True, count, count)
        timestamp_ms = timestamps
    elif timestamps is not None:
        times = list(timestamps)
        check_timestamps(magic, True, len(times), count)
    for number in range(count):
        if keys is not None:
            key_length = field_length(keys[number])
        value_length = field_length(values[number])
        size += ENTRY_HEADER_BYTES + size_of_message(magic, key_length, value_length)
    if size > MAX_SET_BYTES:
        raise refuse_size()
    built = PyByteArray_FromStringAndSize(NULL, size)
    entry = <uint8_t*>PyByteArray_AS_STRING(built)
    for number in range(count):
        key = None if keys is None else keys[number]
        value = values[number]
        key_length = field_length(key)
        value_length = field_length(value)
        message_size = size_of_message(magic, key_length, value_length)
        size -= ENTRY_HEADER_BYTES + message_size
        if size < 0:
            raise BufferError("a key or value changed its size while it was written")
        if times is not None:
            timestamp_ms = times[number]
        at = put_header(entry, offset, message_size, magic, attributes, timestamp_ms)
        at = put_object(at, key, key_length)
        put_object(at, value, value_length)
        put_crc(entry, message_size)
        entry += ENTRY_HEADER_BYTES + message_size
        offset += 1
    return built


def wrap(
    value, int64_t offset, int codec, int magic=0, int64_t timestamp_ms=NO_TIMESTAMP,
    bint log_append_time=False,
):
    cdef Py_buffer view
    cdef uint8_t* entry
    cdef uint8_t* at
    cdef int64_t message_size
    check_magic(magic)
    if magic and log_append_time:
        codec |= TIMESTAMP_TYPE_BIT
    PyObject_GetBuffer(value, &view, PyBUF_SIMPLE)
    try:
        message_size = size_of_message(magic, -1, view.len)
        if message_size + ENTRY_HEADER_BYTES > MAX_SET_BYTES:
            raise refuse_size()
        built = PyByteArray_FromStringAndSize(NULL, ENTRY_HEADER_BYTES + message_size)
        entry = <uint8_t*>PyByteArray_AS_STRING(built)
        at = put_header(entry, offset, message_size, magic, codec, timestamp_ms)
        put_field(put_field(at, NULL, -1), <const uint8_t*>view.buf, view.len)
        put_crc(entry, message_size)
    finally:
        PyBuffer_Release(&view)
    return built
