# The headers of records as Arrow lists, and back. Part of _native.pyx; the docstrings are in
# _python_headers.py.

cdef struct HeaderLists:
    # What is counted first, and then filled, up to the counts of the first time: NULL until then.
    int32_t* list_offsets
    int32_t* name_offsets
    uint8_t* names
    int32_t* value_offsets
    uint8_t* values
    uint8_t* validity
    int64_t count, name_bytes, value_bytes
    int64_t count_room, name_room, value_room


cdef int64_t walk_headers(const Rows* rows, int64_t count, HeaderLists* lists) noexcept nogil:
    # The row that is damaged, or -1; `count` if another thread has changed the bytes.
    cdef Reading reading
    cdef const uint8_t* name = NULL
    cdef const uint8_t* value = NULL
    cdef const uint8_t* data = NULL
    cdef int64_t row, size, left, name_length, value_length
    lists.count = lists.name_bytes = lists.value_bytes = 0
    for row in range(count):
        size = row_length(rows, row, &data)
        if size == -2:
            return row
        if size > 0:
            reading = Reading(data, data + size, FIELDS_SOUND)
            left = read_int(&reading)
            if reading.fault != FIELDS_SOUND or left < 0:
                return row
            while left:
                left -= 1
                name_length = read_bytes(&reading, &name)
                value_length = read_bytes(&reading, &value)
                if reading.fault != FIELDS_SOUND or name_length < 0:
                    return row
                if lists.list_offsets != NULL:
                    if (
                        lists.count == lists.count_room
                        or name_length > lists.name_room - lists.name_bytes
                        or value_length > lists.value_room - lists.value_bytes
                    ):
                        return count
                    put_header_row(lists, name, name_length, value, value_length)
                lists.count += 1
                lists.name_bytes += name_length
                lists.value_bytes += max(0, value_length)
            if reading.at != reading.end:
                return row
        if lists.list_offsets != NULL:
            lists.list_offsets[row + 1] = <int32_t>lists.count
    return -1


cdef inline void put_header_row(
    HeaderLists* lists, const uint8_t* name, int64_t name_length, const uint8_t* value,
    int64_t value_length,
) noexcept nogil:
    cdef int64_t at = lists.count
    if name_length:
        memcpy(lists.names + lists.name_bytes, name, name_length)
    lists.name_offsets[at + 1] = <int32_t>(lists.name_bytes + name_length)
    if value_length > 0:
        memcpy(lists.values + lists.value_bytes, value, value_length)
    elif value_length < 0:
        lists.validity[at >> 3] &= <uint8_t>~(1 << (at & 7))
    lists.value_offsets[at + 1] = <int32_t>(lists.value_bytes + max(0, value_length))


def header_lists(offsets, data, int64_t rows):
    cdef RowsBuffers blobs
    cdef HeaderLists lists
    cdef int64_t bad_row
    check_row_count(rows)
    blobs = RowsBuffers(offsets, data, None, rows)
    memset(&lists, 0, sizeof(lists))
    with nogil:
        bad_row = walk_headers(&blobs.rows, rows, &lists)
    if bad_row >= 0:
        raise ValueError(f"the headers of row {bad_row} are damaged")
    made = [
        bytearray(4 * (rows + 1)), bytearray(4 * (lists.count + 1)), bytearray(lists.name_bytes),
        bytearray(4 * (lists.count + 1)), bytearray(lists.value_bytes),
        bytearray(b"\xff") * ((lists.count + 7) // 8),
    ]
    lists.count_room = lists.count
    lists.name_room = lists.name_bytes
    lists.value_room = lists.value_bytes
    lists.list_offsets = <int32_t*>PyByteArray_AS_STRING(made[0])
    lists.name_offsets = <int32_t*>PyByteArray_AS_STRING(made[1])
    lists.names = <uint8_t*>PyByteArray_AS_STRING(made[2])
    lists.value_offsets = <int32_t*>PyByteArray_AS_STRING(made[3])
    lists.values = <uint8_t*>PyByteArray_AS_STRING(made[4])
    lists.validity = <uint8_t*>PyByteArray_AS_STRING(made[5])
    if walk_headers(&blobs.rows, rows, &lists) >= 0 or lists.count != lists.count_room:
        raise BufferError("the headers changed while they were read")
    return HeaderColumns(lists.count, *made)


cdef struct ListRows:
    # An Arrow list of (name, value), to be read.
    const int32_t* offsets
    const uint8_t* validity
    int64_t items


cdef int64_t encode_header_rows(
    const ListRows* lists, const Rows* names, const Rows* values, int64_t start, int64_t rows,
    int32_t* ends, uint8_t* at, int64_t room, int64_t* bad_row,
) noexcept nogil:
    # The size of all rows, which are written if `at` is not NULL; more than `room` if they have not
    # as much. -2 with `bad_row` if offsets are outside the data, -3 if a name is null.
    cdef const uint8_t* name = NULL
    cdef const uint8_t* value = NULL
    cdef int64_t row, item, name_length, value_length, size = 0
    cdef int32_t bounds[2]
    for row in range(start, start + rows):
        bad_row[0] = row
        if lists.validity == NULL or lists.validity[row >> 3] >> (row & 7) & 1:
            memcpy(bounds, lists.offsets + row, sizeof(bounds))
            if not 0 <= bounds[0] <= bounds[1] <= lists.items:
                return -2
            if bounds[0] < bounds[1]:
                size += varint_size(zigzag(bounds[1] - bounds[0]))
                if size > room:
                    return size
                if at != NULL:
                    at = put_varint(at, zigzag(bounds[1] - bounds[0]))
            for item in range(bounds[0], bounds[1]):
                name_length = row_length(names, item, &name)
                value_length = row_length(values, item, &value)
                if name_length == -2 or value_length == -2:
                    return -2
                if name_length < 0:
                    return -3
                size += varint_size(zigzag(name_length)) + name_length
                size += varint_size(zigzag(value_length)) + max(0, value_length)
                if size > room:
                    return size
                if at != NULL:
                    at = put_record_field(put_record_field(at, name, name_length), value, value_length)
        if ends != NULL:
            ends[row - start + 1] = <int32_t>size
    return size


def encode_headers(
    list_offsets, list_validity, name_offsets, name_data, name_validity, value_offsets, value_data,
    value_validity, int64_t items, int64_t rows, int64_t start=0,
):
    cdef RowsBuffers names, values, lists
    cdef ListRows list_rows
    cdef int64_t size, bad_row = 0
    check_row_count(rows)
    check_row_count(start)
    check_row_count(items)
    # As a column of bytes without data: its offsets and validity are checked in the same way.
    lists = RowsBuffers(list_offsets, None, list_validity, start + rows)
    names = RowsBuffers(name_offsets, name_data, name_validity, items)
    values = RowsBuffers(value_offsets, value_data, value_validity, items)
    list_rows = ListRows(lists.rows.offsets, lists.rows.validity, items)
    with nogil:
        size = encode_header_rows(
            &list_rows, &names.rows, &values.rows, start, rows, NULL, NULL, MAX_SET_BYTES,
            &bad_row,
        )
    if size == -2:
        raise ValueError(f"Arrow offsets of row {bad_row} are outside the data")
    if size == -3:
        raise ValueError(f"a header of row {bad_row} has no name")
    if size > MAX_SET_BYTES:
        raise refuse_size()
    offsets, data = bytearray(4 * (rows + 1)), PyByteArray_FromStringAndSize(NULL, size)
    if size != encode_header_rows(
        &list_rows, &names.rows, &values.rows, start, rows,
        <int32_t*>PyByteArray_AS_STRING(offsets), <uint8_t*>PyByteArray_AS_STRING(data), size,
        &bad_row,
    ):
        raise BufferError("Arrow buffers changed while they were read")
    return offsets, data


cdef int check_row_count(int64_t rows) except -1:
    if not 0 <= rows <= MAX_SET_BYTES:
        raise ValueError(f"rows must be from 0 to {MAX_SET_BYTES}, not {rows}")
    return 0
