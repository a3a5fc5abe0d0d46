# Converts message sets to Arrow buffers, and Arrow buffers to message sets. Part of _native.pyx; the
# docstrings are in _python_columns.py.

cdef struct Column:
    # A `binary` column that is being filled. Bytearrays of its Batch own the buffers; `in_place` the
    # data are in the set, moved down to the first row's. What lies ahead of the walk is not touched:
    # an entry is larger than its value.
    bint wanted
    bint in_place
    int32_t* offsets
    uint8_t* data
    uint8_t* validity
    int64_t size
    int64_t room
    bint nulls


cdef inline bint fits(const Column* column, int64_t length) noexcept nogil:
    return not column.wanted or column.in_place or column.size + length <= column.room


cdef inline void put_row(
    Column* column, int64_t row, const uint8_t* data, int64_t length
) noexcept nogil:
    if not column.wanted:
        return
    if length < 0:
        column.nulls = True
        column.validity[row >> 3] &= <uint8_t>~(1 << (row & 7))
    elif length:
        if not column.in_place:
            memcpy(column.data + column.size, data, length)
        elif column.size:
            memmove(column.data + column.size, data, length)
        else:
            column.data = <uint8_t*>data
        column.size += length
    column.offsets[row + 1] = <int32_t>column.size


cdef uint8_t* resize(object owner, Py_ssize_t size) except NULL:
    PyByteArray_Resize(owner, size)
    return <uint8_t*>PyByteArray_AS_STRING(owner)


@cython.final
cdef class Batch:
    # The rows of one batch. Its bytearrays grow only before a loop without the GIL, never inside it.
    cdef int64_t rows
    cdef int64_t row_room
    cdef int64_t* row_offsets
    cdef object row_offsets_owner
    cdef int64_t* row_times
    cdef object row_times_owner  # None: not requested
    cdef uint8_t* row_times_validity
    cdef object row_times_validity_owner
    cdef bint untimed  # a row has no timestamp
    cdef int32_t* row_time_types
    cdef object row_time_types_owner  # None: not requested
    cdef Column columns[3]
    cdef list owners  # offsets, data, validity of the key, then of the value and of the headers

    def __cinit__(
        self, bint keys, bint values, bint headers, bint timestamps, bint timestamp_types,
        bint in_place,
    ):
        self.row_offsets_owner = bytearray()
        self.row_times_owner = bytearray() if timestamps else None
        self.row_times_validity_owner = bytearray()
        self.row_time_types_owner = bytearray() if timestamp_types else None
        self.owners = [bytearray() for _ in range(9)]
        self.columns[0].wanted = keys
        self.columns[1].wanted = values
        self.columns[2].wanted = headers
        self.columns[1].in_place = in_place

    cdef int make_room(
        self, int64_t rows, int64_t key_length, int64_t value_length, int64_t headers_length
    ) except -1:
        # Make room for one more row, and for about `rows` rows of its size, not for more: unused
        # memory goes back to the system at once, which costs more than copying.
        if self.rows == self.row_room:
            self.make_row_room(max(rows, self.row_room // 2))
        self.make_data_room(0, rows, key_length)
        self.make_data_room(1, rows, value_length)
        self.make_data_room(2, rows, headers_length)
        return 0

    cdef int make_row_room(self, int64_t rows) except -1:
        cdef int64_t bitmap = (self.row_room + 7) // 8
        cdef Column* column
        cdef int i
        self.row_room += rows
        self.row_offsets = <int64_t*>resize(self.row_offsets_owner, 8 * self.row_room)
        if self.row_times_owner is not None:
            self.row_times = <int64_t*>resize(self.row_times_owner, 8 * self.row_room)
            self.row_times_validity = resize(self.row_times_validity_owner, (self.row_room + 7) // 8)
            memset(self.row_times_validity + bitmap, 0xff, (self.row_room + 7) // 8 - bitmap)
        if self.row_time_types_owner is not None:
            self.row_time_types = <int32_t*>resize(self.row_time_types_owner, 4 * self.row_room)
        for i in range(3):
            column = &self.columns[i]
            if column.wanted:
                column.offsets = <int32_t*>resize(self.owners[3 * i], 4 * (self.row_room + 1))
                column.offsets[0] = 0
                column.validity = resize(self.owners[3 * i + 2], (self.row_room + 7) // 8)
                memset(column.validity + bitmap, 0xff, (self.row_room + 7) // 8 - bitmap)
        return 0

    cdef int make_data_room(self, int i, int64_t rows, int64_t length) except -1:
        cdef Column* column = &self.columns[i]
        if not fits(column, length):
            column.room += max(rows * length, column.room // 2)
            column.data = resize(self.owners[3 * i + 1], column.room)
        return 0

    cdef list finish(self):
        # [offsets, data, validity] of the three columns, cut to their filled parts.
        cdef list buffers = []
        cdef Column* column
        cdef int i
        if not self.row_room:
            self.make_row_room(1)
        resize(self.row_offsets_owner, 8 * self.rows)
        if self.row_times_owner is not None:
            resize(self.row_times_owner, 8 * self.rows)
            resize(self.row_times_validity_owner, (self.rows + 7) // 8)
        if self.row_time_types_owner is not None:
            resize(self.row_time_types_owner, 4 * self.rows)
        for i in range(3):
            column = &self.columns[i]
            if not column.wanted:
                buffers += [None, None, None]
                continue
            resize(self.owners[3 * i], 4 * (self.rows + 1))
            if not column.in_place:
                resize(self.owners[3 * i + 1], column.size)
            resize(self.owners[3 * i + 2], (self.rows + 7) // 8)
            buffers += self.owners[3 * i:3 * i + 2]
            buffers.append(self.owners[3 * i + 2] if column.nulls else None)
        return buffers


@cython.final
cdef class ColumnIterator(DeepWalk):
    cdef bint keys
    cdef bint values
    cdef bint headers
    cdef bint timestamps
    cdef bint timestamp_types
    cdef int64_t max_rows
    cdef int64_t max_bytes
    cdef bint pending  # the walk has read a message that is in no batch yet
    cdef bint finished
    cdef object whole  # a view of the set, if values stay in it
    cdef const uint8_t* base

    def __iter__(self):
        return self

    @cython.critical_section
    def __next__(self):
        cdef Batch batch
        cdef Column* column
        cdef Py_ssize_t start
        cdef int64_t next_offset
        cdef bint more
        self.check_idle()
        if self.finished:
            raise StopIteration
        batch = Batch(
            self.keys, self.values, self.headers, self.timestamps, self.timestamp_types,
            self.whole is not None,
        )
        try:
            self.fill(batch)
            more = self.pending
        except ValueError:
            if not batch.rows:
                raise
            more = True  # the rows before the error come first; the next call raises it
        self.finished = not more
        next_offset = after(batch.row_offsets[batch.rows - 1]) if more else self.next_offset
        column = &batch.columns[1]
        if column.in_place and column.size:
            start = column.data - self.base
            batch.owners[4] = self.whole[start:start + column.size]
        buffers = batch.finish()
        return Columns(
            batch.rows, batch.row_offsets_owner, *buffers[:6], next_offset, more,
            batch.row_times_owner, batch.row_times_validity_owner if batch.untimed else None,
            batch.row_time_types_owner, *buffers[6:],
        )

    cdef int fill(self, Batch batch) except -1:
        # Add rows until the batch is full (then a message is pending) or the walk ends.
        cdef Step met
        while True:
            if self.pending:
                if self.is_full(batch):
                    return 0
                self.make_room(batch)
                self.put(batch)
                self.pending = False
            if self.at_end():
                return 0
            met = self.take_rows(batch)
            if met == WRAPPER and self.whole is not None:
                raise self.error(STEP_BAD_CODEC)
            if met != MESSAGE:
                self.handle(met)

    cdef bint is_full(self, Batch batch) noexcept nogil:
        # Whether the pending message must wait for the next batch.
        cdef int64_t size = batch.columns[0].size + batch.columns[1].size + batch.columns[2].size
        if not batch.rows:
            return False
        if self.keys and self.fields.key_length > 0:
            size += self.fields.key_length
        if self.values and self.fields.value_length > 0:
            size += self.fields.value_length
        if self.headers:
            size += max(0, self.headers_length())
        return batch.rows >= self.max_rows or size > self.max_bytes

    cdef int make_room(self, Batch batch) except -1:
        # Make room for the pending message, and for as many of its size as the frame can still have.
        cdef Frame* frame = &self.frames[self.depth]
        cdef int64_t left = frame.view.len - frame.position
        cdef int64_t rows = left // (ENTRY_HEADER_BYTES + self.message_size) + 1
        batch.make_room(
            min(rows, self.max_rows), max(0, self.fields.key_length),
            max(0, self.fields.value_length), max(0, self.headers_length()),
        )
        return 0

    cdef inline int64_t headers_length(self) noexcept nogil:
        # With their number; -1 if there are none.
        if not self.fields.header_count:
            return -1
        return self.fields.headers_end - self.fields.headers

    cdef Step take_rows(self, Batch batch) noexcept:
        cdef Frame* frame = &self.frames[self.depth]
        cdef Step met
        if frame.view.len - frame.position < GIL_RELEASE_BYTES:
            return self.take(batch)
        self.busy = True
        with nogil:
            met = self.take(batch)
        self.busy = False
        return met

    cdef Step take(self, Batch batch) noexcept nogil:
        # Add rows from one frame. MESSAGE: one is pending, because the batch has no room for it.
        cdef Step met
        while not self.at_end():
            met = self.step()
            if met != MESSAGE:
                return met
            if (
                batch.rows == batch.row_room
                or not fits(&batch.columns[0], self.fields.key_length)
                or not fits(&batch.columns[1], self.fields.value_length)
                or not fits(&batch.columns[2], self.headers_length())
                or self.is_full(batch)
            ):
                self.pending = True
                return MESSAGE
            self.put(batch)
        return UNTIL

    cdef void put(self, Batch batch) noexcept nogil:
        batch.row_offsets[batch.rows] = self.offset
        if batch.row_times != NULL:
            batch.row_times[batch.rows] = self.fields.timestamp_ms
            if self.fields.timestamp_ms == NO_TIMESTAMP:
                batch.untimed = True
                batch.row_times_validity[batch.rows >> 3] &= <uint8_t>~(1 << (batch.rows & 7))
        if batch.row_time_types != NULL:
            batch.row_time_types[batch.rows] = self.fields.timestamp_type
        put_row(&batch.columns[0], batch.rows, self.fields.key, self.fields.key_length)
        put_row(&batch.columns[1], batch.rows, self.fields.value, self.fields.value_length)
        put_row(&batch.columns[2], batch.rows, self.fields.headers, self.headers_length())
        batch.rows += 1


def column_batches(
    data, int64_t from_offset, until_offset, decompress, bint keys=True, bint values=True,
    bint verify_crc=True, int64_t max_rows=DEFAULT_MAX_ROWS,
    int64_t max_bytes=DEFAULT_MAX_COLUMN_BYTES, bint timestamps=False, bint timestamp_types=False,
    bint in_place=False, bint headers=False,
):
    cdef ColumnIterator iterator
    check_limits(max_rows, max_bytes)
    iterator = ColumnIterator.__new__(ColumnIterator)
    iterator.keys = keys
    iterator.values = values
    iterator.headers = headers
    iterator.timestamps = timestamps
    iterator.timestamp_types = timestamp_types
    iterator.max_rows = max_rows
    iterator.max_bytes = max_bytes
    if in_place and values:
        iterator.whole = memoryview(data).cast("B")
        if iterator.whole.readonly:
            raise ValueError("values cannot be moved in read-only data")
    iterator.start(data, from_offset, until_offset, decompress, verify_crc)
    iterator.base = <const uint8_t*>iterator.frames[0].view.buf
    return iterator


cdef int check_limits(int64_t max_rows, int64_t max_bytes) except -1:
    if not 1 <= max_rows <= MAX_SET_BYTES:
        raise ValueError(f"max_rows must be from 1 to {MAX_SET_BYTES}, not {max_rows}")
    if not 0 <= max_bytes <= MAX_SET_BYTES:
        raise ValueError(f"max_bytes must be from 0 to {MAX_SET_BYTES}, not {max_bytes}")
    return 0


cdef struct Rows:
    # An Arrow `binary` column to read; without offsets every row is null.
    const int32_t* offsets
    const uint8_t* data
    int64_t size
    const uint8_t* validity


cdef int64_t row_length(const Rows* rows, int64_t row, const uint8_t** data) noexcept nogil:
    # Length of a row's bytes; -1 for null, -2 if its offsets are outside the data.
    cdef int32_t ends[2]
    if rows.offsets == NULL:
        return -1
    if rows.validity != NULL and not rows.validity[row >> 3] >> (row & 7) & 1:
        return -1
    memcpy(ends, rows.offsets + row, sizeof(ends))
    if not 0 <= ends[0] <= ends[1] <= rows.size:
        return -2
    data[0] = rows.data + ends[0]
    return ends[1] - ends[0]


cdef int64_t size_of_rows(
    const Rows* keys, const Rows* values, int magic, int64_t row, int64_t end, int64_t* bad_row
) noexcept nogil:
    # Size of the set from rows [row, end); -2 with `bad_row` if offsets are outside the data.
    cdef const uint8_t* data
    cdef int64_t key_length, value_length, size = 0
    while row < end:
        key_length = row_length(keys, row, &data)
        value_length = row_length(values, row, &data)
        if key_length == -2 or value_length == -2:
            bad_row[0] = row
            return -2
        size += ENTRY_HEADER_BYTES + size_of_message(magic, key_length, value_length)
        row += 1
    return size


cdef bint write_rows(
    const Rows* keys, const Rows* values, int magic, const int64_t* times, int64_t timestamp_ms,
    int64_t row, int64_t end, int64_t offset, uint8_t* entry, int64_t size,
) noexcept nogil:
    # False if the set of the rows no longer has exactly `size` bytes: a buffer has changed.
    cdef const uint8_t* key = NULL
    cdef const uint8_t* value = NULL
    cdef int64_t key_length, value_length, message_size
    cdef uint8_t* at
    while row < end:
        key_length = row_length(keys, row, &key)
        value_length = row_length(values, row, &value)
        message_size = size_of_message(magic, key_length, value_length)
        size -= ENTRY_HEADER_BYTES + message_size
        if size < 0 or key_length == -2 or value_length == -2:
            return False
        if times != NULL:
            memcpy(&timestamp_ms, times + row, sizeof(timestamp_ms))
        at = put_header(entry, offset, message_size, magic, 0, timestamp_ms)
        put_field(put_field(at, key, key_length), value, value_length)
        put_crc(entry, message_size)
        entry += ENTRY_HEADER_BYTES + message_size
        offset += 1
        row += 1
    return size == 0


@cython.final
cdef class RowsBuffers:
    # The buffers of one column, locked while it is read.
    cdef Rows rows
    cdef Py_buffer views[3]
    cdef int held

    def __cinit__(self, offsets, data, validity, int64_t end):
        if offsets is None:
            return
        self.rows.offsets = <const int32_t*>self.hold(offsets)
        if self.views[0].len // 4 < end + 1:
            raise ValueError("there are fewer Arrow offsets than rows")
        self.rows.data = <const uint8_t*>self.hold(b"" if data is None else data)
        self.rows.size = self.views[1].len
        if validity is not None:
            self.rows.validity = <const uint8_t*>self.hold(validity)
            if self.views[2].len * 8 < end:
                raise ValueError("the validity bitmap is shorter than the rows")

    cdef void* hold(self, object data) except NULL:
        cdef Py_buffer* view = &self.views[self.held]
        PyObject_GetBuffer(data, view, PyBUF_SIMPLE)
        self.held += 1
        return view.buf

    def __dealloc__(self):
        while self.held:
            self.held -= 1
            PyBuffer_Release(&self.views[self.held])


@cython.final
cdef class TimesBuffer:
    # Timestamps, locked while they are read; NULL if there are none.
    cdef const int64_t* times
    cdef Py_buffer view

    def __cinit__(self, timestamps, int64_t end):
        if timestamps is None:
            return
        PyObject_GetBuffer(timestamps, &self.view, PyBUF_SIMPLE)
        self.times = <const int64_t*>self.view.buf
        if self.view.len // 8 < end:
            raise ValueError("there are fewer timestamps than rows")

    def __dealloc__(self):
        if self.times != NULL:
            PyBuffer_Release(&self.view)


cdef object build_record_rows(
    const Rows* keys, const Rows* values, const Rows* headers, const int64_t* times, int64_t time_ms,
    int64_t start, int64_t count,
):
    # One batch of records from the rows [start, start + count).
    cdef int64_t size, first_ms, max_ms, bad_row = 0
    cdef uint8_t* batch
    cdef bint written
    if not count:
        raise ValueError("a batch needs a record")
    if times != NULL:
        memcpy(&time_ms, times + start, sizeof(time_ms))
    first_ms = max_ms = time_ms
    with nogil:
        size = walk_record_rows(
            keys, values, headers, times, first_ms, &max_ms, start, count, NULL, 0, &bad_row
        )
    if size < 0:
        raise ValueError(f"Arrow offsets of row {bad_row} are outside the data")
    if size + RECORDS_HEAD_BYTES > MAX_SET_BYTES:
        raise refuse_size()
    built = PyByteArray_FromStringAndSize(NULL, RECORDS_HEAD_BYTES + size)
    batch = <uint8_t*>PyByteArray_AS_STRING(built)
    with nogil:
        written = size == walk_record_rows(
            keys, values, headers, times, first_ms, &max_ms, start, count,
            batch + RECORDS_HEAD_BYTES, size, &bad_row,
        )
        if written:
            put_batch_head(batch, RECORDS_HEAD_BYTES + size, count, first_ms, max_ms)
    if not written:
        raise BufferError("Arrow buffers changed while they were read")
    return built


cdef int64_t walk_record_rows(
    const Rows* keys, const Rows* values, const Rows* headers, const int64_t* times,
    int64_t first_ms, int64_t* max_ms, int64_t start, int64_t count, uint8_t* at, int64_t room,
    int64_t* bad_row,
) noexcept nogil:
    # The size of the records of the rows, which are written if `at` is not NULL; -2 with `bad_row` if
    # offsets are outside the data, -3 if there is no room for all.
    cdef const uint8_t* key = NULL
    cdef const uint8_t* value = NULL
    cdef const uint8_t* some_headers = NULL
    cdef int64_t number, key_length, value_length, headers_length, record_size
    cdef int64_t size = 0, time_ms = first_ms
    for number in range(count):
        key_length = row_length(keys, start + number, &key)
        value_length = row_length(values, start + number, &value)
        headers_length = row_length(headers, start + number, &some_headers)
        if key_length == -2 or value_length == -2 or headers_length == -2:
            bad_row[0] = start + number
            return -2
        if times != NULL:
            memcpy(&time_ms, times + start + number, sizeof(time_ms))
            max_ms[0] = max(max_ms[0], time_ms)
        record_size = size_of_record(
            time_ms - first_ms, number, key_length, value_length, headers_length
        )
        size += varint_size(zigzag(record_size)) + record_size
        if at == NULL:
            continue
        if size > room:
            return -3
        at = put_record_start(at, record_size, time_ms - first_ms, number)
        at = put_record_field(at, key, key_length)
        at = put_record_field(at, value, value_length)
        if headers_length > 0:
            memcpy(at, some_headers, headers_length)
            at += headers_length
        else:
            at[0] = 0
            at += 1
    return size


def build_from_columns(
    key_offsets, key_data, key_validity, value_offsets, value_data, value_validity, int64_t rows,
    int64_t base_offset=0, int64_t start=0, int magic=0, timestamps=None, header_offsets=None,
    header_data=None,
):
    cdef RowsBuffers keys, values, headers
    cdef const uint8_t* some_headers
    cdef TimesBuffer times
    cdef int64_t row, size, bad_row = 0, timestamp_ms = NO_TIMESTAMP
    cdef uint8_t* entry
    cdef bint written
    if magic != RECORDS_MAGIC:
        check_magic(magic)
    if not (0 <= rows <= MAX_SET_BYTES and 0 <= start <= MAX_SET_BYTES):
        raise ValueError(f"rows {rows} and start {start} must be from 0 to {MAX_SET_BYTES}")
    check_base_offset(base_offset, rows)
    keys = RowsBuffers(key_offsets, key_data, key_validity, start + rows)
    values = RowsBuffers(value_offsets, value_data, value_validity, start + rows)
    headers = RowsBuffers(header_offsets, header_data, None, start + rows)
    check_timestamps(magic, timestamps is not None, rows, rows)
    if isinstance(timestamps, int):
        timestamp_ms, timestamps = timestamps, None
    times = TimesBuffer(timestamps, start + rows)
    if magic == RECORDS_MAGIC:
        return build_record_rows(
            &keys.rows, &values.rows, &headers.rows, times.times, timestamp_ms, start, rows
        )
    for row in range(start, start + rows if header_offsets is not None else start):
        if row_length(&headers.rows, row, &some_headers):
            raise ValueError("only records have headers")
    with nogil:
        size = size_of_rows(&keys.rows, &values.rows, magic, start, start + rows, &bad_row)
    if size < 0:
        raise ValueError(f"Arrow offsets of row {bad_row} are outside the data")
    if size > MAX_SET_BYTES:
        raise refuse_size()
    built = PyByteArray_FromStringAndSize(NULL, size)
    entry = <uint8_t*>PyByteArray_AS_STRING(built)
    with nogil:
        written = write_rows(
            &keys.rows, &values.rows, magic, times.times, timestamp_ms, start, start + rows,
            base_offset, entry, size,
        )
    if not written:
        raise BufferError("Arrow buffers changed while they were read")
    return built
