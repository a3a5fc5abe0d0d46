# Iterates over the messages of a set, and decompresses its wrappers. Part of _native.pyx; the
# docstrings are in _python_messages.py.

@cython.final
@cython.freelist(256)
cdef class MessageAndMetadata:
    cdef readonly object topic
    cdef readonly int partition
    cdef readonly int64_t offset
    cdef readonly object key
    cdef readonly object value
    cdef readonly int64_t timestamp
    cdef readonly int timestamp_type
    cdef tuple some_headers  # None: there are none

    def __init__(
        self, topic, int partition, int64_t offset, key, value, int64_t timestamp=NO_TIMESTAMP,
        int timestamp_type=NO_TIMESTAMP_TYPE, tuple headers not None=(),
    ):
        self.topic = topic
        self.partition = partition
        self.offset = offset
        self.key = key
        self.value = value
        self.timestamp = timestamp
        self.timestamp_type = timestamp_type
        self.some_headers = headers or None

    @classmethod
    def __class_getitem__(cls, item):
        return GenericAlias(cls, item)

    @property
    def message(self):
        return self.value

    @property
    def headers(self):
        return self.some_headers or ()

    def __eq__(self, other):
        if type(other) is not MessageAndMetadata:
            return NotImplemented
        return message_fields(self) == message_fields(<MessageAndMetadata>other)

    def __hash__(self):
        return hash(message_fields(self))

    def __reduce__(self):
        return MessageAndMetadata, message_fields(self)

    def __repr__(self):
        time = ""
        if self.timestamp_type != NO_TIMESTAMP_TYPE:
            time = f", timestamp={self.timestamp}, timestamp_type={self.timestamp_type}"
        if self.headers:
            time += f", headers={self.headers!r}"
        return (
            f"MessageAndMetadata(topic={self.topic!r}, partition={self.partition}, "
            f"offset={self.offset}, key={self.key!r}, value={self.value!r}{time})"
        )


cdef tuple message_fields(MessageAndMetadata message):
    return (
        message.topic, message.partition, message.offset, message.key, message.value,
        message.timestamp, message.timestamp_type, message.headers,
    )


cdef struct Frame:
    Py_buffer view
    Py_ssize_t position
    int64_t shift
    int64_t end_offset
    int64_t timestamp_ms
    int timestamp_type
    bint has_records  # these: `left` are still to come, their times count from `first_ms`
    int32_t left
    int64_t first_ms


cdef enum Step:
    # The result of DeepWalk.step. It stays before an entry that needs a Python object.
    MESSAGE
    FRAME_END
    WRAPPER
    UNTIL
    STEP_BAD_SIZE
    STEP_BAD_CRC
    STEP_BAD_CODEC
    STEP_BAD_FIELDS
    STEP_PARTIAL


cdef class DeepWalk:
    cdef Frame frames[MAX_NESTING + 1]
    cdef int depth  # of the current frame; -1 at the end
    cdef Py_ssize_t outer_position
    cdef int64_t from_offset
    cdef int64_t until_offset
    cdef readonly int64_t next_offset
    cdef bint verify_crc
    cdef bint busy  # inside `decompress` or without the GIL: no other call may move the walk
    cdef object decompress
    cdef int64_t left_bytes  # of an Unpacker's limit
    cdef int64_t min_timestamp_ms  # of outermost wrappers; INT64_MIN: no minimum
    # The message or the error of the last step.
    cdef int64_t offset
    cdef int64_t message_size
    cdef uint32_t stored_crc
    cdef uint32_t computed_crc
    cdef FieldsFault fields_fault
    cdef Fields fields

    def __cinit__(self):
        self.depth = -1

    def __dealloc__(self):
        while self.depth >= 0:
            self.pop()

    @cython.final
    cdef int start(
        self, object data, int64_t from_offset, object until_offset, object decompress,
        bint verify_crc,
    ) except -1:
        self.from_offset = self.next_offset = from_offset
        self.until_offset = INT64_MAX if until_offset is None else until_offset
        self.decompress = decompress
        self.verify_crc = verify_crc
        self.min_timestamp_ms = INT64_MIN
        return self.push(data, 0, 0, NO_TIMESTAMP, NO_TIMESTAMP_TYPE)

    @cython.final
    cdef int push(
        self, object data, int64_t shift, int64_t end_offset, int64_t timestamp_ms,
        int timestamp_type,
    ) except -1:
        cdef Frame* frame = &self.frames[self.depth + 1]
        PyObject_GetBuffer(data, &frame.view, PyBUF_SIMPLE)
        frame.position = 0
        frame.shift = shift
        frame.end_offset = end_offset
        frame.timestamp_ms = timestamp_ms
        frame.timestamp_type = timestamp_type
        frame.has_records = False
        self.depth += 1
        return 0

    @cython.final
    cdef void pop(self) noexcept:
        cdef Frame* frame = &self.frames[self.depth]
        self.depth -= 1
        self.next_offset = max(self.next_offset, frame.end_offset)
        PyBuffer_Release(&frame.view)

    @cython.final
    cdef Step step(self) noexcept nogil:
        # Move to the next message, wrapper or error in the current frame; skips offsets below
        # from_offset.
        cdef Frame* frame = &self.frames[self.depth]
        cdef const uint8_t* entry
        cdef int64_t left
        if frame.has_records:
            return self.step_record(frame)
        while True:
            entry = <const uint8_t*>frame.view.buf + frame.position
            left = frame.view.len - frame.position
            if self.depth == 0:
                self.outer_position = frame.position
            if left < ENTRY_HEADER_BYTES:
                self.offset = -1
                return STEP_PARTIAL if left and self.depth else FRAME_END
            self.offset = add64(load64(entry), frame.shift)
            self.message_size = <int32_t>load32(entry + 8)
            if self.message_size < MIN_MESSAGE_BYTES:
                return STEP_BAD_SIZE
            if self.message_size > left - ENTRY_HEADER_BYTES:
                return STEP_PARTIAL if self.depth else FRAME_END
            if unlikely(has_records(entry)) and not self.depth:
                if is_too_small(entry, self.message_size):
                    return STEP_BAD_SIZE
                self.offset = last_offset_of(entry)
                if self.offset >= self.from_offset:
                    return self.step_batch(frame, entry)
            elif self.offset >= self.from_offset:
                break
            frame.position += ENTRY_HEADER_BYTES + self.message_size
        if self.verify_crc and not check_crc(
            entry, self.message_size, &self.stored_crc, &self.computed_crc
        ):
            return STEP_BAD_CRC
        if entry[ATTRIBUTES_POSITION] & CODEC_MASK > MAX_CODEC:
            return STEP_BAD_CODEC
        self.fields_fault = read_fields(entry, self.message_size, &self.fields)
        if self.fields_fault != FIELDS_SOUND:
            return STEP_BAD_FIELDS
        if entry[ATTRIBUTES_POSITION] & CODEC_MASK:
            return WRAPPER
        if frame.timestamp_type != NO_TIMESTAMP_TYPE:
            self.take_wrapper_time(frame)
        if self.offset >= self.until_offset:
            self.next_offset = self.until_offset
            return UNTIL
        frame.position += ENTRY_HEADER_BYTES + self.message_size
        if self.offset >= self.next_offset:
            self.next_offset = after(self.offset)
        return MESSAGE

    @cython.final
    cdef Step step_batch(self, Frame* frame, const uint8_t* entry) noexcept nogil:
        # A batch of records: skip the marker of a transaction, else meet it as a wrapper.
        cdef int64_t base_offset = load64(entry)
        if self.verify_crc and not check_entry_crc(
            entry, self.message_size, &self.stored_crc, &self.computed_crc
        ):
            return STEP_BAD_CRC
        if codec_of(entry) > MAX_RECORDS_CODEC:
            return STEP_BAD_CODEC
        if base_offset >= self.until_offset:
            self.next_offset = self.until_offset
            return UNTIL
        if entry[RECORDS_ATTRIBUTES + 1] & CONTROL_BIT:
            frame.position += ENTRY_HEADER_BYTES + self.message_size
            self.next_offset = max(self.next_offset, min(after(self.offset), self.until_offset))
            return UNTIL
        self.fields.timestamp_ms = timestamp_of(entry)
        self.fields.timestamp_type = timestamp_type_of(entry)
        self.fields.value = entry + RECORDS_HEAD_BYTES
        self.fields.value_length = self.message_size + ENTRY_HEADER_BYTES - RECORDS_HEAD_BYTES
        return WRAPPER

    @cython.final
    cdef Step step_record(self, Frame* frame) noexcept nogil:
        # Like `step`, among the records of a batch.
        cdef const uint8_t* data = <const uint8_t*>frame.view.buf
        cdef int64_t offset_delta = 0
        while True:
            self.offset = frame.shift  # for errors
            if frame.left < 0:
                self.fields_fault = FIELDS_COUNT
                return STEP_BAD_FIELDS
            if frame.left == 0:
                if frame.position == frame.view.len:
                    return FRAME_END
                self.fields_fault = FIELDS_REST
                return STEP_BAD_FIELDS
            self.fields_fault = read_record(
                data + frame.position, data + frame.view.len, &self.message_size, &offset_delta,
                &self.fields,
            )
            if self.fields_fault != FIELDS_SOUND:
                return STEP_BAD_FIELDS
            self.offset = add64(frame.shift, offset_delta)
            if self.offset >= self.until_offset:
                self.next_offset = self.until_offset
                return UNTIL
            frame.position += self.message_size
            frame.left -= 1
            if self.offset >= self.from_offset:
                break
        self.fields.timestamp_type = frame.timestamp_type
        if frame.timestamp_type == LOG_APPEND_TIME:
            self.fields.timestamp_ms = frame.timestamp_ms
        else:
            self.fields.timestamp_ms = add64(frame.first_ms, self.fields.timestamp_ms)
        if self.offset >= self.next_offset:
            self.next_offset = after(self.offset)
        return MESSAGE

    @cython.final
    cdef inline void take_wrapper_time(self, const Frame* frame) noexcept nogil:
        if self.fields.timestamp_type == NO_TIMESTAMP_TYPE:
            return
        self.fields.timestamp_type = frame.timestamp_type
        if frame.timestamp_type == LOG_APPEND_TIME:
            self.fields.timestamp_ms = frame.timestamp_ms

    @cython.final
    cdef bint at_end(self) noexcept nogil:
        return self.depth < 0 or self.next_offset >= self.until_offset

    @cython.final
    cdef int handle(self, Step met) except -1:
        # Handle a step other than MESSAGE, which needs Python objects.
        if met == FRAME_END:
            self.pop()
        elif met == WRAPPER:
            self.unpack()
        elif met != UNTIL:
            raise self.error(met)
        return 0

    @cython.final
    cdef bint advance(self) except -1:
        # Move to the next message; False at the end.
        cdef Step met
        self.check_idle()
        while not self.at_end():
            met = self.step()
            if met == MESSAGE:
                return True
            self.handle(met)
        return False

    @cython.final
    cdef int check_idle(self) except -1:
        if self.busy:
            raise RuntimeError("this iterator is being used by another thread")
        return 0

    @cython.final
    cdef int unpack(self) except -1:
        cdef Frame* frame = &self.frames[self.depth]
        cdef const uint8_t* entry = <const uint8_t*>frame.view.buf + frame.position
        cdef int64_t shift = 0
        cdef int64_t timestamp_ms = self.fields.timestamp_ms
        cdef int timestamp_type = self.fields.timestamp_type
        cdef bint is_batch = has_records(entry)
        cdef int codec = codec_of(entry)
        cdef int64_t end_offset = after(self.offset)
        cdef Py_ssize_t start
        if self.depth == 0 and timestamp_ms < self.min_timestamp_ms:
            frame.position += ENTRY_HEADER_BYTES + self.message_size
            return 0
        if self.fields.value_length < 0:
            raise self.corrupt("compressed message without a value")
        if self.depth >= MAX_NESTING:
            raise self.corrupt(f"more than {MAX_NESTING} levels of compressed messages")
        start = self.fields.value - <const uint8_t*>frame.view.buf
        self.busy = True
        try:
            value = memoryview(<object>frame.view.obj).cast("B")
            value = value[start:start + self.fields.value_length]
            inner = self.decompressed(codec, value) if codec else value
        except ValueError as error:
            raise self.corrupt(f"cannot be decompressed: {error}") from error
        finally:
            self.busy = False
        if entry[MAGIC_POSITION] == 1:
            shift = self.shift_of(inner)
        if is_batch:
            shift = load64(entry)
            end_offset = min(end_offset, self.until_offset)
        self.push(inner, shift, end_offset, timestamp_ms, timestamp_type)
        if is_batch:
            self.frames[self.depth].has_records = True
            self.frames[self.depth].left = <int32_t>load32(entry + RECORDS_COUNT)
            self.frames[self.depth].first_ms = load64(entry + RECORDS_FIRST_TIME)
        frame.position += ENTRY_HEADER_BYTES + self.message_size
        return 0

    @cython.final
    cdef object decompressed(self, int codec, object value):
        # An outermost wrapper and all wrappers inside it share one limit.
        if type(self.decompress) is not Unpacker:
            return self.decompress(codec, value)
        if self.depth == 0:
            self.left_bytes = self.decompress.max_bytes
        inner = self.decompress.function(codec, value, self.left_bytes)
        self.left_bytes -= len(inner)
        return inner

    @cython.final
    cdef int64_t shift_of(self, object inner) except? -1:
        # The number to add to the relative offsets inside a magic-1 wrapper of offset self.offset.
        cdef Py_buffer view
        cdef const uint8_t* entry
        cdef const uint8_t* end
        cdef int64_t message_size, last = self.offset
        PyObject_GetBuffer(inner, &view, PyBUF_SIMPLE)
        try:
            entry = <const uint8_t*>view.buf
            end = entry + view.len
            while end - entry >= ENTRY_HEADER_BYTES:
                message_size = <int32_t>load32(entry + 8)
                if message_size < MIN_MESSAGE_BYTES:
                    raise self.corrupt(f"message with corrupt size {message_size}")
                if message_size > end - entry - ENTRY_HEADER_BYTES:
                    break
                last = load64(entry)
                entry += ENTRY_HEADER_BYTES + message_size
        finally:
            PyBuffer_Release(&view)
        return max(0, <int64_t>(<uint64_t>self.offset - <uint64_t>last))

    @cython.final
    cdef object error(self, Step met):
        cdef Frame* frame = &self.frames[self.depth]
        cdef const uint8_t* entry = <const uint8_t*>frame.view.buf + frame.position
        if met == STEP_BAD_SIZE:
            return self.corrupt(f"message with corrupt size {self.message_size}")
        if met == STEP_BAD_CRC:
            return self.corrupt(bad_crc(self.stored_crc, self.computed_crc))
        if met == STEP_BAD_CODEC:
            return UnknownCodec(codec_of(entry))
        if met == STEP_BAD_FIELDS:
            return self.corrupt(fields_reason(self.fields_fault, entry))
        return self.corrupt("partial message inside a compressed set")

    @cython.final
    cdef object corrupt(self, str reason):
        return CorruptMessage(self.outer_position, self.offset, reason)


cdef inline int64_t after(int64_t offset) noexcept nogil:
    return offset + 1 if offset < INT64_MAX else INT64_MAX


@cython.final
cdef class MessageIterator(DeepWalk):
    cdef object topic
    cdef int partition
    cdef object key_decoder
    cdef object value_decoder
    cdef readonly int64_t position_offset

    def __iter__(self):
        return self

    @cython.critical_section
    def __next__(self):
        # Created first, because this may run the garbage collector and with it code that moves the
        # walk: the fields of the message that is found point into the memory of a frame.
        cdef MessageAndMetadata message = MessageAndMetadata.__new__(MessageAndMetadata)
        if not self.advance():
            raise StopIteration
        message.topic = self.topic
        message.partition = self.partition
        message.offset = self.offset
        message.key = field_bytes(self.fields.key, self.fields.key_length)
        message.value = field_bytes(self.fields.value, self.fields.value_length)
        message.timestamp = self.fields.timestamp_ms
        message.timestamp_type = self.fields.timestamp_type
        if unlikely(self.fields.header_count):
            message.some_headers = headers_of(&self.fields)
        if self.key_decoder is not None and message.key is not None:
            message.key = decoded(self.key_decoder, message.key)
        if self.value_decoder is not None and message.value is not None:
            message.value = decoded(self.value_decoder, message.value)
        self.position_offset = message.offset
        return message


@cython.final
cdef class StreamIterator:
    # One thread iterates. The others only set `limit` and read `busy`, in neither of which they
    # wait for a decoder: so the sections below are as short as they can be.
    cdef public MessageIterator messages
    cdef public MessageIterator ended
    cdef public object damage
    cdef bint is_busy
    cdef double latest
    cdef unsigned long reader  # the thread that has claimed it, or 0
    cdef bint reads_monotonic
    cdef object clock
    cdef object find_more

    def __init__(self, MessageIterator messages not None, clock, find_more):
        self.messages = messages
        self.clock = clock
        self.reads_monotonic = KAFKA08_READS_MONOTONIC and clock is monotonic
        self.find_more = find_more
        self.latest = -INFINITY

    @property
    def busy(self):
        cdef bint busy = self.is_busy
        kafka08_fence()
        return busy

    @property
    def limit(self):
        return self.latest

    @limit.setter
    def limit(self, double limit):
        self.latest = limit
        kafka08_fence()  # before the caller looks at `busy`

    def __iter__(self):
        return self

    def __next__(self):
        return self.next()

    cdef object next(self):
        cdef object give_up_at = None
        cdef object message = self.take()
        while message is None:
            give_up_at = self.find_more(give_up_at)
            message = self.take()
        return message

    def claim(self):
        self.reader = PyThread_get_thread_ident()

    cpdef object take(self):
        cdef MessageIterator messages
        cdef object message
        if self.reader and self.reader != PyThread_get_thread_ident():
            return None
        self.is_busy = True
        kafka08_fence()
        try:
            if self.is_over():
                return None
            with cython.critical_section(self):
                messages = self.messages
            message = next(messages, None)
            if message is None:
                with cython.critical_section(self):
                    self.ended = messages
            return message
        except Exception as error:
            self.damage = error
            return None
        finally:
            kafka08_fence()
            self.is_busy = False

    @cython.final
    cdef inline bint is_over(self) except -1:
        # A call of Python's takes a third of the time of a message, and the clock itself a quarter.
        cdef double latest = self.latest
        cdef double now
        if latest == INFINITY:
            return False
        now = kafka08_monotonic() if self.reads_monotonic else self.clock()
        return now >= latest


@cython.final
cdef class StreamLoop:
    cdef StreamIterator stream
    cdef readonly object owner

    def __init__(self, StreamIterator stream not None, owner):
        self.stream = stream
        self.owner = owner

    def __iter__(self):
        return self

    def __next__(self):
        return self.stream.next()


cdef object decoded(object decoder, object data):
    try:
        return decoder(data)
    except StopIteration as error:
        raise RuntimeError("a decoder raised StopIteration") from error


def messages(
    data, topic, int partition, int64_t from_offset, decompress, key_decoder=None,
    value_decoder=None, bint verify_crc=True, until_offset=None,
):
    cdef MessageIterator iterator = MessageIterator.__new__(MessageIterator)
    iterator.topic = topic
    iterator.partition = partition
    iterator.key_decoder = key_decoder
    iterator.value_decoder = value_decoder
    iterator.position_offset = -1
    iterator.start(data, from_offset, until_offset, decompress, verify_crc)
    return iterator


@cython.final
cdef class TimestampSearch(DeepWalk):
    cdef bint search(self, int64_t target_ms) except -1:
        # Move to the first message with a timestamp >= target_ms; False if there is none.
        self.min_timestamp_ms = target_ms
        while self.advance():
            if self.fields.timestamp_ms >= target_ms:
                return True
        return False


def find_timestamp(data, int64_t target_ms, decompress, int64_t from_offset=0):
    cdef TimestampSearch walk = TimestampSearch.__new__(TimestampSearch)
    walk.start(data, from_offset, None, decompress, False)
    return (walk.offset, walk.fields.timestamp_ms) if walk.search(target_ms) else None
