/* CRC-32C (Castagnoli: polynomial 0x1edc6f41, bits reflected) by this processor's instruction.
 *
 * x86-64 with SSE 4.2    the crc32 instruction: three streams at once, since one waits three cycles
 *                        for each result; the streams are joined by a table
 * ARM64 with CRC32       the crc32c instructions
 * elsewhere              eight tables, eight bytes at a time ("slicing by 8")
 *
 * As in crc32.h the choice is made at run time, by kafka08_crc32c_select().
 */
#ifndef KAFKA08_CRC32C_H
#define KAFKA08_CRC32C_H

#include "crc32.h"

static uint32_t kafka08_crc32c_table[8][256];

static void kafka08_crc32c_build_table(void)
{
    for (uint32_t byte = 0; byte < 256; byte++) {
        uint32_t crc = byte;
        for (int bit = 0; bit < 8; bit++)
            crc = (crc >> 1) ^ (0x82f63b78u & (0u - (crc & 1)));
        kafka08_crc32c_table[0][byte] = crc;
    }
    for (int slice = 1; slice < 8; slice++)
        for (int byte = 0; byte < 256; byte++) {
            uint32_t crc = kafka08_crc32c_table[slice - 1][byte];
            kafka08_crc32c_table[slice][byte] = (crc >> 8) ^ kafka08_crc32c_table[0][crc & 0xff];
        }
}

static uint32_t kafka08_crc32c_portable(uint32_t crc, const uint8_t *data, size_t size)
{
    crc = ~crc;
    for (; size >= 8; size -= 8, data += 8) {
        crc = kafka08_crc32c_table[7][data[0] ^ (crc & 0xff)]
            ^ kafka08_crc32c_table[6][data[1] ^ ((crc >> 8) & 0xff)]
            ^ kafka08_crc32c_table[5][data[2] ^ ((crc >> 16) & 0xff)]
            ^ kafka08_crc32c_table[4][data[3] ^ (crc >> 24)]
            ^ kafka08_crc32c_table[3][data[4]]
            ^ kafka08_crc32c_table[2][data[5]]
            ^ kafka08_crc32c_table[1][data[6]]
            ^ kafka08_crc32c_table[0][data[7]];
    }
    for (; size; size--)
        crc = (crc >> 8) ^ kafka08_crc32c_table[0][(crc ^ *data++) & 0xff];
    return ~crc;
}

#if defined(__GNUC__) && defined(__x86_64__)
#define KAFKA08_CRC32C_SSE 1
/* Bytes of each of the three streams. */
#define KAFKA08_CRC32C_LANE 1024

/* What KAFKA08_CRC32C_LANE zeros make of a CRC: a linear map, by its four bytes. */
static uint32_t kafka08_crc32c_shift[4][256];

static void kafka08_crc32c_build_shift(void)
{
    static const uint8_t zeros[KAFKA08_CRC32C_LANE];
    uint32_t bits[32];
    for (int bit = 0; bit < 32; bit++)
        bits[bit] = ~kafka08_crc32c_portable(~(1u << bit), zeros, sizeof zeros);
    for (int byte = 0; byte < 4; byte++)
        for (int value = 0; value < 256; value++) {
            uint32_t sum = 0;
            for (int bit = 0; bit < 8; bit++)
                if (value >> bit & 1)
                    sum ^= bits[8 * byte + bit];
            kafka08_crc32c_shift[byte][value] = sum;
        }
}

static inline uint32_t kafka08_crc32c_shifted(uint32_t crc)
{
    return kafka08_crc32c_shift[0][crc & 0xff] ^ kafka08_crc32c_shift[1][crc >> 8 & 0xff]
         ^ kafka08_crc32c_shift[2][crc >> 16 & 0xff] ^ kafka08_crc32c_shift[3][crc >> 24];
}

__attribute__((target("sse4.2"))) static uint32_t
kafka08_crc32c_sse(uint32_t start, const uint8_t *data, size_t size)
{
    uint64_t crc = ~start;
    for (; size >= 3 * KAFKA08_CRC32C_LANE; size -= 3 * KAFKA08_CRC32C_LANE) {
        uint64_t second = 0, third = 0;
        for (size_t at = 0; at < KAFKA08_CRC32C_LANE; at += 8) {
            uint64_t words[3];
            memcpy(&words[0], data + at, 8);
            memcpy(&words[1], data + KAFKA08_CRC32C_LANE + at, 8);
            memcpy(&words[2], data + 2 * KAFKA08_CRC32C_LANE + at, 8);
            crc = __builtin_ia32_crc32di(crc, words[0]);
            second = __builtin_ia32_crc32di(second, words[1]);
            third = __builtin_ia32_crc32di(third, words[2]);
        }
        crc = kafka08_crc32c_shifted((uint32_t)crc) ^ second;
        crc = kafka08_crc32c_shifted((uint32_t)crc) ^ third;
        data += 3 * KAFKA08_CRC32C_LANE;
    }
    for (; size >= 8; size -= 8, data += 8) {
        uint64_t word;
        memcpy(&word, data, 8);
        crc = __builtin_ia32_crc32di(crc, word);
    }
    for (; size; size--)
        crc = __builtin_ia32_crc32qi((uint32_t)crc, *data++);
    return ~(uint32_t)crc;
}
#endif

#ifdef KAFKA08_CRC32_ARM
__attribute__((target("+crc"))) static uint32_t
kafka08_crc32c_arm(uint32_t crc, const uint8_t *data, size_t size)
{
    crc = ~crc;
    for (; size >= 8; size -= 8, data += 8) {
        uint64_t word;
        memcpy(&word, data, 8);
        crc = __crc32cd(crc, word);
    }
    for (; size; size--)
        crc = __crc32cb(crc, *data++);
    return ~crc;
}
#endif

static kafka08_crc32_function kafka08_crc32c = kafka08_crc32c_portable;

/* Choose the processor's instruction, or the tables if they are `wanted`. */
static const char *kafka08_crc32c_select(int portable)
{
    if (!kafka08_crc32c_table[0][1])
        kafka08_crc32c_build_table();
    kafka08_crc32c = kafka08_crc32c_portable;
    if (portable)
        return "portable";
#ifdef KAFKA08_CRC32C_SSE
    if (__builtin_cpu_supports("sse4.2")) {
        kafka08_crc32c_build_shift();
        kafka08_crc32c = kafka08_crc32c_sse;
        return "sse4.2";
    }
#endif
#ifdef KAFKA08_CRC32_ARM
    if (getauxval(AT_HWCAP) & HWCAP_CRC32) {
        kafka08_crc32c = kafka08_crc32c_arm;
        return "arm";
    }
#endif
    return "portable";
}

#endif
