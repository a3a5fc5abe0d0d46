/* CRC-32 (zlib's: polynomial 0x04c11db7, bits reflected) by the best means of this processor.
 *
 * x86-64 with VPCLMULQDQ  folding by carry-less multiplication, 64 bytes at a time (AVX-512)
 * x86-64 with PCLMULQDQ   the same, 16 bytes at a time, four lanes for long data
 * ARM64 with CRC32        the processor's own instruction
 * elsewhere               eight tables, eight bytes at a time ("slicing by 8")
 *
 * The choice is made at run time, by kafka08_crc32_select(), so one build runs everywhere; nothing
 * is compiled for more than the base architecture except the functions that are chosen so.
 *
 * Folding: a register of 16 bytes stands for a polynomial over GF(2). Moving it D bytes ahead is a
 * multiplication by x^(8D) mod P, done for each half with a constant computed once (Gopal et al.,
 * "Fast CRC Computation for Generic Polynomials Using PCLMULQDQ Instruction", Intel 2009). Zeros in
 * front change nothing: the odd bytes go first, behind zeros, then whole blocks, and no table is
 * read.
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
/* By how many bytes a register is moved ahead: the constant of its high half, of its low half. */
#define KAFKA08_BY_16_BYTES 0x0ccaa009e, 0x1751997d0
#define KAFKA08_BY_32_BYTES 0x15a546366, 0x0f1da05aa
#define KAFKA08_BY_48_BYTES 0x174359406, 0x03db1ecdc
#define KAFKA08_BY_64_BYTES 0x1c6e41596, 0x154442bd4

/* `ahead` moved by the distance of `constants` (low half, high half), onto `block`. */
KAFKA08_PCLMUL static inline __m128i kafka08_fold(__m128i ahead, __m128i constants, __m128i block)
{
    __m128i low = _mm_clmulepi64_si128(ahead, constants, 0x00);
    __m128i high = _mm_clmulepi64_si128(ahead, constants, 0x11);
    return _mm_xor_si128(_mm_xor_si128(low, high), block);
}

/* The remainder of a 16-byte register: 128 to 96 to 64 bits by folding, to 32 by Barrett. */
KAFKA08_PCLMUL static inline uint32_t kafka08_reduce(__m128i x)
{
    const __m128i by_16_bytes = _mm_set_epi64x(KAFKA08_BY_16_BYTES);
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
    const __m128i by_16_bytes = _mm_set_epi64x(KAFKA08_BY_16_BYTES);
    const __m128i by_64_bytes = _mm_set_epi64x(KAFKA08_BY_64_BYTES);
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
        return ~(kafka08_reduce(x) ^ over);
    }
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
    return ~kafka08_reduce(x);
}
#endif

/* ---- x86-64 with VPCLMULQDQ: four of those registers side by side ---- */

#if defined(KAFKA08_CRC32_PCLMUL) && (__GNUC__ >= 9 || __clang_major__ >= 8)
#define KAFKA08_CRC32_VPCLMUL 1
#define KAFKA08_VPCLMUL \
    __attribute__((target("vpclmulqdq,avx512f,avx512bw,avx512vl,avx512vbmi2,pclmul,sse4.1")))

/* Each register of `ahead` moved by the distance of its constants, both halves added up. */
KAFKA08_VPCLMUL static inline __m512i kafka08_move(__m512i ahead, __m512i constants)
{
    return _mm512_xor_si512(_mm512_clmulepi64_epi128(ahead, constants, 0x00),
                            _mm512_clmulepi64_epi128(ahead, constants, 0x11));
}

KAFKA08_VPCLMUL static uint32_t
kafka08_crc32_vpclmul(uint32_t crc, const uint8_t *data, size_t size)
{
    const __m512i by_64_bytes = _mm512_broadcast_i32x4(_mm_set_epi64x(KAFKA08_BY_64_BYTES));
    const __m512i onto_the_last = _mm512_set_epi64(
        0, 0, KAFKA08_BY_16_BYTES, KAFKA08_BY_32_BYTES, KAFKA08_BY_48_BYTES);
    size_t odd, zeros;
    __m512i x, start;
    __m256i half;
    if (size < 4)
        return kafka08_crc32_pclmul(crc, data, size);
    odd = (size - 1) % 64 + 1;
    zeros = 64 - odd;
    crc = ~crc;
    start = _mm512_castsi128_si512(_mm_cvtsi32_si128((int)crc));
    /* What the mask leaves out is not read, though it lies before the data. */
    x = _mm512_maskz_loadu_epi8(~0ull << zeros, data - zeros);
    x = _mm512_xor_si512(x, _mm512_maskz_expand_epi8(0xfull << zeros, start));
    data += odd;
    size -= odd;
    if (size) {
        __m512i carry = _mm512_castsi128_si512(
            _mm_cvtsi32_si128((int)(odd < 4 ? crc >> (8 * odd) : 0)));
        x = _mm512_xor_si512(kafka08_move(x, by_64_bytes), carry);
        x = _mm512_xor_si512(x, _mm512_loadu_si512(data));
        for (data += 64, size -= 64; size; data += 64, size -= 64)
            x = _mm512_xor_si512(kafka08_move(x, by_64_bytes), _mm512_loadu_si512(data));
    }
    start = kafka08_move(x, onto_the_last);
    half = _mm256_xor_si256(_mm512_castsi512_si256(start), _mm512_extracti64x4_epi64(start, 1));
    return ~kafka08_reduce(_mm_xor_si128(
        _mm_xor_si128(_mm256_castsi256_si128(half), _mm256_extracti128_si256(half, 1)),
        _mm512_extracti32x4_epi32(x, 3)));
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

/* Whether the choice may be the one called `name`: it was asked for, or nothing was. */
static int kafka08_crc32_wanted(const char *wanted, const char *name)
{
    return !wanted || !strcmp(wanted, name);
}

/* Choose the best means of this processor; only the one called `wanted`, unless that is NULL or
 * not to be had here, which leaves the portable one. Returns the name of the choice. */
static const char *kafka08_crc32_select(const char *wanted)
{
    if (!kafka08_crc32_table[0][1])
        kafka08_crc32_build_table();
#ifdef KAFKA08_CRC32_VPCLMUL
    if (kafka08_crc32_wanted(wanted, "vpclmul") && __builtin_cpu_supports("vpclmulqdq")
        && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw")
        && __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512vbmi2")) {
        kafka08_crc32 = kafka08_crc32_vpclmul;
        return "vpclmul";
    }
#endif
#ifdef KAFKA08_CRC32_PCLMUL
    if (kafka08_crc32_wanted(wanted, "pclmul") && __builtin_cpu_supports("pclmul")
        && __builtin_cpu_supports("sse4.1")) {
        kafka08_crc32 = kafka08_crc32_pclmul;
        return "pclmul";
    }
#endif
#ifdef KAFKA08_CRC32_ARM
    if (kafka08_crc32_wanted(wanted, "arm") && getauxval(AT_HWCAP) & HWCAP_CRC32) {
        kafka08_crc32 = kafka08_crc32_arm;
        return "arm";
    }
#endif
    kafka08_crc32 = kafka08_crc32_portable;
    return "portable";
}

#endif
