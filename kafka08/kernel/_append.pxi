# Appends the sets of Produce requests to their logs. Part of _native.pyx; the docstrings are in
# _python_append.py.

cdef struct Scratch:
    # Memory for converted sets, kept until the end of a request.
    uint8_t* data
    int64_t size


cdef class IndexTail:
    cdef public int64_t base_offset, entries, capacity, allocated, last_offset, last_position
    cdef public object view


cdef class SegmentTail:
    cdef public int64_t base_offset, size, end_offset, tail_offset, tail_position
    cdef public int64_t bytes_since_index
    cdef public int64_t created_ms, first_ms, max_timestamp_ms, max_timestamp_offset
    cdef public int64_t max_entry_bytes, segment_bytes, index_interval_bytes, age_max_ms
    cdef public bint takes_plain_sets, is_full, index_is_due
    cdef public int descriptor
    cdef public int32_t min_in_sync
    cdef public object rules, read, write, index_tail


cdef class LeaderState:
    cdef public object topic_partition, log
    cdef public dict followers
    cdef public tuple isr, maximal_isr
    cdef public bint is_leader, is_internal, is_queued
    cdef public int32_t reached_in_sync
    cdef public int64_t high_watermark, high_watermark_max, messages_in, bytes_in, bytes_out
    cdef public int64_t produce_requests, fetch_requests

    def has_enough_in_sync(self):
        return enough_in_sync(self, <SegmentTail?>self.log.active_segment)

    def maybe_raise_high_watermark(self):
        return raise_high_watermark(self, <SegmentTail?>self.log.active_segment)

    def set_high_watermark(self, int64_t wanted):
        put_high_watermark(self, <SegmentTail?>self.log.active_segment, wanted)

    def record_follower_fetch(self, int32_t broker_id, int64_t offset, double now):
        cdef FollowerReplica follower = <FollowerReplica?>self.followers[broker_id]
        cdef int64_t log_end_offset = offset
        if self.log is not None:
            log_end_offset = (<SegmentTail?>self.log.active_segment).end_offset
        if offset >= log_end_offset:
            follower.last_caught_up = now
        elif follower.leader_log_end != UNKNOWN_LOG_END and offset >= follower.leader_log_end:
            follower.last_caught_up = follower.last_fetch
        follower.leader_log_end = log_end_offset
        follower.log_end_offset = offset
        follower.last_fetch = now
        if offset <= self.high_watermark or not self.is_leader:
            return False
        return (<object>self).maybe_raise_high_watermark()


cdef class FollowerReplica:
    cdef public int32_t broker_id
    cdef public double last_fetch, last_caught_up
    cdef public int64_t log_end_offset, leader_log_end

    def __init__(self, int32_t broker_id, double now):
        self.broker_id = broker_id
        self.last_fetch = self.last_caught_up = now
        self.log_end_offset = self.leader_log_end = UNKNOWN_LOG_END


def record_fetches(list partitions, list offsets, int32_t broker_id, double now):
    cdef LeaderState partition
    cdef Py_ssize_t i
    cdef list moved = [], raised = [], outside = []
    if len(offsets) != len(partitions):
        raise ValueError("as many offsets as partitions")
    for i in range(len(partitions)):
        partition = <LeaderState?>partitions[i]
        offset = offsets[i]
        if (<FollowerReplica?>partition.followers[broker_id]).log_end_offset != offset:
            moved.append(partition.topic_partition)
        if partition.record_follower_fetch(broker_id, offset, now):
            raised.append(partition.topic_partition)
        if broker_id not in partition.isr:
            outside.append(partition)
    return moved, raised, outside


cdef bint raise_high_watermark(LeaderState partition, SegmentTail tail) except -1:
    cdef int64_t lowest = min(tail.end_offset, partition.high_watermark_max)
    cdef FollowerReplica follower
    if len(partition.maximal_isr) > 1:
        for broker_id in partition.maximal_isr:
            found = partition.followers.get(broker_id)
            if found is not None:
                follower = <FollowerReplica?>found
                lowest = min(lowest, follower.log_end_offset)
    if lowest <= partition.high_watermark:
        return False
    partition.high_watermark = lowest
    return True


cdef inline void put_high_watermark(LeaderState partition, SegmentTail tail, int64_t wanted):
    partition.high_watermark = min(tail.end_offset, wanted)


cdef inline bint enough_in_sync(LeaderState partition, SegmentTail tail):
    cdef int32_t least = tail.min_in_sync
    return len(partition.isr) >= (least if least >= 0 else partition.reached_in_sync)


def append_produced(payload, dict partitions, int64_t now_ms, Py_ssize_t count_max):
    cdef Py_buffer view
    cdef Body body
    cdef int32_t acks, timeout_ms
    cdef Py_ssize_t i, start, count
    cdef SetPlace* places = NULL
    cdef Scratch scratch
    cdef LeaderState partition
    cdef SegmentTail tail
    cdef list found = [], base_offsets = [], unappended = [], due = []
    cdef dict pending = {}
    cdef bytes response = None
    memset(&scratch, 0, sizeof(Scratch))
    PyObject_GetBuffer(payload, &view, PyBUF_WRITABLE)
    try:
        open_body(&body, &view)
        acks = take16(&body)
        timeout_ms = take32(&body)
        if body.at < 0 or not -1 <= acks <= 1:
            return None
        places = <SetPlace*>malloc(max(count_max, 1) * sizeof(SetPlace))
        if places == NULL:
            raise MemoryError
        count = find_sets(&body, partitions, found, places, count_max)
        if count <= 0:
            return None
        for i in range(count):
            partition = <LeaderState?>found[i]
            places[i].base_offset = -1
            if not partition.is_internal:
                append_at(partition, payload, &view, &places[i], acks, now_ms, &scratch)
                if places[i].base_offset >= 0:
                    tail = <SegmentTail?>partition.log.active_segment
                    if tail.index_is_due:
                        due.append(tail)
            base_offsets.append(places[i].base_offset)
            if places[i].base_offset < 0:
                start = places[i].start
                unappended.append((i, payload[start : start + places[i].size]))
        if not unappended:
            response = produced_frame(&view, places, NULL, count)
            if acks < 0:
                note_pending(found, pending)
    finally:
        free(scratch.data)
        free(places)
        PyBuffer_Release(&view)
    return acks, timeout_ms, found, base_offsets, unappended, due, response, pending


cdef int note_pending(list found, dict pending) except -1:
    cdef LeaderState partition
    cdef SegmentTail tail
    for item in found:
        partition = <LeaderState>item
        tail = <SegmentTail>partition.log.active_segment
        if partition.high_watermark < tail.end_offset:
            pending[partition.topic_partition] = tail.end_offset
    return 0


cdef Py_ssize_t find_sets(
    Body* body, dict partitions, list found, SetPlace* places, Py_ssize_t count_max
) except -2:
    # The number of sets in the request; -1 if it has a partition that the kernel does not append to.
    cdef int32_t topics, count, number, topic, i
    cdef Py_ssize_t n = 0
    cdef dict known
    cdef set names
    topics = take32(body)
    names = set() if topics > 1 else None
    for topic in range(topics):
        known = next_topic(body, partitions, names, &count)
        if known is None:
            return -1
        for i in range(count):
            number = take32(body)
            if n == count_max:
                return -1
            places[n].size = take32(body)
            places[n].start = body.at
            skip(body, places[n].size)
            partition = known.get(number)
            if body.at < 0 or partition is None:
                return -1
            found.append(partition)
            n += 1
    if body.at < 0 or (n > 1 and len(set(found)) != n):
        return -1
    return n


def append_records(LeaderState partition not None, records, int acks, int64_t now_ms):
    cdef Py_buffer view
    cdef SetPlace place
    cdef Scratch scratch
    cdef object data, rules, log = partition.log
    if log is None:
        return -1
    rules = (<SegmentTail?>log.active_segment).rules
    if rules is not None and read_rules(rules, now_ms).magic:
        data = build_set(records, magic=1, timestamps=[now_ms] * len(records))
    else:
        data = build_set(records)
    memset(&scratch, 0, sizeof(Scratch))
    PyObject_GetBuffer(data, &view, PyBUF_WRITABLE)
    place.start = 0
    place.size = view.len
    place.base_offset = -1
    try:
        append_at(partition, data, &view, &place, acks, now_ms, &scratch)
    finally:
        free(scratch.data)
        PyBuffer_Release(&view)
    return place.base_offset


cdef int append_at(
    LeaderState partition, object payload, const Py_buffer* view, SetPlace* place, int acks,
    int64_t now_ms, Scratch* scratch,
) except -1:
    # Append the set at `place`, whose base_offset is -1, which it stays if the set is left.
    cdef SegmentTail tail
    cdef int64_t end_offset
    if (
        not partition.is_leader
        or partition.is_queued
        or partition.log is None
    ):
        return 0
    tail = <SegmentTail?>partition.log.active_segment
    if acks < 0 and not enough_in_sync(partition, tail):
        return 0
    if not append_plain(tail, payload, view, place, now_ms, scratch):
        return 0
    end_offset = tail.end_offset
    partition.messages_in += end_offset - place.base_offset
    partition.bytes_in += place.size
    partition.produce_requests += 1
    if len(partition.maximal_isr) <= 1:
        raise_high_watermark(partition, tail)
    elif partition.high_watermark >= place.base_offset:
        (<object>partition).maybe_raise_high_watermark()
    return 0


def partitions_to_read(list partitions, list offsets, list limits, bint is_follower):
    cdef Py_ssize_t i
    cdef LeaderState partition
    cdef SegmentTail tail
    cdef int64_t offset, end_offset, limit
    cdef list high_watermarks = [], to_read = [], positions = []
    if not len(offsets) == len(limits) == len(partitions):
        raise ValueError("as many offsets and limits as partitions")
    for i in range(len(partitions)):
        partition = <LeaderState?>partitions[i]
        log = partition.log
        if not partition.is_leader or log is None:
            return None
        tail = <SegmentTail?>log.active_segment
        offset = offsets[i]
        end_offset = tail.end_offset if is_follower else partition.high_watermark
        high_watermarks.append(partition.high_watermark)
        limit = limits[i]
        if limit < 0 or not tail.base_offset <= offset <= tail.end_offset:
            positions.append(NOT_AT_THE_END)
        else:
            positions.append(tail.size if offset == tail.end_offset else -1)
        if (
            offset != end_offset
            or limit < 0
            or (end_offset != tail.end_offset and offset < <int64_t>log.log_start_offset)
        ):
            to_read.append(i)
    return high_watermarks, to_read, positions


def has_news(list partitions, list offsets):
    cdef Py_ssize_t i
    cdef LeaderState partition
    if len(offsets) != len(partitions):
        raise ValueError("as many offsets as partitions")
    for i in range(len(partitions)):
        partition = <LeaderState?>partitions[i]
        if (
            not partition.is_leader
            or partition.log is None
            or (<SegmentTail?>partition.log.active_segment).end_offset != <int64_t>offsets[i]
        ):
            return True
    return False


def respond_to_follower(
    payload, list partitions, list offsets, list limits, list positions, int64_t bytes_max,
    list high_watermarks=None,
):
    cdef Py_buffer view
    cdef Py_ssize_t i, count = len(partitions)
    cdef int64_t total = 0, limit
    cdef LeaderState partition
    cdef Slice* slices = NULL
    cdef bytes response
    cdef list marks = positions if high_watermarks is None else high_watermarks
    if not len(offsets) == len(limits) == len(positions) == len(marks) == count:
        raise ValueError("as many offsets, limits, positions and high watermarks as partitions")
    PyObject_GetBuffer(payload, &view, PyBUF_SIMPLE)
    try:
        slices = <Slice*>calloc(count + 1, sizeof(Slice))
        if slices == NULL:
            raise MemoryError
        for i in range(count):
            partition = <LeaderState?>partitions[i]
            if not partition.is_leader or partition.log is None:
                return None
            slices[i].high_watermark = (
                partition.high_watermark if high_watermarks is None else <int64_t>marks[i]
            )
            if not find_slice(
                <SegmentTail?>partition.log.active_segment, offsets[i], positions[i], &slices[i]
            ):
                return None
            total += slices[i].size
            limit = limits[i]
            if limit < 0 or (slices[i].size and slices[i].size >= limit) or total > bytes_max:
                return None
        response = fetched_frame(&view, slices, count)
        if response is not None:
            for i in range(count):
                (<LeaderState>partitions[i]).fetch_requests += 1
        return response
    finally:
        free(slices)
        PyBuffer_Release(&view)


cdef bint find_slice(SegmentTail tail, int64_t offset, int64_t position, Slice* found) except -1:
    # Whether it is known where the messages from `offset` on begin: they end with the segment.
    if offset == tail.end_offset:
        return True
    if offset > tail.end_offset or offset < tail.base_offset:
        return False
    if offset == tail.base_offset:
        position = 0
    elif offset == tail.tail_offset:
        position = tail.tail_position
    elif position < 0:
        position = indexed_position(tail, offset)
    if tail.descriptor < 0 or not 0 <= position < tail.size:
        return False
    found.descriptor = tail.descriptor
    found.position = position
    found.size = tail.size - position
    return True


cdef int64_t indexed_position(SegmentTail tail, int64_t offset) except -2:
    # The position of this very offset in the index; -1 if it has no entry.
    cdef IndexTail index
    cdef Py_buffer view
    cdef const uint8_t* entry
    cdef int64_t low = 0, high, middle, wanted = offset - tail.base_offset, relative
    if tail.index_tail is None:
        return -1
    index = <IndexTail?>tail.index_tail
    if index.view is None or index.entries <= 0:
        return -1
    PyObject_GetBuffer(index.view, &view, PyBUF_SIMPLE)
    try:
        high = index.entries if index.entries * INDEX_ENTRY_BYTES <= view.len else 0
        while low < high:
            middle = low + (high - low) // 2
            entry = <const uint8_t*>view.buf + middle * INDEX_ENTRY_BYTES
            relative = load32(entry)
            if relative == wanted:
                return load32(entry + 4)
            if relative < wanted:
                low = middle + 1
            else:
                high = middle
    finally:
        PyBuffer_Release(&view)
    return -1


cdef int count_fetches(list partitions, list sizes, bint is_follower) except -1:
    cdef LeaderState partition
    cdef Py_ssize_t i
    for i in range(len(partitions)):
        partition = <LeaderState?>partitions[i]
        partition.fetch_requests += 1
        if not is_follower:
            partition.bytes_out += <int64_t>sizes[i]
    return 0


cdef bint append_plain(
    SegmentTail tail, object payload, const Py_buffer* view, SetPlace* place, int64_t now_ms,
    Scratch* scratch,
) except -1:
    # Whether the set was appended; sets place.base_offset if so.
    cdef uint8_t* data = <uint8_t*>view.buf + place.start
    cdef int64_t size = place.size
    cdef RuleSet rules
    cdef Walk walk
    cdef object source = payload
    if not has_room(tail, data, size):
        return False
    if tail.rules is None:
        walk_set(data, size, tail.max_entry_bytes, True, tail.end_offset, &walk)
        if walk.fault != SOUND or walk.codec or walk.size != size:
            return False
    else:
        rules = read_rules(tail.rules, now_ms)
        if is_raised(data, &rules):
            size = raise_magic(data, size, tail, &rules, scratch, &walk)
            data, source = scratch.data, None
        elif not number_plain(tail, data, size, &rules, &walk):
            return False
    if size <= 0 or age_of(tail, &walk, now_ms) > tail.age_max_ms:
        return False
    place.base_offset = tail.end_offset
    if write_walked(tail, data, size, source, place.start, &walk):
        return True
    place.base_offset = -1
    return False


cdef bint write_walked(
    SegmentTail tail, const uint8_t* data, int64_t size, object source, Py_ssize_t start,
    const Walk* walk,
) except -1:
    # Write the entries of a walk; the tail then ends behind them. They are in `source` from `start`
    # on, unless that is None. False: the tail is as it was.
    cdef object written
    if tail.descriptor >= 0:
        if not write_all(tail.descriptor, data, size, tail.size):
            return False
    else:
        if source is None:
            written = PyBytes_FromStringAndSize(<const char*>data, size)
        else:
            written = source[start : start + size]
        try:
            tail.write(written, tail.size)
        except OSError:
            return False
    if tail.rules is not None and walk.max_timestamp_ms > tail.max_timestamp_ms:
        tail.max_timestamp_ms = walk.max_timestamp_ms
        tail.max_timestamp_offset = walk.max_timestamp_offset
    tail.tail_offset = tail.end_offset
    tail.tail_position = tail.size
    if tail.bytes_since_index > tail.index_interval_bytes:
        tail.index_is_due = not add_index_entry(tail)
        tail.bytes_since_index = 0
    tail.bytes_since_index += size
    tail.size += size
    tail.end_offset = walk.last_offset + 1
    return True


cdef bint add_index_entry(SegmentTail tail) except -1:
    # Add the entry of the last set to the index; False if this is left to the owner.
    cdef IndexTail index
    cdef Py_buffer view
    cdef int64_t at, relative = tail.tail_offset - tail.base_offset
    if tail.index_tail is None:
        return False
    index = <IndexTail?>tail.index_tail
    at = index.entries * INDEX_ENTRY_BYTES
    if (
        index.view is None
        or not 0 <= index.entries < index.capacity
        or at + INDEX_ENTRY_BYTES > index.allocated
        or tail.tail_offset <= index.last_offset
        or tail.tail_position <= index.last_position
        or not 0 < relative <= INT32_MAX
        or tail.tail_position > INT32_MAX
    ):
        return False
    PyObject_GetBuffer(index.view, &view, PyBUF_WRITABLE)
    try:
        if at + INDEX_ENTRY_BYTES > view.len:
            return False
        store32(<uint8_t*>view.buf + at, <uint32_t>relative)
        store32(<uint8_t*>view.buf + at + 4, <uint32_t>tail.tail_position)
    finally:
        PyBuffer_Release(&view)
    index.entries += 1
    index.last_offset = tail.tail_offset
    index.last_position = tail.tail_position
    if index.entries >= index.capacity:
        tail.is_full = True
    return True


cdef bint write_all(int descriptor, const uint8_t* data, int64_t size, int64_t position) noexcept:
    # False after an error; a part may have been written. Keeps the GIL: a write of 256 KB to the page
    # cache is faster than taking the GIL back from another thread.
    cdef ssize_t written
    while size > 0:
        written = pwrite(descriptor, data, size, position)
        if written < 0:
            if errno != EINTR:
                return False
            continue
        if written == 0:
            return False
        data += written
        position += written
        size -= written
    return True


cdef inline bint has_room(SegmentTail tail, const uint8_t* data, int64_t size):
    return (
        tail.takes_plain_sets
        and not tail.is_full
        and tail.size > 0
        and ENTRY_HEADER_BYTES + MIN_MESSAGE_BYTES <= size < GIL_RELEASE_BYTES
        and size <= tail.segment_bytes - tail.size
        and not data[ATTRIBUTES_POSITION] & CODEC_MASK
        and 0 <= tail.end_offset <= INT64_MAX - size
    )


cdef bint number_plain(
    SegmentTail tail, uint8_t* data, int64_t size, const RuleSet* rules, Walk* walk
) noexcept:
    # Whether the whole set is valid, has the topic's format, and was numbered.
    cdef Refusal refusal
    # The caller stamps these sets: a set that is stamped twice would be invalid.
    if rules.log_append_time or data[MAGIC_POSITION] != rules.magic:
        return False
    take_in_and_stamp(data, size, tail.end_offset, tail.max_entry_bytes, rules, walk, &refusal)
    return (
        refusal.fault == SOUND
        and walk.fault == SOUND
        and not walk.codec
        and walk.size == size
        and magics_of(walk) == 1 << rules.magic
    )


cdef inline bint is_raised(const uint8_t* data, const RuleSet* rules) noexcept:
    # Whether this set begins with magic 0 and its topic has magic 1 and accepts any timestamp.
    return (
        rules.magic
        and not data[MAGIC_POSITION]
        and not rules.log_append_time
        and rules.max_difference_ms == INT64_MAX
    )


cdef int64_t raise_magic(
    const uint8_t* data, int64_t size, SegmentTail tail, const RuleSet* rules, Scratch* scratch,
    Walk* walk,
) except -2:
    # Convert the set to magic 1 in `scratch`, numbered; returns its size, or -1 for a set that the
    # caller must handle. Does not change `data`.
    cdef int64_t room = size + TIMESTAMP_BYTES * (size / (ENTRY_HEADER_BYTES + MIN_MESSAGE_BYTES))
    cdef const uint8_t* entry = data
    cdef uint8_t* at
    cdef int64_t left = size, message_size
    cdef uint32_t head_crc = crc_of_head(rules.magic, 0, NO_TIMESTAMP)
    cdef Fields fields
    begin_walk(walk)
    if room > scratch.size:
        free(scratch.data)
        scratch.size = 0
        scratch.data = <uint8_t*>malloc(room)
        if scratch.data == NULL:
            raise MemoryError
        scratch.size = room
    at = scratch.data
    while left >= ENTRY_HEADER_BYTES + MIN_MESSAGE_BYTES:
        message_size = <int32_t>load32(entry + 8)
        if (
            message_size < MIN_MESSAGE_BYTES
            or message_size > left - ENTRY_HEADER_BYTES
            or ENTRY_HEADER_BYTES + message_size + TIMESTAMP_BYTES > tail.max_entry_bytes
            or entry[MAGIC_POSITION]
            or entry[ATTRIBUTES_POSITION] & CODEC_MASK
            or not check_crc(entry, message_size, &walk.stored_crc, &walk.computed_crc)
            or check_key(entry, message_size, rules) != SOUND
            or read_fields(entry, message_size, &fields) != FIELDS_SOUND
        ):
            return -1
        walk.last_offset = tail.end_offset + walk.count
        at = put_converted(
            at, &fields, walk.last_offset, rules.magic, 0, NO_TIMESTAMP, head_crc
        )
        walk.count += 1
        left -= ENTRY_HEADER_BYTES + message_size
        entry += ENTRY_HEADER_BYTES + message_size
    walk.size = at - scratch.data
    return walk.size if not left and walk.size <= tail.segment_bytes - tail.size else -1


cdef inline int64_t age_of(SegmentTail tail, const Walk* walk, int64_t now_ms):
    # By timestamps; by the clock if the first message has no timestamp.
    if tail.first_ms < 0:
        return now_ms - tail.created_ms
    return walk.max_timestamp_ms - tail.first_ms
