/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests of core/engine/graph/params.c.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/fault.h"
#include "base/mem.h"
#include "engine/graph/params.h"

static const int64_t W[2] = {48, 32}, V[1] = {100};

static void add(dt_param_table *t, const char *role, const char *name, const int64_t *dim, uint32_t n, uint32_t init,
                double a)
{
    assert_int_equal(dt_param_table_add(t, role, name, dim, n, init, a), DT_OK);
}

static void refused(dt_param_table *t, const char *role, const char *name, const int64_t *dim, uint32_t n,
                    uint32_t init, double a, dt_status want, const char *text)
{
    uint32_t before = t->n;
    assert_int_equal(dt_param_table_add(t, role, name, dim, n, init, a), want);
    assert_non_null(strstr(dt_error_text(), text));
    assert_int_equal(t->n, before);
}

static void test_layout(void **state)
{
    dt_param_table t = {0};
    const int64_t one[1] = {1};
    add(&t, "perception", "in.b", V, 1, DT_INIT_ZERO, 0);
    add(&t, "perception", "in.w", W, 2, DT_INIT_XAVIER, 1);
    add(&t, "world", "scale", one, 1, DT_INIT_CONST, 2.5);
    assert_int_equal(t.param[0].offset, 0);
    assert_int_equal(t.param[1].offset, 128);
    assert_int_equal(t.param[2].offset, 128 + 48 * 32);
    assert_int_equal(t.total, 128 + 48 * 32 + 64);
    assert_int_equal(t.trained_count, 100 + 48 * 32 + 1);
    assert_ptr_equal(dt_param_table_find(&t, "perception.in.w"), &t.param[1]);
    assert_null(dt_param_table_find(&t, "in.w"));
    dt_param_table_fini(&t);
    assert_int_equal(t.n, 0);
}

/* Statistics are not frozen and not trained, and target networks have frozen copies of them. */
static void test_statistics(void **state)
{
    dt_param_table t = {0};
    uint32_t n = 0;
    add(&t, "net", "w", W, 2, DT_INIT_XAVIER, 1);
    assert_false(t.has_statistics);
    add(&t, "net", "mean", V, 1, DT_INIT_CONST | DT_INIT_STATISTIC, 2.5);
    assert_true(t.has_statistics && t.param[1].is_statistic && !t.param[1].frozen && !t.param[0].is_statistic);
    assert_int_equal(t.param[1].init, DT_INIT_CONST);
    assert_int_equal(t.count, 100 + 48 * 32);
    assert_int_equal(t.trained_count, 48 * 32);
    assert_int_equal(dt_param_end(&t.param[1]), t.total);
    assert_int_equal(dt_param_table_add_target(&t, "net", "target"), DT_OK);
    assert_true(t.param[3].is_statistic && t.param[3].frozen && t.param[3].of == 1);
    assert_int_equal(dt_param_table_freeze(&t, "net.mean", &n), DT_OK);
    assert_int_equal(n, 1);
    assert_true(t.param[1].frozen);
    assert_int_equal(t.trained_count, 48 * 32);
    dt_param_table_fini(&t);
}

/* Constants are frozen from the beginning, begin as given, and freezing counts nothing twice. */
static void test_constants(void **state)
{
    dt_param_table t = {0};
    uint32_t n = 0;
    add(&t, "net", "constant.unit", V, 1, DT_INIT_CONST | DT_INIT_CONSTANT, 2.5);
    add(&t, "net", "w", W, 2, DT_INIT_XAVIER, 1);
    assert_true(t.param[0].frozen && t.param[0].is_constant && !t.param[1].frozen && !t.param[1].is_constant);
    assert_int_equal(t.param[0].init, DT_INIT_CONST);
    assert_int_equal(t.count, 100 + 48 * 32);
    assert_int_equal(t.trained_count, 48 * 32);
    float *arena = calloc((size_t)t.total, sizeof(*arena));
    assert_int_equal(dt_param_table_init(&t, 1, arena), DT_OK);
    assert_true(arena[0] == 2.5f && arena[99] == 2.5f && arena[100] == 0);
    free(arena);
    assert_int_equal(dt_param_table_freeze(&t, "net", &n), DT_OK);
    assert_int_equal(n, 2);
    assert_int_equal(t.trained_count, 0);
    dt_param_table_fini(&t);
}

static void test_refusals(void **state)
{
    dt_param_table t = {0};
    const int64_t zero[2] = {3, 0}, huge[2] = {(int64_t)1 << 40, 2};
    add(&t, "world", "w", W, 2, DT_INIT_ZERO, 0);
    refused(&t, "world", "w", W, 2, DT_INIT_ZERO, 0, DT_EPLUGIN, "world.w is registered twice");
    refused(&t, "world", "Bad", W, 2, DT_INIT_ZERO, 0, DT_EINVAL, "\"Bad\"");
    refused(&t, "world", "", W, 2, DT_INIT_ZERO, 0, DT_EINVAL, "its name is empty");
    refused(&t, "world", NULL, W, 2, DT_INIT_ZERO, 0, DT_EINVAL, "a parameter of world: its name is NULL");
    refused(&t, "world", ".w", W, 2, DT_INIT_ZERO, 0, DT_EINVAL, "'.' at place 1");
    refused(&t, "world", "x", NULL, 2, DT_INIT_ZERO, 0, DT_EINVAL, "dimensions are NULL");
    refused(&t, "", "x", W, 2, DT_INIT_ZERO, 0, DT_EINVAL, "role");
    refused(&t, "world", "x", W, 0, DT_INIT_ZERO, 0, DT_EINVAL, "0 dimensions");
    refused(&t, "world", "x", W, 5, DT_INIT_ZERO, 0, DT_EINVAL, "1 to 4");
    refused(&t, "world", "x", zero, 2, DT_INIT_ZERO, 0, DT_EINVAL, "dimension 1 is 0");
    refused(&t, "world", "x", huge, 2, DT_INIT_ZERO, 0, DT_ECONFIG, "more than");
    refused(&t, "world", "x", W, 2, 99, 0, DT_EINVAL, "initialiser 99");
    refused(&t, "world", "x", W, 2, DT_INIT_UNIFORM, NAN, DT_EINVAL, "not finite");
    refused(&t, "world", "x", V, 1, DT_INIT_FAN_IN, 1, DT_EINVAL, "DT_INIT_UNIFORM");
    refused(&t, "world", "x", V, 1, DT_INIT_XAVIER, 1, DT_EINVAL, "fan-in of a vector");
    refused(&t, "world", "x", V, 1, DT_INIT_EYE, 1, DT_EINVAL, "DT_INIT_EYE expects a matrix");
    refused(&t, "world", "x", V, 1, DT_INIT_ORTHO, 1, DT_EINVAL, "DT_INIT_ORTHO expects a matrix");
    refused(&t, "world", "x", V, 1, DT_INIT_CONST | DT_INIT_CONSTANT, 1, DT_EINVAL,
            "parameter world.x is a constant (DT_INIT_CONSTANT): call it constant.x");
    refused(&t, "world", "constant.x", V, 1, 99 | DT_INIT_CONSTANT, 1, DT_EINVAL, "initialiser 99");
    refused(&t, "world", "constant.x", V, 1, DT_INIT_ZERO | DT_INIT_CONSTANT | DT_INIT_STATISTIC, 1, DT_EINVAL,
            "is a constant and a statistic");
    uint32_t n = 0;
    assert_int_equal(dt_param_table_freeze(&t, "", &n), DT_ECONFIG);
    assert_non_null(strstr(dt_error_text(), "empty"));
    dt_param_table_fini(&t);
}

static void test_freeze(void **state)
{
    dt_param_table t = {0};
    uint32_t n = 0;
    add(&t, "perception", "in.w", W, 2, DT_INIT_ZERO, 0);
    add(&t, "perception", "in.b", V, 1, DT_INIT_ZERO, 0);
    add(&t, "perception2", "in.b", V, 1, DT_INIT_ZERO, 0);
    assert_int_equal(dt_param_table_freeze(&t, "*.b", &n), DT_OK);
    assert_int_equal(n, 2);
    assert_int_equal(t.trained_count, 48 * 32);
    assert_int_equal(dt_param_table_freeze(&t, "perception", &n), DT_OK); /* the role, not its longer namesake */
    assert_int_equal(n, 2);
    assert_int_equal(t.trained_count, 0);
    assert_true(t.param[0].frozen);
    assert_int_equal(dt_param_table_freeze(&t, "shield", &n), DT_OK);
    assert_int_equal(n, 0);
    dt_param_table_fini(&t);
}

/* Values depend on (seed, name) alone, gaps are zero, distributions are those asked for. */
static void test_initial_values(void **state)
{
    static const int64_t big[2] = {200, 100}, wide[2] = {3, 5};
    dt_param_table a = {0}, b = {0};
    add(&a, "m", "c", V, 1, DT_INIT_CONST, 0.5);
    add(&a, "m", "u", big, 2, DT_INIT_UNIFORM, 0.3);
    add(&a, "m", "n", big, 2, DT_INIT_NORMAL, 2.0);
    add(&a, "m", "x", big, 2, DT_INIT_XAVIER, 1.0);
    add(&a, "m", "f", big, 2, DT_INIT_FAN_IN, 1.0);
    add(&a, "m", "e", wide, 2, DT_INIT_EYE, 2.5);
    add(&b, "m", "n", big, 2, DT_INIT_NORMAL, 2.0);
    float *va = dt_alloc_n((size_t)a.total, sizeof(float)), *vb = dt_alloc_n((size_t)b.total, sizeof(float));
    assert_non_null(va);
    assert_non_null(vb);
    memset(va, 0xff, (size_t)a.total * sizeof(float));
    assert_int_equal(dt_param_table_init(&a, 7, va), DT_OK);
    assert_int_equal(dt_param_table_init(&b, 7, vb), DT_OK);
    assert_memory_equal(va + a.param[2].offset, vb, 20000 * sizeof(float));
    for (int i = 0; i < 100; i++) {
        assert_true(va[i] == 0.5f);
    }
    for (int i = 100; i < 128; i++) {
        assert_true(va[i] == 0.0f);
    }
    /* half widths: a, -, a sqrt(6/300), a/sqrt(100); deviation of U(-l,l) is l/sqrt(3) */
    const double deviation[5] = {0, 0.3 / sqrt(3), 2.0, sqrt(6.0 / 300) / sqrt(3), 0.1 / sqrt(3)};
    for (uint32_t p = 1; p < 5; p++) {
        double sum = 0, square = 0, largest = 0;
        const float *v = va + a.param[p].offset;
        for (int i = 0; i < 20000; i++) {
            sum += v[i];
            square += (double)v[i] * v[i];
            largest = fmax(largest, fabs(v[i]));
        }
        assert_true(fabs(sum / 20000) < 4 * deviation[p] / sqrt(20000));
        assert_true(fabs(sqrt(square / 20000) / deviation[p] - 1) < 0.02);
        if (p != 2) {
            assert_true(largest <= (float)(deviation[p] * sqrt(3)) && largest > 0.99 * deviation[p] * sqrt(3));
        }
    }
    const float *eye = va + a.param[5].offset;
    for (int i = 0; i < 3 * 5; i++) {
        assert_true(eye[i] == (i / 5 == i % 5 ? 2.5f : 0.0f));
    }
    assert_int_equal(dt_param_table_init(&b, 8, vb), DT_OK);
    assert_memory_not_equal(va + a.param[2].offset, vb, 20000 * sizeof(float));
    dt_free(va);
    dt_free(vb);
    dt_param_table_fini(&a);
    dt_param_table_fini(&b);
}

/* The very numbers: a run of the same seed begins alike in every version. */
static void test_values_of_a_seed(void **state)
{
    static const int64_t small[2] = {2, 3};
    static const struct {
        const char *name;
        const int64_t *dim;
        uint32_t init;
        double a;
        int at[6];
        float want[6];
    } c[] = {{"u",
              W,
              DT_INIT_UNIFORM,
              0.5,
              {0, 1, 2, 3, 100, 1535},
              {0.107116796F, -0.223865837F, 0.14847362F, -0.121302865F, 0.121375158F, -0.474040598F}},
             {"n",
              W,
              DT_INIT_NORMAL,
              2,
              {0, 1, 2, 3, 100, 1535},
              {-4.34285641F, 0.203561142F, -1.89663887F, -1.08767915F, -1.48873186F, 0.912587345F}},
             {"x",
              W,
              DT_INIT_XAVIER,
              1,
              {0, 1, 2, 3, 100, 1535},
              {-0.273636758F, -0.0481445715F, -0.208667085F, 0.251823455F, -0.124427475F, 0.141569301F}},
             {"f",
              W,
              DT_INIT_FAN_IN,
              1,
              {0, 1, 2, 3, 100, 1535},
              {-0.133203879F, 0.0431055464F, 0.0456962697F, 0.102450423F, 0.134056017F, 0.166107133F}},
             {"o",
              small,
              DT_INIT_ORTHO,
              1.5,
              {0, 1, 2, 3, 4, 5},
              {-1.29382455F, -0.715101182F, 0.25426054F, 0.757444084F, -1.2483573F, 0.343340248F}}};
    dt_param_table t = {0};
    for (int k = 0; k < 5; k++) {
        add(&t, "m", c[k].name, c[k].dim, 2, c[k].init, c[k].a);
    }
    float *v = dt_alloc_n((size_t)t.total, sizeof(float));
    assert_int_equal(dt_param_table_init(&t, 42, v), DT_OK);
    for (int k = 0; k < 5; k++) {
        for (int i = 0; i < 6; i++) {
            assert_true(fabsf(v[t.param[k].offset + c[k].at[i]] - c[k].want[i]) <= 1e-6F * fabsf(c[k].want[i]));
        }
    }
    dt_free(v);
    dt_param_table_fini(&t);
}

/* Rows (columns of a tall matrix) are orthonormal times a; the value depends on (seed, name), and no direction is
 * favoured. */
static void test_orthogonal(void **state)
{
    static const int64_t shape[][2] = {{64, 64}, {3, 50}, {50, 3}, {1, 1}, {1, 7}, {257, 101}};
    enum { N = sizeof(shape) / sizeof(shape[0]) };
    dt_param_table t = {0}, other = {0};
    char name[8];
    for (int i = 0; i < N; i++) {
        snprintf(name, sizeof(name), "w%d", i);
        add(&t, "m", name, shape[i], 2, DT_INIT_ORTHO, sqrt(2.0));
    }
    add(&other, "m", "w1", shape[1], 2, DT_INIT_ORTHO, sqrt(2.0));
    float *v = dt_alloc_n((size_t)t.total, sizeof(float)), *again = dt_alloc_n((size_t)other.total, sizeof(float));
    assert_true(v != NULL && again != NULL);
    assert_int_equal(dt_param_table_init(&t, 3, v), DT_OK);
    assert_int_equal(dt_param_table_init(&other, 3, again), DT_OK);
    assert_memory_equal(again, v + t.param[1].offset, 150 * sizeof(float));
    assert_int_equal(dt_param_table_init(&other, 4, again), DT_OK);
    assert_memory_not_equal(again, v + t.param[1].offset, 150 * sizeof(float));
    for (int p = 0; p < N; p++) {
        const float *w = v + t.param[p].offset;
        const int64_t rows = shape[p][0], columns = shape[p][1];
        const bool is_tall = rows > columns;
        const int64_t n_v = is_tall ? columns : rows, n = is_tall ? rows : columns;
        const int64_t along = is_tall ? columns : 1, between = is_tall ? 1 : columns; /* strides */
        for (int64_t i = 0; i < n_v; i++) {
            for (int64_t j = 0; j <= i; j++) {
                double dot = 0;
                for (int64_t k = 0; k < n; k++) {
                    dot += (double)w[i * between + k * along] * (double)w[j * between + k * along];
                }
                assert_true(fabs(dot - (i == j ? 2.0 : 0.0)) < 2e-6);
            }
        }
    }
    /* a 1 by 2 matrix is a direction: over many seeds its mean is 0 and each part's square 1/2 */
    dt_param_table turn = {0};
    static const int64_t flat[2] = {1, 2};
    double sum[2] = {0, 0}, square = 0;
    float two[64];
    add(&turn, "m", "w", flat, 2, DT_INIT_ORTHO, 1);
    for (uint64_t seed = 0; seed < 4000; seed++) {
        assert_int_equal(dt_param_table_init(&turn, seed, two), DT_OK);
        sum[0] += (double)two[0];
        sum[1] += (double)two[1];
        square += (double)two[0] * (double)two[0];
    }
    assert_true(fabs(sum[0] / 4000) < 5 * 0.7071 / sqrt(4000) && fabs(sum[1] / 4000) < 5 * 0.7071 / sqrt(4000));
    assert_true(fabs(square / 4000 - 0.5) < 5 * 0.3536 / sqrt(4000));
    dt_fault_reset("alloc:1");
    assert_int_equal(dt_param_table_init(&turn, 1, two), DT_ENOMEM);
    assert_non_null(strstr(dt_error_text(), "m.w"));
    dt_fault_reset(NULL);
    dt_free(v);
    dt_free(again);
    dt_param_table_fini(&t);
    dt_param_table_fini(&other);
    dt_param_table_fini(&turn);
}

static void test_out_of_memory(void **state)
{
    for (int n = 1; n <= 2; n++) {
        dt_param_table t = {0};
        dt_fault_reset(n == 1 ? "alloc:1" : "alloc:2");
        refused(&t, "m", "w", W, 2, DT_INIT_ZERO, 0, DT_ENOMEM, "out of memory");
        dt_fault_reset(NULL);
        add(&t, "m", "w", W, 2, DT_INIT_ZERO, 0);
        dt_param_table_fini(&t);
    }
    assert_int_equal(dt_alloc_live_bytes(), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_layout),           cmocka_unit_test(test_constants),
        cmocka_unit_test(test_statistics),       cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_freeze),           cmocka_unit_test(test_initial_values),
        cmocka_unit_test(test_values_of_a_seed), cmocka_unit_test(test_orthogonal),
        cmocka_unit_test(test_out_of_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
