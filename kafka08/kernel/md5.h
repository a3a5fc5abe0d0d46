/* MD5 (RFC 1321) of a whole buffer: the fingerprint of a key in the cleaner's offset map, as in
 * 0.8.2.2. It spreads keys over a table; it protects nothing. */
#ifndef KAFKA08_MD5_H
#define KAFKA08_MD5_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

static uint32_t md5_load(const uint8_t *at) {
    return (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}

static void md5_store(uint8_t *at, uint32_t value) {
    at[0] = (uint8_t)value;
    at[1] = (uint8_t)(value >> 8);
    at[2] = (uint8_t)(value >> 16);
    at[3] = (uint8_t)(value >> 24);
}

#define MD5_F(x, y, z) ((z) ^ ((x) & ((y) ^ (z))))
#define MD5_G(x, y, z) ((y) ^ ((z) & ((x) ^ (y))))
#define MD5_H(x, y, z) ((x) ^ (y) ^ (z))
#define MD5_I(x, y, z) ((y) ^ ((x) | ~(z)))
#define MD5_STEP(f, a, b, c, d, word, constant, shift)                                             \
    a += f(b, c, d) + w[word] + constant##u;                                                       \
    a = (a << shift | a >> (32 - shift)) + b;
/* Four steps, after which a, b, c and d have their old roles again. */
#define MD5_FOUR(f, i, j, k, l, c1, c2, c3, c4, s1, s2, s3, s4)                                    \
    MD5_STEP(f, a, b, c, d, i, c1, s1)                                                             \
    MD5_STEP(f, d, a, b, c, j, c2, s2)                                                             \
    MD5_STEP(f, c, d, a, b, k, c3, s3)                                                             \
    MD5_STEP(f, b, c, d, a, l, c4, s4)

static void md5_block(uint32_t state[4], const uint8_t *block) {
    uint32_t w[16], a = state[0], b = state[1], c = state[2], d = state[3];
    for (int i = 0; i < 16; i++)
        w[i] = md5_load(block + 4 * i);
    MD5_FOUR(MD5_F, 0, 1, 2, 3, 0xd76aa478, 0xe8c7b756, 0x242070db, 0xc1bdceee, 7, 12, 17, 22)
    MD5_FOUR(MD5_F, 4, 5, 6, 7, 0xf57c0faf, 0x4787c62a, 0xa8304613, 0xfd469501, 7, 12, 17, 22)
    MD5_FOUR(MD5_F, 8, 9, 10, 11, 0x698098d8, 0x8b44f7af, 0xffff5bb1, 0x895cd7be, 7, 12, 17, 22)
    MD5_FOUR(MD5_F, 12, 13, 14, 15, 0x6b901122, 0xfd987193, 0xa679438e, 0x49b40821, 7, 12, 17, 22)
    MD5_FOUR(MD5_G, 1, 6, 11, 0, 0xf61e2562, 0xc040b340, 0x265e5a51, 0xe9b6c7aa, 5, 9, 14, 20)
    MD5_FOUR(MD5_G, 5, 10, 15, 4, 0xd62f105d, 0x02441453, 0xd8a1e681, 0xe7d3fbc8, 5, 9, 14, 20)
    MD5_FOUR(MD5_G, 9, 14, 3, 8, 0x21e1cde6, 0xc33707d6, 0xf4d50d87, 0x455a14ed, 5, 9, 14, 20)
    MD5_FOUR(MD5_G, 13, 2, 7, 12, 0xa9e3e905, 0xfcefa3f8, 0x676f02d9, 0x8d2a4c8a, 5, 9, 14, 20)
    MD5_FOUR(MD5_H, 5, 8, 11, 14, 0xfffa3942, 0x8771f681, 0x6d9d6122, 0xfde5380c, 4, 11, 16, 23)
    MD5_FOUR(MD5_H, 1, 4, 7, 10, 0xa4beea44, 0x4bdecfa9, 0xf6bb4b60, 0xbebfbc70, 4, 11, 16, 23)
    MD5_FOUR(MD5_H, 13, 0, 3, 6, 0x289b7ec6, 0xeaa127fa, 0xd4ef3085, 0x04881d05, 4, 11, 16, 23)
    MD5_FOUR(MD5_H, 9, 12, 15, 2, 0xd9d4d039, 0xe6db99e5, 0x1fa27cf8, 0xc4ac5665, 4, 11, 16, 23)
    MD5_FOUR(MD5_I, 0, 7, 14, 5, 0xf4292244, 0x432aff97, 0xab9423a7, 0xfc93a039, 6, 10, 15, 21)
    MD5_FOUR(MD5_I, 12, 3, 10, 1, 0x655b59c3, 0x8f0ccc92, 0xffeff47d, 0x85845dd1, 6, 10, 15, 21)
    MD5_FOUR(MD5_I, 8, 15, 6, 13, 0x6fa87e4f, 0xfe2ce6e0, 0xa3014314, 0x4e0811a1, 6, 10, 15, 21)
    MD5_FOUR(MD5_I, 4, 11, 2, 9, 0xf7537e82, 0xbd3af235, 0x2ad7d2bb, 0xeb86d391, 6, 10, 15, 21)
    state[0] += a;
    state[1] += b;
    state[2] += c;
    state[3] += d;
}

static void kafka08_md5(const uint8_t *data, size_t size, uint8_t *digest) {
    uint32_t state[4] = {0x67452301u, 0xefcdab89u, 0x98badcfeu, 0x10325476u};
    uint8_t tail[128] = {0};
    size_t left = size % 64, tail_size = left < 56 ? 64 : 128;
    for (size_t done = 0; done + 64 <= size; done += 64)
        md5_block(state, data + done);
    if (left)
        memcpy(tail, data + (size - left), left);
    tail[left] = 0x80;
    md5_store(tail + tail_size - 8, (uint32_t)((uint64_t)size << 3));
    md5_store(tail + tail_size - 4, (uint32_t)((uint64_t)size >> 29));
    md5_block(state, tail);
    if (tail_size == 128)
        md5_block(state, tail + 64);
    for (int i = 0; i < 4; i++)
        md5_store(digest + 4 * i, state[i]);
}

#endif
