# What the producers do for each message: its tuple, its partition, its place in a batch or queue,
# its callback. Part of _native.pyx; the docstrings are in _python_producer.py.


cdef extern from *:
    """
    static PyObject* kafka08_tuple(
        PyTypeObject* cls, PyObject* const* fields, Py_ssize_t count, Py_ssize_t width
    ) {
        /* A tuple of `width`, None after the first `count`. */
        PyObject* made = cls->tp_alloc(cls, width);
        if (made == NULL) return NULL;
    #if PY_VERSION_HEX >= 0x030E0000
        ((PyTupleObject*)made)->ob_hash = -1;  /* not known yet, as every new tuple's */
    #endif
        for (Py_ssize_t place = 0; place < width; place++)
            PyTuple_SET_ITEM(made, place, Py_NewRef(place < count ? fields[place] : Py_None));
        return made;
    }

    #define KAFKA08_FEW 16

    static PyObject* kafka08_construct(
        PyObject* cls, PyObject* const* args, size_t flags, PyObject* names, Py_ssize_t least,
        Py_ssize_t most, Py_ssize_t width, PyObject* function
    ) {
        /* The fields by position, at most the first `most`; else `function` checks them. */
        Py_ssize_t count = PyVectorcall_NARGS(flags);
        if (names == NULL && least <= count && count <= most)
            return kafka08_tuple((PyTypeObject*)cls, args, count, width);
        Py_ssize_t total = count + (names == NULL ? 0 : PyTuple_GET_SIZE(names));
        PyObject* few[KAFKA08_FEW];
        PyObject** all = few;
        if (total >= KAFKA08_FEW) all = PyMem_Malloc((total + 1) * sizeof(PyObject*));
        if (all == NULL) return PyErr_NoMemory();
        all[0] = cls;
        if (total) memcpy(all + 1, args, total * sizeof(PyObject*));
        PyObject* made = PyObject_Vectorcall(function, all, count + 1, names);
        if (all != few) PyMem_Free(all);
        return made;
    }

    static PyObject* kafka08_record_function = NULL;
    static PyObject* kafka08_keyed_function = NULL;

    static PyObject* kafka08_call_record(
        PyObject* cls, PyObject* const* args, size_t flags, PyObject* names
    ) {
        return kafka08_construct(cls, args, flags, names, 1, 4, 6, kafka08_record_function);
    }

    static PyObject* kafka08_call_keyed(
        PyObject* cls, PyObject* const* args, size_t flags, PyObject* names
    ) {
        return kafka08_construct(cls, args, flags, names, 2, 4, 4, kafka08_keyed_function);
    }

    static void kafka08_set_call(PyTypeObject* cls, vectorcallfunc call) {
        cls->tp_vectorcall = call;
    }
    """
    ctypedef struct vectorcallfunc:
        pass
    object kafka08_tuple(type cls, PyObject** fields, Py_ssize_t count, Py_ssize_t width)
    PyObject* kafka08_record_function
    PyObject* kafka08_keyed_function
    vectorcallfunc kafka08_call_record
    vectorcallfunc kafka08_call_keyed
    void kafka08_set_call(type cls, vectorcallfunc call)


def new_producer_record(
    type cls, topic, value=None, key=None, partition=None, timestamp=None, headers=None
):
    cdef PyObject* fields[6]
    if not issubclass(cls, tuple):
        raise TypeError(f"{cls} is no tuple")
    if timestamp is not None:
        check_record_time(timestamp)
    fields[0] = <PyObject*>topic
    fields[1] = <PyObject*>value
    fields[2] = <PyObject*>key
    fields[3] = <PyObject*>partition
    fields[4] = <PyObject*>timestamp
    fields[5] = <PyObject*>headers
    return kafka08_tuple(cls, fields, 6, 6)


cdef int check_record_time(timestamp) except -1:
    if not isinstance(timestamp, int):
        raise TypeError(
            f"a timestamp must be an int, milliseconds since 1970, not {type(timestamp).__name__}"
        )
    if not 0 <= timestamp <= INT64_MAX:
        raise ValueError(
            f"timestamp {timestamp} is not from 0 to {INT64_MAX}, in milliseconds since 1970"
        )
    return 0


def new_keyed_message(type cls, topic, message, key=None, partition_key=None):
    cdef PyObject* fields[4]
    if not issubclass(cls, tuple):
        raise TypeError(f"{cls} is no tuple")
    fields[0] = <PyObject*>topic
    fields[1] = <PyObject*>message
    fields[2] = <PyObject*>key
    fields[3] = <PyObject*>partition_key
    return kafka08_tuple(cls, fields, 4, 4)


cdef object record_function = new_producer_record
cdef object keyed_function = new_keyed_message
kafka08_record_function = <PyObject*>record_function
kafka08_keyed_function = <PyObject*>keyed_function


def set_constructor(type cls, function):
    # A call of the class then ends in C: `type.__call__` would make a tuple of the arguments and
    # look up `__new__`. The field is not inherited, so a subclass keeps its own `__new__`.
    if not issubclass(cls, tuple):
        raise TypeError(f"{cls} is no tuple")
    cls.__new__ = staticmethod(function)
    if function is record_function:
        kafka08_set_call(cls, kafka08_call_record)
    elif function is keyed_function:
        kafka08_set_call(cls, kafka08_call_keyed)


cdef class OpenSet:
    cdef SetBuilder found

    @property
    @cython.critical_section
    def builder(self):
        return self.found

    @builder.setter
    @cython.critical_section
    def builder(self, SetBuilder builder):
        self.found = builder


cdef class RecordRoute:
    cdef readonly tuple queues
    cdef readonly object turns
    cdef readonly bint is_numbered

    def __init__(self, queues, turns, bint is_numbered):
        self.queues = tuple(queues)
        self.turns = turns
        self.is_numbered = is_numbered
        if not self.queues:
            raise ValueError("a topic without partitions has no route")


cdef inline bint is_plain(field) noexcept:
    # Whether it is stored as it is. Other buffers, whose bytes may mean anything, are not.
    return field is None or type(field) is bytes or type(field) is bytearray


cdef class RecordAppender:
    cdef dict routes
    cdef object otherwise
    cdef object without_room

    def __init__(self, dict routes not None, otherwise, without_room):
        self.routes = routes
        self.otherwise = otherwise
        self.without_room = without_room

    def send(self, record, callback=None):
        """Accept a record for sending; returns its future. See KafkaProducer."""
        cdef tuple fields
        cdef OpenSet queue
        cdef SetBuilder builder
        cdef int64_t timestamp_ms = NO_TIMESTAMP
        if not isinstance(record, tuple) or len(<tuple>record) != 6:
            return self.otherwise(record, callback)
        fields = <tuple>record
        if not (is_plain(fields[1]) and is_plain(fields[2]) and fields[5] is None):
            return self.otherwise(record, callback)
        found = self.queue_of(fields[0], fields[2], fields[3])
        if found is None:
            return self.otherwise(record, callback)
        queue = <OpenSet?>found
        if fields[4] is not None:
            timestamp_ms = fields[4]
        with cython.critical_section(queue):
            builder = queue.found
        if builder is not None:
            with cython.critical_section(builder):
                ref = builder.add(fields[2], fields[1], callback, timestamp_ms)
            if ref is not None:
                return ref
        return self.without_room(queue, fields[2], fields[1], callback, timestamp_ms)

    cdef object queue_of(self, topic, key, partition):
        # None where Python has to look: at a new topic, another type, an unknown partition.
        cdef RecordRoute route
        cdef int64_t number
        found = self.routes.get(topic)
        if found is None:
            return None
        route = <RecordRoute?>found
        if partition is not None:
            if not route.is_numbered or type(partition) is not int:
                return None
            if not 0 <= partition < len(route.queues):
                return None
            number = partition
        elif key is None:
            return next(route.turns)
        elif type(key) is bytes:
            number = (hash_of(key) & INT32_MAX) % len(route.queues)
        else:
            return None
        return route.queues[number]


@cython.final
cdef class ColumnBuffer:
    cdef type record_type
    cdef object otherwise
    cdef list columns
    cdef Py_ssize_t width
    cdef Py_ssize_t count
    cdef public Py_ssize_t room

    def __init__(self, type record_type not None, otherwise):
        if not issubclass(record_type, tuple):
            raise TypeError(f"{record_type} is no tuple")
        self.record_type = record_type
        self.otherwise = otherwise
        self.width = len(record_type._fields)
        self.columns = empty_columns(self.width)

    def __len__(self):
        return self.count

    def put(self, message):
        # No code of Python runs from the check of the room to the end.
        if isinstance(message, self.record_type) and self.put_one(<tuple>message):
            return None
        return self.otherwise(message)

    @cython.critical_section
    cdef bint put_one(self, tuple message) except -1:
        if self.room <= 0 or len(message) != self.width:
            return False
        self.room -= 1
        self.add(message)
        return True

    cdef int add(self, tuple message) except -1:
        cdef Py_ssize_t place
        for place in range(self.width):
            (<list>self.columns[place]).append(message[place])
        self.count += 1
        return 0

    def admit(self, message, Py_ssize_t limit):
        if not isinstance(message, self.record_type) or len(<tuple>message) != self.width:
            raise TypeError(f"{message!r} is no {self.record_type.__name__}")
        with cython.critical_section(self):
            self.add(<tuple>message)
            self.room = max(0, limit - self.count)
            return self.count

    @cython.critical_section
    def take(self):
        columns = self.columns
        self.columns = empty_columns(self.width)
        self.count = self.room = 0
        return columns


cdef list empty_columns(Py_ssize_t width):
    return [[] for _ in range(width)]


@cython.boundscheck(True)
def run_callbacks(
    list callbacks not None, type cls not None, topic, partition, int64_t base_offset, timestamps,
    error, on_error,
):
    cdef Py_ssize_t index
    cdef PyObject* fields[4]
    cdef bint is_shared = isinstance(timestamps, int)
    cdef object metadata = None, timestamp = timestamps, offset, callback
    fields[0] = <PyObject*>topic
    fields[1] = <PyObject*>partition
    for index in range(len(callbacks)):
        callback = callbacks[index]
        if callback is None:
            continue
        if error is None:
            offset = base_offset if base_offset < 0 else base_offset + index
            if not is_shared:
                timestamp = timestamps[index]
            fields[2] = <PyObject*>offset
            fields[3] = <PyObject*>timestamp
            metadata = kafka08_tuple(cls, fields, 4, 4)
        try:
            callback(metadata, error)
        except BaseException:  # the user's code
            on_error()


def are_of(types, column):
    last = None
    for item in column:
        kind = type(item)
        if kind is not last:
            if kind not in types:
                return False
            last = kind
    return True


def distinct(column):
    cdef set found = set()
    last = found
    for item in column:
        if item is not last:
            found.add(item)
            last = item
    return found


def total_length(column):
    cdef int64_t total = 0
    for item in column:
        if type(item) is bytes:
            total += PyBytes_GET_SIZE(item)
        else:
            total += len(item)
    return total


@cython.boundscheck(True)
def end_of_batch(
    list keys, list values not None, Py_ssize_t start, int64_t batch_bytes, int64_t empty_bytes
):
    cdef Py_ssize_t end = start
    cdef int64_t size = 0, more
    check_rows(keys, values, start, len(values))
    while end < len(values):
        more = empty_bytes + max(0, field_length(values[end]))
        if keys is not None:
            more += max(0, field_length(keys[end]))
        if end > start and size + more > batch_bytes:
            break
        size += more
        end += 1
    return end, size


cdef int check_rows(list keys, list values, Py_ssize_t start, Py_ssize_t end) except -1:
    if not 0 <= start <= end <= len(values):
        raise ValueError(f"rows {start} to {end} of {len(values)}")
    if keys is not None and len(keys) != len(values):
        raise ValueError(f"{len(keys)} keys for {len(values)} values")
    return 0


cdef int32_t murmur2_of(const uint8_t* at, Py_ssize_t left) noexcept nogil:
    cdef uint32_t k, m = 0x5bd1e995, value = 0x9747b28cU ^ <uint32_t>left
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
    value = (value ^ (value >> 13)) * m
    return <int32_t>(value ^ (value >> 15))


def key_partitions(keys, int64_t count):
    cdef list found = []
    cdef int64_t number
    if count < 1:
        raise ValueError(f"{count} partitions")
    for key in keys:
        if key is None:
            number = count
        else:
            number = (hash_of(key) & INT32_MAX) % count
        found.append(number)
    return found


def int_partitions(keys, int64_t count):
    cdef list found = []
    cdef int64_t number
    if count < 1:
        raise ValueError(f"{count} partitions")
    for key in keys:
        if type(key) is not int or not -INT32_MAX <= key <= INT32_MAX:
            return None
        number = key
        found.append((-number if number < 0 else number) % count)
    return found


@cython.boundscheck(True)
def pick(column, rows):
    cdef list found = []
    cdef list items
    cdef Py_ssize_t row
    if type(column) is list:
        items = <list>column
        for row in rows:
            if row < 0:
                raise IndexError(f"row {row}")
            found.append(items[row])
    else:
        for row in rows:
            if row < 0:
                raise IndexError(f"row {row}")
            found.append(column[row])
    return found


def group_rows(numbers):
    cdef dict groups = {}
    cdef Py_ssize_t row = 0
    for number in numbers:
        rows = groups.get(number)
        if rows is None:
            rows = groups[number] = []
        (<list>rows).append(row)
        row += 1
    return groups


cdef int32_t hash_of(data) except? -1:
    cdef Py_buffer view
    cdef int32_t value
    if type(data) is bytes:
        return murmur2_of(<const uint8_t*>PyBytes_AS_STRING(data), PyBytes_GET_SIZE(data))
    PyObject_GetBuffer(data, &view, PyBUF_SIMPLE)
    value = murmur2_of(<const uint8_t*>view.buf, view.len)
    PyBuffer_Release(&view)
    return value


def murmur2(data):
    return hash_of(data)
