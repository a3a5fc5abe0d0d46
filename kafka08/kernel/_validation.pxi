# A leader's validation of produced messages from 0.9 on; numbers and stamps them in place. Part of
# _native.pyx; the docstrings are in _python_validation.py.

cdef struct RuleSet:
    # types.Rules, and the broker's time.
    int magic
    bint log_append_time
    int64_t max_difference_ms
    bint keys_required
    int64_t now_ms


cdef struct Refusal:
    # The first message that breaks a rule.
    Fault fault
    Py_ssize_t position
    int64_t offset
    int64_t timestamp_ms
    int magic


cdef RuleSet read_rules(object rules, int64_t now_ms) except *:
    cdef RuleSet read
    read.magic, read.log_append_time, read.max_difference_ms, read.keys_required = rules
    read.now_ms = now_ms
    return read


cdef inline Fault check_key(
    const uint8_t* entry, int64_t message_size, const RuleSet* rules
) noexcept nogil:
    cdef int64_t at = FIELDS_POSITION
    if not rules.keys_required:
        return SOUND
    if entry[MAGIC_POSITION]:
        at += TIMESTAMP_BYTES
    if ENTRY_HEADER_BYTES + message_size - at < 4:
        return BAD_KEY
    return NO_KEY if <int32_t>load32(entry + at) < 0 else SOUND


cdef inline Fault check_time(const uint8_t* entry, const RuleSet* rules) noexcept nogil:
    cdef int64_t timestamp_ms
    cdef uint64_t difference
    if rules.log_append_time or rules.max_difference_ms == INT64_MAX:
        return SOUND
    timestamp_ms = message_timestamp(entry)
    if timestamp_ms >= rules.now_ms:
        difference = <uint64_t>timestamp_ms - <uint64_t>rules.now_ms
    else:
        difference = <uint64_t>rules.now_ms - <uint64_t>timestamp_ms
    if rules.max_difference_ms < 0 or difference > <uint64_t>rules.max_difference_ms:
        return BAD_TIME
    return SOUND


cdef inline Fault check_type(const uint8_t* entry) noexcept nogil:
    return BAD_TIME_TYPE if entry[MAGIC_POSITION] == 1 and timestamp_type_of(entry) else SOUND


cdef inline Fault check_rules(
    const uint8_t* entry, int64_t message_size, const RuleSet* rules
) noexcept nogil:
    # The fault of a plain message that has the topic's magic.
    cdef Fault fault = check_key(entry, message_size, rules)
    if fault == SOUND and rules.magic:
        fault = check_time(entry, rules)
        if fault == SOUND:
            fault = check_type(entry)
    return fault


cdef void refuse(
    Fault fault, Py_ssize_t position, const uint8_t* entry, Refusal* refusal
) noexcept nogil:
    refusal.fault = fault
    refusal.position = position
    refusal.offset = load64(entry)
    refusal.timestamp_ms = message_timestamp(entry)
    refusal.magic = entry[MAGIC_POSITION]


cdef object refusal_error(const Refusal* refusal, const RuleSet* rules, int wrapper_magic):
    if refusal.fault == BAD_TIME:
        return BadTimestamp(
            refusal.position, refusal.timestamp_ms,
            f"more than {rules.max_difference_ms} ms from the broker's time {rules.now_ms}",
        )
    if refusal.fault == BAD_TIME_TYPE:
        return BadTimestamp(
            refusal.position, refusal.timestamp_ms,
            "a producer may not send a timestamp of type LogAppendTime",
        )
    if refusal.fault == BAD_MAGIC:
        reason = f"magic {refusal.magic} is not known"
    elif refusal.fault == BAD_WRAPPER_MAGIC:
        reason = f"magic {refusal.magic} inside a compressed message of magic {wrapper_magic}"
    elif refusal.fault == NESTED:
        reason = "compressed message inside a compressed one"
    elif refusal.fault == NO_KEY:
        reason = "a message of a compacted topic needs a key"
    else:
        reason = "key or value extends beyond the message"
    return CorruptMessage(refusal.position, refusal.offset, reason)


cdef void set_time(
    uint8_t* entry, int64_t message_size, int64_t timestamp_ms, bint log_append_time
) noexcept nogil:
    cdef uint8_t attributes = entry[ATTRIBUTES_POSITION] & <uint8_t>~TIMESTAMP_TYPE_BIT
    if log_append_time:
        attributes |= TIMESTAMP_TYPE_BIT
    entry[ATTRIBUTES_POSITION] = attributes
    store64(entry + TIMESTAMP_POSITION, timestamp_ms)
    put_crc(entry, message_size)


cdef bint take_in(
    uint8_t* data, Py_ssize_t size, int64_t base_offset, int64_t max_entry_bytes,
    const RuleSet* rules, Walk* walk, Refusal* refusal,
) noexcept nogil:
    # Whether all entries are plain and have the topic's magic. Numbers the entries before the first
    # that is not; wrappers keep their offsets, from which those of the inner messages follow.
    cdef uint8_t* entry = data
    cdef uint8_t* end = data + size
    cdef int64_t offset, message_size
    cdef bint in_place = True
    cdef Fault fault
    begin_walk(walk)
    memset(refusal, 0, sizeof(Refusal))
    while end - entry >= ENTRY_HEADER_BYTES:
        walk.offset = offset = load64(entry)
        walk.message_size = message_size = <int32_t>load32(entry + 8)
        if message_size < MIN_MESSAGE_BYTES:
            walk.fault = BAD_SIZE
            break
        if message_size > end - entry - ENTRY_HEADER_BYTES:
            break
        if message_size + ENTRY_HEADER_BYTES > max_entry_bytes:
            walk.fault = OVERSIZE
            break
        if not check_crc(entry, message_size, &walk.stored_crc, &walk.computed_crc):
            walk.fault = BAD_CRC
            break
        if entry[MAGIC_POSITION] != rules.magic or entry[ATTRIBUTES_POSITION] & CODEC_MASK:
            in_place = False
        if in_place:
            if refusal.fault == SOUND:
                fault = check_rules(entry, message_size, rules)
                if fault != SOUND:
                    refuse(fault, walk.size, entry, refusal)
            offset = base_offset + walk.count
            store64(entry, offset)
        if note_message(entry, offset, message_size, walk) != SOUND:
            walk.fault = BAD_CODEC
            break
        entry += ENTRY_HEADER_BYTES + message_size
    return in_place and walk.fault == SOUND


cdef void stamp_all(uint8_t* entry, const RuleSet* rules, Walk* walk) noexcept nogil:
    # Set the append time of every entry that the walk counted.
    cdef uint8_t* end = entry + walk.size
    cdef int64_t message_size
    while entry < end:
        message_size = <int32_t>load32(entry + 8)
        set_time(entry, message_size, rules.now_ms, True)
        entry += ENTRY_HEADER_BYTES + message_size
    if walk.count:
        walk.max_timestamp_ms = rules.now_ms
        walk.max_timestamp_offset = walk.first_offset


cdef void take_in_and_stamp(
    uint8_t* data, Py_ssize_t size, int64_t base_offset, int64_t max_entry_bytes,
    const RuleSet* rules, Walk* walk, Refusal* refusal,
) noexcept nogil:
    if not take_in(data, size, base_offset, max_entry_bytes, rules, walk, refusal):
        refusal.fault = SOUND
    elif refusal.fault == SOUND and rules.log_append_time and rules.magic:
        stamp_all(data, rules, walk)


def validate_and_stamp(
    data, int64_t base_offset, int64_t max_entry_bytes, rules, int64_t now_ms
):
    cdef Py_buffer view
    cdef Walk walk
    cdef Refusal refusal
    cdef RuleSet rule_set = read_rules(rules, now_ms)
    PyObject_GetBuffer(data, &view, PyBUF_WRITABLE)
    try:
        check_base_offset(base_offset, view.len)
        if view.len >= GIL_RELEASE_BYTES:
            with nogil:
                take_in_and_stamp(
                    <uint8_t*>view.buf, view.len, base_offset, max_entry_bytes, &rule_set, &walk,
                    &refusal,
                )
        else:
            take_in_and_stamp(
                <uint8_t*>view.buf, view.len, base_offset, max_entry_bytes, &rule_set, &walk,
                &refusal,
            )
    finally:
        PyBuffer_Release(&view)
    if walk.fault != SOUND:
        raise walk_error(&walk, max_entry_bytes)
    if refusal.fault != SOUND:
        raise refusal_error(&refusal, &rule_set, -1)
    return summary_of(&walk)


cdef Fault check_message(
    const uint8_t* entry, int64_t message_size, const RuleSet* rules, int wrapper_magic,
    bint check_unstamped,
) noexcept nogil:
    cdef int magic = entry[MAGIC_POSITION]
    cdef Fault fault
    if magic > MAX_MAGIC:
        return BAD_MAGIC
    if wrapper_magic != -1 and wrapper_magic != magic:
        return BAD_WRAPPER_MAGIC
    if entry[ATTRIBUTES_POSITION] & CODEC_MASK:
        return NESTED
    fault = check_key(entry, message_size, rules)
    if fault == SOUND and (check_unstamped or (magic and rules.magic)):
        fault = check_time(entry, rules)
        if fault == SOUND and wrapper_magic == -1:
            fault = check_type(entry)
    return fault


cdef void check_all(
    const uint8_t* data, Py_ssize_t size, const RuleSet* rules, int wrapper_magic,
    bint check_unstamped, Walk* walk, Refusal* refusal,
) noexcept nogil:
    cdef const uint8_t* entry
    begin_walk(walk)
    memset(refusal, 0, sizeof(Refusal))
    while next_entry(data, size, walk):
        entry = data + walk.size
        refusal.fault = check_message(
            entry, walk.message_size, rules, wrapper_magic, check_unstamped
        )
        if refusal.fault != SOUND:
            refuse(refusal.fault, walk.size, entry, refusal)
            return
        if not check_crc(entry, walk.message_size, &walk.stored_crc, &walk.computed_crc):
            walk.fault = BAD_CRC
            return
        note_message(entry, walk.offset, walk.message_size, walk)


def check_messages(
    data, rules, int64_t now_ms, int wrapper_magic=-1, bint check_unstamped=False
):
    cdef Py_buffer view
    cdef Walk walk
    cdef Refusal refusal
    cdef RuleSet rule_set = read_rules(rules, now_ms)
    PyObject_GetBuffer(data, &view, PyBUF_SIMPLE)
    try:
        with nogil:
            check_all(
                <const uint8_t*>view.buf, view.len, &rule_set, wrapper_magic, check_unstamped,
                &walk, &refusal,
            )
    finally:
        PyBuffer_Release(&view)
    if refusal.fault != SOUND:
        raise refusal_error(&refusal, &rule_set, wrapper_magic)
    if walk.fault != SOUND:
        raise walk_error(&walk, 0)
    return summary_of(&walk)


def set_wrapper(data, int64_t offset, int64_t timestamp_ms, bint log_append_time):
    cdef Py_buffer view
    cdef Walk walk
    cdef uint8_t* entry
    PyObject_GetBuffer(data, &view, PyBUF_WRITABLE)
    try:
        begin_walk(&walk)
        entry = <uint8_t*>view.buf
        if next_entry(entry, view.len, &walk) and entry[MAGIC_POSITION] == 1:
            store64(entry, offset)
            if (
                timestamp_type_of(entry) != log_append_time
                or message_timestamp(entry) != timestamp_ms
            ):
                set_time(entry, walk.message_size, timestamp_ms, log_append_time)
            return
    finally:
        PyBuffer_Release(&view)
    if walk.fault != SOUND:
        raise walk_error(&walk, 0)
    raise CorruptMessage(0, -1, "there is no complete message of magic 1")


def number_batch(
    data, int64_t base_offset, int64_t max_entry_bytes, rules, int64_t now_ms, int32_t leader_epoch,
    unpack=None,
):
    cdef Py_buffer view, unpacked
    cdef const uint8_t* records
    cdef RuleSet rule_set = read_rules(rules, now_ms)
    cdef Walk walk
    cdef bint numbered
    PyObject_GetBuffer(data, &view, PyBUF_WRITABLE)
    try:
        if not check_batch(<uint8_t*>view.buf, view.len, base_offset, max_entry_bytes, &walk):
            return None
        if not walk.codec:
            numbered = number_records(
                <uint8_t*>view.buf, view.len, <uint8_t*>view.buf + RECORDS_HEAD_BYTES,
                view.len - RECORDS_HEAD_BYTES, base_offset, &rule_set, leader_epoch, &walk,
            )
        elif unpack is None:
            return None
        else:
            inner = unpack(walk.codec, memoryview(data)[RECORDS_HEAD_BYTES:])
            PyObject_GetBuffer(inner, &unpacked, PyBUF_SIMPLE)
            try:
                numbered = number_records(
                    <uint8_t*>view.buf, view.len, <const uint8_t*>unpacked.buf, unpacked.len,
                    base_offset, &rule_set, leader_epoch, &walk,
                )
            finally:
                PyBuffer_Release(&unpacked)
        return summary_of(&walk) if numbered else None
    finally:
        PyBuffer_Release(&view)


cdef bint check_batch(
    const uint8_t* data, Py_ssize_t size, int64_t base_offset, int64_t max_entry_bytes, Walk* walk
) noexcept:
    # Whether the set is one batch that a producer may send, by its head and its CRC.
    cdef int64_t message_size = size - ENTRY_HEADER_BYTES, count
    if size > max_entry_bytes or not is_one_batch(data, size):
        return False
    count = <int32_t>load32(data + RECORDS_COUNT)
    if (
        load64(data)
        or data[RECORDS_ATTRIBUTES + 1] & (TIMESTAMP_TYPE_BIT | CONTROL_BIT)
        or count <= 0
        or <int32_t>load32(data + RECORDS_LAST_DELTA) != count - 1
        or not 0 <= base_offset <= INT64_MAX - count
        or (
            <int64_t>load64(data + RECORDS_PRODUCER) >= 0
            and <int32_t>load32(data + RECORDS_SEQUENCE) < 0
        )
    ):
        return False
    begin_walk(walk)
    walk.count = count
    walk.codec = data[RECORDS_ATTRIBUTES + 1] & CODEC_MASK
    if size < GIL_RELEASE_BYTES:
        return check_entry_crc(data, message_size, &walk.stored_crc, &walk.computed_crc)
    with nogil:
        return check_entry_crc(data, message_size, &walk.stored_crc, &walk.computed_crc)


cdef bint number_records(
    uint8_t* data, Py_ssize_t size, const uint8_t* records, Py_ssize_t records_size,
    int64_t base_offset, const RuleSet* rules, int32_t leader_epoch, Walk* walk,
) noexcept:
    # Whether a leader takes these records, those of the batch that was checked; then it is numbered.
    cdef int64_t newest_ms, first_ms = load64(data + RECORDS_FIRST_TIME)
    cdef bint sound
    if records_size < GIL_RELEASE_BYTES:
        sound = check_records(records, records_size, first_ms, walk.count, rules, &newest_ms)
    else:
        with nogil:
            sound = check_records(records, records_size, first_ms, walk.count, rules, &newest_ms)
    if not sound:
        return False
    if rules.log_append_time:
        newest_ms = rules.now_ms
        data[RECORDS_ATTRIBUTES + 1] |= TIMESTAMP_TYPE_BIT
    if rules.log_append_time or <int64_t>load64(data + RECORDS_MAX_TIME) != newest_ms:
        store64(data + RECORDS_MAX_TIME, newest_ms)
        store32(
            data + RECORDS_CRC,
            kafka08_crc32c(0, data + RECORDS_CRC_END, size - RECORDS_CRC_END),
        )
    store64(data, base_offset)
    store32(data + RECORDS_EPOCH, <uint32_t>leader_epoch)
    walk.size = walk.largest_entry = size
    walk.first_offset = base_offset
    walk.last_offset = base_offset + walk.count - 1
    walk.magics = 1 << RECORDS_MAGIC
    walk.newer = walk.count
    note_timestamp(newest_ms, walk.last_offset, walk)
    return True


cdef bint check_records(
    const uint8_t* records, Py_ssize_t size, int64_t first_ms, int64_t count,
    const RuleSet* rules, int64_t* newest_ms,
) noexcept nogil:
    # Whether the records are as they must be; finds their largest timestamp.
    cdef const uint8_t* at = records
    cdef const uint8_t* end = records + size
    cdef int64_t record_bytes, delta, timestamp_ms, i
    cdef uint64_t difference
    cdef Fields fields
    newest_ms[0] = NO_TIMESTAMP
    for i in range(count):
        if read_record(at, end, &record_bytes, &delta, &fields) != FIELDS_SOUND or delta != i:
            return False
        if rules.keys_required and fields.key_length < 0:
            return False
        timestamp_ms = add64(first_ms, fields.timestamp_ms)
        if timestamp_ms > newest_ms[0]:
            newest_ms[0] = timestamp_ms
        if timestamp_ms != NO_TIMESTAMP and not rules.log_append_time:
            if timestamp_ms >= rules.now_ms:
                difference = <uint64_t>timestamp_ms - <uint64_t>rules.now_ms
            else:
                difference = <uint64_t>rules.now_ms - <uint64_t>timestamp_ms
            if rules.max_difference_ms < 0 or difference > <uint64_t>rules.max_difference_ms:
                return False
        at += record_bytes
    return at == end
