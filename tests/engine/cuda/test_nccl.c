/* SPDX-License-Identifier: Apache-2.0
 *
 * NCCL by one rank alone: it is found, makes a communicator on the device, and what it moves and sums there keeps its
 * bits, after the work of its own stream. With several GPUs stage ranks of tests/engine/gpu/measure.sh trains. Runs
 * between the stand-in (nccl/nccl.cc) and an emulated device, and with NCCL on a GPU with DT_CHECK_GPU=1 (skipped
 * without one of them).
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

#include "base/clock.h"
#include "comm/nccl/nccl.h"
#include "engine/cuda/open.h"

enum { N = 5000, OLDEST = 21900 };

static const dt_device_ops *ops;
static dt_device *device;
static dt_device_stream *stream;
static dt_comm *alone;
static float *vector;
static float before[N], after[N];

static void put(void)
{
    for (int i = 0; i < N; i++) {
        before[i] = (float)(i % 97) / 7 - 3;
    }
    assert_int_equal(ops->copy(device, vector, before, sizeof(before), DT_DEVICE_TO_DEVICE, stream), DT_OK);
}

/* Behind what the stream was asked for, without a wait in between. */
static void check_bits(void)
{
    memset(after, 0, sizeof(after));
    assert_int_equal(ops->copy(device, after, vector, sizeof(after), DT_DEVICE_TO_HOST, stream), DT_OK);
    assert_int_equal(ops->stream_sync(device, stream), DT_OK);
    assert_memory_equal(after, before, sizeof(after));
}

static dt_device_transport *meet(void)
{
    dt_device_transport *n = NULL;
    const dt_status st = dt_nccl_transport.create(alone, &n);
    if (st != DT_OK) {
        fail_msg("%s", dt_error_text());
    }
    return n;
}

static void test_version(void **state)
{
    uint32_t version = 0;
    assert_int_equal(dt_nccl_transport.query_version(&version), DT_OK);
    assert_true(version >= OLDEST);
    dt_device_transport *n = meet();
    dt_nccl_transport.destroy(n);
}

static void test_sum_and_share(void **state)
{
    const int64_t at[2] = {0, N};
    const double begin = dt_clock_s();
    dt_device_transport *n = meet();
    assert_int_equal(dt_nccl_transport.register_buffer(n, vector, N * sizeof(float)), DT_OK);
    put();
    assert_int_equal(dt_nccl_transport.reduce_scatter(n, vector, at, stream), DT_OK);
    assert_int_equal(dt_nccl_transport.poll(n, begin), DT_OK);
    check_bits();
    put();
    assert_int_equal(dt_nccl_transport.all_gather(n, vector, at, stream), DT_OK);
    check_bits();
    assert_int_equal(dt_nccl_transport.poll(n, begin), DT_OK);
    dt_nccl_transport.destroy(n);
}

/* A rank sends itself nothing. */
static void test_pieces(void **state)
{
    dt_device_transport *n = meet();
    const dt_comm_out out = {vector, N / 2 * sizeof(float)};
    const dt_comm_in in = {vector + N / 2, N / 2 * sizeof(float)};
    put();
    assert_int_equal(dt_nccl_transport.all_to_all(n, &out, &in, 1, stream), DT_OK);
    check_bits();
    assert_int_equal(dt_nccl_transport.poll(n, dt_clock_s()), DT_OK);
    dt_nccl_transport.destroy(n);
}

/* One after another, each given back when its work is done. */
static void test_again(void **state)
{
    const int64_t at[2] = {0, N};
    for (int i = 0; i < 3; i++) {
        dt_device_transport *n = meet();
        put();
        assert_int_equal(dt_nccl_transport.all_gather(n, vector, at, stream), DT_OK);
        check_bits();
        dt_nccl_transport.destroy(n);
    }
}

/* Libraries are looked for where this said when the program began. */
static void begin_with_stand_in(char **argv)
{
    const char *build = getenv("DT_BUILDDIR");
    char path[4096];
    if (!cuda_is_emulated() || getenv("DT_NCCL_DIR") != NULL) {
        return;
    }
    snprintf(path, sizeof(path), "%s/tests/engine/cuda/emulated/nccl", build != NULL ? build : ".");
    setenv("LD_LIBRARY_PATH", path, 1);
    setenv("DT_NCCL_DIR", ".", 1);
    execv("/proc/self/exe", argv);
    perror("/proc/self/exe");
    exit(1);
}

int main(int argc, char **argv)
{
    begin_with_stand_in(argv);
    uint32_t version = 0;
    void *p = NULL;
    const int code = cuda_open(&ops, &device);
    if (code != 0) {
        return code;
    }
    if (dt_nccl_transport.query_version(&version) != DT_OK) {
        printf("skipped: %s\n", dt_error_text());
        return cuda_is_emulated() ? 1 : 77;
    }
    if (dt_comm_create_null(&alone) != DT_OK || ops->stream_create(device, &stream) != DT_OK ||
        ops->alloc(device, N * sizeof(float), &p) != DT_OK) {
        printf("%s\n", dt_error_text());
        return 1;
    }
    vector = p;
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_version), cmocka_unit_test(test_sum_and_share),
                                       cmocka_unit_test(test_pieces), cmocka_unit_test(test_again)};
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    ops->release(device, vector);
    ops->stream_destroy(device, stream);
    dt_comm_destroy(alone);
    ops->close(device);
    return failed;
}
