/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests of doctor (core/machine/doctor.h): what it says of machines made of files below a folder, of disks that refuse,
 * of programs in PATH, and of a device made of host memory that is well, full or broken.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fault.h"
#include "base/fs.h"
#include "base/mem.h"
#include "device/host_device.h"
#include "machine/doctor.h"

static char top[64];
static uint64_t bytes_before;
static dt_str out;
static dt_doctor doctor;

static int begin(void **state)
{
    (void)state;
    snprintf(top, sizeof(top), "test_doctor.%ld.tmp", (long)getpid());
    bytes_before = dt_alloc_live_bytes();
    out = (dt_str){0};
    doctor = (dt_doctor){.out = &out, .root = top};
    return dt_fs_mkdirs(top);
}

static int end(void **state)
{
    (void)state;
    dt_str_fini(&out);
    return dt_fs_remove_tree(top) != DT_OK || dt_alloc_live_bytes() != bytes_before;
}

static void put(const char *path, const char *text)
{
    char full[256];
    snprintf(full, sizeof(full), "%s/%s", top, path);
    *strrchr(full, '/') = '\0';
    assert_int_equal(dt_fs_mkdirs(full), DT_OK);
    full[strlen(full)] = '/';
    assert_int_equal(dt_fs_write_atomic(full, text, strlen(text)), DT_OK);
}

static void says(const char *piece)
{
    if (strstr(dt_str_text(&out), piece) == NULL) {
        print_error("expected \"%s\" in:\n%s\n", piece, dt_str_text(&out));
        fail();
    }
}

/* ---- machines ---------------------------------------------------------------------------------------------------- */

static void test_large_machine(void **state)
{
    (void)state;
    put("proc/cpuinfo", "processor\t: 0\nmodel name\t: Some Processor\nflags\t\t: fpu avx2 amx_bf16 avx512_bf16\n");
    put("proc/meminfo", "MemTotal:       65536000 kB\nMemAvailable:   33554432 kB\n");
    put("proc/loadavg", "0.01 0.05 0.01 1/100 4242\n");
    put("dev/shm/here", "");
    dt_doctor_machine(&doctor);
    says("Some Processor; kernels for ");
    says("; bf16 by AMX\n");
    says("PASS  load           0.01 in the last minute, on ");
    says("PASS  memory         32.0 GiB free, as the machine allows\n");
    assert_int_equal(doctor.n[DT_VERDICT_FAIL], 0);
}

static void test_small_container(void **state)
{
    (void)state;
    put("proc/cpuinfo", "model name\t: Some Processor\nflags\t\t: fpu avx22 notavx512_bf16\n");
    put("proc/meminfo", "MemAvailable:   33554432 kB\n");
    put("proc/loadavg", "999.5 0.05 0.01 1/100 4242\n");
    put("proc/self/cgroup", "0::/box/one\n");
    put("sys/fs/cgroup/box/one/cpu.max", "50000 100000\n");
    put("sys/fs/cgroup/box/one/memory.max", "1073741824\n");
    put("sys/fs/cgroup/box/one/memory.current", "805306368\n");
    dt_doctor_machine(&doctor);
    says("; no bf16 instructions\n");
    says("but the control group lets them work for 0.50\n                     -> say --threads 1, or raise");
    says("WARN  load           999.50 in the last minute");
    says("FAIL  memory         0.2 GiB free, as the control group allows\n                     -> free some, or");
    says("WARN  shared memory  0 MiB in /dev/shm\n                     -> mount a larger /dev/shm");
    assert_int_equal(doctor.n[DT_VERDICT_FAIL], 1);

    dt_str_clear(&out);
    put("sys/fs/cgroup/box/one/memory.max", "2147483648\n");
    put("sys/fs/cgroup/box/one/cpu.max", "max 100000\n");
    dt_doctor_machine(&doctor);
    says("WARN  memory         1.2 GiB free, as the control group allows\n");
    says("PASS  cores          ");

    /* nothing can be read */
    dt_str_clear(&out);
    doctor.root = "/no/such/place";
    dt_doctor_machine(&doctor);
    says("unknown processor; ");
    says("WARN  memory         the system does not say how much is free\n                     -> mount /proc");
}

static void test_variables(void **state)
{
    (void)state;
    setenv("DTRAIN_FAULT", "none:1", 1);
    setenv("DTRAIN_CONFIG", "/no/such/file.cfg", 1);
    dt_doctor_machine(&doctor);
    unsetenv("DTRAIN_FAULT");
    unsetenv("DTRAIN_CONFIG");
    says("WARN  DTRAIN_FAULT   is \"none:1\": faults are injected\n                     -> unset DTRAIN_FAULT");
    says("FAIL  DTRAIN_CONFIG  /no/such/file.cfg is not there\n                     -> unset DTRAIN_CONFIG, or name");
}

static void test_disk(void **state)
{
    (void)state;
    char path[256];
    snprintf(path, sizeof(path), "%s/not/yet/there", top);
    dt_doctor_disk(&doctor, path);
    snprintf(path, sizeof(path), "GiB free in %s, 1 MiB written and flushed in ", top);
    says(path);
    assert_int_equal(doctor.n[DT_VERDICT_FAIL], 0);
    dt_fault_reset("fs.write:1");
    dt_doctor_disk(&doctor, top);
    dt_fault_reset(NULL);
    says("FAIL  disk           ");
    says("-> choose another place by --run-dir or DTRAIN_RUN_DIR, or make room");
    char **names = NULL;
    size_t n = 0;
    assert_int_equal(dt_fs_list(top, &names, &n), DT_OK);
    assert_int_equal(n, 0); /* nothing stays behind */
    dt_fs_list_free(names, n);
}

static void test_tools(void **state)
{
    (void)state;
    char *before = strdup(getenv("PATH")), path[4096];
    snprintf(path, sizeof(path), "%s/bin", top);
    setenv("PATH", path, 1);
    dt_doctor_tools(&doctor);
    says("WARN  MPI            no mpirun in PATH; one process trains without it\n");
    put("bin/mpirun", "#!/bin/sh\necho 'mpirun 8'\n");
    snprintf(path, sizeof(path), "%s/bin/mpirun", top);
    assert_int_equal(chmod(path, 0755), 0);
    dt_doctor_tools(&doctor);
    says("PASS  MPI            mpirun 8\n");
    setenv("PATH", before, 1);
    free(before);
}

static void test_sumo(void **state)
{
    (void)state;
    char plugin[128];
    snprintf(plugin, sizeof(plugin), "%s/lib/env_sumo.so", top);
    dt_doctor_sumo(&doctor, NULL);
    says("WARN  SUMO           the plugin env_sumo is not here\n");
    dt_doctor_sumo(&doctor, plugin);
    says("WARN  SUMO           dtrain was built without it: env_sumo has no ");
    says("-> apt-get install sumo g++, then configure and build dtrain again");
    put("lib/sumo/env_sumo_shim.so", "no library");
    dt_doctor_sumo(&doctor, plugin);
    says("WARN  SUMO           its library cannot be loaded: ");
    says("-> apt-get install sumo, when");
}

/* ---- devices ----------------------------------------------------------------------------------------------------- */

static void test_cpu(void **state)
{
    (void)state;
    dt_doctor_cpu(&doctor);
    says("PASS  kernels        agree with the reference; products at ");
    dt_fault_reset("alloc:3");
    dt_doctor_cpu(&doctor);
    dt_fault_reset(NULL);
    says("FAIL  kernels        no memory for a self-test\n                     -> free some memory");
}

static dt_status do_nothing(const dt_device_args *a)
{
    (void)a;
    return DT_OK;
}

static const dt_device_kernel *no_work(uint32_t op)
{
    static dt_device_kernel kernel = {.name = "affine", .run = do_nothing};
    kernel.op = op;
    return &kernel;
}

static dt_status no_driver(uint32_t *n_p)
{
    (void)n_p;
    return DT_FAIL(DT_EUNSUPPORTED, "no driver answers");
}

static void old_driver(dt_device_versions *v)
{
    *v = (dt_device_versions){.driver = 11080, .runtime = 12040, .built_for = 12040, .blas = 120400};
}

static void test_devices(void **state)
{
    (void)state;
    dt_device_ops ops = *host_device_ops();
    doctor.nvml = "/nowhere/libnvidia-ml.so.1";
    host_device_reset(UINT64_C(1) << 33);
    dt_doctor_devices(&doctor, &ops);
    says("host memory, 8.0 GiB, sm_10, GPU-none; 8.0 GiB free; memory and kernels answer\n");
    assert_int_equal(doctor.n[DT_VERDICT_FAIL], 0);
    assert_true(host_device_read().launches > 0);

    /* with NVML and without, one warning a device */
    assert_int_equal(doctor.n[DT_VERDICT_WARN], 1);
    says("WARN  NVML           no NVML: ");
    says("-> make libnvidia-ml.so.1 known");
    doctor.nvml = "tests/device/.libs/libnvidia-ml.so.1";
    char nvml[512];
    const char *build = getenv("DT_BUILDDIR");
    snprintf(nvml, sizeof(nvml), "%s/%s", build != NULL ? build : ".", doctor.nvml);
    doctor.nvml = nvml;
    dt_doctor_devices(&doctor, &ops);
    says("PASS  NVML           2.8 GiB in use, 87 % at work, 61 degrees Celsius\n");
    assert_int_equal(doctor.n[DT_VERDICT_WARN], 1);

    host_device_reset(UINT64_C(1) << 22);
    dt_doctor_devices(&doctor, &ops);
    says("0.0 GiB free; memory and kernels answer\n                     -> end other programs on it");
    host_device_reset(UINT64_C(1) << 33);

    host_device_fail_alloc(2);
    dt_doctor_devices(&doctor, &ops);
    says("GPU-none: host memory has no room for ");
    host_device_fail_alloc(0);
    assert_int_equal(doctor.n[DT_VERDICT_FAIL], 1);

    ops.kernel = no_work;
    dt_doctor_devices(&doctor, &ops);
    says(": it computes 2 * 0 + 1 = 0\n                     -> see nvidia-smi");
    ops.count = no_driver;
    ops.versions = old_driver;
    dt_doctor_devices(&doctor, &ops);
    says("FAIL  GPU            no driver answers\n                     -> install or update the NVIDIA driver");
    says(
        "WARN  driver         driver for CUDA 11.8, runtime 12.4, built with 12.4, cuBLAS 120400, no cuDNN, no NCCL\n");
    assert_int_equal(host_device_read().live_bytes, 0);
}

static void test_no_gpu(void **state)
{
    (void)state;
    dt_doctor_cuda(&doctor);
    says("PASS  GPU            no NVIDIA GPU here, ");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_large_machine, begin, end),
        cmocka_unit_test_setup_teardown(test_small_container, begin, end),
        cmocka_unit_test_setup_teardown(test_variables, begin, end),
        cmocka_unit_test_setup_teardown(test_disk, begin, end),
        cmocka_unit_test_setup_teardown(test_tools, begin, end),
        cmocka_unit_test_setup_teardown(test_sumo, begin, end),
        cmocka_unit_test_setup_teardown(test_cpu, begin, end),
        cmocka_unit_test_setup_teardown(test_devices, begin, end),
        cmocka_unit_test_setup_teardown(test_no_gpu, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
