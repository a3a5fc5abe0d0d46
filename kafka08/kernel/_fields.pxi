# Tuples of fields as bytes and back, by a form. Part of _native.pyx; the docstrings are in
# _python_fields.py.

def unpack_fields(data, bytes form not None, Py_ssize_t position=0):
    cdef Py_buffer view
    cdef Body body
    PyObject_GetBuffer(data, &view, PyBUF_SIMPLE)
    try:
        body.data = <const uint8_t*>view.buf
        body.size = view.len
        body.at = position
        if not 0 <= position <= view.len:
            return None
        return take_fields(&body, PyBytes_AS_STRING(form))
    finally:
        PyBuffer_Release(&view)


def pack_fields(bytes form not None, tuple fields not None, bint framed=False):
    cdef int64_t size = size_of_fields(PyBytes_AS_STRING(form), fields)
    cdef bytes made
    cdef uint8_t* at
    if size > MAX_SET_BYTES - 4:
        raise OverflowError(f"{size} bytes of fields do not fit a frame")
    made = PyBytes_FromStringAndSize(NULL, size + (4 if framed else 0))
    at = <uint8_t*>PyBytes_AS_STRING(made)
    if framed:
        store32(at, <uint32_t>size)
        at += 4
    put_fields(at, PyBytes_AS_STRING(form), fields)
    return made


cdef inline bint is_end(const char* form) noexcept nogil:
    return form[0] == 0 or form[0] == c"]"


cdef const char* after_items(const char* form) except NULL:
    # `form` is behind an opening bracket; returns the position behind the closing one.
    cdef int depth = 1
    while depth:
        if form[0] == 0:
            raise ValueError("an array of the form has no end")
        depth += (form[0] == c"[") - (form[0] == c"]")
        form += 1
    return form


cdef object unknown_letter(const char* form):
    return ValueError(f"the form has no field {chr(<uint8_t>form[0])!r}")


cdef tuple take_fields(Body* body, const char* form):
    # The fields up to the end of this level of the form; None, and body.at is -1, if the data are
    # invalid.
    cdef list found = []
    cdef object field
    while not is_end(form):
        if form[0] == c"h":
            field = take16(body)
        elif form[0] == c"i":
            field = take32(body)
        elif form[0] == c"s" or form[0] == c"S":
            field = take_text(body, form[0] == c"S")
        elif form[0] == c"y":
            field = take_data(body)
        elif form[0] == c"[":
            field = take_items(body, form + 1)
            form = after_items(form + 1) - 1
        else:
            raise unknown_letter(form)
        if body.at < 0:
            return None
        found.append(field)
        form += 1
    return tuple(found)


cdef object take_text(Body* body, bint nullable):
    cdef int32_t length = take16(body)
    cdef Py_ssize_t start = body.at
    if nullable and length < 0:
        return None
    skip(body, length)
    if body.at < 0:
        return None
    return PyUnicode_DecodeUTF8(<const char*>body.data + start, length, "replace")


cdef object take_data(Body* body):
    cdef int32_t length = take32(body)
    cdef Py_ssize_t start = body.at
    skip(body, length)
    if body.at < 0:
        return None
    return PyBytes_FromStringAndSize(<const char*>body.data + start, length)


cdef tuple take_items(Body* body, const char* form):
    cdef int32_t count = take32(body), n
    cdef list items = []
    cdef tuple item
    if is_end(form):
        raise ValueError("an array of the form has no fields")
    # No item is smaller than an integer of two bytes.
    if body.at < 0 or count < 0 or count > (body.size - body.at) / 2:
        body.at = -1
        return None
    for n in range(count):
        item = take_fields(body, form)
        if item is None:
            return None
        items.append(item)
    return tuple(items)


cdef int64_t size_of_fields(const char* form, tuple fields) except -1:
    # Checks the type and range of each field, so that put_fields runs no code of Python.
    cdef Py_ssize_t n = 0, length
    cdef int64_t size = 0
    cdef object field
    while not is_end(form):
        if n == len(fields):
            raise ValueError(f"{n} fields are too few for the form")
        field = fields[n]
        n += 1
        if form[0] == c"h":
            check_integer(field, -(1 << 15), (1 << 15) - 1)
            size += 2
        elif form[0] == c"i":
            check_integer(field, -<int64_t>INT32_MAX - 1, INT32_MAX)
            size += 4
        elif form[0] == c"S" and field is None:
            size += 2
        elif form[0] == c"s" or form[0] == c"S":
            PyUnicode_AsUTF8AndSize(field, &length)
            if length > STRING_BYTES_MAX:
                raise ValueError(f"{length} bytes of UTF-8, the limit is {STRING_BYTES_MAX}")
            size += 2 + length
        elif form[0] == c"y":
            if field is None:
                raise TypeError("bytes are None")
            size += 4 + field_length(field)
        elif form[0] == c"[":
            if is_end(form + 1):
                raise ValueError("an array of the form has no fields")
            size += 4
            if not isinstance(field, (list, tuple)):
                raise TypeError(f"{field!r} is no list")
            for item in field:
                size += size_of_fields(form + 1, <tuple?>item)
            form = after_items(form + 1) - 1
        else:
            raise unknown_letter(form)
        form += 1
    if n < len(fields):
        raise ValueError(f"{len(fields)} fields are too many for the form")
    return size


cdef int check_integer(object field, int64_t least, int64_t most) except -1:
    cdef int64_t value
    if not PyLong_Check(field):
        raise TypeError(f"{field!r} is not an integer")
    value = PyLong_AsLongLong(field)
    if not least <= value <= most:
        raise OverflowError(f"{value} does not fit its field")
    return 0


cdef uint8_t* put_fields(uint8_t* at, const char* form, tuple fields) except NULL:
    # Write fields that size_of_fields has checked.
    cdef Py_ssize_t n = 0, length
    cdef int32_t value
    cdef const char* text
    cdef object field
    while not is_end(form):
        field = fields[n]
        n += 1
        if form[0] == c"h":
            value = <int32_t>PyLong_AsLongLong(field)
            at[0] = <uint8_t>(value >> 8)
            at[1] = <uint8_t>value
            at += 2
        elif form[0] == c"i":
            store32(at, <uint32_t>PyLong_AsLongLong(field))
            at += 4
        elif field is None:
            at[0] = at[1] = 0xff
            at += 2
        elif form[0] == c"s" or form[0] == c"S":
            text = PyUnicode_AsUTF8AndSize(field, &length)
            at[0] = <uint8_t>(length >> 8)
            at[1] = <uint8_t>length
            memcpy(at + 2, text, length)
            at += 2 + length
        elif form[0] == c"y":
            at = put_object(at, field, field_length(field))
        else:
            store32(at, <uint32_t>len(field))
            at += 4
            for item in field:
                at = put_fields(at, form + 1, <tuple>item)
            form = after_items(form + 1) - 1
        form += 1
    return at
