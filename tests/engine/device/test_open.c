/* SPDX-License-Identifier: Apache-2.0
 *
 * What --device means, finding the module, choosing among devices. A real GPU is not needed: the choice runs over a
 * table of two invented ones.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <config.h>

#include <stdio.h>
#include <string.h>

#include "engine/backend/kernel.h"
#include "base/err.h"
#include "engine/device/open.h"

static void says(const char *part)
{
    if (strstr(dt_error_text(), part) == NULL) {
        fail_msg("\"%s\" is not in \"%s\"", part, dt_error_text());
    }
}

static void test_selector(void **state)
{
    dt_device_selector w;
    assert_int_equal(dt_device_selector_parse("auto", &w), DT_OK);
    assert_int_equal(w.kind, DT_DEVICE_AUTO);
    assert_int_equal(dt_device_selector_parse("cpu", &w), DT_OK);
    assert_int_equal(w.kind, DT_DEVICE_CPU);
    assert_int_equal(dt_device_selector_parse("cuda", &w), DT_OK);
    assert_int_equal(w.kind, DT_DEVICE_CUDA);
    assert_int_equal(w.index, -1);
    assert_int_equal(dt_device_selector_parse("cuda:3", &w), DT_OK);
    assert_int_equal(w.index, 3);
    assert_int_equal(dt_device_selector_parse("cuda:GPU-0102", &w), DT_OK);
    assert_string_equal(w.uuid, "GPU-0102");
    assert_int_equal(w.index, -1);
    static const char *const bad[] = {"", "gpu", "cuda:", "cuda:-1", "cuda:x", "cuda:1024", "CPU"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_int_equal(dt_device_selector_parse(bad[i], &w), DT_ECONFIG);
        says("use auto, cpu, cuda, cuda:N");
    }
}

static uint32_t n_devices = 2;

static dt_status two(uint32_t *n_p)
{
    *n_p = n_devices;
    return DT_OK;
}

static dt_status invented(uint32_t index, dt_device_info *out_p)
{
    *out_p = (dt_device_info){.index = index, .major = 9, .total_bytes = UINT64_C(150) << 30, .name = "Invented"};
    snprintf(out_p->uuid, sizeof(out_p->uuid), "GPU-%u0000000-0000", index + 1);
    return DT_OK;
}

static void test_choose(void **state)
{
    const dt_device_ops ops = {.count = two, .describe = invented};
    dt_device_selector w = {.kind = DT_DEVICE_CUDA, .index = -1};
    uint32_t at = 9;
    assert_int_equal(dt_device_select(&ops, &w, 0, &at), DT_OK);
    assert_int_equal(at, 0);
    assert_int_equal(dt_device_select(&ops, &w, 3, &at), DT_OK);
    assert_int_equal(at, 1);
    w.index = 1;
    assert_int_equal(dt_device_select(&ops, &w, 0, &at), DT_OK);
    assert_int_equal(at, 1);
    w.index = 2;
    assert_int_equal(dt_device_select(&ops, &w, 0, &at), DT_EUNSUPPORTED);
    says("no GPU 2: this process sees 2");
    w = (dt_device_selector){.kind = DT_DEVICE_CUDA, .index = -1, .uuid = "GPU-2"};
    assert_int_equal(dt_device_select(&ops, &w, 0, &at), DT_OK);
    assert_int_equal(at, 1);
    w.uuid[4] = '7';
    assert_int_equal(dt_device_select(&ops, &w, 0, &at), DT_EUNSUPPORTED);
    says("begins with GPU-7; there are GPU-10000000-0000, GPU-20000000-0000");

    dt_device_info info;
    dt_str text = {0};
    assert_int_equal(invented(1, &info), DT_OK);
    dt_device_info_text(&info, &text);
    assert_string_equal(dt_str_text(&text), "Invented, 150.0 GiB, sm_90, GPU-20000000-0000");
    dt_str_fini(&text);
}

static void test_no_module(void **state)
{
    const dt_device_ops *ops = NULL;
    assert_int_equal(dt_device_module_open("abacus", &ops), DT_EUNSUPPORTED);
    says("no module for abacus");
    says("backend_abacus.so");
    says("--device cpu");
    assert_null(ops);
}

/* The real module loads without a driver and says what is missing; with one it answers. */
static void test_cuda(void **state)
{
    const dt_device_ops *ops = NULL;
    const dt_status st = dt_device_module_open("cuda", &ops);
    if (st == DT_EUNSUPPORTED) {
        print_message("no CUDA module: %s\n", dt_error_text());
        skip();
    }
    assert_int_equal(st, DT_OK);
    assert_string_equal(ops->name, "cuda");
    dt_device_versions v;
    ops->versions(&v);
    assert_true(v.built_for >= 11080);
    uint32_t n = 0;
    if (ops->count(&n) < 0) {
        assert_int_equal(dt_error_status(), DT_EUNSUPPORTED);
        says("--device cpu");
        dt_device *d = NULL;
        assert_int_equal(ops->open(0, &d), DT_EUNSUPPORTED);
        assert_null(d);
    } else {
        assert_true(n > 0);
    }
}

/* An op exists only when it exists in every lane. */
static void test_every_op(void **state)
{
    const dt_device_ops *ops = NULL;
    if (dt_device_module_open("cuda", &ops) < 0) {
        skip();
    }
    static const struct {
        uint32_t op;
        const char *name;
    } all[] = {
#define DT_OP(ID, number, name) {number, #name},
#include "engine/backend/ops.def"
    };
    uint32_t n_missing = 0;
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        const dt_device_kernel *k = ops->kernel(all[i].op);
        if (all[i].op == DT_OPX_SPLIT || all[i].op == DT_OPX_MERGE) {
            assert_null(k); /* pure views */
        } else if (k == NULL) {
            print_message("no CUDA kernel for %s\n", all[i].name);
            n_missing++;
        } else {
            assert_int_equal(k->op, all[i].op);
            assert_string_equal(k->name, all[i].name);
            assert_non_null(k->run);
        }
    }
    assert_null(ops->kernel(999));
    if (n_missing > 0) {
        print_message("%u ops are not there yet\n", n_missing);
        skip();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_selector), cmocka_unit_test(test_choose),   cmocka_unit_test(test_no_module),
        cmocka_unit_test(test_cuda),     cmocka_unit_test(test_every_op),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
