# Reads Produce and Fetch requests and writes their responses, without an object for each partition.
# Part of _native.pyx; the docstrings are in _python_requests.py.

cdef struct Body:
    # A request's bytes and the read position `at`, which is -1 after an invalid layout.
    const uint8_t* data
    Py_ssize_t size
    Py_ssize_t at


cdef struct Slice:
    # Bytes of a file that a response contains, and the HW of their partition.
    int descriptor
    int64_t position
    int64_t size
    int64_t high_watermark
    int64_t log_start


cdef inline int32_t take16(Body* body) noexcept nogil:
    cdef int32_t value
    if body.at < 0 or body.size - body.at < 2:
        body.at = -1
        return -1
    value = <int16_t>((body.data[body.at] << 8) | body.data[body.at + 1])
    body.at += 2
    return value


cdef inline int32_t take32(Body* body) noexcept nogil:
    cdef int32_t value
    if body.at < 0 or body.size - body.at < 4:
        body.at = -1
        return -1
    value = <int32_t>load32(body.data + body.at)
    body.at += 4
    return value


cdef inline void skip(Body* body, int64_t count) noexcept nogil:
    if body.at < 0 or count < 0 or count > body.size - body.at:
        body.at = -1
    else:
        body.at += count


cdef void open_body(Body* body, const Py_buffer* view) noexcept nogil:
    # Move to the first field after the request header.
    cdef int32_t client
    body.data = <const uint8_t*>view.buf
    body.size = view.len
    body.at = 0
    skip(body, REQUEST_CLIENT)
    client = take16(body)
    skip(body, client if client > 0 else 0)


cdef inline void skip_transactional_id(Body* body) noexcept nogil:
    # The first field of a Produce request from version 3 on.
    cdef int32_t length
    if body.at > 0 and body.data[REQUEST_VERSION + 1] >= TRANSACTIONAL_PRODUCE:
        length = take16(body)
        skip(body, 0 if length == -1 else length)


cdef inline int version_of(const Body* body) noexcept nogil:
    return (body.data[REQUEST_VERSION] << 8) | body.data[REQUEST_VERSION + 1]


cdef inline void skip_fetch_fields(Body* body) noexcept nogil:
    # Between the least bytes of a Fetch request and its topics.
    cdef int version
    if body.at > 0:
        version = version_of(body)
        skip(body, (4 if version >= LIMITED_FETCH else 0) + (1 if version >= RECORDS_FETCH else 0))


cdef inline Py_ssize_t wanted_bytes(int version) noexcept nogil:
    # Of a partition in a Fetch request.
    return FETCH_PARTITION_BYTES + (8 if version >= LOG_START_FETCH else 0)


cdef inline Py_ssize_t fetched_bytes(int version) noexcept nogil:
    # Of a partition in the response, without its set.
    if version < RECORDS_FETCH:
        return FETCHED_PARTITION_BYTES
    return FETCHED_PARTITION_BYTES + (20 if version >= LOG_START_FETCH else 12)


cdef inline void put_fetched(
    uint8_t* at, const uint8_t* number, int version, int64_t high_watermark,
    int64_t stable_offset, int64_t log_start, int32_t aborted, int64_t size,
) noexcept nogil:
    # A partition of a response without an error and without aborted transactions, whose count is 0,
    # or -1 for a reader of uncommitted messages.
    memcpy(at, number, 4)
    memset(at + 4, 0, 2)
    store64(at + 6, high_watermark)
    at += 14
    if version >= RECORDS_FETCH:
        store64(at, stable_offset)
        at += 8
        if version >= LOG_START_FETCH:
            store64(at, log_start)
            at += 8
        store32(at, aborted)
        at += 4
    store32(at, <uint32_t>size)


cdef dict next_topic(Body* body, dict partitions, set names, int32_t* count):
    # The topic's value in `partitions`, and its number of partitions in the request; None if the topic
    # is unknown or repeated, or the layout is invalid.
    cdef int32_t length = take16(body)
    cdef Py_ssize_t start = body.at
    cdef bytes name
    skip(body, length)
    count[0] = take32(body)
    if body.at < 0 or count[0] < 0:
        return None
    name = PyBytes_FromStringAndSize(<const char*>body.data + start, length)
    if names is not None:
        if name in names:
            return None
        names.add(name)
    return partitions.get(name)


def read_produce(payload, dict partitions, Py_ssize_t count_max):
    cdef Py_buffer view
    cdef Body body
    cdef int32_t acks, timeout_ms, topics, count, number, size, topic, i
    cdef bint needs_batches
    cdef dict known
    cdef set names
    cdef list found = [], starts = [], sizes = []
    PyObject_GetBuffer(payload, &view, PyBUF_SIMPLE)
    try:
        open_body(&body, &view)
        skip_transactional_id(&body)
        needs_batches = body.at > 0 and version_of(&body) >= TRANSACTIONAL_PRODUCE
        acks = take16(&body)
        timeout_ms = take32(&body)
        topics = take32(&body)
        names = set() if topics > 1 else None
        for topic in range(topics):
            known = next_topic(&body, partitions, names, &count)
            if known is None:
                return None
            for i in range(count):
                number = take32(&body)
                size = take32(&body)
                starts.append(body.at)
                sizes.append(size)
                skip(&body, size)
                partition = known.get(number)
                if body.at < 0 or partition is None or len(found) == count_max:
                    return None
                if needs_batches and not is_one_batch(body.data + body.at - size, size):
                    return None
                found.append(partition)
    finally:
        PyBuffer_Release(&view)
    if body.at < 0 or not found or (len(found) > 1 and len(set(found)) != len(found)):
        return None
    return acks, timeout_ms, found, starts, sizes


def read_fetch(payload, dict partitions):
    cdef Py_buffer view
    cdef Body body
    cdef int32_t replica_id, max_wait_ms, min_bytes, topics, count, number, topic, i
    cdef int32_t max_bytes = MAX_SET_BYTES
    cdef int version, isolation_level = 0
    cdef Py_ssize_t each
    cdef dict known
    cdef set names
    cdef list found = [], offsets = [], limits = [], starts = None
    PyObject_GetBuffer(payload, &view, PyBUF_SIMPLE)
    try:
        open_body(&body, &view)
        replica_id = take32(&body)
        max_wait_ms = take32(&body)
        min_bytes = take32(&body)
        if body.at < 0:
            return None
        version = version_of(&body)
        each = wanted_bytes(version)
        if replica_id >= 0 and version >= LOG_START_FETCH:
            starts = []
        if version >= LIMITED_FETCH:
            max_bytes = take32(&body)
        if version >= RECORDS_FETCH:
            if body.at < 0 or body.at >= body.size or body.data[body.at] > READ_COMMITTED:
                return None
            isolation_level = body.data[body.at]
            body.at += 1
        topics = take32(&body)
        names = set() if topics > 1 else None
        for topic in range(topics):
            known = next_topic(&body, partitions, names, &count)
            if known is None or count > (body.size - body.at) / each:
                return None
            for i in range(count):
                number = take32(&body)
                partition = known.get(number)
                if partition is None:
                    return None
                found.append(partition)
                offsets.append(load64(body.data + body.at))
                if starts is not None:
                    starts.append(load64(body.data + body.at + 8))
                limits.append(<int32_t>load32(body.data + body.at + each - 8))
                body.at += each - 4
    finally:
        PyBuffer_Release(&view)
    if body.at < 0 or not found or (len(found) > 1 and len(set(found)) != len(found)):
        return None
    return (
        replica_id, max_wait_ms, min_bytes, max_bytes, isolation_level, found, offsets, limits,
        starts,
    )


cdef Py_ssize_t copy_topic(Body* body, uint8_t* target, int32_t* count) noexcept nogil:
    # Copy the topic's name and number of partitions, which responses have in the same form; returns
    # their size.
    cdef Py_ssize_t start = body.at
    skip(body, take16(body))
    count[0] = take32(body)
    if body.at < 0:
        return -1
    if target != NULL:
        memcpy(target, body.data + start, body.at - start)
    return body.at - start


cdef Py_ssize_t fill_produced(
    Body* body, uint8_t* target, Py_ssize_t fixed, const int64_t* base_offsets,
    const int64_t* times, Py_ssize_t partitions,
) noexcept nogil:
    # Write the topics of a response; returns their size. -1 if the request has other partitions.
    cdef int32_t topics, count, topic, i
    cdef Py_ssize_t n = 0, size = 0, copied
    skip_transactional_id(body)
    skip(body, 6)
    topics = take32(body)
    if target != NULL and body.at > 0:
        store32(target, topics)
    size = 4
    for topic in range(topics):
        copied = copy_topic(body, target + size if target != NULL else NULL, &count)
        if copied < 0 or count < 0 or count > partitions - n:
            return -1
        size += copied
        for i in range(count):
            if body.size - body.at < 8:
                return -1
            if target != NULL:
                memcpy(target + size, body.data + body.at, 4)
                memset(target + size + 4, 0, 2)
                store64(target + size + 6, base_offsets[n])
                if fixed > PRODUCED_BYTES:
                    store64(target + size + 14, times[n])
            size += fixed
            body.at += 4
            skip(body, take32(body))
            if body.at < 0:
                return -1
            n += 1
    return size if n == partitions and body.at >= 0 else -1


def write_produced(payload, list base_offsets, list times_ms=None):
    cdef Py_buffer view
    cdef Body body
    cdef Py_ssize_t fixed = PRODUCED_BYTES, size, frame, i, count = len(base_offsets)
    cdef int version
    cdef int64_t* numbers = NULL
    cdef uint8_t* at
    cdef bytes response
    if times_ms is not None and len(times_ms) != count:
        raise ValueError(f"{len(times_ms)} times for {count} offsets")
    PyObject_GetBuffer(payload, &view, PyBUF_SIMPLE)
    try:
        open_body(&body, &view)
        if body.at < 0:
            raise ValueError("not a request")
        version = body.data[REQUEST_VERSION + 1]
        if version >= TIMED_PRODUCE:
            fixed += 8
        numbers = <int64_t*>malloc((2 * count + 1) * sizeof(int64_t))
        if numbers == NULL:
            raise MemoryError
        for i in range(count):
            numbers[i] = base_offsets[i]
            numbers[count + i] = NO_TIMESTAMP if times_ms is None else times_ms[i]
        size = fill_produced(&body, NULL, fixed, numbers, numbers + count, count)
        if size < 0:
            raise ValueError("the request has other partitions")
        frame = 8 + size + (4 if version >= THROTTLED else 0)
        response = PyBytes_FromStringAndSize(NULL, frame)
        at = <uint8_t*>PyBytes_AS_STRING(response)
        store32(at, <uint32_t>(frame - 4))
        memcpy(at + 4, body.data + REQUEST_CORRELATION_ID, 4)
        open_body(&body, &view)
        fill_produced(&body, at + 8, fixed, numbers, numbers + count, count)
        if version >= THROTTLED:
            memset(at + 8 + size, 0, 4)
        return response
    finally:
        free(numbers)
        PyBuffer_Release(&view)


def write_fetched(
    payload, list high_watermarks, list sizes, list log_starts=None, list stable_offsets=None
):
    cdef Py_buffer view
    cdef Body body
    cdef int32_t topics, count, topic, i
    cdef Py_ssize_t n = 0, count_all = len(sizes), at = 0, start = 0, copied
    cdef int64_t total = 0, size, log_start = -1, stable_offset = -1
    cdef int32_t aborted = -1 if stable_offsets is None else 0
    cdef int version
    cdef uint8_t* buffer = NULL
    cdef list cuts = []
    if len(high_watermarks) != count_all:
        raise ValueError("as many high watermarks as sizes")
    if log_starts is not None and len(log_starts) != count_all:
        raise ValueError("as many log starts as sizes")
    if stable_offsets is not None and len(stable_offsets) != count_all:
        raise ValueError("as many last stable offsets as sizes")
    PyObject_GetBuffer(payload, &view, PyBUF_SIMPLE)
    try:
        open_body(&body, &view)
        skip(&body, 12)
        if body.at < 0:
            raise ValueError("not a request")
        version = version_of(&body)
        # A partition has 16 or 24 bytes in the request, and at most 14 more in the response.
        buffer = <uint8_t*>calloc(1, view.len + 14 * count_all + 32)
        if buffer == NULL:
            raise MemoryError
        memcpy(buffer + 4, body.data + REQUEST_CORRELATION_ID, 4)
        at = 8
        if body.data[REQUEST_VERSION + 1] >= THROTTLED:
            at += 4
        skip_fetch_fields(&body)
        topics = take32(&body)
        store32(buffer + at, topics)
        at += 4
        for topic in range(topics):
            copied = copy_topic(&body, buffer + at, &count)
            if copied < 0 or count < 0 or count > count_all - n:
                raise ValueError("the request has other partitions")
            at += copied
            for i in range(count):
                if body.size - body.at < wanted_bytes(version):
                    raise ValueError("the request has other partitions")
                size = sizes[n]
                if not 0 <= size <= MAX_SET_BYTES:
                    raise OverflowError(f"a set of {size} bytes does not fit a frame")
                if log_starts is not None:
                    log_start = log_starts[n]
                if stable_offsets is not None:
                    stable_offset = stable_offsets[n]
                put_fetched(
                    buffer + at, body.data + body.at, version, high_watermarks[n], stable_offset,
                    log_start, aborted, size,
                )
                body.at += wanted_bytes(version)
                at += fetched_bytes(version)
                n += 1
                if size:
                    total += size
                    cuts.append(at)
        if n != count_all or body.at < 0:
            raise ValueError("the request has other partitions")
        total += at - 4
        if total > MAX_SET_BYTES:
            raise OverflowError(f"a response of {total} bytes does not fit a frame")
        store32(buffer, <uint32_t>total)
        if not cuts or cuts[len(cuts) - 1] < at:
            cuts.append(at)
        pieces = []
        for cut in cuts:
            pieces.append(PyBytes_FromStringAndSize(<const char*>buffer + start, cut - start))
            start = cut
        return pieces
    finally:
        free(buffer)
        PyBuffer_Release(&view)


cdef Py_ssize_t fill_fetched(
    Body* body, uint8_t* target, const Slice* slices, Py_ssize_t partitions
) noexcept nogil:
    # Write the topics of a response with their sets, which are read from their files; returns their
    # size. -1 if the request has other partitions, or a file is too short.
    cdef int32_t topics, count, topic, i
    cdef Py_ssize_t n = 0, size = 4, copied
    cdef int version = version_of(body)
    skip(body, 12)
    skip_fetch_fields(body)
    topics = take32(body)
    if target != NULL and body.at > 0:
        store32(target, topics)
    for topic in range(topics):
        copied = copy_topic(body, target + size if target != NULL else NULL, &count)
        if copied < 0 or count < 0 or count > partitions - n:
            return -1
        size += copied
        for i in range(count):
            if body.size - body.at < wanted_bytes(version):
                return -1
            if target != NULL:
                put_fetched(
                    target + size, body.data + body.at, version, slices[n].high_watermark, -1,
                    slices[n].log_start, -1, slices[n].size,
                )
                if slices[n].size and not read_slice(
                    &slices[n], target + size + fetched_bytes(version)
                ):
                    return -1
            size += fetched_bytes(version) + slices[n].size
            body.at += wanted_bytes(version)
            n += 1
    return size if n == partitions and body.at >= 0 else -1


cdef bint read_slice(const Slice* wanted, uint8_t* target) noexcept nogil:
    # False after an error, and at an early end of the file.
    cdef int64_t position = wanted.position, left = wanted.size
    cdef ssize_t count
    while left > 0:
        count = pread(wanted.descriptor, target, left, position)
        if count < 0 and errno == EINTR:
            continue
        if count <= 0:
            return False
        target += count
        position += count
        left -= count
    return True


cdef bytes fetched_frame(const Py_buffer* view, const Slice* slices, Py_ssize_t partitions):
    # None if it does not fit a frame, or cannot be read.
    cdef Body body
    cdef Py_ssize_t size, head = 8
    cdef uint8_t* at
    cdef bytes response
    open_body(&body, view)
    if body.at < 0:
        raise ValueError("not a request")
    if body.data[REQUEST_VERSION + 1] >= THROTTLED:
        head += 4
    size = fill_fetched(&body, NULL, slices, partitions)
    if size < 0:
        raise ValueError("the request has other partitions")
    if head + size - 4 > MAX_SET_BYTES:
        return None
    response = PyBytes_FromStringAndSize(NULL, head + size)
    at = <uint8_t*>PyBytes_AS_STRING(response)
    store32(at, <uint32_t>(head + size - 4))
    memcpy(at + 4, body.data + REQUEST_CORRELATION_ID, 4)
    memset(at + 8, 0, head - 8)
    open_body(&body, view)
    return response if fill_fetched(&body, at + head, slices, partitions) == size else None


cdef inline int64_t take_added(Body* body, int version) noexcept nogil:
    # What version 4 of a Fetch response added to a partition: last stable offset, from 5 on the log
    # start offset, which is returned, aborted transactions.
    cdef int64_t count, log_start = -1
    if version < RECORDS_FETCH:
        return log_start
    skip(body, 16 if version >= LOG_START_FETCH else 8)
    if body.at > 0 and version >= LOG_START_FETCH:
        log_start = load64(body.data + body.at - 8)
    count = take32(body)
    skip(body, 16 * count if count > 0 else 0)
    return log_start


def read_fetched(payload, int version, dict partitions):
    cdef Py_buffer view
    cdef Body body
    cdef int32_t topics, count, number, size, topic, i
    cdef int code
    cdef int64_t high_watermark, log_start
    cdef Py_ssize_t start
    cdef dict known
    cdef set names
    cdef list found = [], codes = [], marks = [], sets = [], log_starts = []
    if version > LOG_START_FETCH:
        return None
    PyObject_GetBuffer(payload, &view, PyBUF_SIMPLE)
    try:
        body = Body(<const uint8_t*>view.buf, view.len, 0)
        skip(&body, 8 if version >= THROTTLED else 4)
        topics = take32(&body)
        names = set() if topics > 1 else None
        for topic in range(topics):
            known = next_topic(&body, partitions, names, &count)
            if known is None:
                return None
            for i in range(count):
                if body.size - body.at < FETCHED_PARTITION_BYTES:
                    return None
                number = take32(&body)
                code = take16(&body)
                high_watermark = load64(body.data + body.at)
                body.at += 8
                log_start = take_added(&body, version)
                size = take32(&body)
                start = body.at
                skip(&body, size)
                partition = known.get(number)
                if body.at < 0 or partition is None:
                    return None
                found.append(partition)
                codes.append(code)
                marks.append(high_watermark)
                log_starts.append(log_start)
                sets.append(payload[start:body.at] if size else b"")
    finally:
        PyBuffer_Release(&view)
    if body.at < 0 or (len(found) > 1 and len(set(found)) != len(found)):
        return None
    return found, codes, marks, log_starts, sets
