/* SPDX-License-Identifier: Apache-2.0
 *
 * SHA-256, CRC-32C, XXH64. See hash.h. Each of the first two has a portable version and, on x86-64, one of processor
 * instructions that is chosen at run time; both give the same bits, and the tests compare them.
 */
#include <config.h>

#include "base/hash.h"

#include <pthread.h>
#include <string.h>

#if defined(__x86_64__)
#    include <cpuid.h>
#    include <immintrin.h>
#endif

static pthread_once_t once = PTHREAD_ONCE_INIT;
static bool has_sha, has_crc;
static uint32_t crc_tables[8][256];

static uint32_t load32be(const uint8_t *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static uint32_t load32le(const uint8_t *p)
{
    return (uint32_t)p[3] << 24 | (uint32_t)p[2] << 16 | (uint32_t)p[1] << 8 | p[0];
}

static uint64_t load64le(const uint8_t *p)
{
    return (uint64_t)load32le(p + 4) << 32 | load32le(p);
}

static void detect_instructions(void)
{
#if defined(__x86_64__)
    unsigned a = 0, b = 0, c = 0, d = 0;
    if (__get_cpuid(1, &a, &b, &c, &d)) {
        bool has_sse41 = (c >> 19 & 1) != 0, has_ssse3 = (c >> 9 & 1) != 0;
        has_crc = (c >> 20 & 1) != 0;
        has_sha = has_sse41 && has_ssse3 && __get_cpuid_count(7, 0, &a, &b, &c, &d) && (b >> 29 & 1) != 0;
    }
#endif
}

static void prepare_tables(void)
{
    /* table k holds the effect of a byte that is k bytes away from the end of an 8-byte group */
    for (uint32_t i = 0; i < 256; i++) {
        uint32_t r = i;
        for (int bit = 0; bit < 8; bit++) {
            r = (r >> 1) ^ (0x82F63B78u & (0u - (r & 1)));
        }
        crc_tables[0][i] = r;
    }
    for (int k = 1; k < 8; k++) {
        for (int i = 0; i < 256; i++) {
            uint32_t r = crc_tables[k - 1][i];
            crc_tables[k][i] = (r >> 8) ^ crc_tables[0][r & 0xff];
        }
    }
    detect_instructions();
}

void dt_hash_set_portable(bool is_plain)
{
    pthread_once(&once, prepare_tables);
    has_sha = has_crc = false;
    if (!is_plain) {
        detect_instructions();
    }
}

/* ---- SHA-256, FIPS 180-4, section 6.2 ---- */

static const uint32_t sha_k[64] __attribute__((aligned(16))) = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

static uint32_t rotate_right(uint32_t x, int n)
{
    return x >> n | x << (32 - n);
}

static void sha256_portable(uint32_t h[8], const uint8_t *p, size_t n_blocks)
{
    for (; n_blocks > 0; n_blocks--, p += 64) {
        uint32_t w[64];
        for (int t = 0; t < 16; t++) {
            w[t] = load32be(p + 4 * t);
        }
        for (int t = 16; t < 64; t++) {
            uint32_t s0 = rotate_right(w[t - 15], 7) ^ rotate_right(w[t - 15], 18) ^ w[t - 15] >> 3;
            uint32_t s1 = rotate_right(w[t - 2], 17) ^ rotate_right(w[t - 2], 19) ^ w[t - 2] >> 10;
            w[t] = w[t - 16] + s0 + w[t - 7] + s1;
        }
        uint32_t v[8]; /* a b c d e f g h */
        memcpy(v, h, sizeof(v));
        for (int t = 0; t < 64; t += 8) {
            /* the letters move one place a round: instead of moving them, rename them */
            for (int i = 0; i < 8; i++) {
#define LETTER(k) v[(8 - i + (k)) & 7]
                uint32_t e = LETTER(4), a = LETTER(0);
                uint32_t big1 = rotate_right(e, 6) ^ rotate_right(e, 11) ^ rotate_right(e, 25),
                         ch = (e & LETTER(5)) ^ (~e & LETTER(6));
                uint32_t t1 = LETTER(7) + big1 + ch + sha_k[t + i] + w[t + i];
                uint32_t big0 = rotate_right(a, 2) ^ rotate_right(a, 13) ^ rotate_right(a, 22);
                uint32_t maj = (a & LETTER(1)) ^ (a & LETTER(2)) ^ (LETTER(1) & LETTER(2));
                LETTER(3) += t1;
                LETTER(7) = t1 + big0 + maj;
#undef LETTER
            }
        }
        for (int i = 0; i < 8; i++) {
            h[i] += v[i];
        }
    }
}

#if defined(__x86_64__)
/* The SHA extensions keep the state as (ABEF, CDGH) and do two rounds an instruction; w[i & 3] holds the schedule. */
__attribute__((target("sha,sse4.1,ssse3"))) static void sha_ni(uint32_t h[8], const uint8_t *p, size_t n_blocks)
{
    const __m128i swap = _mm_set_epi64x(0x0c0d0e0f08090a0b, 0x0405060700010203);
    __m128i dcba = _mm_shuffle_epi32(_mm_loadu_si128((const __m128i *)(const void *)h), 0xB1);
    __m128i hgfe = _mm_shuffle_epi32(_mm_loadu_si128((const __m128i *)(const void *)(h + 4)), 0x1B);
    __m128i abef = _mm_alignr_epi8(dcba, hgfe, 8), cdgh = _mm_blend_epi16(hgfe, dcba, 0xF0);

    for (; n_blocks > 0; n_blocks--, p += 64) {
        const __m128i abef_before = abef, cdgh_before = cdgh;
        __m128i w[4];
        for (int i = 0; i < 16; i++) {
            if (i < 4) {
                w[i] = _mm_shuffle_epi8(_mm_loadu_si128((const __m128i *)(const void *)(p + 16 * i)), swap);
            } else {
                /* w[t] = w[t-16] + s0(w[t-15]) + w[t-7] + s1(w[t-2]), four at a time */
                __m128i last = w[(i + 3) & 3], seven = _mm_alignr_epi8(last, w[(i + 2) & 3], 4);
                __m128i x = _mm_add_epi32(_mm_sha256msg1_epu32(w[i & 3], w[(i + 1) & 3]), seven);
                w[i & 3] = _mm_sha256msg2_epu32(x, last);
            }
            __m128i wk = _mm_add_epi32(w[i & 3], _mm_load_si128((const __m128i *)(const void *)(sha_k + 4 * i)));
            cdgh = _mm_sha256rnds2_epu32(cdgh, abef, wk);
            abef = _mm_sha256rnds2_epu32(abef, cdgh, _mm_shuffle_epi32(wk, 0x0E));
        }
        abef = _mm_add_epi32(abef, abef_before);
        cdgh = _mm_add_epi32(cdgh, cdgh_before);
    }
    __m128i feba = _mm_shuffle_epi32(abef, 0x1B), dchg = _mm_shuffle_epi32(cdgh, 0xB1);
    _mm_storeu_si128((__m128i *)(void *)h, _mm_blend_epi16(feba, dchg, 0xF0));
    _mm_storeu_si128((__m128i *)(void *)(h + 4), _mm_alignr_epi8(dchg, feba, 8));
}
#endif

static void sha256_blocks(uint32_t h[8], const uint8_t *p, size_t n_blocks)
{
#if defined(__x86_64__)
    if (has_sha) {
        sha_ni(h, p, n_blocks);
        return;
    }
#endif
    sha256_portable(h, p, n_blocks);
}

void dt_sha256_init(dt_sha256 *s)
{
    static const uint32_t start[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                      0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
    pthread_once(&once, prepare_tables);
    memset(s, 0, sizeof(*s));
    memcpy(s->h, start, sizeof(start));
}

void dt_sha256_add(dt_sha256 *s, const void *p, size_t bytes)
{
    const uint8_t *at = p;
    s->bytes += bytes;
    if (s->fill > 0) {
        size_t n = sizeof(s->block) - s->fill;
        n = n < bytes ? n : bytes;
        memcpy(s->block + s->fill, at, n);
        s->fill += (uint32_t)n;
        at += n;
        bytes -= n;
        if (s->fill < sizeof(s->block)) {
            return;
        }
        sha256_blocks(s->h, s->block, 1);
        s->fill = 0;
    }
    sha256_blocks(s->h, at, bytes / 64);
    s->fill = (uint32_t)(bytes % 64);
    if (s->fill > 0) {
        memcpy(s->block, at + (bytes - s->fill), s->fill);
    }
}

void dt_sha256_end(dt_sha256 *s, uint8_t out[32])
{
    const uint64_t n_bits = s->bytes * 8;
    uint8_t tail[72] = {0x80}; /* one bit, zeros up to 56 mod 64, then the length in bits */
    size_t n_pad = (s->fill < 56 ? 56 : 120) - s->fill;
    for (int i = 0; i < 8; i++) {
        tail[n_pad + (size_t)i] = (uint8_t)(n_bits >> (56 - 8 * i));
    }
    dt_sha256_add(s, tail, n_pad + 8);
    for (int i = 0; i < 32; i++) {
        out[i] = (uint8_t)(s->h[i / 4] >> (24 - 8 * (i % 4)));
    }
}

void dt_hex(const uint8_t *p, size_t bytes, char *out)
{
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < bytes; i++) {
        out[2 * i] = digits[p[i] >> 4];
        out[2 * i + 1] = digits[p[i] & 15];
    }
    out[2 * bytes] = '\0';
}

/* ---- CRC-32C: polynomial 0x1EDC6F41, reflected, ones before and after ---- */

/* Slicing by 8 (Kounavis and Berry 2005). */
static uint32_t crc32c_portable(uint32_t r, const uint8_t *p, size_t bytes)
{
    for (; bytes >= 8; bytes -= 8, p += 8) {
        uint32_t a = r ^ load32le(p), b = load32le(p + 4);
        r = crc_tables[7][a & 0xff] ^ crc_tables[6][a >> 8 & 0xff] ^ crc_tables[5][a >> 16 & 0xff] ^
            crc_tables[4][a >> 24] ^ crc_tables[3][b & 0xff] ^ crc_tables[2][b >> 8 & 0xff] ^
            crc_tables[1][b >> 16 & 0xff] ^ crc_tables[0][b >> 24];
    }
    for (; bytes > 0; bytes--, p++) {
        r = r >> 8 ^ crc_tables[0][(r ^ *p) & 0xff];
    }
    return r;
}

#if defined(__x86_64__)
__attribute__((target("sse4.2"))) static uint32_t crc_sse42(uint32_t r, const uint8_t *p, size_t bytes)
{
    uint64_t wide = r;
    for (; bytes >= 8; bytes -= 8, p += 8) {
        wide = _mm_crc32_u64(wide, load64le(p));
    }
    r = (uint32_t)wide;
    for (; bytes > 0; bytes--, p++) {
        r = _mm_crc32_u8(r, *p);
    }
    return r;
}
#endif

uint32_t dt_crc32c(uint32_t crc, const void *p, size_t bytes)
{
    pthread_once(&once, prepare_tables);
#if defined(__x86_64__)
    if (has_crc) {
        return ~crc_sse42(~crc, p, bytes);
    }
#endif
    return ~crc32c_portable(~crc, p, bytes);
}

/* ---- XXH64, xxhash_spec.md, "XXH64 algorithm description" ---- */

#define XXH_P1 0x9E3779B185EBCA87u
#define XXH_P2 0xC2B2AE3D27D4EB4Fu
#define XXH_P3 0x165667B19E3779F9u
#define XXH_P4 0x85EBCA77C2B2AE63u
#define XXH_P5 0x27D4EB2F165667C5u

static uint64_t rotate_left(uint64_t x, int n)
{
    return x << n | x >> (64 - n);
}

static uint64_t xxh_round(uint64_t acc, uint64_t lane)
{
    return rotate_left(acc + lane * XXH_P2, 31) * XXH_P1;
}

uint64_t dt_hash64(const void *data, size_t bytes, uint64_t seed)
{
    const uint8_t *p = data;
    uint64_t h = seed + XXH_P5;
    size_t left = bytes;
    if (left >= 32) {
        uint64_t acc[4] = {seed + XXH_P1 + XXH_P2, seed + XXH_P2, seed, seed - XXH_P1};
        for (; left >= 32; left -= 32, p += 32) {
            for (int i = 0; i < 4; i++) {
                acc[i] = xxh_round(acc[i], load64le(p + 8 * i));
            }
        }
        h = rotate_left(acc[0], 1) + rotate_left(acc[1], 7) + rotate_left(acc[2], 12) + rotate_left(acc[3], 18);
        for (int i = 0; i < 4; i++) {
            h = (h ^ xxh_round(0, acc[i])) * XXH_P1 + XXH_P4;
        }
    }
    h += bytes;
    for (; left >= 8; left -= 8, p += 8) {
        h = rotate_left(h ^ xxh_round(0, load64le(p)), 27) * XXH_P1 + XXH_P4;
    }
    if (left >= 4) {
        h = rotate_left(h ^ load32le(p) * XXH_P1, 23) * XXH_P2 + XXH_P3;
        left -= 4;
        p += 4;
    }
    for (; left > 0; left--, p++) {
        h = rotate_left(h ^ *p * XXH_P5, 11) * XXH_P1;
    }
    h = (h ^ h >> 33) * XXH_P2;
    h = (h ^ h >> 29) * XXH_P3;
    return h ^ h >> 32;
}
