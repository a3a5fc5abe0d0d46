# Messages of the producers, message sets that grow message by message, and murmur2, by which
# producers choose partitions. Part of _native.pyx; the docstrings are in _python_builder.py.


cdef extern from *:
    """
    static PyObject* kafka08_instance(PyTypeObject* cls, PyObject* args) {
        return cls->tp_new(cls, args, NULL);
    }

    static PyObject* kafka08_four(
        PyTypeObject* cls, PyObject* first, PyObject* second, PyObject* third, PyObject* fourth
    ) {
        PyObject* made = cls->tp_alloc(cls, 4);
        if (made == NULL) return NULL;
    #if PY_VERSION_HEX >= 0x030E0000
        ((PyTupleObject*)made)->ob_hash = -1;  /* not known yet, as every new tuple's */
    #endif
        PyTuple_SET_ITEM(made, 0, Py_NewRef(first));
        PyTuple_SET_ITEM(made, 1, Py_NewRef(second));
        PyTuple_SET_ITEM(made, 2, Py_NewRef(third));
        PyTuple_SET_ITEM(made, 3, Py_NewRef(fourth));
        return made;
    }
    """
    object kafka08_instance(type cls, tuple args)
    object kafka08_four(type cls, object first, object second, object third, object fourth)


def new_producer_record(type cls, topic, value=None, key=None, partition=None):
    if not issubclass(cls, tuple):
        raise TypeError(f"{cls} is no tuple")
    return kafka08_four(cls, topic, value, key, partition)


def new_keyed_message(type cls, topic, message, key=None, partition_key=None):
    if not issubclass(cls, tuple):
        raise TypeError(f"{cls} is no tuple")
    return kafka08_four(cls, topic, message, key, partition_key)


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
    cdef int magic

    def __init__(self, int64_t capacity, owner, type ref_type, int magic=0):
        if not issubclass(ref_type, MessageRef):
            raise TypeError("ref_type must be a MessageRef")
        if not 0 <= capacity <= MAX_SET_BYTES:
            raise refuse_size()
        check_magic(magic)
        self.magic = magic
        self.max_timestamp_ms = NO_TIMESTAMP
        self.built = PyByteArray_FromStringAndSize(NULL, capacity)
        self.owner = owner
        self.ref_type = ref_type
        self.callbacks = []
        self.capacity = capacity

    @cython.critical_section
    def append(self, key, value, callback=None, int64_t timestamp_ms=NO_TIMESTAMP):
        cdef int64_t key_length = field_length(key)
        cdef int64_t value_length = field_length(value)
        cdef int64_t message_size = size_of_message(self.magic, key_length, value_length)
        cdef uint8_t* entry
        cdef uint8_t* at
        # Created first, because this may run the garbage collector and with it other threads. From
        # the capacity check on, no other thread can run: the append is atomic without a lock.
        cdef MessageRef ref = <MessageRef>kafka08_instance(self.ref_type, ())
        if ENTRY_HEADER_BYTES + message_size > self.capacity - self.size:
            return None
        entry = <uint8_t*>PyByteArray_AS_STRING(self.built) + self.size
        at = put_header(entry, self.count, message_size, self.magic, 0, timestamp_ms)
        at = put_object(at, key, key_length)
        put_object(at, value, value_length)
        put_crc(entry, message_size)
        if callback is not None:
            while len(self.callbacks) < self.count:
                self.callbacks.append(None)
            self.callbacks.append(callback)
        ref.owner = self.owner
        ref.index = self.count
        if timestamp_ms > self.max_timestamp_ms:
            self.max_timestamp_ms = timestamp_ms
        self.count += 1
        self.size += ENTRY_HEADER_BYTES + message_size
        return ref

    @cython.critical_section
    def finish(self):
        built = self.built
        if built is None:
            raise ValueError("the set is already finished")
        self.built = self.owner = None
        self.capacity = 0
        PyByteArray_Resize(built, self.size)
        return built


def murmur2(data):
    cdef Py_buffer view
    cdef const uint8_t* at
    cdef uint32_t value, k, m = 0x5bd1e995
    cdef Py_ssize_t left
    PyObject_GetBuffer(data, &view, PyBUF_SIMPLE)
    at = <const uint8_t*>view.buf
    left = view.len
    value = 0x9747b28c ^ <uint32_t>left
    while left >= 4:
        k = (
            at[0] | (<uint32_t>at[1] << 8) | (<uint32_t>at[2] << 16) | (<uint32_t>at[3] << 24)
        ) * m
        value = (value * m) ^ ((k ^ (k >> 24)) * m)
        at += 4
        left -= 4
    if left == 3:
        value ^= <uint32_t>at[2] << 16
    if left >= 2:
        value ^= <uint32_t>at[1] << 8
    if left >= 1:
        value = (value ^ at[0]) * m
    PyBuffer_Release(&view)
    value = (value ^ (value >> 13)) * m
    return <int32_t>(value ^ (value >> 15))
