# The cleaner's offset map. Part of _native.pyx; the docstrings are in _python_compaction.py.

cdef extern from "md5.h" nogil:
    void kafka08_md5(const uint8_t* data, size_t size, uint8_t* digest)

cdef enum:
    MD5_BYTES = 16
    # The number of probes that use parts of the digest; later ones go from slot to slot.
    DIGEST_PROBES = 13


cdef struct Slot:
    uint8_t digest[MD5_BYTES]
    int64_t next_offset  # the offset plus one: 0 marks a free slot


cdef struct Retention:
    int64_t written
    int64_t read
    int64_t kept
    int64_t unkeyed


cdef bint next_entry(const uint8_t* data, Py_ssize_t size, Walk* walk) noexcept nogil:
    # Whether a complete entry starts at walk.size; sets its offset and size, or the fault.
    cdef const uint8_t* entry = data + walk.size
    if size - walk.size < ENTRY_HEADER_BYTES:
        return False
    walk.offset = load64(entry)
    walk.message_size = <int32_t>load32(entry + 8)
    if walk.message_size < MIN_MESSAGE_BYTES:
        walk.fault = BAD_SIZE
        return False
    return walk.message_size <= size - walk.size - ENTRY_HEADER_BYTES


@cython.final
cdef class OffsetMap:
    cdef Slot* table
    cdef readonly int64_t slots
    cdef readonly int64_t capacity
    cdef int64_t count

    def __cinit__(self, int64_t slots, int64_t capacity):
        if not 0 < capacity < slots <= MAX_SET_BYTES:
            raise ValueError(f"a map of {slots} slots cannot hold {capacity} keys")
        self.slots = slots
        self.capacity = capacity
        # The system provides a page only when the first key is written to it.
        self.table = <Slot*>calloc(slots, sizeof(Slot))
        if self.table == NULL:
            raise MemoryError

    def __dealloc__(self):
        free(self.table)

    def __len__(self):
        return self.count

    cdef Slot* find(self, const uint8_t* key, int64_t length, uint8_t* digest) noexcept nogil:
        # The slot of a key, or the free slot for it. There is always a free slot.
        cdef int64_t attempt = 0
        cdef int64_t probe = 0
        cdef Slot* slot
        kafka08_md5(key, length, digest)
        while True:
            probe = load32(digest + attempt) if attempt < DIGEST_PROBES else probe + 1
            slot = &self.table[(probe & 0x7fffffff) % self.slots]
            if slot.next_offset == 0 or memcmp(slot.digest, digest, MD5_BYTES) == 0:
                return slot
            attempt += 1

    cdef int64_t add_set(
        self, const uint8_t* data, Py_ssize_t size, int64_t from_offset, Walk* walk
    ) noexcept nogil:
        cdef const uint8_t* entry
        cdef uint8_t digest[MD5_BYTES]
        cdef Fields fields
        cdef Slot* slot
        while next_entry(data, size, walk):
            entry = data + walk.size
            walk.size += ENTRY_HEADER_BYTES + walk.message_size
            if (
                walk.offset < from_offset
                or read_fields(entry, walk.message_size, &fields) != FIELDS_SOUND
                or fields.key_length < 0
            ):
                continue
            slot = self.find(fields.key, fields.key_length, digest)
            if slot.next_offset == 0:
                if self.count == self.capacity:
                    return walk.offset
                self.count += 1
                memcpy(slot.digest, digest, MD5_BYTES)
            slot.next_offset = walk.offset + 1
        return -1

    def add(self, data, int64_t from_offset=0):
        cdef Py_buffer view
        cdef Walk walk
        cdef int64_t refused
        if from_offset < 0:
            raise ValueError(f"from_offset {from_offset} is negative")
        PyObject_GetBuffer(data, &view, PyBUF_SIMPLE)
        try:
            memset(&walk, 0, sizeof(Walk))
            with nogil:
                refused = self.add_set(<const uint8_t*>view.buf, view.len, from_offset, &walk)
            if walk.fault != SOUND:
                raise walk_error(&walk, 0)
        finally:
            PyBuffer_Release(&view)
        return refused

    cdef bint survives(
        self, const uint8_t* entry, Walk* walk, bint keep_tombstones, Retention* found
    ) noexcept nogil:
        cdef uint8_t digest[MD5_BYTES]
        cdef Fields fields
        if read_fields(entry, walk.message_size, &fields) != FIELDS_SOUND:
            return True
        if fields.key_length < 0:
            found.unkeyed += 1
            return False
        if fields.value_length < 0 and not keep_tombstones:
            return False
        # A free slot has next_offset 0, so every offset passes.
        return walk.offset >= self.find(fields.key, fields.key_length, digest).next_offset - 1

    cdef void retain_set(
        self, const uint8_t* data, Py_ssize_t size, uint8_t* output, bint keep_tombstones,
        Walk* walk, Retention* found,
    ) noexcept nogil:
        cdef const uint8_t* entry
        cdef int64_t entry_size
        while next_entry(data, size, walk):
            entry = data + walk.size
            entry_size = ENTRY_HEADER_BYTES + walk.message_size
            if self.survives(entry, walk, keep_tombstones, found):
                memcpy(output + found.written, entry, entry_size)
                found.written += entry_size
                found.kept += 1
            found.read += 1
            walk.size += entry_size

    def retain(self, data, output, bint keep_tombstones):
        cdef Py_buffer view
        cdef Py_buffer target
        cdef Walk walk
        cdef Retention found
        PyObject_GetBuffer(data, &view, PyBUF_SIMPLE)
        try:
            PyObject_GetBuffer(output, &target, PyBUF_WRITABLE)
            try:
                if target.len < view.len:
                    raise ValueError("the output is smaller than the data")
                memset(&walk, 0, sizeof(Walk))
                memset(&found, 0, sizeof(Retention))
                with nogil:
                    self.retain_set(
                        <const uint8_t*>view.buf, view.len, <uint8_t*>target.buf,
                        keep_tombstones, &walk, &found,
                    )
                if walk.fault != SOUND:
                    raise walk_error(&walk, 0)
            finally:
                PyBuffer_Release(&target)
        finally:
            PyBuffer_Release(&view)
        return Retained(found.written, found.read, found.kept, found.unkeyed)
