# Message sets that grow message by message. Part of _native.pyx; the docstrings are in
# _python_builder.py.


cdef extern from *:
    """
    #include <time.h>

    static PyObject* kafka08_instance(PyTypeObject* cls, PyObject* args) {
        return cls->tp_new(cls, args, NULL);
    }

    static int64_t kafka08_time_ms(void) {
        struct timespec now;
        clock_gettime(CLOCK_REALTIME, &now);
        return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
    }
    """
    object kafka08_instance(type cls, tuple args)
    int64_t kafka08_time_ms() noexcept nogil


cdef class MessageRef:
    cdef readonly object owner
    cdef readonly int64_t index

    def __init__(self, owner, int64_t index):
        self.owner = owner
        self.index = index


@cython.final
cdef class SetBuilder:
    cdef object built
    cdef object owner
    cdef type ref_type
    cdef readonly list callbacks
    cdef readonly int64_t count
    cdef readonly int64_t size
    cdef readonly int64_t capacity
    cdef readonly int64_t max_timestamp_ms
    cdef readonly object timestamps
    cdef object clock
    cdef object times  # a bytearray with room for `times_room` timestamps
    cdef int64_t times_room
    cdef int magic
    cdef int64_t first_ms

    def __init__(self, int64_t capacity, owner, type ref_type, int magic=0, clock=None):
        if not issubclass(ref_type, MessageRef):
            raise TypeError("ref_type must be a MessageRef")
        if not 0 <= capacity <= MAX_SET_BYTES:
            raise refuse_size()
        if magic != RECORDS_MAGIC:
            check_magic(magic)
        self.magic = magic
        self.size = RECORDS_HEAD_BYTES if magic == RECORDS_MAGIC else 0
        if self.size > capacity:
            raise ValueError(f"a batch of {capacity} bytes has no room for its head")
        self.max_timestamp_ms = NO_TIMESTAMP
        self.clock = clock
        self.times = bytearray()
        self.times_room = 0
        self.built = PyByteArray_FromStringAndSize(NULL, capacity)
        self.owner = owner
        self.ref_type = ref_type
        self.callbacks = []
        self.capacity = capacity

    @cython.critical_section
    def append(
        self, key, value, callback=None, int64_t timestamp_ms=NO_TIMESTAMP, bytes headers=None
    ):
        if self.magic == RECORDS_MAGIC:
            return self.add_record(key, value, callback, timestamp_ms, headers)
        if headers is not None:
            raise ValueError("only records have headers")
        return self.add(key, value, callback, timestamp_ms)

    cdef object add(self, key, value, callback, int64_t timestamp_ms):
        # The caller is in a critical section of this object.
        cdef int64_t key_length = field_length(key)
        cdef int64_t value_length = field_length(value)
        cdef int64_t message_size
        cdef uint8_t* entry
        cdef uint8_t* at
        if self.magic == RECORDS_MAGIC:
            return self.add_record(key, value, callback, timestamp_ms, None)
        message_size = size_of_message(self.magic, key_length, value_length)
        # Created first, because this may run the garbage collector and with it other threads. From
        # the capacity check on, no other thread can run: the append is atomic without a lock.
        cdef MessageRef ref = <MessageRef>kafka08_instance(self.ref_type, ())
        if self.magic and timestamp_ms < 0:
            timestamp_ms = self.time_of(timestamp_ms)
        if ENTRY_HEADER_BYTES + message_size > self.capacity - self.size:
            return None
        if self.magic:
            self.note_time(timestamp_ms)
        entry = <uint8_t*>PyByteArray_AS_STRING(self.built) + self.size
        at = put_header(entry, self.count, message_size, self.magic, 0, timestamp_ms)
        at = put_object(at, key, key_length)
        put_object(at, value, value_length)
        put_crc(entry, message_size)
        return self.added(ref, callback, ENTRY_HEADER_BYTES + message_size)

    cdef object added(self, MessageRef ref, callback, int64_t size):
        if callback is not None:
            while len(self.callbacks) < self.count:
                self.callbacks.append(None)
            self.callbacks.append(callback)
        ref.owner = self.owner
        ref.index = self.count
        self.count += 1
        self.size += size
        return ref

    cdef object add_record(self, key, value, callback, int64_t timestamp_ms, bytes headers):
        # `add` for a batch of records. `headers`: their number and themselves, as they are written.
        cdef int64_t key_length = field_length(key)
        cdef int64_t value_length = field_length(value)
        cdef int64_t headers_length = 0 if headers is None else PyBytes_GET_SIZE(headers)
        cdef int64_t time_delta, record_size, size
        cdef uint8_t* at
        cdef MessageRef ref = <MessageRef>kafka08_instance(self.ref_type, ())
        if timestamp_ms < 0:
            timestamp_ms = self.time_of(timestamp_ms)
        time_delta = timestamp_ms - self.first_ms if self.count else 0
        record_size = size_of_record(
            time_delta, self.count, key_length, value_length, headers_length
        )
        size = varint_size(zigzag(record_size)) + record_size
        if size > self.capacity - self.size:
            return None
        if not self.count:
            self.first_ms = timestamp_ms
        self.note_time(timestamp_ms)
        at = <uint8_t*>PyByteArray_AS_STRING(self.built) + self.size
        at = put_record_start(at, record_size, time_delta, self.count)
        at = put_record_object(at, key, key_length)
        at = put_record_object(at, value, value_length)
        if headers_length:
            memcpy(at, PyBytes_AS_STRING(headers), headers_length)
        else:
            at[0] = 0
        return self.added(ref, callback, size)

    @cython.critical_section
    def grow(self, int64_t capacity):
        if self.built is None:
            raise ValueError("the set is already finished")
        if not self.capacity <= capacity <= MAX_SET_BYTES:
            raise refuse_size()
        PyByteArray_Resize(self.built, capacity)
        self.capacity = capacity

    cdef int64_t time_of(self, int64_t timestamp_ms) except? -1:
        # The time of a message that has none. The user's clock may run other threads.
        if timestamp_ms != NO_TIMESTAMP:
            raise ValueError(f"timestamp {timestamp_ms} is before 1970")
        return kafka08_time_ms() if self.clock is None else self.clock()

    cdef int note_time(self, int64_t timestamp_ms) except -1:
        if self.count == self.times_room:
            self.times_room = max(16, 2 * self.count)
            PyByteArray_Resize(self.times, 8 * self.times_room)
        memcpy(PyByteArray_AS_STRING(self.times) + 8 * self.count, &timestamp_ms, 8)
        if timestamp_ms > self.max_timestamp_ms:
            self.max_timestamp_ms = timestamp_ms
        return 0

    @cython.critical_section
    def finish(self):
        built = self.built
        if built is None:
            raise ValueError("the set is already finished")
        self.built = self.owner = None
        self.capacity = 0
        PyByteArray_Resize(built, self.size if self.count or self.magic != RECORDS_MAGIC else 0)
        if self.magic == RECORDS_MAGIC and self.count:
            put_batch_head(
                <uint8_t*>PyByteArray_AS_STRING(built), self.size, self.count, self.first_ms,
                self.max_timestamp_ms,
            )
        if self.magic:
            PyByteArray_Resize(self.times, 8 * self.count)
            self.timestamps = self.times
        return built
