/* SPDX-License-Identifier: Apache-2.0
 *
 * What NVML reports (core/engine/device/nvml.h), by stand-ins: whole, old, useless, failing; of several GPUs and of a
 * slice; and what the host holds of a device (core/engine/device/memory.h).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <config.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"
#include "engine/device/memory.h"
#include "engine/device/host_device.h"
#include "engine/device/nvml.h"

static char path[512];
static uint64_t live;

static const char *library(const char *name)
{
    const char *dir = getenv("DT_BUILDDIR");
    snprintf(path, sizeof(path), "%s/tests/engine/device/.libs/%s", dir != NULL ? dir : ".", name);
    return path;
}
#define WHOLE   library("libnvidia-ml.so.1")
#define OLD     library("fake_nvml_old.so")
#define USELESS library("fake_nvml_useless.so")

static int begin(void **state)
{
    unsetenv("FAKE_NVML");
    unsetenv("CUDA_VISIBLE_DEVICES");
    live = dt_alloc_live_bytes();
    return 0;
}

static int end(void **state)
{
    dt_error_clear();
    return dt_alloc_live_bytes() != live;
}

static dt_device_info gpu(const char *uuid)
{
    dt_device_info info = {.index = 0};
    snprintf(info.uuid, sizeof(info.uuid), "%s", uuid);
    return info;
}

static dt_nvml_sample look(const char *from, const dt_device_info *info)
{
    dt_nvml *n = NULL;
    dt_nvml_sample s;
    if (dt_nvml_open(from, info, &n) != DT_OK) {
        fail_msg("%s", dt_error_text());
    }
    const uint64_t before = dt_alloc_calls();
    dt_nvml_read_sample(n, &s);
    assert_int_equal(dt_alloc_calls(), before);
    dt_nvml_close(n);
    return s;
}

static void refuses(const char *from, const dt_device_info *info, const char *why)
{
    dt_nvml *n = NULL;
    assert_int_equal(dt_nvml_open(from, info, &n), DT_EUNSUPPORTED);
    if (strstr(dt_error_text(), why) == NULL) {
        fail_msg("expected \"%s\" in: %s", why, dt_error_text());
    }
    assert_null(n);
}

static void test_numbers(void **state)
{
    const dt_device_info first = gpu("GPU-none");
    const dt_nvml_sample s = look(WHOLE, &first);
    assert_true(s.used == 3e9);
    assert_true(s.total == 0x1p33);
    assert_true(s.reserved == 6e8); /* of two processes the one that asks */
    assert_true(s.utilisation == 87);
    assert_true(s.temperature == 61);
}

static void test_several(void **state)
{
    const dt_device_info second = gpu("GPU-second");
    assert_true(look(WHOLE, &second).used == 5e9);
    /* a slice, as a UUID that CUDA gives without saying what it is of; it has no utilisation, and one process */
    dt_device_info slice = gpu("GPU-slice");
    dt_nvml_sample s = look(WHOLE, &slice);
    assert_true(s.used == 7e8);
    assert_true(isnan(s.utilisation));
    assert_true(s.temperature == 44);
    assert_true(s.reserved == 5e7);
    /* or by name, where CUDA reports the UUID of the whole GPU */
    slice = gpu("GPU-none");
    slice.index = 1;
    setenv("CUDA_VISIBLE_DEVICES", "GPU-second,MIG-slice", 1);
    assert_true(look(WHOLE, &slice).used == 7e8);
    setenv("CUDA_VISIBLE_DEVICES", "GPU-second,MIG-gone", 1);
    refuses(WHOLE, &slice, "NVML does not recognise MIG-gone: Not Found");
    setenv("CUDA_VISIBLE_DEVICES", "0", 1); /* shorter than the index */
    assert_true(look(WHOLE, &slice).used == 3e9);
    /* by bus address, where the UUID is unknown to it */
    dt_device_info bus = gpu("GPU-unknown");
    refuses(WHOLE, &bus, "NVML does not recognise the GPU GPU-unknown at no address: Not Found");
    snprintf(bus.bus, sizeof(bus.bus), "0000:02:00.0");
    assert_true(look(WHOLE, &bus).used == 5e9);
}

static void test_missing(void **state)
{
    const dt_device_info first = gpu("GPU-none");
    const dt_nvml_sample s = look(OLD, &first);
    assert_true(s.used == 3e9);
    assert_true(isnan(s.reserved) && isnan(s.utilisation) && isnan(s.temperature));
    refuses(USELESS, &first, "has no nvmlDeviceGetHandleByUUID; update the NVIDIA driver");
    refuses(library("nowhere.so"), &first, "it comes with the NVIDIA driver");
}

static void test_failing(void **state)
{
    const dt_device_info first = gpu("GPU-none");
    setenv("FAKE_NVML", "init", 1);
    refuses(WHOLE, &first, "NVML does not start: Driver Not Loaded");
    setenv("FAKE_NVML", "memory", 1);
    dt_nvml_sample s = look(WHOLE, &first);
    assert_true(isnan(s.used) && s.utilisation == 87);
    setenv("FAKE_NVML", "busy", 1); /* nobody knows which of two others this process is */
    assert_true(isnan(look(WHOLE, &first).reserved));
    setenv("FAKE_NVML", "gone", 1);
    s = look(WHOLE, &first);
    assert_true(isnan(s.used) && isnan(s.reserved) && isnan(s.utilisation) && isnan(s.temperature));
}

static void test_held(void **state)
{
    const dt_device_ops *ops = host_device_ops();
    dt_device *d = NULL;
    void *a = NULL, *b = NULL, *c = NULL;
    assert_int_equal(ops->open(0, &d), DT_OK);
    assert_int_equal(dt_device_allocated_bytes(), 0);
    assert_int_equal(dt_device_allocate(ops, d, 1000, &a), DT_OK);
    assert_int_equal(dt_device_allocate(ops, d, 24, &b), DT_OK);
    assert_int_equal(dt_device_allocated_bytes(), 1024);
    host_device_fail_alloc(1);
    assert_true(dt_device_allocate(ops, d, 99, &c) < 0);
    host_device_fail_alloc(0);
    assert_null(c);
    dt_device_free(ops, d, a);
    dt_device_free(ops, d, NULL);
    assert_int_equal(dt_device_allocated_bytes(), 24);
    dt_device_free(ops, d, b);
    assert_int_equal(dt_device_allocated_bytes(), 0);
    assert_int_equal(host_device_read().live_bytes, 0);
    ops->close(d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_numbers, begin, end),
        cmocka_unit_test_setup_teardown(test_several, begin, end),
        cmocka_unit_test_setup_teardown(test_missing, begin, end),
        cmocka_unit_test_setup_teardown(test_failing, begin, end),
        cmocka_unit_test_setup_teardown(test_held, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
