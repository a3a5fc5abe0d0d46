/* Unpacks the elements of a raw block of snappy: github.com/google/snappy, format_description.txt.
 *
 * The low two bits of an element's first byte, its tag, say what it is:
 *
 *     0   literal     so many bytes; a length of more than 60 has 1 to 4 bytes of its own
 *     1   short copy  4 to 11 bytes that begin up to 2047 bytes back
 *     2   copy        1 to 64 bytes that begin up to 65535 bytes back
 *     3   long copy   the same, with 4 bytes for how far back
 *
 * It writes 16 bytes at a time, over the end of an element where the output has room: the next one
 * overwrites what is too much. A copy from less than 16 bytes back repeats a pattern, which is made
 * in registers: a load of bytes that several stores have just written has to wait for them.
 */
#ifndef KAFKA08_SNAPPY_H
#define KAFKA08_SNAPPY_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

static inline uint32_t kafka08_le16(const uint8_t *at)
{
    return at[0] | (uint32_t)at[1] << 8;
}

static inline uint32_t kafka08_le32(const uint8_t *at)
{
    return kafka08_le16(at) | kafka08_le16(at + 2) << 16;
}

static inline uint64_t kafka08_le64(const uint8_t *at)
{
    return kafka08_le32(at) | (uint64_t)kafka08_le32(at + 4) << 32;
}

static inline void kafka08_put_le64(uint8_t *at, uint64_t value)
{
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    memcpy(at, &value, 8);
#else
    for (int i = 0; i < 8; i++)
        at[i] = (uint8_t)(value >> (8 * i));
#endif
}

static inline void kafka08_copy_16(uint8_t *to, const uint8_t *from)
{
    uint8_t block[16];
    memcpy(block, from, 16);
    memcpy(to, block, 16);
}

#define KAFKA08_SNAPPY_COPY_MAX 64
#define KAFKA08_SNAPPY_COPY_ROOM (KAFKA08_SNAPPY_COPY_MAX + 16) /* what a fast copy may write */

/* `length` bytes that begin `offset` bytes back, 1 to 15. `to` has KAFKA08_SNAPPY_COPY_ROOM. */
static inline void kafka08_snappy_repeat(uint8_t *to, size_t offset, size_t length)
{
    /* By how many bytes the pattern moves: the most whole repetitions in 16 bytes. */
    static const uint8_t steps[16] = {0, 16, 16, 15, 16, 15, 12, 14, 16, 9, 10, 11, 12, 13, 14, 15};
    const uint8_t *const end = to + length;
    const size_t step = steps[offset];
    uint64_t low = kafka08_le64(to - offset), high;
    if (offset > 8) {
        high = kafka08_le64(to - 8) >> (8 * (16 - offset)) | low << (8 * (offset - 8));
    } else {
        low &= ~0ull >> (8 * (8 - offset));
        for (size_t known = offset; known < 8; known *= 2)
            low |= low << (8 * known);
        /* The second half begins where the first ends in the pattern. */
        high = 8 % offset ? low >> (8 * (8 % offset)) | low << (8 * (offset - 8 % offset)) : low;
    }
    do {
        kafka08_put_le64(to, low);
        kafka08_put_le64(to + 8, high);
        to += step;
    } while (to < end);
}

/* Whether the elements from `data` to `data_end` unpack to exactly the `size` bytes of `output`. Like
 * the Rust crate snap, which the twin uses, it wants four bytes behind the tag of a long literal. */
static int kafka08_snappy_unpack(const uint8_t *data, const uint8_t *data_end, uint8_t *output,
                                 size_t size)
{
    uint8_t *to = output;
    uint8_t *const end = output + size;
    while (data < data_end) {
        const uint32_t tag = *data++;
        uint64_t length;
        size_t offset;
        if (!(tag & 3)) {
            length = (tag >> 2) + 1;
            if (length <= 16 && data_end - data >= 16 && end - to >= 16) {
                kafka08_copy_16(to, data);
                to += length;
                data += length;
                continue;
            }
            if (length > 60) {
                const int more = (int)length - 60;
                if (data_end - data < 4)
                    return 0;
                length = (uint64_t)(kafka08_le32(data) & 0xffffffffu >> (32 - 8 * more)) + 1;
                data += more;
            }
            if (length > (uint64_t)(data_end - data) || length > (uint64_t)(end - to))
                return 0;
            memcpy(to, data, length);
            to += length;
            data += length;
            continue;
        }
        if ((tag & 3) == 1) {
            if (data_end - data < 1)
                return 0;
            length = 4 + (tag >> 2 & 7);
            offset = tag >> 5 << 8 | *data;
            data += 1;
        } else {
            const ptrdiff_t size_of_offset = (tag & 3) == 2 ? 2 : 4;
            if (data_end - data < size_of_offset)
                return 0;
            length = (tag >> 2) + 1;
            offset = size_of_offset == 2 ? kafka08_le16(data) : kafka08_le32(data);
            data += size_of_offset;
        }
        if (!offset || offset > (size_t)(to - output) || length > (uint64_t)(end - to))
            return 0;
        if (end - to < KAFKA08_SNAPPY_COPY_ROOM) {
            for (; length; length--, to++)
                *to = *(to - offset);
        } else if (offset < 16) {
            kafka08_snappy_repeat(to, offset, length);
            to += length;
        } else {
            const uint8_t *from = to - offset;
            kafka08_copy_16(to, from);
            if (length > 16)
                for (int i = 16; i < KAFKA08_SNAPPY_COPY_MAX; i += 16)
                    kafka08_copy_16(to + i, from + i);
            to += length;
        }
    }
    return to == end;
}

#endif
