/* SPDX-License-Identifier: Apache-2.0
 *
 * What doctor checks of the devices: the CPU's kernels and the GPUs, each with a quick self-test. See doctor.h.
 */
#include <config.h>

#include "plan/machine/doctor.h"

#include "engine/backend/kernel.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/rng.h"
#include "base/str.h"
#include "engine/device/open.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* ---- CPU --------------------------------------------------------------------------------------------------------- */

enum { SIDE = 256, GPU_FLOATS = 1 << 18, MAX_GPUS = 256 };
static const double test_s = 0.03;     /* time given to the speed */
static const double tolerance = 1e-5;  /* largest error over largest value, for sums of SIDE products in f32 */
static const double few_free = 0x1p30; /* bytes of a GPU below which little fits */

static void run_test_product(const dt_kernel_set set, void *const data[4], void *scratch)
{
    dt_view in[3] = {0}, out[1] = {0};
    for (int i = 0; i < 2; i++) {
        in[i] = (dt_view){.data = data[i], .dim = {SIDE, SIDE}, .rank = 2, .dtype = DT_F32};
    }
    in[2] = (dt_view){.data = data[2], .dim = {SIDE}, .rank = 1, .dtype = DT_F32};
    out[0] = (dt_view){.data = data[3], .dim = {SIDE, SIDE}, .rank = 2, .dtype = DT_F32};
    const dt_attr attr = {0};
    const dt_kernel_run run = {0};
    const dt_kernel_args a = {
        .attr = &attr, .run = &run, .in = in, .out = out, .n_in = 3, .n_out = 1, .scratch = scratch};
    dt_kernel_find(DT_OPX_LINEAR, set)(&a);
}

static size_t product_scratch(void)
{
    const dt_view square = {.dim = {SIDE, SIDE}, .rank = 2, .dtype = DT_F32};
    const dt_view in[3] = {square, square, {.dim = {SIDE}, .rank = 1, .dtype = DT_F32}};
    const dt_attr attr = {0};
    return dt_kernel_scratch_bytes(DT_OPX_LINEAR, DT_KERNELS_CPU, &attr, in, &square);
}

/* x w^T + b by both kernel sets; error_p: largest difference over the largest value. */
static dt_status compare_kernel_sets(double *error_p, double *gflops_p)
{
    enum { N = SIDE * SIDE };
    static const size_t count[4] = {N, N, SIDE, N};
    const dt_rng_key key = {.seed = 1};
    void *fast[4] = {0}, *exact[4] = {0}, *scratch = dt_alloc(product_scratch() + 64);
    dt_status st = scratch != NULL ? DT_OK : DT_FAIL(DT_ENOMEM, "no memory for a self-test");
    for (int i = 0; i < 4; i++) {
        fast[i] = dt_alloc(count[i] * sizeof(float));
        exact[i] = dt_alloc(count[i] * sizeof(double));
        st = fast[i] != NULL && exact[i] != NULL ? st : DT_FAIL(DT_ENOMEM, "no memory for a self-test");
    }
    if (st == DT_OK) {
        for (int i = 0; i < 3; i++) {
            for (size_t k = 0; k < count[i]; k++) {
                ((float *)fast[i])[k] = (float)dt_rng_normal(&key, (uint64_t)i * N + k);
                ((double *)exact[i])[k] = ((float *)fast[i])[k];
            }
        }
        run_test_product(DT_KERNELS_REF64, exact, scratch);
        run_test_product(DT_KERNELS_CPU, fast, scratch);
        double error = 0, largest = 0;
        for (size_t k = 0; k < N; k++) {
            error = fmax(error, fabs(((float *)fast[3])[k] - ((double *)exact[3])[k]));
            largest = fmax(largest, fabs(((double *)exact[3])[k]));
        }
        *error_p = error / largest;
        const double before = dt_clock_s();
        double took = 0;
        uint32_t n = 0;
        for (; took < test_s; n++) {
            run_test_product(DT_KERNELS_CPU, fast, scratch);
            took = dt_clock_s() - before;
        }
        *gflops_p = 2.0 * N * SIDE * n / took / 1e9;
    }
    for (int i = 0; i < 4; i++) {
        dt_free(fast[i]);
        dt_free(exact[i]);
    }
    dt_free(scratch);
    return st;
}

void dt_doctor_check_cpu(dt_doctor *d)
{
    double error = 0, gflops = 0;
    if (compare_kernel_sets(&error, &gflops) != DT_OK) {
        dt_doctor_add_line(d, DT_VERDICT_FAIL, "kernels", "free some memory", "%s", dt_error_text());
    } else if (!(error < tolerance)) {
        dt_doctor_add_line(d, DT_VERDICT_FAIL, "kernels",
                           "run make check; DTRAIN_CPU_ISA=avx2 or base takes simpler kernels; it may be the machine",
                           "a matrix product has a relative error of %.2g, at most %.0e is rounding", error, tolerance);
    } else {
        dt_doctor_add_line(d, DT_VERDICT_PASS, "kernels", "",
                           "agree with the reference; products at %.0f GFLOP/s on one core", gflops);
    }
}

/* ---- GPUs -------------------------------------------------------------------------------------------------------- */

/* y = 2 x + 1 for whole numbers, in which no rounding can hide. zeros: a control block that nothing here needs. */
static dt_status launch_kernel(const dt_device_ops *ops, dt_device *d, dt_device_stream *s, void *x, void *y,
                               void *zeros)
{
    static const dt_attr attr = {.f = {2.0, 1.0}}; /* launches run later */
    const dt_device_kernel *kernel = ops->kernel(DT_OPX_AFFINE);
    if (kernel == NULL) {
        return DT_FAIL(DT_EUNSUPPORTED, "the module has no kernel for affine");
    }
    const dt_device_view view = {.dim = {GPU_FLOATS}, .rank = 1, .dtype = DT_F32, .ragged = -1};
    dt_device_view in[2] = {view, {.ragged = -1}}, out[1] = {view}; /* the second input is absent */
    in[0].data = x;
    out[0].data = y;
    const dt_device_args a = {.attr = &attr,
                              .in = in,
                              .out = out,
                              .n_in = 1,
                              .n_out = 1,
                              .leaves = 1,
                              .live = zeros,
                              .run = zeros,
                              .device = d,
                              .stream = s};
    return kernel->run(&a);
}

enum { TRIP_BYTES = GPU_FLOATS * sizeof(float) };

typedef struct trip { /* what goes there and comes back; NULL where there is nothing yet */
    const dt_device_ops *ops;
    dt_device *d;
    dt_device_stream *s;
    void *there[3], *here[2];
} trip;

static dt_status round_trip_init(trip *t)
{
    DT_TRY(t->ops->stream_create(t->d, &t->s));
    for (int i = 0; i < 2; i++) {
        DT_TRY(t->ops->alloc(t->d, TRIP_BYTES, &t->there[i]));
        DT_TRY(t->ops->pin(t->d, TRIP_BYTES, &t->here[i]));
    }
    return t->ops->alloc(t->d, sizeof(dt_device_run), &t->there[2]);
}

static void round_trip_fini(trip *t)
{
    for (int i = 0; i < 3; i++) {
        if (i < 2 && t->here[i] != NULL) {
            t->ops->unpin(t->d, t->here[i]);
        }
        if (t->there[i] != NULL) {
            t->ops->release(t->d, t->there[i]);
        }
    }
    if (t->s != NULL) {
        t->ops->stream_destroy(t->d, t->s);
    }
}

static dt_status run_round_trip(trip *t)
{
    DT_TRY(round_trip_init(t));
    for (int k = 0; k < GPU_FLOATS; k++) {
        ((float *)t->here[0])[k] = (float)k;
    }
    DT_TRY(t->ops->copy(t->d, t->there[0], t->here[0], TRIP_BYTES, DT_DEVICE_TO_DEVICE, t->s));
    DT_TRY(launch_kernel(t->ops, t->d, t->s, t->there[0], t->there[1], t->there[2]));
    DT_TRY(t->ops->copy(t->d, t->here[1], t->there[1], TRIP_BYTES, DT_DEVICE_TO_HOST, t->s));
    DT_TRY(t->ops->stream_sync(t->d, t->s));
    for (int k = 0; k < GPU_FLOATS; k++) {
        const float got = ((float *)t->here[1])[k];
        if (got != 2.0F * (float)k + 1.0F) {
            return DT_FAIL(DT_ECUDA, "it computes 2 * %d + 1 = %g", k, (double)got);
        }
    }
    return DT_OK;
}

/* Numbers go to the device, through a kernel, and come back. */
static dt_status check_round_trip(const dt_device_ops *ops, dt_device *d)
{
    trip t = {.ops = ops, .d = d};
    const dt_status st = run_round_trip(&t);
    round_trip_fini(&t);
    return st;
}

typedef struct tried {
    uint64_t room; /* free bytes */
    uint32_t code; /* of dt_device_info */
} tried;

static dt_status open_and_try_device(const dt_device_ops *ops, uint32_t index, dt_device **device_p, tried *t)
{
    uint64_t total = 0;
    DT_TRY(ops->open(index, device_p));
    t->code = ops->info(*device_p)->code;
    DT_TRY(ops->memory(*device_p, &t->room, &total));
    return check_round_trip(ops, *device_p);
}

/* Is there code for it, or did the driver translate what was compiled for an earlier one? */
static void check_device_code(dt_doctor *d, const char *gpu, const dt_device_info *info, uint32_t code)
{
    char check[32], remedy[160];
    snprintf(check, sizeof(check), "%s code", gpu);
    if (code == 0) {
        return;
    }
    if (code / 10 == info->major) {
        dt_doctor_add_line(d, DT_VERDICT_PASS, check, "", "compiled for sm_%u", code);
        return;
    }
    snprintf(remedy, sizeof(remedy), "build with --with-nvcc-gencode=-gencode=arch=compute_%u%u,code=sm_%u%u",
             info->major, info->minor, info->major, info->minor);
    dt_doctor_add_line(
        d, DT_VERDICT_WARN, check, remedy,
        "compiled for compute capability %u.%u and translated by the driver: the first start takes longer, and "
        "what only later GPUs can do is left out",
        code / 10, code % 10);
}

static void check_device(dt_doctor *d, const dt_device_ops *ops, uint32_t index)
{
    char check[24];
    dt_device_info info;
    dt_device *device = NULL;
    tried t = {0};
    dt_str text = {0};
    snprintf(check, sizeof(check), "%s:%u", ops->name, index);
    dt_status st = ops->describe(index, &info);
    if (st >= 0) {
        dt_device_info_text(&info, &text);
        st = open_and_try_device(ops, index, &device, &t);
    }
    if (device != NULL) {
        ops->close(device);
    }
    if (st < 0) {
        dt_doctor_add_line(d, DT_VERDICT_FAIL, check,
                           "see nvidia-smi; leave it out by CUDA_VISIBLE_DEVICES, or restart it", "%s%s%s",
                           dt_str_text(&text), text.bytes > 0 ? ": " : "", dt_error_text());
    } else {
        const bool is_full = (double)t.room < few_free;
        dt_doctor_add_line(d, is_full ? DT_VERDICT_WARN : DT_VERDICT_PASS, check,
                           is_full ? "end other programs on it (nvidia-smi lists them)" : "",
                           "%s; %.1f GiB free; memory and kernels work", dt_str_text(&text), (double)t.room / 0x1p30);
        check_device_code(d, check, &info, t.code);
        dt_doctor_check_nvml(d, check, &info);
    }
    dt_str_fini(&text);
}

void dt_doctor_check_devices(dt_doctor *d, const dt_device_ops *ops)
{
    uint32_t n = 0;
    dt_doctor_check_libraries(d, ops);
    if (ops->count(&n) < 0) {
        dt_doctor_add_line(d, DT_VERDICT_FAIL, "GPU",
                           "install or update the NVIDIA driver; CUDA_VISIBLE_DEVICES may hide GPUs", "%s",
                           dt_error_text());
        n = 0;
    } else if (n > MAX_GPUS) {
        dt_doctor_add_line(d, DT_VERDICT_FAIL, "GPU", "see nvidia-smi; use --device cpu until results are correct",
                           "the driver reports %u GPUs, at most %d are supported", n, MAX_GPUS);
        n = 0;
    }
    for (uint32_t i = 0; i < n; i++) {
        check_device(d, ops, i);
    }
    dt_doctor_check_peers(d, ops, n);
    dt_doctor_check_nccl(d, n);
}

void dt_doctor_check_cuda(dt_doctor *d)
{
    dt_str node = {0};
    const dt_device_ops *ops = NULL;
    dt_str_addf(&node, "%s/dev/nvidiactl", d->root);
    const bool has_driver = access(dt_str_text(&node), F_OK) == 0;
    dt_str_fini(&node);
    dt_error_clear();
    const dt_status st = dt_device_module_open("cuda", &ops);
    if (!has_driver) {
        dt_doctor_report_no_driver(d, ops, st != DT_OK && dt_device_module_exists("cuda") ? dt_error_text() : NULL);
    } else if (st != DT_OK) {
        dt_doctor_add_line(d, DT_VERDICT_WARN, "GPU", "until then --device auto and cpu train on the CPU", "%s",
                           dt_error_text());
    } else {
        dt_doctor_check_devices(d, ops);
    }
}
