/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests of core/base/hash.c. Known answers: FIPS 180-4 examples, RFC 3720 B.4, and for buf[i] = 131 i + 7 mod 256 the
 * Python packages hashlib, crc32c and xxhash. Both lanes (plain code, processor instructions) are run.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "base/hash.h"

static uint8_t buf[1001];

static int plain(void **state)
{
    dt_hash_set_portable(true);
    return 0;
}

static int fast(void **state)
{
    dt_hash_set_portable(false);
    return 0;
}

static const char *sha_hex(const void *p, size_t bytes, size_t piece)
{
    static char hex[65];
    uint8_t out[32];
    dt_sha256 s;
    dt_sha256_init(&s);
    for (size_t at = 0; at < bytes; at += piece) {
        dt_sha256_add(&s, (const char *)p + at, bytes - at < piece ? bytes - at : piece);
    }
    dt_sha256_end(&s, out);
    dt_hex(out, 32, hex);
    return hex;
}

static void test_sha256(void **state)
{
    static const struct {
        size_t bytes;
        const char *want;
    } rows[] = {
        {0, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
        {1, "ca358758f6d27e6cf45272937977a748fd88391db679ceda7dc7bf1f005ee879"},
        {31, "b40a28e1f3c2313f0c11d4cac74153540d766e4fca27dbbaedfbc2ea6c1e8d30"},
        {63, "6073f83b09ae82016cdbe24c18996c48f0eaa08ca675d0f6b90b807fc29e0149"},
        {64, "b337ba9b0c69c391364e985fdcb23a889887e59800832c92fbfa22b8a3c40304"},
        {100, "b493defffa04821dbe4b757ed039293591680fd3f05a08182b145193205fcba0"},
        {1000, "533b698850849b7908b20a22658f639c0b2a476f1791f85f50188287c31a9aba"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        static const size_t pieces[] = {1, 7, 63, 64, 65, 5000};
        for (size_t k = 0; k < sizeof(pieces) / sizeof(pieces[0]); k++) {
            assert_string_equal(sha_hex(buf, rows[i].bytes, pieces[k]), rows[i].want);
        }
    }
    assert_string_equal(sha_hex("abc", 3, 3), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    assert_string_equal(sha_hex("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", 56, 56),
                        "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
    /* a million times 'a': many blocks */
    dt_sha256 s;
    uint8_t out[32];
    char hex[65], as[1000];
    memset(as, 'a', sizeof(as));
    dt_sha256_init(&s);
    for (int i = 0; i < 1000; i++) {
        dt_sha256_add(&s, as, sizeof(as));
    }
    dt_sha256_end(&s, out);
    dt_hex(out, 32, hex);
    assert_string_equal(hex, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

static void test_crc32c(void **state)
{
    static const struct {
        size_t bytes;
        uint32_t want;
    } rows[] = {{0, 0},           {1, 0x86b737ba},  {3, 0xea2e826f},  {7, 0xf8078c71},   {8, 0x0e9db014},
                {31, 0x1b063d5a}, {33, 0x84f0e4cf}, {64, 0x9eb01d51}, {1000, 0x8dba050d}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        assert_int_equal(dt_crc32c(0, buf, rows[i].bytes), rows[i].want);
        for (size_t cut = 0; cut <= rows[i].bytes; cut += 13) {
            uint32_t c = dt_crc32c(0, buf, cut);
            assert_int_equal(dt_crc32c(c, buf + cut, rows[i].bytes - cut), rows[i].want);
        }
    }
    assert_int_equal(dt_crc32c(0, "123456789", 9), 0xe3069283);
    static const uint8_t zeros[32];
    assert_int_equal(dt_crc32c(0, zeros, 32), 0x8a9136aa); /* RFC 3720, B.4 */
}

static void test_hash64(void **state)
{
    static const struct {
        size_t bytes;
        uint64_t want0, want1; /* seeds 0 and 2654435761 */
    } rows[] = {
        {0, 0xef46db3751d8e999, 0xac75fda2929b17ef},   {1, 0xa96c7f0ce858bbb7, 0x84e535b36672440d},
        {3, 0xbed43740ee6332bb, 0xb77b485431ce5d},     {4, 0xfa212ae44b3bb23d, 0x60492c4bfcb70cac},
        {7, 0x2744460dd675d2c0, 0xcdf83b729545b016},   {8, 0x994b676b71ce94dd, 0xf424edebfea8d23f},
        {31, 0x6711d55e306b5d8f, 0xfa1259cc8b20eb58},  {32, 0x7f7b8e3bc5d6e25, 0x920f3e10a5db09c6},
        {33, 0x9f85eeb4e1cbe9f, 0x3d805e8712cb4890},   {63, 0xb7c9968c066cb6a5, 0x184bc5097530bb9a},
        {64, 0x50d4159a0411632e, 0x94667e10d68b3991},  {100, 0x9ddada11d3dc2d8f, 0x5766be6782b96389},
        {1000, 0xbf0bdbcc82eb373, 0xb43e358553049780},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        assert_true(dt_hash64(buf, rows[i].bytes, 0) == rows[i].want0);
        assert_true(dt_hash64(buf, rows[i].bytes, 2654435761u) == rows[i].want1);
    }
}

static void test_every_bit_counts(void **state)
{
    const uint64_t want = dt_hash64(buf, 100, 0);
    const uint32_t crc = dt_crc32c(0, buf, 100);
    for (int i = 0; i < 800; i++) {
        buf[i / 8] ^= (uint8_t)(1 << i % 8);
        assert_true(dt_hash64(buf, 100, 0) != want);
        assert_int_not_equal(dt_crc32c(0, buf, 100), crc);
        buf[i / 8] ^= (uint8_t)(1 << i % 8);
    }
}

int main(void)
{
    for (size_t i = 0; i < sizeof(buf); i++) {
        buf[i] = (uint8_t)(i * 131 + 7);
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_sha256, plain),
        cmocka_unit_test_setup(test_sha256, fast),
        cmocka_unit_test_setup(test_crc32c, plain),
        cmocka_unit_test_setup(test_crc32c, fast),
        cmocka_unit_test(test_hash64),
        cmocka_unit_test(test_every_bit_counts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
