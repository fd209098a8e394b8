/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests of doctor (core/plan/machine/doctor.h): what it says of machines made of files below a folder, of disks that
 * refuse, of programs in PATH, and of a device made of host memory that is well, full or broken.
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
#include "engine/device/host_device.h"
#include "plan/machine/doctor.h"

static char top[64];
static uint64_t bytes_before;
static dt_str out;
static dt_doctor doctor;

static int begin(void **state)
{
    snprintf(top, sizeof(top), "test_doctor.%ld.tmp", (long)getpid());
    bytes_before = dt_alloc_live_bytes();
    out = (dt_str){0};
    doctor = (dt_doctor){.out = &out, .root = top};
    return dt_fs_mkdirs(top);
}

static int end(void **state)
{
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
    put("proc/cpuinfo", "processor\t: 0\nmodel name\t: Some Processor\nflags\t\t: fpu avx2 amx_bf16 avx512_bf16\n");
    put("proc/meminfo", "MemTotal:       65536000 kB\nMemAvailable:   33554432 kB\n");
    put("proc/loadavg", "0.01 0.05 0.01 1/100 4242\n");
    put("dev/shm/here", "");
    dt_doctor_check_machine(&doctor);
    says("Some Processor; kernels for ");
    says("; bf16 by AMX\n");
    says("PASS  load           0.01");
    says("PASS  memory         32.0 GiB");
    assert_int_equal(doctor.n[DT_VERDICT_FAIL], 0);
}

static void test_small_container(void **state)
{
    put("proc/cpuinfo", "model name\t: Some Processor\nflags\t\t: fpu avx22 notavx512_bf16\n");
    put("proc/meminfo", "MemAvailable:   33554432 kB\n");
    put("proc/loadavg", "999.5 0.05 0.01 1/100 4242\n");
    put("proc/self/cgroup", "0::/box/one\n");
    put("sys/fs/cgroup/box/one/cpu.max", "150000 100000\n");
    put("sys/fs/cgroup/box/cpu.max", "50000 100000\n"); /* the least of all groups counts */
    put("sys/fs/cgroup/box/one/memory.max", "1073741824\n");
    put("sys/fs/cgroup/box/one/memory.current", "805306368\n");
    dt_doctor_check_machine(&doctor);
    says("; no bf16 instructions\n");
    says("but the control group limits them to the time of 0.50\n                     -> use --threads 1, or raise");
    says("WARN  load           999.50");
    says("FAIL  memory         0.2 GiB");
    says("WARN  shared memory  0 MiB");
    assert_int_equal(doctor.n[DT_VERDICT_FAIL], 1);

    dt_str_clear(&out);
    put("sys/fs/cgroup/box/one/memory.max", "2147483648\n");
    put("sys/fs/cgroup/box/one/cpu.max", "max 100000\n");
    put("sys/fs/cgroup/box/cpu.max", "max 100000\n");
    dt_doctor_check_machine(&doctor);
    says("WARN  memory         1.2 GiB");
    says("PASS  cores          ");

    /* nothing can be read */
    dt_str_clear(&out);
    doctor.root = "/no/such/place";
    dt_doctor_check_machine(&doctor);
    says("unknown processor; ");
    says("WARN  memory ");
}

static void test_variables(void **state)
{
    setenv("DTRAIN_FAULT", "none:1", 1);
    setenv("DTRAIN_CONFIG", "/no/such/file.cfg", 1);
    dt_doctor_check_machine(&doctor);
    unsetenv("DTRAIN_FAULT");
    unsetenv("DTRAIN_CONFIG");
    says("WARN  DTRAIN_FAULT   is \"none:1\"");
    says("FAIL  DTRAIN_CONFIG ");
}

/* A folder with a file, one without, and none at all. */
static void test_reading(void **state)
{
    char path[256];
    snprintf(path, sizeof(path), "%s/store", top);
    put("store/small.npy", "x");
    put("store/large.npy", "more than that");
    dt_doctor_check_reading(&doctor, path);
    says("  reading        ");
    says("MB/s over 0.0 MB");
    assert_int_equal(doctor.n[DT_VERDICT_FAIL], 0);
    put("empty/below/file", "");
    snprintf(path, sizeof(path), "%s/empty", top);
    dt_doctor_check_reading(&doctor, path);
    says("empty: not a folder with files in it\n                     -> name the folder of a store: dtrain doctor "
         "STORE");
    dt_doctor_check_reading(&doctor, "/no/such/store");
    says("/no/such/store: not a folder with files in it");
    assert_int_equal(doctor.n[DT_VERDICT_FAIL], 2);
}

static void test_disk(void **state)
{
    char path[256];
    snprintf(path, sizeof(path), "%s/not/yet/there", top);
    dt_doctor_check_disk(&doctor, path);
    snprintf(path, sizeof(path), "GiB free in %s, 1 MiB written and flushed in ", top);
    says(path);
    assert_int_equal(doctor.n[DT_VERDICT_FAIL], 0);
    dt_fault_reset("fs.write:1");
    dt_doctor_check_disk(&doctor, top);
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
    char *before = strdup(getenv("PATH")), path[4096];
    snprintf(path, sizeof(path), "%s/bin", top);
    setenv("PATH", path, 1);
    dt_doctor_check_tools(&doctor);
    says("WARN  MPI ");
    put("bin/mpirun", "#!/bin/sh\necho 'mpirun 8'\n");
    snprintf(path, sizeof(path), "%s/bin/mpirun", top);
    assert_int_equal(chmod(path, 0755), 0);
    dt_doctor_check_tools(&doctor);
    says("PASS  MPI            mpirun 8\n");
    setenv("PATH", before, 1);
    free(before);
}

/* ---- devices ----------------------------------------------------------------------------------------------------- */

static void test_cpu(void **state)
{
    dt_doctor_check_cpu(&doctor);
    says("PASS  kernels ");
    dt_fault_reset("alloc:3");
    dt_doctor_check_cpu(&doctor);
    dt_fault_reset(NULL);
    says("FAIL  kernels ");
}

static dt_status do_nothing(const dt_device_args *a)
{
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
    return DT_FAIL(DT_EUNSUPPORTED, "no driver answers");
}

static void old_driver(dt_device_versions *v)
{
    *v = (dt_device_versions){.driver = 11080, .runtime = 12040, .built_for = 12040, .blas = 120400};
}

static void driver_of_an_earlier_minor(dt_device_versions *v)
{
    *v = (dt_device_versions){.driver = 13000, .runtime = 13020, .built_for = 13020};
}

static void driver_of_an_earlier_major(dt_device_versions *v) /* whose version the runtime does not know */
{
    *v = (dt_device_versions){.driver = 12090, .built_for = 13000};
}

static dt_status far_too_many(uint32_t *n_p)
{
    *n_p = UINT32_MAX;
    return DT_OK;
}

/* where tests/engine/device puts a library */
static const char *library(char path[512], const char *name)
{
    const char *build = getenv("DT_BUILDDIR");
    snprintf(path, 512, "%s/tests/engine/device/.libs/%s", build != NULL ? build : ".", name);
    return path;
}

static void test_devices(void **state)
{
    dt_device_ops ops = *host_device_ops();
    doctor.nvml = "/nowhere/libnvidia-ml.so.1";
    doctor.nccl = "/nowhere/libnccl.so.2";
    host_device_reset(UINT64_C(1) << 33);
    dt_doctor_check_devices(&doctor, &ops);
    says("host memory, 8.0 GiB, sm_10, GPU-none; 8.0 GiB free; memory and kernels work\n");
    assert_int_equal(doctor.n[DT_VERDICT_FAIL], 0);
    assert_true(host_device_read().launches > 0);

    /* with NVML and without, one warning a device */
    assert_int_equal(doctor.n[DT_VERDICT_WARN], 1);
    says("WARN  NVML           no NVML: ");
    says("-> make libnvidia-ml.so.1 known");
    char nvml[512];
    doctor.nvml = library(nvml, "libnvidia-ml.so.1");
    setenv("FAKE_NVML", "alone", 1);
    dt_doctor_check_devices(&doctor, &ops);
    unsetenv("FAKE_NVML");
    says("PASS  NVML           2.8 GiB in use, 87 % at work, 61 degrees Celsius, driver 580.95.05\n");
    assert_int_equal(doctor.n[DT_VERDICT_WARN], 1);

    host_device_reset(UINT64_C(1) << 22);
    dt_doctor_check_devices(&doctor, &ops);
    says("0.0 GiB free; memory and kernels work\n                     -> end other programs on it");
    host_device_reset(UINT64_C(1) << 33);

    host_device_fail_alloc(2);
    dt_doctor_check_devices(&doctor, &ops);
    says("GPU-none: host memory has no room for ");
    host_device_fail_alloc(0);
    assert_int_equal(doctor.n[DT_VERDICT_FAIL], 1);

    ops.kernel = no_work;
    dt_doctor_check_devices(&doctor, &ops);
    says(": it computes 2 * 0 + 1 = 0\n                     -> see nvidia-smi");
    ops.count = no_driver;
    ops.versions = old_driver;
    dt_doctor_check_devices(&doctor, &ops);
    says("FAIL  GPU ");
    says("WARN  driver         driver for CUDA 11.8, built with 12.4, runtime 12.4, cuBLASLt 12.4.0\n"
         "                     -> update the NVIDIA driver to 525.60.13 or later: this one is too old for the CUDA");
    /* a number of devices that cannot be is not gone through */
    ops.count = far_too_many;
    ops.versions = driver_of_an_earlier_minor;
    dt_doctor_check_devices(&doctor, &ops);
    says("FAIL  GPU ");
    says("PASS  driver         driver for CUDA 13.0, built with 13.2, runtime 13.2, no cuBLASLt; the driver is older "
         "by");
    assert_int_equal(host_device_read().live_bytes, 0);
    ops.versions = driver_of_an_earlier_major;
    dt_doctor_check_devices(&doctor, &ops);
    says("WARN  driver         driver for CUDA 12.9, built with 13.0, no cuBLASLt\n");
    says("-> update the NVIDIA driver to 580.65.06 or later");
}

/* What doctor says of a GPU when NVML reports so. */
static void assert_verdict(const char *fake, dt_verdict v, uint32_t n, const char *piece)
{
    const dt_device_info info = {.uuid = "GPU-none"};
    dt_str_clear(&out);
    memset(doctor.n, 0, sizeof(doctor.n));
    setenv("FAKE_NVML", fake, 1);
    dt_doctor_check_nvml(&doctor, "cuda:0", &info);
    unsetenv("FAKE_NVML");
    says(piece);
    assert_int_equal(doctor.n[v], n);
}

static void test_state_of_gpu(void **state)
{
    char nvml[512];
    doctor.nvml = library(nvml, "libnvidia-ml.so.1");
    assert_verdict("alone", DT_VERDICT_WARN, 0,
                   "PASS  cuda:0 clocks  SM 345 of 1980 MHz, memory 1593 of 1593 MHz, idle\n");
    says("PASS  cuda:0 ECC     on, 0 errors");
    says("PASS  cuda:0 driver ");
    says("PASS  cuda:0 programs ");
    assert_verdict("hot", DT_VERDICT_WARN, 2,
                   "slowed down by heat, slowed down by the hardware\n                     -> check its coo");
    assert_verdict("braked", DT_VERDICT_WARN, 2, "slowed down by the power supply, slowed down by the hardware\n");
    says("-> check the power supply of the machine");
    assert_verdict("slow", DT_VERDICT_WARN, 2,
                   "slowed down by the hardware\n                     -> see nvidia-smi -q -d PERFORMANCE");
    assert_verdict("capped", DT_VERDICT_WARN, 2,
                   "limited by the power limit\n                     -> see nvidia-smi -q -d POWER");
    assert_verdict("set", DT_VERDICT_WARN, 2,
                   "limited by configured clocks\n                     -> nvidia-smi -rac and -rgc");
    assert_verdict("errors", DT_VERDICT_WARN, 2, "WARN  cuda:0 ECC     on, 3 errors");
    says("-> restart the GPU (nvidia-smi -r)");
    assert_verdict("no ecc", DT_VERDICT_WARN, 1, "PASS  cuda:0 ECC     off");
    assert_verdict("unloaded", DT_VERDICT_WARN, 2, "WARN  cuda:0 driver ");
    says("-> nvidia-smi -pm 1, or");

    /* other programs, one with a name that would drive a terminal; and where nobody knows which is this one */
    assert_verdict("", DT_VERDICT_WARN, 1, "WARN  cuda:0 programs 1 other on it: 1 /usr/bin/other?[1m (0.0 GiB)\n");
    says("-> end them, or take another GPU (CUDA_VISIBLE_DEVICES)");
    assert_verdict("busy", DT_VERDICT_WARN, 1,
                   "1 other on it: 1 /usr/bin/other?[1m (0.0 GiB), 2 (no name) (0.0 GiB); one of these is ");
    assert_verdict("crowd", DT_VERDICT_WARN, 1, "WARN  cuda:0 programs 199 others");

    /* a library that fails at every look, an old one, and one that lies */
    assert_verdict("gone", DT_VERDICT_PASS, 4,
                   "no GiB in use, no % at work, no degrees Celsius, driver of unknown version\n");
    says("PASS  cuda:0 clocks ");
    says("PASS  cuda:0 ECC     not reported: some GPUs have none\n");
    says("PASS  cuda:0 programs ");
    assert_verdict("hostile", DT_VERDICT_PASS, 4, ", driver ?[2J?xxxxx");
    says("PASS  cuda:0 clocks ");
    says("PASS  cuda:0 ECC ");
    says("PASS  cuda:0 programs ");
    assert_null(strchr(dt_str_text(&out), '\033'));
    doctor.nvml = library(nvml, "fake_nvml_old.so");
    assert_verdict("", DT_VERDICT_PASS, 4, "PASS  cuda:0 clocks ");
}

static dt_device_info opened;

static const dt_device_info *info_of_opened(const dt_device *d)
{
    return &opened;
}

static dt_status describe_opened(uint32_t index, dt_device_info *out_p)
{
    *out_p = opened;
    out_p->index = index;
    return DT_OK;
}

static void test_code(void **state)
{
    dt_device_ops ops = *host_device_ops();
    char nvml[512];
    doctor.nvml = library(nvml, "libnvidia-ml.so.1");
    host_device_reset(UINT64_C(1) << 33);
    ops.info = info_of_opened;
    ops.describe = describe_opened;
    opened = (dt_device_info){.major = 9, .minor = 0, .code = 90, .name = "a\033]0;b\nc", .uuid = "GPU-none"};
    dt_doctor_check_devices(&doctor, &ops);
    says("PASS  host:0 code    compiled for sm_90");
    says("PASS  host:0         a?]0;b?c, "); /* a name in one line that cannot drive a terminal */
    opened.code = 80;
    dt_doctor_check_devices(&doctor, &ops);
    says("WARN  host:0 code ");
    says("-> build with --with-nvcc-gencode=-gencode=arch=compute_90,code=sm_90\n");
    /* binary code for 8.0 runs on 8.6 as it is */
    opened.major = 8;
    opened.minor = 6;
    dt_str_clear(&out);
    dt_doctor_check_devices(&doctor, &ops);
    says("PASS  host:0 code    compiled for sm_80");
}

static uint32_t n_gpus;

static dt_status some_gpus(uint32_t *n_p)
{
    *n_p = n_gpus;
    return DT_OK;
}

/* 0 reaches 1 and the other way round; 2 is not asked back; nobody knows of 3 */
static dt_status peers_of_two(uint32_t from, uint32_t to, uint32_t *can_p)
{
    if (from == 3 || to == 3) {
        return DT_FAIL(DT_ECUDA, "it does not say");
    }
    *can_p = from < to || (from == 1 && to == 0) ? 1 : 0;
    return DT_OK;
}

static void test_several(void **state)
{
    dt_device_ops ops = *host_device_ops();
    char path[512];
    doctor.nvml = library(path, "libnvidia-ml.so.1");
    doctor.nccl = "/nowhere/libnccl.so.2";
    host_device_reset(UINT64_C(1) << 33);
    ops.count = some_gpus;
    n_gpus = 1;
    dt_doctor_check_devices(&doctor, &ops);
    assert_null(strstr(dt_str_text(&out), "GPU pairs"));
    says("PASS  NCCL           no usable libnccl.so.2; one GPU needs none\n");
    n_gpus = 3;
    dt_doctor_check_devices(&doctor, &ops);
    says("PASS  GPU pairs      3 of 3");
    says("WARN  NCCL           no usable libnccl.so.2");
    says("-> install NCCL 2.19 or later (Debian: libnccl2), or make libnccl.so.2 known");
    n_gpus = 4;
    ops.peer = peers_of_two;
    dt_doctor_check_devices(&doctor, &ops);
    says("WARN  GPU pairs      5 of 6");
    says(": 0 and 2, 0 and 3 (not reported), 1 and 2, 1 and 3 (not reported), ...\n");
    says("-> see nvidia-smi topo -p2p r; ");
}

static void test_nccl(void **state)
{
    char path[512];
    const struct {
        const char *version, *says;
    } cases[] = {{"22809", "PASS  NCCL           2.28.9\n"},
                 {"21805", "WARN  NCCL           version 21805, older than 2.19\n"},
                 {"2708", "WARN  NCCL           version 2708, older than 2.19\n"},
                 {"-1", "WARN  NCCL "},
                 {"2147483647", "which is invalid\n"},
                 {"fails", "WARN  NCCL           no usable libnccl.so.2"}};
    doctor.nccl = library(path, "libnvidia-ml.so.1");
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        dt_str_clear(&out);
        setenv("FAKE_NCCL", cases[i].version, 1);
        dt_doctor_check_nccl(&doctor, 2);
        unsetenv("FAKE_NCCL");
        says(cases[i].says);
    }
    /* one that is no NCCL */
    doctor.nccl = library(path, "fake_nvml_useless.so");
    dt_doctor_check_nccl(&doctor, 2);
    says("WARN  NCCL           no usable libnccl.so.2");
}

static void test_no_gpu(void **state)
{
    dt_doctor_report_no_driver(&doctor, NULL, NULL);
    says("PASS  GPU ");
    put("sys/bus/pci/devices/0000:00:02.0/vendor", "0x8086\n");
    put("sys/bus/pci/devices/0000:00:02.0/class", "0x030000\n");
    put("sys/bus/pci/devices/0000:01:00.1/vendor", "0x10de\n"); /* its sound */
    put("sys/bus/pci/devices/0000:01:00.1/class", "0x040300\n");
    put("sys/bus/pci/devices/0000:02:00.0/vendor", "");
    dt_str_clear(&out);
    dt_doctor_check_cuda(&doctor);
    says("PASS  GPU ");
    put("modules/backend_cuda.so", "no module"); /* one that is there and refused is not missing */
    setenv("DTRAIN_PLUGIN_PATH", doctor.root, 1);
    dt_str_clear(&out);
    dt_doctor_check_cuda(&doctor);
    unsetenv("DTRAIN_PLUGIN_PATH");
    says("; the module for them is there, but ");
    says("/modules/backend_cuda.so cannot be loaded: ");
    put("sys/bus/pci/devices/0000:81:00.0/vendor", "0x10de\n");
    put("sys/bus/pci/devices/0000:81:00.0/class", "0x030200\n");
    dt_doctor_report_no_driver(&doctor, host_device_ops(), NULL);
    says("WARN  GPU ");
    says("-> install the NVIDIA driver (nvidia-smi must list the GPU); start a container with --gpus all\n");
    assert_int_equal(doctor.n[DT_VERDICT_FAIL], 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_large_machine, begin, end),
        cmocka_unit_test_setup_teardown(test_small_container, begin, end),
        cmocka_unit_test_setup_teardown(test_variables, begin, end),
        cmocka_unit_test_setup_teardown(test_reading, begin, end),
        cmocka_unit_test_setup_teardown(test_disk, begin, end),
        cmocka_unit_test_setup_teardown(test_tools, begin, end),
        cmocka_unit_test_setup_teardown(test_cpu, begin, end),
        cmocka_unit_test_setup_teardown(test_devices, begin, end),
        cmocka_unit_test_setup_teardown(test_state_of_gpu, begin, end),
        cmocka_unit_test_setup_teardown(test_code, begin, end),
        cmocka_unit_test_setup_teardown(test_several, begin, end),
        cmocka_unit_test_setup_teardown(test_nccl, begin, end),
        cmocka_unit_test_setup_teardown(test_no_gpu, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
