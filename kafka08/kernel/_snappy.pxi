# Unpacks snappy. Part of _native.pyx; the docstrings are in _python_snappy.py.

cdef extern from "snappy.h" nogil:
    bint kafka08_snappy_unpack(
        const uint8_t* data, const uint8_t* data_end, uint8_t* output, size_t size
    )

cdef enum:
    XERIAL_VERSION_POSITION = 8
    XERIAL_HEADER_BYTES = 16
    XERIAL_VERSION = 1
    BLOCK_SIZE_BYTES = 4
    SIZE_BYTES_MAX = 5
    SNAPPY_MAX_RATIO = 22
    # From this size on another thread may run meanwhile.
    UNPACKED_GIL_RELEASE_BYTES = 64 << 10


cdef enum SnappyFault:
    SNAPPY_SOUND
    SNAPPY_VERSION
    SNAPPY_BLOCK
    SNAPPY_SIZE
    SNAPPY_ELEMENTS


cdef struct Snappy:
    # A walk over raw blocks: the current one's elements and unpacked size, and what lies behind it.
    const uint8_t* left
    const uint8_t* end
    bint xerial
    bint ended
    const uint8_t* elements
    const uint8_t* elements_end
    int64_t unpacked
    SnappyFault fault
    int32_t number  # the version or size that is wrong


cdef void begin_snappy(const uint8_t* data, Py_ssize_t size, Snappy* walk) noexcept nogil:
    memset(walk, 0, sizeof(Snappy))
    walk.left = data
    walk.end = data + size
    walk.xerial = size >= XERIAL_HEADER_BYTES and not memcmp(data, b"\x82SNAPPY\0", 8)
    if walk.xerial:
        walk.left += XERIAL_HEADER_BYTES
        walk.number = <int32_t>load32(data + XERIAL_VERSION_POSITION)
        if walk.number < XERIAL_VERSION:
            walk.fault = SNAPPY_VERSION


cdef bint next_block(Snappy* walk) noexcept nogil:
    # Move to the next block; False at the end or at a fault.
    cdef int32_t size
    if walk.fault != SNAPPY_SOUND or walk.ended:
        return False
    walk.elements = walk.left
    walk.elements_end = walk.end
    if walk.xerial:
        if walk.end - walk.left < BLOCK_SIZE_BYTES:
            return False
        size = <int32_t>load32(walk.left)
        walk.elements += BLOCK_SIZE_BYTES
        if size <= 0 or size > walk.end - walk.elements:
            walk.number = size
            walk.fault = SNAPPY_BLOCK
            return False
        walk.left = walk.elements_end = walk.elements + size
    else:
        walk.ended = True
    return read_unpacked_size(walk)


cdef bint read_unpacked_size(Snappy* walk) noexcept nogil:
    cdef const uint8_t* block = walk.elements
    cdef int place
    cdef uint8_t byte
    walk.unpacked = 0
    for place in range(SIZE_BYTES_MAX):
        if walk.elements == walk.elements_end:
            break
        byte = walk.elements[0]
        walk.elements += 1
        walk.unpacked |= <int64_t>(byte & 0x7f) << (7 * place)
        if byte < 0x80:
            if walk.unpacked > (walk.elements_end - block) * SNAPPY_MAX_RATIO:
                break
            if walk.unpacked > <int64_t>0xffffffff:
                break
            return True
    walk.fault = SNAPPY_SIZE
    return False


cdef void add_up_blocks(Snappy* walk, bint first_only, int64_t* count, int64_t* total) noexcept nogil:
    count[0] = total[0] = 0
    while next_block(walk):
        count[0] += 1
        total[0] += walk.unpacked
        if first_only:
            return


cdef void unpack_blocks(Snappy* walk, int64_t count, uint8_t* output, int64_t room) noexcept nogil:
    # Fill `output`. The data may have changed since its sizes were added up.
    while count and next_block(walk):
        if walk.unpacked > room or not kafka08_snappy_unpack(
            walk.elements, walk.elements_end, output, walk.unpacked
        ):
            walk.fault = SNAPPY_ELEMENTS
            return
        output += walk.unpacked
        room -= walk.unpacked
        count -= 1
    if walk.fault == SNAPPY_SOUND and (count or room):
        walk.fault = SNAPPY_ELEMENTS


cdef object snappy_error(Snappy* walk):
    if walk.fault == SNAPPY_VERSION:
        return ValueError(f"stream of version {walk.number}")
    if walk.fault == SNAPPY_BLOCK:
        return ValueError(f"block of {walk.number} bytes leaves the stream")
    if walk.fault == SNAPPY_SIZE:
        return ValueError("block does not begin with its size")
    return ValueError(f"block does not unpack to the {walk.unpacked} bytes of its size")


def unpack_snappy(data, int64_t max_bytes, bint first_only=False):
    cdef Py_buffer view
    cdef Snappy walk
    cdef int64_t count, total
    cdef uint8_t* output
    PyObject_GetBuffer(data, &view, PyBUF_SIMPLE)
    try:
        begin_snappy(<const uint8_t*>view.buf, view.len, &walk)
        add_up_blocks(&walk, first_only, &count, &total)
        if walk.fault != SNAPPY_SOUND:
            raise snappy_error(&walk)
        if total > max_bytes:
            return None
        unpacked = PyByteArray_FromStringAndSize(NULL, total)
        output = <uint8_t*>PyByteArray_AS_STRING(unpacked)
        begin_snappy(<const uint8_t*>view.buf, view.len, &walk)
        if total >= UNPACKED_GIL_RELEASE_BYTES:
            with nogil:
                unpack_blocks(&walk, count, output, total)
        else:
            unpack_blocks(&walk, count, output, total)
        if walk.fault != SNAPPY_SOUND:
            raise snappy_error(&walk)
    finally:
        PyBuffer_Release(&view)
    return unpacked
