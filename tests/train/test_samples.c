/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests of core/train/samples.c: what a data component may say about its fields; how a leaf is cut into slices and
 * packed.
 */
#include <config.h>

#include "train/samples.h"

#include "base/err.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { MAX_FIELDS = 66, MAX_SYMBOLS = 17 };

/* A data component whose every answer a test can choose. Sample i has 1 + i % 4 of the first symbol, twice that of the
 * second. */
typedef struct source {
    uint64_t count;
    dt_port field[MAX_FIELDS];
    const char *symbol[MAX_SYMBOLS];
    uint32_t n_fields, n_symbols;
    int64_t size_at_3; /* what sample 3 claims of the first symbol; 0 = the truth */
} source;

static const dt_port *fields(const void *self, uint32_t *n)
{
    *n = ((const source *)self)->n_fields;
    return ((const source *)self)->field;
}

static const char *const *symbols(const void *self, uint32_t *n)
{
    *n = ((const source *)self)->n_symbols;
    return ((const source *)self)->symbol;
}

static dt_status count(const void *self, uint64_t *n)
{
    *n = ((const source *)self)->count;
    return DT_OK;
}

static dt_status sizes(const void *self, const uint64_t *index, uint32_t n, int64_t *size)
{
    const source *s = self;
    int64_t total = 0;
    for (uint32_t i = 0; i < n; i++) {
        total += index[i] == 3 && s->size_at_3 != 0 ? s->size_at_3 : 1 + (int64_t)(index[i] % 4);
    }
    for (uint32_t k = 0; k < s->n_symbols; k++) {
        size[k] = (k + 1) * total;
    }
    return DT_OK;
}

static dt_status read_samples(void *self, const uint64_t *index, const uint64_t *key, uint32_t n, void *const *out)
{
    memset(out[0], 1, 4);
    return DT_OK;
}

static const dt_data_ops ops = {.struct_size = sizeof(ops),
                                .fields = fields,
                                .symbols = symbols,
                                .count = count,
                                .sizes = sizes,
                                .read = read_samples};

static source two_fields(void)
{
    return (source){.count = 100,
                    .n_fields = 2,
                    .field = {{"x", "N 3", DT_F32, 0}, {"first", "B+1", DT_I64, 0}},
                    .n_symbols = 2,
                    .symbol = {"N", "E"}};
}

static void refuses(source *s, dt_status st, const char *text)
{
    dt_samples out;
    assert_int_equal(dt_samples_open(&out, &ops, s, 16), st);
    if (strstr(dt_error_text(), text) == NULL) {
        fail_msg("\"%s\" is not in: %s", text, dt_error_text());
    }
}

/* ---- what a data component may say ------------------------------------------------------------------------------ */

static void test_refusals(void **state)
{
    source s = two_fields();
    s.field[0].dtype = 99;
    refuses(&s, DT_EPLUGIN, "the data source: field x has the dtype 99");
    s = two_fields();
    s.field[1].dims = "B+1 Q";
    refuses(&s, DT_EPLUGIN, "data field first: \"Q\" in dims \"B+1 Q\" is neither a number nor a symbol");
    s.field[1].dims = "N 0";
    refuses(&s, DT_EPLUGIN, "the data source: dims of field first are \"N 0\"");
    s.field[1].dims = "1 1 1 1 1 1 1 1 1";
    refuses(&s, DT_EPLUGIN, "expected at most 8 tokens");
    s = two_fields();
    s.field[1].name = NULL;
    refuses(&s, DT_EPLUGIN, "the data source: field 1: its name is NULL");
    s.field[1].name = "x";
    refuses(&s, DT_EPLUGIN, "fields 0 and 1 are both named x");
    s = two_fields();
    s.field[0].dims = NULL;
    refuses(&s, DT_EPLUGIN, "dims of field x is NULL");
    s = two_fields();
    s.symbol[1] = NULL;
    refuses(&s, DT_EPLUGIN, "data symbol 1: its name is NULL");
    s.symbol[1] = "e";
    refuses(&s, DT_EPLUGIN, "data symbol 1: its name \"e\"");
    s = two_fields();
    s.n_symbols = 16;
    refuses(&s, DT_EPLUGIN, "2 fields and 16 symbols; at most 64 and 15");
    s = two_fields();
    s.n_fields = 65;
    refuses(&s, DT_EPLUGIN, "65 fields and 2 symbols");
    s = two_fields();
    s.size_at_3 = -2;
    refuses(&s, DT_EPLUGIN, "sample 3 has -2 of N, outside [0, 2^31)");
    s.size_at_3 = INT64_C(1) << 31;
    refuses(&s, DT_EPLUGIN, "sample 3 has 2147483648 of N");
}

/* ---- slices ------------------------------------------------------------------------------------------------------ */

static void test_cut_and_read(void **state)
{
    source from = two_fields();
    dt_samples s;
    assert_int_equal(dt_samples_open(&s, &ops, &from, 16), DT_OK);
    assert_int_equal(s.sample_max[0], 4);
    assert_true(s.sample_mean[0] == 2.5 && s.sample_mean[1] == 5);
    assert_int_equal(s.slice_cap[0], 16);

    /* samples of 4, 4, 4, 4 rows fill a slice of 16; the fifth waits for the next one */
    const uint64_t big[] = {3, 7, 11, 15, 19}, key[5] = {0};
    int64_t size[DT_SAMPLES_MAX_SYMBOLS + 1];
    uint32_t take = 0;
    assert_int_equal(dt_samples_cut_micro_batch(&s, big, 5, &take, size), DT_OK);
    assert_int_equal(take, 4);
    assert_int_equal(size[0], 16);
    assert_int_equal(size[1], 32);
    assert_int_equal(size[2], 4);
    assert_int_equal(dt_samples_cut_micro_batch(&s, big + 4, 1, &take, size), DT_OK);
    assert_int_equal(take, 1);

    /* one sample beyond any capacity is a slice of its own */
    s.slice_cap[0] = 2;
    assert_int_equal(dt_samples_cut_micro_batch(&s, big, 5, &take, size), DT_OK);
    assert_int_equal(take, 1);
    assert_int_equal(dt_samples_field_bytes(&s, 0, size), 4 * 3 * sizeof(float));
    assert_int_equal(dt_samples_field_bytes(&s, 1, size), 2 * sizeof(int64_t));

    /* fields lie apart, aligned, within what bytes_max promises */
    _Alignas(64) char arena[1024];
    void *field[2] = {NULL, NULL};
    size_t used = 0;
    assert_true(dt_samples_bytes_max(&s, 1) <= sizeof(arena));
    assert_int_equal(dt_samples_read(&s, big, key, 1, size, arena, sizeof(arena), field, &used), DT_OK);
    assert_ptr_equal(field[0], arena);
    assert_ptr_equal(field[1], arena + 64);
    assert_true(used <= dt_samples_bytes_max(&s, 1));
    assert_int_equal(dt_samples_read(&s, big, key, 1, size, arena, 64, field, &used), DT_EPLUGIN);
    assert_non_null(strstr(dt_error_text(), "64 bytes"));
}

static uint64_t part_of_ten(const void *self, uint64_t index)
{
    return index / 10;
}

/* However much room there is, what is read by different parts of a stream is not read together. */
static void test_parts(void **state)
{
    source c = two_fields();
    dt_samples s;
    const uint64_t index[] = {3, 7, 9, 10, 11, 40};
    const uint32_t takes[] = {3, 2, 1};
    int64_t size[DT_SAMPLES_MAX_SYMBOLS + 1];
    c.count = 50;
    assert_int_equal(dt_samples_open(&s, &ops, &c, 1000), DT_OK);
    s.part = part_of_ten;
    for (uint32_t at = 0, i = 0; at < 6; at += takes[i++]) {
        uint32_t take = 0;
        assert_int_equal(dt_samples_cut_micro_batch(&s, index + at, 6 - at, &take, size), DT_OK);
        assert_int_equal(take, takes[i]);
        assert_int_equal(size[s.n_symbols], takes[i]);
    }
    s.part = NULL;
    uint32_t take = 0;
    assert_int_equal(dt_samples_cut_micro_batch(&s, index, 6, &take, size), DT_OK);
    assert_int_equal(take, 6);
}

/* What the sizes of samples are on average, and how far they are from it: 1 to 4 of the first symbol, alike often. */
static void test_sizes_are_measured(void **state)
{
    source c = two_fields();
    dt_samples s;
    assert_int_equal(dt_samples_open(&s, &ops, &c, 16), DT_OK);
    for (int k = 0; k < 2; k++) {
        assert_int_equal(s.sample_max[k], 4 * (k + 1));
        assert_true(s.sample_mean[k] == 2.5 * (k + 1));
        assert_true(fabs(s.sample_std[k] - sqrt(1.25) * (k + 1)) < 1e-12);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_cut_and_read),
        cmocka_unit_test(test_parts),
        cmocka_unit_test(test_sizes_are_measured),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
