/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads put behind each other: to the byte what one read of all samples gives, wherever they are cut, whichever rows
 * fields have and count; what does not say what its integers are is not joined.
 */
#include <config.h>

#include "train/join.h"

#include "base/err.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { SAMPLES = 23, ROOM = 1 << 16 };
enum { ROWS, POINTERS, COLUMNS, GRID, ROW_OF, SAMPLE_OF, CLASS, KEY, BYTE, N_FIELDS };

static const char *const symbol[] = {"N", "E"};
static const dt_port port[] = {[ROWS] = {"rows", "N 3", DT_F32, 0},
                               [POINTERS] = {"pointers", "N+1", DT_I32, DT_PORT_INDEX(2)},
                               [COLUMNS] = {"columns", "E", DT_I32, DT_PORT_INDEX(1)},
                               [GRID] = {"grid", "4 N 2", DT_F32, 0},
                               [ROW_OF] = {"row_of", "2 N", DT_I32, DT_PORT_INDEX(1)},
                               [SAMPLE_OF] = {"sample_of", "E 2", DT_I32, DT_PORT_INDEX(0)},
                               [CLASS] = {"class", "N", DT_I32, DT_PORT_PLAIN},
                               [KEY] = {"key", "E", DT_I64, 0},
                               [BYTE] = {"byte", "B", DT_U8, 0}};

typedef struct source {
    const dt_port *port;
    uint32_t n_fields;
} source;

static const dt_port *fields(const void *self, uint32_t *n_p)
{
    const source *s = self;
    *n_p = s->n_fields;
    return s->port;
}

static const char *const *symbols(const void *self, uint32_t *n_p)
{
    *n_p = 2;
    return symbol;
}

static dt_status count(const void *self, uint64_t *n_p)
{
    *n_p = SAMPLES;
    return DT_OK;
}

static int64_t rows_of(uint64_t i) /* some have none */
{
    return (int64_t)(i * 7 % 5);
}

static int64_t edges_of(uint64_t i)
{
    return rows_of(i) * (int64_t)(i % 3);
}

static dt_status sizes(const void *self, const uint64_t *index, uint32_t n, int64_t *size)
{
    size[0] = size[1] = 0;
    for (uint32_t i = 0; i < n; i++) {
        size[0] += rows_of(index[i]);
        size[1] += edges_of(index[i]);
    }
    return DT_OK;
}

static dt_status read(void *self, const uint64_t *index, const uint64_t *key, uint32_t n, void *const *out)
{
    int64_t all[2], row = 0, edge = 0;
    DT_TRY(sizes(self, index, n, all));
    ((int32_t *)out[POINTERS])[0] = 0;
    for (uint32_t i = 0; i < n; i++) {
        const int64_t first = row, per_row = (int64_t)(index[i] % 3);
        ((uint8_t *)out[BYTE])[i] = (uint8_t)index[i];
        for (int64_t r = 0; r < rows_of(index[i]); r++, row++) {
            const float value = (float)(index[i] * 100 + (uint64_t)r);
            for (int c = 0; c < 3; c++) {
                ((float *)out[ROWS])[row * 3 + c] = value + (float)c / 4;
            }
            for (int g = 0; g < 4; g++) {
                ((float *)out[GRID])[(g * all[0] + row) * 2] = value;
                ((float *)out[GRID])[(g * all[0] + row) * 2 + 1] = (float)g;
            }
            ((int32_t *)out[ROW_OF])[row] = r == 1 ? -1 : (int32_t)first;
            ((int32_t *)out[ROW_OF])[all[0] + row] = (int32_t)row;
            ((int32_t *)out[CLASS])[row] = (int32_t)r;
            for (int64_t e = 0; e < per_row; e++, edge++) {
                ((int32_t *)out[COLUMNS])[edge] = (int32_t)(first + e % rows_of(index[i]));
                ((int32_t *)out[SAMPLE_OF])[2 * edge] = (int32_t)i;
                ((int32_t *)out[SAMPLE_OF])[2 * edge + 1] = -1;
                ((int64_t *)out[KEY])[edge] = (int64_t)key[i];
            }
            ((int32_t *)out[POINTERS])[row + 1] = (int32_t)edge;
        }
    }
    return DT_OK;
}

static const dt_data_ops ops = {.struct_size = sizeof(dt_data_ops),
                                .fields = fields,
                                .symbols = symbols,
                                .count = count,
                                .sizes = sizes,
                                .read = read};

static void make_buffers(void **out)
{
    for (uint32_t f = 0; f < N_FIELDS; f++) {
        out[f] = malloc(ROOM);
        assert_non_null(out[f]);
        memset(out[f], 0x55, ROOM);
    }
}

/* In reads of so many samples each, the last one of what is left. */
static void join(const dt_samples *s, const uint64_t *index, const uint64_t *key, uint32_t n, uint32_t each,
                 void *const *out)
{
    int64_t total[3] = {0};
    dt_join j;
    assert_int_equal(sizes(NULL, index, n, total), DT_OK);
    total[2] = n;
    dt_join_init(&j, s, total);
    for (uint32_t i = 0; i < n; i += each) {
        const uint32_t some = n - i < each ? n - i : each;
        assert_int_equal(dt_join_append_read(&j, &ops, NULL, index + i, key + i, some, out), DT_OK);
    }
    dt_join_fini(&j);
}

static void test_join(void **state)
{
    const source c = {port, N_FIELDS};
    dt_samples s;
    uint64_t index[SAMPLES], key[SAMPLES];
    void *whole[N_FIELDS], *joined[N_FIELDS];
    assert_int_equal(dt_samples_open(&s, &ops, (void *)(uintptr_t)&c, 1000), DT_OK);
    assert_null(dt_join_find_obstacle(&s));
    for (uint32_t i = 0; i < SAMPLES; i++) {
        index[i] = i * 9 % SAMPLES;
        key[i] = i + 1000;
    }
    make_buffers(whole);
    assert_int_equal(read(NULL, index, key, SAMPLES, whole), DT_OK);
    for (uint32_t each = 1; each <= SAMPLES; each++) {
        make_buffers(joined);
        join(&s, index, key, SAMPLES, each, joined);
        for (uint32_t f = 0; f < N_FIELDS; f++) { /* nothing is written beyond it either */
            assert_memory_equal(joined[f], whole[f], ROOM);
            free(joined[f]);
        }
    }
    for (uint32_t f = 0; f < N_FIELDS; f++) {
        free(whole[f]);
    }
}

static void obstacle(const dt_port *p, bool is_one)
{
    const source c = {p, 1};
    dt_samples s;
    assert_int_equal(dt_samples_open(&s, &ops, (void *)(uintptr_t)&c, 1000), DT_OK);
    if (is_one) {
        assert_non_null(dt_join_find_obstacle(&s));
        assert_string_equal(dt_join_find_obstacle(&s), p->name);
    } else {
        assert_null(dt_join_find_obstacle(&s));
    }
}

static void test_obstacles(void **state)
{
    obstacle(&(dt_port){"class", "N", DT_I32, 0}, true);
    obstacle(&(dt_port){"class", "N", DT_I32, DT_PORT_PLAIN}, false);
    obstacle(&(dt_port){"pointers", "N+1", DT_I32, DT_PORT_PLAIN}, true);
    obstacle(&(dt_port){"pointers", "N+1", DT_I32, DT_PORT_INDEX(2)}, false);
    obstacle(&(dt_port){"lists", "2 N+1", DT_I32, DT_PORT_INDEX(2)}, true);
    obstacle(&(dt_port){"beyond", "N", DT_I32, DT_PORT_INDEX(3)}, true);
    obstacle(&(dt_port){"far", "N", DT_I64, DT_PORT_INDEX(1)}, true);
    obstacle(&(dt_port){"long", "N", DT_I64, 0}, false);
    obstacle(&(dt_port){"matrix", "N N", DT_F32, 0}, true);
    obstacle(&(dt_port){"table", "3 4", DT_F32, 0}, true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_join),
        cmocka_unit_test(test_obstacles),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
