/* SPDX-License-Identifier: Apache-2.0
 *
 * What `dtrain doctor` says of the emulated GPU: through the module as it is on a GPU, and with the stand-in for NVML.
 * With DT_EMULATED_MODULE=emulated/older, of code that the driver has to translate.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "engine/cuda/open.h"
#include "plan/machine/doctor.h"

static const dt_device_ops *ops;
static dt_str out;

static void says(const char *piece)
{
    if (strstr(dt_str_text(&out), piece) == NULL) {
        print_error("expected \"%s\" in:\n%s\n", piece, dt_str_text(&out));
        fail();
    }
}

static void examine(const char *arch)
{
    char nvml[4096];
    const char *build = getenv("DT_BUILDDIR");
    snprintf(nvml, sizeof(nvml), "%s/tests/engine/device/.libs/libnvidia-ml.so.1", build != NULL ? build : ".");
    dt_doctor d = {.out = &out, .root = "", .nvml = nvml, .nccl = "/nowhere/libnccl.so.2"};
    dt_str_clear(&out);
    setenv("DT_EMULATE_ARCH", arch, 1);
    setenv("FAKE_NVML", "alone", 1);
    dt_doctor_check_devices(&d, ops);
    unsetenv("FAKE_NVML");
    unsetenv("DT_EMULATE_ARCH");
    assert_int_equal(d.n[DT_VERDICT_FAIL], 0);
}

static void test_code_for_it(void **state)
{
    static const struct {
        const char *arch, *code;
    } cases[] = {{"80", "compiled for sm_80\n"},
                 {"87", "compiled for sm_86\n"},
                 {"90", "compiled for sm_90\n"},
                 {"103", "compiled for sm_100\n"},
                 {"120", "compiled for sm_120\n"}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char text[96];
        examine(cases[i].arch);
        snprintf(text, sizeof(text), "PASS  cuda:0         emulated GPU, 1.0 GiB, sm_%s, GPU-", cases[i].arch);
        says(text);
        says(cases[i].code);
    }
    says("; memory and kernels work\n");
    says("PASS  driver         driver for CUDA 13.0, built with 13.0, runtime 13.0, cuBLASLt ");
    says("PASS  NVML           2.8 GiB in use, 87 % at work, 61 degrees Celsius, driver 580.95.05\n");
    says("PASS  cuda:0 clocks  SM 345 of 1980 MHz, memory 1593 of 1593 MHz, idle\n");
    says("PASS  cuda:0 programs no other on it\n");
    says("PASS  NCCL           no usable libnccl.so.2; one GPU needs none\n");
}

static void test_code_for_an_earlier_one(void **state)
{
    examine("90");
    says("WARN  cuda:0 code    compiled for compute capability 8.0 and translated by the driver");
    says("-> build with --with-nvcc-gencode=-gencode=arch=compute_90,code=sm_90\n");
}

/* There is one GPU: a request for another is answered so. */
static void test_peer(void **state)
{
    uint32_t can = 2;
    assert_int_equal(ops->peer(0, 0, &can), DT_OK);
    assert_int_equal(can, 0);
    assert_int_equal(ops->peer(0, 1, &can), DT_ECUDA);
    assert_non_null(strstr(dt_error_text(), "cudaDeviceCanAccessPeer failed: invalid device ordinal"));
    dt_error_clear();
}

int main(void)
{
    dt_device *device = NULL;
    const struct CMUnitTest same[] = {cmocka_unit_test(test_code_for_it), cmocka_unit_test(test_peer)};
    const struct CMUnitTest older[] = {cmocka_unit_test(test_code_for_an_earlier_one)};
    if (!cuda_is_emulated()) {
        printf("skipped: of the emulated GPU alone\n");
        return 77;
    }
    const int opened = cuda_open(&ops, &device);
    if (opened != 0) {
        return opened;
    }
    ops->close(device);
    const int failed = getenv("DT_EMULATED_MODULE") != NULL ? cmocka_run_group_tests(older, NULL, NULL)
                                                            : cmocka_run_group_tests(same, NULL, NULL);
    dt_str_fini(&out);
    return failed;
}
