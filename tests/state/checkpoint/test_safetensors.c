/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests of core/state/checkpoint/safetensors.c: a file of the Python package, our own files, and hostile headers.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "guarded.h"

#include "base/err.h"
#include "base/fault.h"
#include "base/fs.h"
#include "base/mem.h"
#include "state/checkpoint/safetensors.h"

static char file_path[512];

static int begin(void **state)
{
    dt_fault_reset(NULL);
    snprintf(file_path, sizeof(file_path), "test_safetensors.%ld.tmp", (long)getpid());
    return 0;
}

static int end(void **state)
{
    dt_fault_reset(NULL);
    (void)unlink(file_path);
    return 0;
}

/* ---- theirs ---- */

static void test_a_file_of_the_python_package(void **state)
{
    char path[4096];
    const char *src = getenv("DT_SRCDIR");
    snprintf(path, sizeof(path), "%s/tests/fixtures/safetensors/python.safetensors", src != NULL ? src : ".");
    dt_safetensors *s = NULL;
    assert_int_equal(dt_safetensors_open(path, &s), DT_OK);
    assert_int_equal(dt_safetensors_count(s), 7);
    assert_string_equal(dt_safetensors_at(s, 0)->name, "count"); /* by name */
    assert_string_equal(dt_safetensors_at(s, 6)->name, "scalar");
    assert_string_equal(dt_safetensors_metadata(s, "note"), "f\xC3\xBCr tests");
    assert_null(dt_safetensors_metadata(s, "other"));
    assert_null(dt_safetensors_find(s, "nothing"));

    const dt_st_tensor *t = dt_safetensors_find(s, "count");
    static const int64_t count[3] = {1, -2, 3};
    assert_int_equal(t->dtype, DT_ST_I64);
    assert_int_equal(t->bytes, sizeof(count));
    assert_memory_equal(t->data, count, sizeof(count));
    t = dt_safetensors_find(s, "scalar");
    static const double scalar = 7.5;
    assert_int_equal(t->n_dims, 0);
    assert_memory_equal(t->data, &scalar, sizeof(scalar));
    t = dt_safetensors_find(s, "half");
    assert_int_equal(t->dtype, DT_ST_F16);
    assert_memory_equal(t->data, "\x00\x3c\x00\xb8", 4);
    t = dt_safetensors_find(s, "flags");
    assert_int_equal(t->dtype, DT_ST_BOOL);
    assert_memory_equal(t->data, "\x01\x00\x01", 3);
    t = dt_safetensors_find(s, "none");
    assert_int_equal(t->bytes, 0);
    assert_int_equal(t->dim[1], 4);

    float weight[6] = {0}, bias[3] = {0};
    static const int64_t weight_dim[2] = {2, 3}, bias_dim[1] = {3};
    const dt_ckpt_tensor want[2] = {{"layer.weight", weight_dim, 2, weight}, {"layer.bias", bias_dim, 1, bias}};
    assert_int_equal(dt_safetensors_load(s, want, 2, DT_LOAD_EXTRA_OK), DT_OK);
    static const float want_weight[6] = {0, 0.5f, 1, 1.5f, 2, 2.5f}, want_bias[3] = {-1.5f, 2.25f, 1e-30f};
    assert_memory_equal(weight, want_weight, sizeof(weight));
    assert_memory_equal(bias, want_bias, sizeof(bias));
    dt_safetensors_close(s);
}

/* ---- ours ---- */

static void test_written_files_are_deterministic_and_read_back(void **state)
{
    static const float w[4] = {1, 2, 3, 4};
    static const double d[1] = {9};
    static const uint8_t b[3] = {1, 2, 3};
    const dt_st_tensor tensors[] = {
        {.name = "z.byte", .dtype = DT_ST_U8, .n_dims = 1, .dim = {3}, .data = b},
        {.name = "b \"quoted\" \xC3\xBC", .dtype = DT_ST_F32, .n_dims = 2, .dim = {2, 2}, .data = w},
        {.name = "a", .dtype = DT_ST_F32, .n_dims = 0, .data = w},
        {.name = "empty", .dtype = DT_ST_F32, .n_dims = 2, .dim = {0, 7}, .data = NULL},
        {.name = "wide", .dtype = DT_ST_F64, .n_dims = 1, .dim = {1}, .data = d},
    };
    static const char *const metadata[][2] = {{"format", "pt"}};
    assert_int_equal(dt_safetensors_write(file_path, tensors, 5, metadata, 1), DT_OK);
    char *bytes = NULL;
    size_t n = 0;
    assert_int_equal(dt_fs_read_all(file_path, 10000, &bytes, &n), DT_OK);
    /* widest first, then by name; header padded to eight bytes */
    static const char header[] =
        "{\"__metadata__\":{\"format\":\"pt\"},"
        "\"wide\":{\"dtype\":\"F64\",\"shape\":[1],\"data_offsets\":[0,8]},"
        "\"a\":{\"dtype\":\"F32\",\"shape\":[],\"data_offsets\":[8,12]},"
        "\"b \\\"quoted\\\" \xC3\xBC\":{\"dtype\":\"F32\",\"shape\":[2,2],\"data_offsets\":[12,28]},"
        "\"empty\":{\"dtype\":\"F32\",\"shape\":[0,7],\"data_offsets\":[28,28]},"
        "\"z.byte\":{\"dtype\":\"U8\",\"shape\":[3],\"data_offsets\":[28,31]}}";
    assert_memory_equal(bytes + 8, header, sizeof(header) - 1);
    assert_int_equal((uint8_t)bytes[0] + 256 * (uint8_t)bytes[1], (sizeof(header) - 1 + 7) / 8 * 8);
    assert_int_equal(n, 8 + (sizeof(header) - 1 + 7) / 8 * 8 + 31);

    dt_safetensors *s = NULL;
    assert_int_equal(dt_safetensors_open(file_path, &s), DT_OK);
    assert_memory_equal(dt_safetensors_find(s, "b \"quoted\" \xC3\xBC")->data, w, sizeof(w));
    assert_memory_equal(dt_safetensors_find(s, "z.byte")->data, b, sizeof(b));
    dt_safetensors_close(s);
    dt_free(bytes);

    assert_int_equal(dt_safetensors_write(file_path, NULL, 0, NULL, 0), DT_OK); /* no tensors at all */
    assert_int_equal(dt_safetensors_open(file_path, &s), DT_OK);
    assert_int_equal(dt_safetensors_count(s), 0);
    assert_null(dt_safetensors_find(s, "a"));
    dt_safetensors_close(s);
}

static void test_writer_refuses(void **state)
{
    static const float w[4];
    const dt_st_tensor twice[] = {{.name = "a", .dtype = DT_ST_F32, .n_dims = 1, .dim = {4}, .data = w},
                                  {.name = "a", .dtype = DT_ST_F16, .n_dims = 1, .dim = {4}, .data = w}};
    assert_int_equal(dt_safetensors_write(file_path, twice, 2, NULL, 0), DT_EINVAL);
    assert_non_null(strstr(dt_error_text(), "two tensors are called a"));
    const dt_st_tensor bad[] = {{.name = "neg", .dtype = DT_ST_F32, .n_dims = 1, .dim = {-1}, .data = w},
                                {.name = "big", .dtype = DT_ST_F32, .n_dims = 2, .dim = {INT64_MAX, 8}, .data = w},
                                {.name = "deep", .dtype = DT_ST_F32, .n_dims = 9, .data = w},
                                {.name = "odd", .dtype = DT_ST_F4, .n_dims = 1, .dim = {3}, .data = w}};
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(dt_safetensors_write(file_path, &bad[i], 1, NULL, 0), DT_EINVAL);
        assert_non_null(strstr(dt_error_text(), "cannot be stored"));
    }
    assert_false(dt_fs_is_file(file_path));
}

/* ---- loading by name ---- */

static const int64_t dim_23[2] = {2, 3}, dim_32[2] = {3, 2}, dim_4[1] = {4};

static dt_safetensors *open_model(void)
{
    static const float w[6] = {1, 2, 3, 4, 5, 6};
    static const uint16_t h[4];
    const dt_st_tensor tensors[] = {{.name = "w", .dtype = DT_ST_F32, .n_dims = 2, .dim = {2, 3}, .data = w},
                                    {.name = "b", .dtype = DT_ST_F32, .n_dims = 1, .dim = {4}, .data = w},
                                    {.name = "h", .dtype = DT_ST_BF16, .n_dims = 1, .dim = {4}, .data = h}};
    dt_safetensors *s = NULL;
    assert_int_equal(dt_safetensors_write(file_path, tensors, 3, NULL, 0), DT_OK);
    assert_int_equal(dt_safetensors_open(file_path, &s), DT_OK);
    return s;
}

static void test_another_model_is_refused_by_name_and_shape(void **state)
{
    dt_safetensors *s = open_model();
    float w[6] = {0}, b[4] = {0}, x[4] = {7, 7, 7, 7};
    static const float zero[6];
    const dt_ckpt_tensor turned[] = {{"b", dim_4, 1, b}, {"w", dim_32, 2, w}};
    assert_int_equal(dt_safetensors_load(s, turned, 2, DT_LOAD_EXTRA_OK), DT_ESHAPE);
    assert_non_null(strstr(dt_error_text(), "w is [2,3] in the file, the model has [3,2]"));
    assert_memory_equal(b, zero, sizeof(b)); /* nothing moved, not even what fits */
    const dt_ckpt_tensor missing[] = {{"b", dim_4, 1, b}, {"w", dim_23, 2, w}, {"x", dim_4, 1, x}};
    assert_int_equal(dt_safetensors_load(s, missing, 3, DT_LOAD_EXTRA_OK), DT_ESHAPE);
    assert_non_null(strstr(dt_error_text(), "x [4] is not in the file"));
    assert_memory_equal(b, zero, sizeof(b));
    assert_int_equal(dt_safetensors_load(s, missing, 2, DT_LOAD_EXACT), DT_ESHAPE);
    assert_non_null(strstr(dt_error_text(), "h [4] is in the file, the model has no such tensor"));
    const dt_ckpt_tensor half[] = {{"h", dim_4, 1, b}};
    assert_int_equal(dt_safetensors_load(s, half, 1, DT_LOAD_EXTRA_OK), DT_ESHAPE);
    assert_non_null(strstr(dt_error_text(), "BF16"));
    const dt_ckpt_tensor many[] = {
        {"1", dim_4, 1, x}, {"2", dim_4, 1, x}, {"3", dim_4, 1, x}, {"4", dim_4, 1, x}, {"5", dim_4, 1, x}};
    assert_int_equal(dt_safetensors_load(s, many, 5, DT_LOAD_EXACT), DT_ESHAPE);
    assert_non_null(strstr(dt_error_text(), "4 [4] is not in the file; and 4 more"));

    assert_int_equal(dt_safetensors_load(s, missing, 2, DT_LOAD_EXTRA_OK), DT_OK);
    assert_true(w[5] == 6 && b[3] == 4 && x[0] == 7);
    dt_safetensors_close(s);
}

/* ---- hostile headers ---- */

/* A file of this header and n data bytes; the answer must be DT_EDATA and say why. */
static void expect_refusal(const char *header, size_t n_data, const char *why)
{
    const size_t n = strlen(header);
    uint8_t *bytes = guarded_take(8 + n + n_data);
    assert_non_null(bytes);
    bytes[0] = (uint8_t)n;
    bytes[1] = (uint8_t)(n >> 8);
    bytes[2] = (uint8_t)(n >> 16);
    memcpy(bytes + 8, header, n);
    dt_safetensors *s = NULL;
    assert_int_equal(dt_safetensors_open_mem(bytes, 8 + n + n_data, "x.st", &s), DT_EDATA);
    if (strstr(dt_error_text(), why) == NULL || strstr(dt_error_text(), "x.st") == NULL) {
        fail_msg("%s: \"%s\" does not say \"%s\"", header, dt_error_text(), why);
    }
    guarded_give(bytes, 8 + n + n_data);
}

#define T(dtype, shape, offsets) "{\"dtype\":\"" dtype "\",\"shape\":" shape ",\"data_offsets\":" offsets "}"

/* A header of 1 MB whose metadata become 200000 texts and more. */
static void expect_too_many_keys(void)
{
    enum { KEYS = 100001, BYTES = 16 * KEYS + 64 };
    char *text = malloc(BYTES);
    assert_non_null(text);
    size_t at = (size_t)snprintf(text, BYTES, "{\"__metadata__\":{");
    for (int i = 0; i < KEYS; i++) {
        at += (size_t)snprintf(text + at, BYTES - at, "%s\"%x\":\"\"", i > 0 ? "," : "", (unsigned)i);
    }
    snprintf(text + at, BYTES - at, "}}");
    expect_refusal(text, 0, "__metadata__ has more than 100000 keys");
    free(text);
}

static void test_hostile_headers(void **state)
{
    expect_refusal("[]", 0, "does not begin with {");
    expect_refusal(" {}", 0, "does not begin with {");
    expect_refusal("{", 0, "the text ends here");
    expect_refusal("{} x", 0, "expected nothing after");
    expect_refusal("{}", 1, "1 bytes after the last tensor");
    expect_refusal("{\"a\":3}", 0, "tensor must be an object");
    expect_refusal("{\"a\":{}}", 0, "needs dtype, shape and data_offsets");
    expect_refusal("{\"a\":{\"dtype\":\"F32\",\"shape\":[1]}}", 4, "needs dtype, shape and data_offsets");
    expect_refusal("{\"a\":" T("F31", "[1]", "[0,4]") "}", 4, "unknown dtype \"F31\"");
    expect_refusal("{\"a\":{\"dtype\":1}}", 4, "dtype must be a string");
    expect_refusal("{\"a\":" T("F32", "1", "[0,4]") "}", 4, "shape must be a list");
    expect_refusal("{\"a\":" T("F32", "[-1]", "[0,4]") "}", 4, "whole number from 0 on");
    expect_refusal("{\"a\":" T("F32", "[1.0]", "[0,4]") "}", 4, "whole number from 0 on");
    expect_refusal("{\"a\":" T("F32", "[\"1\"]", "[0,4]") "}", 4, "whole number from 0 on");
    expect_refusal("{\"a\":" T("F32", "[18446744073709551617]", "[0,4]") "}", 4, "whole number from 0 on");
    expect_refusal("{\"a\":" T("F32", "[1,1,1,1,1,1,1,1,1]", "[0,4]") "}", 4, "more than 8 dimensions");
    expect_refusal("{\"a\":" T("F32", "[2]", "[0,4]") "}", 4, "do not make 4 bytes");
    expect_refusal("{\"a\":" T("F32", "[4294967296,4294967296]", "[0,4]") "}", 4, "do not make 4 bytes");
    expect_refusal("{\"a\":" T("F32", "[4611686018427387905]", "[0,4]") "}", 4, "do not make 4 bytes");
    expect_refusal("{\"a\":" T("F4", "[3]", "[0,1]") "}", 1, "do not make 1 bytes");
    expect_refusal("{\"a\":" T("F32", "[1]", "[4,0]") "}", 4, "before they begin");
    expect_refusal("{\"a\":" T("F32", "[1]", "[0]") "}", 4, "whole number");
    expect_refusal("{\"a\":" T("F32", "[1]", "[0,4,8]") "}", 4, "list of two numbers");
    expect_refusal("{\"a\":" T("F32", "[1]", "{}") "}", 4, "list of two numbers");
    expect_refusal("{\"a\":" T("F32", "[2]", "[0,8]") "}", 4, "ends at 8, the data have 4 bytes");
    expect_refusal("{\"a\":" T("F32", "[1]", "[4,8]") "}", 8, "does not begin where");
    expect_refusal("{\"a\":" T("F32", "[1]", "[0,4]") ",\"b\":" T("F32", "[1]", "[0,4]") "}", 4,
                   "does not begin where");
    expect_refusal("{\"a\":" T("F32", "[1]", "[0,4]") ",\"b\":" T("F32", "[2]", "[2,10]") "}", 10,
                   "does not begin where");
    expect_refusal("{\"a\":" T("F32", "[1]", "[0,4]") ",\"b\":" T("F32", "[1]", "[8,12]") "}", 12,
                   "does not begin where");
    expect_refusal("{\"a\":" T("F32", "[1]", "[0,4]") "}", 5, "1 bytes after the last tensor");
    expect_refusal("{\"a\":" T("F32", "[1]", "[0,4]") ",\"a\":" T("F32", "[1]", "[4,8]") "}", 8,
                   "two tensors are called a");
    expect_refusal("{\"a\":{\"dtype\":\"F32\",\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}", 4,
                   "given twice");
    expect_refusal("{\"a\":{\"stride\":[1]}}", 4, "key \"stride\" is unknown");
    expect_refusal("{\"__metadata__\":[]}", 0, "__metadata__ must be an object");
    expect_too_many_keys();
    expect_refusal("{\"__metadata__\":{\"a\":1}}", 0, "strings to strings");
    expect_refusal("{\"__metadata__\":{\"a\":\"1\",\"a\":\"2\"}}", 0, "key a is twice");
    expect_refusal("{\"a\":" T("F32", "[1]", "[0,8]") ",\"b\":" T("F32", "[1]", "[4,8]") "}", 8, "do not make 8 bytes");
    expect_refusal("{\"__metadata__\":{},\"__metadata__\":{}}", 0, "__metadata__ is given twice");
    expect_refusal("{\"a\xC0\x80\":1}", 0, "not valid UTF-8");
    expect_refusal("{\"a\":[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[", 0,
                   "tensor must be an object");

    static const uint8_t huge[16] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f, '{', '}'};
    dt_safetensors *s = NULL;
    assert_int_equal(dt_safetensors_open_mem(huge, sizeof(huge), "x.st", &s), DT_EDATA);
    assert_non_null(strstr(dt_error_text(), "truncated, or not a safetensors file"));
    assert_int_equal(dt_safetensors_open_mem(huge, 7, "x.st", &s), DT_EDATA);
    assert_non_null(strstr(dt_error_text(), "7 bytes are not a safetensors file"));
    static const uint8_t none[8] = {0};
    assert_int_equal(dt_safetensors_open_mem(none, 8, "x.st", &s), DT_EDATA);
    assert_int_equal(dt_safetensors_open("no/such/file.safetensors", &s), DT_ENOTFOUND);
    assert_non_null(strstr(dt_error_text(), "no/such/file.safetensors"));
}

/* Files around the shortest one, each in a block of its own size: no byte after the last is looked at. A header that
 * claims 0, 1 or all of the bytes that there are, and one more. */
static void test_short_files(void **state)
{
    for (size_t n = 0; n <= 24; n++) {
        for (uint64_t claim = 0; claim <= 18; claim++) {
            static const char header[] = "{                 ";
            uint8_t *bytes = guarded_take(n);
            dt_safetensors *s = NULL;
            assert_non_null(bytes);
            if (n > 0) {
                bytes[0] = (uint8_t)claim;
            }
            if (n > 8) {
                memcpy(bytes + 8, header, n - 8);
            }
            if (claim >= 2 && 8 + claim <= n) {
                bytes[8 + claim - 1] = '}';
            }
            const bool is_whole = claim >= 2 && n == 8 + claim;
            assert_int_equal(dt_safetensors_open_mem(bytes, n, "x.st", &s), is_whole ? DT_OK : DT_EDATA);
            if (is_whole) {
                assert_int_equal(dt_safetensors_count(s), 0);
                dt_safetensors_close(s);
            }
            guarded_give(bytes, n);
        }
    }
}

static void test_what_is_allowed(void **state)
{
    static const char header[] =
        "{\"b\":" T("F4", "[2]", "[4,5]") ",\"__metadata__\":{\"k\":\"\"},\"a\":" T("F32", "[]", "[0,4]") "}   ";
    uint8_t bytes[300] = {(uint8_t)(sizeof(header) - 1)};
    memcpy(bytes + 8, header, sizeof(header) - 1);
    dt_safetensors *s = NULL;
    assert_int_equal(dt_safetensors_open_mem(bytes, 8 + sizeof(header) - 1 + 5, "x.st", &s), DT_OK);
    assert_string_equal(dt_safetensors_metadata(s, "k"), "");
    assert_int_equal(dt_safetensors_find(s, "b")->bytes, 1);
    assert_string_equal(dt_st_dtype_name(dt_safetensors_find(s, "b")->dtype), "F4");
    dt_safetensors_close(s);
    dt_safetensors_close(NULL);
}

/* Each cut of a file, each changed byte of its header: refused or consistent, never a crash. */
static void test_cut_and_changed_files(void **state)
{
    dt_safetensors_close(open_model());
    char *bytes = NULL;
    size_t n = 0;
    assert_int_equal(dt_fs_read_all(file_path, 10000, &bytes, &n), DT_OK);
    dt_safetensors *s = NULL;
    for (size_t cut = 0; cut < n; cut++) {
        char *copy = guarded_take(cut);
        assert_non_null(copy);
        memcpy(copy, bytes, cut);
        assert_int_equal(dt_safetensors_open_mem(copy, cut, "x.st", &s), DT_EDATA);
        guarded_give(copy, cut);
    }
    for (size_t at = 0; at < n - 48; at++) {
        char before = bytes[at];
        for (int c = 0; c < 256; c++) {
            bytes[at] = (char)c;
            dt_status st = dt_safetensors_open_mem(bytes, n, "x.st", &s);
            assert_true(st == DT_OK || st == DT_EDATA);
            if (st == DT_OK) {
                dt_safetensors_close(s);
            }
        }
        bytes[at] = before;
    }
    dt_free(bytes);
}

static void test_out_of_memory_anywhere(void **state)
{
    dt_safetensors_close(open_model());
    const uint64_t live = dt_alloc_live_bytes();
    uint64_t fired = 1;
    for (int n = 1; fired != 0; n++) {
        char spec[32];
        snprintf(spec, sizeof(spec), "alloc:%d", n);
        dt_fault_reset(spec);
        dt_safetensors *s = NULL;
        dt_status st = dt_safetensors_open(file_path, &s);
        fired = dt_fault_count();
        assert_int_equal(st, fired != 0 ? DT_ENOMEM : DT_OK);
        dt_safetensors_close(s);
        assert_int_equal(dt_alloc_live_bytes(), live);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_a_file_of_the_python_package, begin, end),
        cmocka_unit_test_setup_teardown(test_written_files_are_deterministic_and_read_back, begin, end),
        cmocka_unit_test_setup_teardown(test_writer_refuses, begin, end),
        cmocka_unit_test_setup_teardown(test_another_model_is_refused_by_name_and_shape, begin, end),
        cmocka_unit_test_setup_teardown(test_hostile_headers, begin, end),
        cmocka_unit_test_setup_teardown(test_short_files, begin, end),
        cmocka_unit_test_setup_teardown(test_what_is_allowed, begin, end),
        cmocka_unit_test_setup_teardown(test_cut_and_changed_files, begin, end),
        cmocka_unit_test_setup_teardown(test_out_of_memory_anywhere, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
