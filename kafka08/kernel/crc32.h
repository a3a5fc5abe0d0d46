/* CRC-32 (zlib's: polynomial 0x04c11db7, bits reflected) by the best means of this processor.
 *
 * x86-64 with PCLMULQDQ  folding by carry-less multiplication, 16 bytes at a time, four lanes for
 *                        long data; the odd bytes are folded too, no table is read
 * ARM64 with CRC32       the processor's own instruction
 * elsewhere              eight tables, eight bytes at a time ("slicing by 8")
 *
 * The choice is made at run time, by kafka08_crc32_select(), so one build runs everywhere; nothing
 * is compiled for more than the base architecture except the functions that are chosen so.
 *
 * Folding: a register of 16 bytes stands for a polynomial over GF(2). Moving it D bytes ahead is a
 * multiplication by x^(8D) mod P, done for each half with a constant computed once (Gopal et al.,
 * "Fast CRC Computation for Generic Polynomials Using PCLMULQDQ Instruction", Intel 2009).
 */
#ifndef KAFKA08_CRC32_H
#define KAFKA08_CRC32_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef uint32_t (*kafka08_crc32_function)(uint32_t crc, const uint8_t *data, size_t size);

/* ---- everywhere ---- */

static uint32_t kafka08_crc32_table[8][256];

static void kafka08_crc32_build_table(void)
{
    for (uint32_t byte = 0; byte < 256; byte++) {
        uint32_t crc = byte;
        for (int bit = 0; bit < 8; bit++)
            crc = (crc >> 1) ^ (0xedb88320u & (0u - (crc & 1)));
        kafka08_crc32_table[0][byte] = crc;
    }
    for (int slice = 1; slice < 8; slice++)
        for (int byte = 0; byte < 256; byte++) {
            uint32_t crc = kafka08_crc32_table[slice - 1][byte];
            kafka08_crc32_table[slice][byte] = (crc >> 8) ^ kafka08_crc32_table[0][crc & 0xff];
        }
}

static uint32_t kafka08_crc32_portable(uint32_t crc, const uint8_t *data, size_t size)
{
    crc = ~crc;
    for (; size >= 8; size -= 8, data += 8) {
        /* Byte by byte, so that the order of bytes in a word does not matter. */
        crc = kafka08_crc32_table[7][data[0] ^ (crc & 0xff)]
            ^ kafka08_crc32_table[6][data[1] ^ ((crc >> 8) & 0xff)]
            ^ kafka08_crc32_table[5][data[2] ^ ((crc >> 16) & 0xff)]
            ^ kafka08_crc32_table[4][data[3] ^ (crc >> 24)]
            ^ kafka08_crc32_table[3][data[4]]
            ^ kafka08_crc32_table[2][data[5]]
            ^ kafka08_crc32_table[1][data[6]]
            ^ kafka08_crc32_table[0][data[7]];
    }
    for (; size; size--)
        crc = (crc >> 8) ^ kafka08_crc32_table[0][(crc ^ *data++) & 0xff];
    return ~crc;
}

/* ---- x86-64 with PCLMULQDQ ---- */

#if defined(__GNUC__) && defined(__x86_64__)
#define KAFKA08_CRC32_PCLMUL 1
#include <immintrin.h>
#define KAFKA08_PCLMUL __attribute__((target("pclmul,sse4.1")))

/* `ahead` moved by the distance of `constants` (low half, high half), onto `block`. */
KAFKA08_PCLMUL static inline __m128i kafka08_fold(__m128i ahead, __m128i constants, __m128i block)
{
    __m128i low = _mm_clmulepi64_si128(ahead, constants, 0x00);
    __m128i high = _mm_clmulepi64_si128(ahead, constants, 0x11);
    return _mm_xor_si128(_mm_xor_si128(low, high), block);
}

/* The remainder of a 16-byte register: 128 to 96 to 64 bits by folding, to 32 by Barrett. */
KAFKA08_PCLMUL static inline uint32_t kafka08_reduce(__m128i x, __m128i by_16_bytes)
{
    const __m128i low_words = _mm_setr_epi32(-1, 0, -1, 0);
    const __m128i by_8_bytes = _mm_set_epi64x(0, 0x163cd6124);
    const __m128i barrett = _mm_set_epi64x(0x1f7011641, 0x1db710641);
    __m128i y;
    x = _mm_xor_si128(_mm_clmulepi64_si128(x, by_16_bytes, 0x10), _mm_srli_si128(x, 8));
    y = _mm_clmulepi64_si128(_mm_and_si128(x, low_words), by_8_bytes, 0x00);
    x = _mm_xor_si128(y, _mm_srli_si128(x, 4));
    y = _mm_clmulepi64_si128(_mm_and_si128(x, low_words), barrett, 0x10);
    y = _mm_clmulepi64_si128(_mm_and_si128(y, low_words), barrett, 0x00);
    return (uint32_t)_mm_extract_epi32(_mm_xor_si128(x, y), 1);
}

KAFKA08_PCLMUL static uint32_t
kafka08_crc32_pclmul(uint32_t crc, const uint8_t *data, size_t size)
{
    /* Loaded at [r], a shuffle that moves the first r bytes of a register to its end. */
    static const uint8_t to_the_end[32] = {
        128, 128, 128, 128, 128, 128, 128, 128, 128, 128, 128, 128, 128, 128, 128, 128,
        0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15,
    };
    const __m128i by_16_bytes = _mm_set_epi64x(0x0ccaa009e, 0x1751997d0);
    const __m128i by_64_bytes = _mm_set_epi64x(0x1c6e41596, 0x154442bd4);
    size_t odd = size & 15;
    __m128i x, carry;
    crc = ~crc;
    if (size < 16) {
        uint8_t block[20] = {0};
        uint32_t over;
        memcpy(block + 16 - size, &crc, 4);
        for (size_t i = 0; i < size; i++)
            block[16 - size + i] ^= data[i];
        memcpy(&over, block + 16, 4); /* what of the start value lies behind the data */
        x = _mm_loadu_si128((const __m128i *)block);
        return ~(kafka08_reduce(x, by_16_bytes) ^ over);
    }
    /* Zeros in front change nothing: the odd bytes go first, behind zeros, then whole blocks. */
    x = _mm_xor_si128(_mm_loadu_si128((const __m128i *)data), _mm_cvtsi32_si128((int)crc));
    x = _mm_shuffle_epi8(x, _mm_loadu_si128((const __m128i *)(to_the_end + odd)));
    carry = _mm_cvtsi32_si128((int)(odd < 4 ? crc >> (8 * odd) : 0));
    data += odd;
    size -= odd;
    x = kafka08_fold(x, by_16_bytes, _mm_loadu_si128((const __m128i *)data));
    x = _mm_xor_si128(x, carry);
    data += 16;
    size -= 16;
    if (size >= 128) {
        __m128i lane[3];
        for (int i = 0; i < 3; i++)
            lane[i] = _mm_loadu_si128((const __m128i *)(data + 16 * i));
        data += 48;
        size -= 48;
        for (; size >= 64; data += 64, size -= 64) {
            x = kafka08_fold(x, by_64_bytes, _mm_loadu_si128((const __m128i *)data));
            for (int i = 0; i < 3; i++)
                lane[i] = kafka08_fold(
                    lane[i], by_64_bytes, _mm_loadu_si128((const __m128i *)(data + 16 * i + 16)));
        }
        for (int i = 0; i < 3; i++)
            x = kafka08_fold(x, by_16_bytes, lane[i]);
    }
    for (; size; data += 16, size -= 16)
        x = kafka08_fold(x, by_16_bytes, _mm_loadu_si128((const __m128i *)data));
    return ~kafka08_reduce(x, by_16_bytes);
}
#endif

/* ---- ARM64 with the CRC32 extension ---- */

#if defined(__GNUC__) && defined(__aarch64__) && defined(__linux__)
#define KAFKA08_CRC32_ARM 1
#include <arm_acle.h>
#include <sys/auxv.h>
#ifndef HWCAP_CRC32
#define HWCAP_CRC32 (1 << 7)
#endif

__attribute__((target("+crc"))) static uint32_t
kafka08_crc32_arm(uint32_t crc, const uint8_t *data, size_t size)
{
    crc = ~crc;
    for (; size >= 8; size -= 8, data += 8) {
        uint64_t word;
        memcpy(&word, data, 8);
        crc = __crc32d(crc, word);
    }
    for (; size; size--)
        crc = __crc32b(crc, *data++);
    return ~crc;
}
#endif

/* ---- the choice ---- */

static kafka08_crc32_function kafka08_crc32 = kafka08_crc32_portable;

/* Choose the means, the portable one if `portable` says so; returns its name. */
static const char *kafka08_crc32_select(int portable)
{
    if (!kafka08_crc32_table[0][1])
        kafka08_crc32_build_table();
    kafka08_crc32 = kafka08_crc32_portable;
    if (portable)
        return "portable";
#ifdef KAFKA08_CRC32_PCLMUL
    if (__builtin_cpu_supports("pclmul") && __builtin_cpu_supports("sse4.1")) {
        kafka08_crc32 = kafka08_crc32_pclmul;
        return "pclmul";
    }
#endif
#ifdef KAFKA08_CRC32_ARM
    if (getauxval(AT_HWCAP) & HWCAP_CRC32) {
        kafka08_crc32 = kafka08_crc32_arm;
        return "arm";
    }
#endif
    return "portable";
}

#endif
