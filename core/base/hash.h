/* SPDX-License-Identifier: Apache-2.0
 *
 * SHA-256 (FIPS 180-4), CRC-32C (RFC 3720, B.4) and a 64-bit state hash (FNV-1a over 8-byte words is too weak:
 * this is XXH64, github.com/Cyan4973/xxHash, doc/xxhash_spec.md, seed 0). Streaming; threads: one object, one thread.
 */
#ifndef DTRAIN_CORE_BASE_HASH_H
#define DTRAIN_CORE_BASE_HASH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct dt_sha256 {
    uint32_t h[8];
    uint64_t bytes;
    uint8_t block[64];
    uint32_t fill;
} dt_sha256;
void dt_sha256_init(dt_sha256 *s);
void dt_sha256_add(dt_sha256 *s, const void *p, size_t bytes);
void dt_sha256_end(dt_sha256 *s, uint8_t out[32]);
void dt_hex(const uint8_t *p, size_t bytes, char *out); /* 2 * bytes + 1 characters */

uint32_t dt_crc32c(uint32_t crc, const void *p, size_t bytes);  /* start with 0 */
uint64_t dt_hash64(const void *p, size_t bytes, uint64_t seed); /* of several pieces: the last hash is the next seed */

/* Tests: true makes SHA-256 and CRC-32C use their plain code even where the processor has instructions for them. */
void dt_hash_set_portable(bool is_plain);

#endif
