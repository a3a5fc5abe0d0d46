# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
# cython: initializedcheck=False, embedsignature=True, freethreading_compatible=True
"""The compiled kernel: the functions of `_python.py`, where the docstrings are.

_formats.pxi   what the head of an entry says, in each message format
_sets.pxi      validation, numbering and recovery of sets, without decompression
_entries.pxi   reads and builds single entries
_records.pxi   reads the records of a batch (magic 2)
_validation.pxi  a leader's rules for messages from 0.9 on; sets timestamps in place
_conversion.pxi  converts messages between magic 0 and 1
_messages.pxi  iterates over the messages of a set or a stream, and decompresses wrappers
_columns.pxi   converts sets to Arrow buffers and back
_headers.pxi   headers of records as Arrow lists, and back
_committed.pxi  sets without the messages of aborted transactions
_compaction.pxi  the cleaner: the last offset of each key, and the messages to retain
_builder.pxi   sets that grow message by message
_producer.pxi  what the producers do for each message; murmur2
_fields.pxi    tuples of fields as bytes and back
_requests.pxi  reads Produce and Fetch requests for many partitions; writes their responses
_append.pxi    appends sets to the ends of segments, and copies them from there into responses
_search.pxi    finds entries by offset and by timestamp, in sets and in segments
_snappy.pxi    unpacks snappy

The kernel holds the buffer of all data while it reads it, reads each length once, and checks it
against the remaining data before use. Loops over large data run without the GIL.

A free-threaded Python may import it. Methods that several threads may call on one object are a
critical section of that object (with a GIL this locks nothing): an append to a SetBuilder is atomic,
and an iterator that threads share by mistake corrupts no memory.
"""

from cpython.buffer cimport (
    PyBUF_SIMPLE, PyBUF_WRITABLE, PyBuffer_Release, PyObject_GetBuffer,
)
from cpython.bytearray cimport (
    PyByteArray_AS_STRING, PyByteArray_FromStringAndSize, PyByteArray_Resize,
)
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.exc cimport PyErr_SetFromErrno
from cpython.long cimport PyLong_AsLongLong, PyLong_Check
from cpython.object cimport PyObject
from cpython.pythread cimport PyThread_get_thread_ident
from cpython.unicode cimport PyUnicode_DecodeUTF8
from libc.stdint cimport (
    INT32_MAX, INT64_MAX, INT64_MIN, int16_t, int32_t, int64_t, uint8_t, uint32_t, uint64_t,
)
from libc.errno cimport EINTR, errno
from libc.math cimport INFINITY
from libc.stdlib cimport calloc, free, malloc, realloc
from libc.string cimport memcmp, memcpy, memmove, memset

from time import monotonic
from types import GenericAlias

cimport cython

from kafka08.format.v2 import COUNT, HEADERS, LENGTH, REST, SHORT, VARINT
from kafka08.kernel.types import (
    DEFAULT_MAX_COLUMN_BYTES, DEFAULT_MAX_ROWS, BadTimestamp, Columns, Converted, CorruptMessage,
    EntryTooLarge, HeaderColumns, RecoverResult, Retained, Run, ScanResult, UnknownCodec, Unpacker,
)

cdef extern from "crc32.h" nogil:
    uint32_t kafka08_crc32(uint32_t crc, const uint8_t* data, size_t size)
    const char* kafka08_crc32_select(const char* wanted)

cdef extern from "unistd.h" nogil:
    ssize_t pwrite(int descriptor, const void* data, size_t size, int64_t position)
    ssize_t pread(int descriptor, void* data, size_t size, int64_t position)

cdef extern from *:
    """
    #ifdef Py_GIL_DISABLED
    #define kafka08_fence() __atomic_thread_fence(__ATOMIC_SEQ_CST)
    #else
    #define kafka08_fence() ((void)0)
    #endif

    #include <time.h>
    #ifdef __linux__
    #define KAFKA08_READS_MONOTONIC 1
    static double kafka08_monotonic(void) {
        struct timespec now;
        clock_gettime(CLOCK_MONOTONIC, &now);
        return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
    }
    #else
    #define KAFKA08_READS_MONOTONIC 0
    #define kafka08_monotonic() 0.0
    #endif
    """
    void kafka08_fence() nogil  # between a store and a load that another thread does in reverse
    bint KAFKA08_READS_MONOTONIC  # whether the next function is Python's time.monotonic
    double kafka08_monotonic() nogil

cdef extern from *:
    const char* PyUnicode_AsUTF8AndSize(object text, Py_ssize_t* size) except NULL
    bint unlikely(bint condition) nogil  # Cython's macro for branch prediction

INTERFACE = 46
NAME = "native"

kafka08_crc32_select(NULL)

cdef enum:
    # The names and meanings are those of types.py and _python_sets.py.
    ENTRY_HEADER_BYTES = 12
    MIN_MESSAGE_BYTES = 14
    CRC_END = 16
    MAGIC_POSITION = 16
    ATTRIBUTES_POSITION = 17
    FIELDS_POSITION = 18
    MAX_NESTING = 16
    CODEC_MASK = 7
    MAX_CODEC = 3
    MAX_RECORDS_CODEC = 4
    MAX_MAGIC = 1
    OTHER_MAGIC_BIT = 128
    TIMESTAMP_POSITION = 18
    TIMESTAMP_BYTES = 8
    TIMESTAMP_END = 26
    TIMESTAMP_TYPE_BIT = 8
    NO_TIMESTAMP = -1
    NO_TIMESTAMP_TYPE = -1
    LOG_APPEND_TIME = 1
    MAX_SET_BYTES = 0x7fffffff
    STRING_BYTES_MAX = 0x7fff
    REQUEST_VERSION = 2
    REQUEST_CORRELATION_ID = 4
    REQUEST_CLIENT = 8
    FETCH_PARTITION_BYTES = 16
    PRODUCED_BYTES = 14
    FETCHED_PARTITION_BYTES = 18
    THROTTLED = 1
    TIMED_PRODUCE = 2
    TRANSACTIONAL_PRODUCE = 3
    LIMITED_FETCH = 3
    RECORDS_FETCH = 4
    LOG_START_FETCH = 5
    READ_COMMITTED = 1
    INDEX_ENTRY_BYTES = 8
    TIME_ENTRY_BYTES = 12
    SEARCH_BYTES = 16 << 10
    # Larger data is walked without the GIL. For smaller data, releasing the GIL and taking it again
    # (another thread may keep it for a whole switch interval) would cost more than the walk.
    GIL_RELEASE_BYTES = 256 << 10


def select_crc32(name=None):
    """Select the fastest CRC-32 for this processor, or (for tests) the one with this name, or
    "portable" if the processor does not support that. Returns the name of the selected one. With a
    name, CRC-32C is computed by tables."""
    cdef bytes wanted
    kafka08_crc32c_select(name is not None)
    if name is None:
        return kafka08_crc32_select(NULL).decode()
    wanted = name.encode()
    return kafka08_crc32_select(wanted).decode()


def crc32(data, uint32_t value=0):
    cdef Py_buffer view
    PyObject_GetBuffer(data, &view, PyBUF_SIMPLE)
    try:
        if view.len >= GIL_RELEASE_BYTES:
            with nogil:
                value = kafka08_crc32(value, <const uint8_t*>view.buf, view.len)
        else:
            value = kafka08_crc32(value, <const uint8_t*>view.buf, view.len)
    finally:
        PyBuffer_Release(&view)
    return value


def new_buffer(Py_ssize_t size):
    return PyByteArray_FromStringAndSize(NULL, size)


cdef inline uint32_t load32(const uint8_t* at) noexcept nogil:
    return (<uint32_t>at[0] << 24) | (<uint32_t>at[1] << 16) | (<uint32_t>at[2] << 8) | at[3]


cdef inline int64_t load64(const uint8_t* at) noexcept nogil:
    return <int64_t>((<uint64_t>load32(at) << 32) | load32(at + 4))


cdef inline int64_t add64(int64_t a, int64_t b) noexcept nogil:
    return <int64_t>(<uint64_t>a + <uint64_t>b)


cdef inline void store32(uint8_t* at, uint32_t value) noexcept nogil:
    at[0] = <uint8_t>(value >> 24)
    at[1] = <uint8_t>(value >> 16)
    at[2] = <uint8_t>(value >> 8)
    at[3] = <uint8_t>value


cdef inline void store64(uint8_t* at, int64_t value) noexcept nogil:
    store32(at, <uint32_t>(<uint64_t>value >> 32))
    store32(at + 4, <uint32_t>value)


include "_formats.pxi"
include "_sets.pxi"
include "_entries.pxi"
include "_records.pxi"
include "_validation.pxi"
include "_conversion.pxi"
include "_messages.pxi"
include "_columns.pxi"
include "_headers.pxi"
include "_committed.pxi"
include "_compaction.pxi"
include "_builder.pxi"
include "_producer.pxi"
include "_requests.pxi"
include "_fields.pxi"
include "_append.pxi"
include "_search.pxi"
include "_snappy.pxi"
