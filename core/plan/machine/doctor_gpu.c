/* SPDX-License-Identifier: Apache-2.0
 *
 * What doctor checks of GPUs in addition to their kernels: driver and libraries, clocks, memory errors, other programs
 * on them, and whether they reach each other. See doctor.h.
 */
#include <config.h>

#include "plan/machine/doctor.h"

#include "base/err.h"
#include "base/fs.h"
#include "base/mem.h"
#include "base/str.h"
#include "engine/device/nvml.h"

#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { NAMED = 4, SYS_BYTES = 8192 }; /* of a list, the first few; of a file of the kernel */

/* ---- driver and libraries ---------------------------------------------------------------------------------------- */

/* 12040 is 12.4 */
static void append_cuda_version(dt_str *out, const char *what, uint32_t v)
{
    dt_str_addf(out, "%s%s %u.%u", out->bytes > 0 ? ", " : "", what, v / 1000, v % 1000 / 10);
}

/* 120405 is 12.4.5 */
static void append_library_version(dt_str *out, const char *what, uint32_t v)
{
    dt_str_addf(out, ", %s %u.%u.%u", what, v / 10000, v % 10000 / 100, v % 100);
}

static void append_module_versions(dt_str *out, const dt_device_versions *v)
{
    append_cuda_version(out, "built with", v->built_for);
    if (v->runtime != 0) { /* some do not report it without a driver */
        append_cuda_version(out, "runtime", v->runtime);
    }
    if (v->blas != 0) {
        append_library_version(out, "cuBLASLt", v->blas);
    } else {
        dt_str_add(out, ", no cuBLASLt");
    }
}

/* The first driver for all releases of a major version (release notes of CUDA, minor version compatibility). */
static const char *oldest_driver_of_runtime(uint32_t runtime)
{
    static const struct {
        uint32_t major;
        const char *driver;
    } known[] = {{11, "450.80.02"}, {12, "525.60.13"}, {13, "580.65.06"}};
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        if (known[i].major == runtime / 1000) {
            return known[i].driver;
        }
    }
    return "the one that the release notes of that CUDA name";
}

void dt_doctor_check_libraries(dt_doctor *d, const dt_device_ops *ops)
{
    dt_device_versions v = {0};
    dt_str text = {0}, remedy = {0};
    ops->versions(&v);
    const uint32_t runtime = v.runtime != 0 ? v.runtime : v.built_for;
    const bool is_old = v.driver / 1000 < runtime / 1000, is_minor = !is_old && v.driver < runtime;
    append_cuda_version(&text, "driver for CUDA", v.driver);
    append_module_versions(&text, &v);
    if (is_minor) {
        dt_str_add(&text,
                   "; the driver is older by less than a major version: enough for GPUs that this build has code "
                   "for, and for no others");
    }
    if (is_old) {
        dt_str_addf(&remedy, "update the NVIDIA driver to %s or later: this one is too old for the CUDA runtime",
                    oldest_driver_of_runtime(runtime));
    }
    dt_doctor_add_line(d, is_old ? DT_VERDICT_WARN : DT_VERDICT_PASS, "driver", dt_str_text(&remedy), "%s",
                       dt_str_text(&text));
    dt_str_fini(&remedy);
    dt_str_fini(&text);
}

/* NCCL is looked for as a run would; a version below counts 2.19.1 as 21901, before 2.9 otherwise. */
enum { NCCL_LEAST = 21900, NCCL_LAST = 999999 };

static bool read_nccl_version(const char *library, int *version_p)
{
    int (*get_version)(int *version) = NULL;
    void *nccl = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    void *found = nccl != NULL ? dlsym(nccl, "ncclGetVersion") : NULL;
    memcpy((void *)&get_version, &found, sizeof(found));
    const bool has_version = get_version != NULL && get_version(version_p) == 0;
    if (nccl != NULL) {
        dlclose(nccl);
    }
    return has_version;
}

void dt_doctor_check_nccl(dt_doctor *d, uint32_t n_gpus)
{
    int v = 0;
    const dt_verdict lacking = n_gpus > 1 ? DT_VERDICT_WARN : DT_VERDICT_PASS;
    const char *remedy = n_gpus > 1 ? "install NCCL 2.19 or later (Debian: libnccl2), or make libnccl.so.2 known "
                                      "(LD_LIBRARY_PATH)"
                                    : "";
    if (!read_nccl_version(d->nccl != NULL ? d->nccl : "libnccl.so.2", &v)) {
        dt_doctor_add_line(d, lacking, "NCCL", remedy, "no usable libnccl.so.2; %s",
                           n_gpus > 1 ? "runs on several GPUs require it" : "one GPU needs none");
    } else if (v <= 0 || v > NCCL_LAST) {
        dt_doctor_add_line(d, lacking, "NCCL", remedy, "its library reports version %d, which is invalid", v);
    } else if (v < NCCL_LEAST) {
        dt_doctor_add_line(d, lacking, "NCCL", remedy, "version %d, older than 2.19", v);
    } else {
        dt_doctor_add_line(d, DT_VERDICT_PASS, "NCCL", "", "%d.%d.%d", v / 10000, v % 10000 / 100, v % 100);
    }
}

/* ---- one GPU ----------------------------------------------------------------------------------------------------- */

static void report_gpu_line(dt_doctor *d, dt_verdict v, const char *gpu, const char *what, const char *remedy,
                            const dt_str *text)
{
    char check[48];
    snprintf(check, sizeof(check), "%s %s", gpu, what);
    dt_doctor_add_line(d, v, check, remedy, "%s", dt_str_text(text));
}

static void append_clock(dt_str *out, const char *name, double mhz, double max_mhz)
{
    if (isnan(mhz)) {
        dt_str_addf(out, "%sno clock of %s", out->bytes > 0 ? ", " : "", name);
        return;
    }
    dt_str_addf(out, "%s%s %.0f", out->bytes > 0 ? ", " : "", name, mhz);
    if (!isnan(max_mhz)) {
        dt_str_addf(out, " of %.0f", max_mhz);
    }
    dt_str_add(out, " MHz");
}

/* Worst first: the remedy is that of the first one that holds. */
static void check_clocks(dt_doctor *d, const char *gpu, const dt_nvml_state *s)
{
    static const struct {
        uint64_t bits;
        const char *text, *remedy;
    } reason[] = {
        {DT_NVML_HW_HOT | DT_NVML_SW_HOT, "slowed down by heat", "check its cooling (nvidia-smi -q -d TEMPERATURE)"},
        {DT_NVML_POWER_BRAKE, "slowed down by the power supply",
         "check the power supply of the machine and its cables"},
        {DT_NVML_HW_SLOWDOWN, "slowed down by the hardware", "see nvidia-smi -q -d PERFORMANCE: heat or power"},
        {DT_NVML_POWER_CAP, "limited by the power limit", "see nvidia-smi -q -d POWER; -pl raises the limit"},
        {DT_NVML_CLOCKS_SET, "limited by configured clocks", "nvidia-smi -rac and -rgc reset them"},
        {DT_NVML_SYNC_BOOST, "limited to the clocks of another GPU", ""},
        {DT_NVML_IDLE, "idle", ""}};
    dt_str text = {0};
    const char *remedy = "";
    append_clock(&text, "SM", s->mhz[DT_NVML_CLOCK_SM], s->max_mhz[DT_NVML_CLOCK_SM]);
    append_clock(&text, "memory", s->mhz[DT_NVML_CLOCK_MEMORY], s->max_mhz[DT_NVML_CLOCK_MEMORY]);
    for (size_t i = 0; i < sizeof(reason) / sizeof(reason[0]); i++) {
        if ((s->reasons & reason[i].bits) != 0) {
            dt_str_addf(&text, ", %s", reason[i].text);
            remedy = *remedy == '\0' ? reason[i].remedy : remedy;
        }
    }
    report_gpu_line(d, *remedy != '\0' ? DT_VERDICT_WARN : DT_VERDICT_PASS, gpu, "clocks", remedy, &text);
    dt_str_fini(&text);
}

static void check_memory_errors(dt_doctor *d, const char *gpu, const dt_nvml_state *s)
{
    dt_str text = {0};
    const bool is_bad = s->ecc_errors > 0;
    dt_str_add(&text, s->ecc < 0   ? "not reported: some GPUs have none"
                      : s->ecc > 0 ? "on"
                                   : "off, flipped bits are not detected");
    if (s->ecc > 0) {
        dt_str_addf(&text, isnan(s->ecc_errors) ? ", errors not reported" : ", %.0f errors that could not be corrected",
                    s->ecc_errors);
    }
    report_gpu_line(d, is_bad ? DT_VERDICT_WARN : DT_VERDICT_PASS, gpu, "ECC",
                    is_bad ? "restart the GPU (nvidia-smi -r) or the machine; if they come again, have the GPU replaced"
                           : "",
                    &text);
    dt_str_fini(&text);
}

static void check_persistence(dt_doctor *d, const char *gpu, const dt_nvml_state *s)
{
    if (s->persistence < 0) {
        return;
    }
    const bool is_on = s->persistence > 0;
    char check[48];
    snprintf(check, sizeof(check), "%s driver", gpu);
    dt_doctor_add_line(d, is_on ? DT_VERDICT_PASS : DT_VERDICT_WARN, check,
                       is_on ? "" : "nvidia-smi -pm 1, or start nvidia-persistenced",
                       is_on ? "stays loaded between programs (persistence mode)"
                             : "may be reloaded by each program, which takes seconds: persistence mode is off");
}

static void check_programs(dt_doctor *d, const char *gpu, const dt_nvml_state *s)
{
    dt_str text = {0};
    if (!s->are_programs_known) {
        dt_str_add(&text, "processes on it not reported");
    } else if (s->n_programs == 0) {
        dt_str_add(&text, "no other on it");
    } else {
        dt_str_addf(&text, "%u other%s on it", s->n_programs, s->n_programs > 1 ? "s" : "");
        for (uint32_t i = 0; i < s->n_listed && i < NAMED; i++) {
            const dt_nvml_program *p = &s->program[i];
            dt_str_addf(&text, "%s%u %s", i == 0 ? ": " : ", ", p->pid, p->name[0] != '\0' ? p->name : "(no name)");
            if (!isnan(p->used)) {
                dt_str_addf(&text, " (%.1f GiB)", p->used / 0x1p30);
            }
        }
        dt_str_add(&text, s->n_listed > NAMED ? ", ..." : "");
        dt_str_add(&text, s->n_listed > s->n_programs ? "; one of these is this program" : "");
    }
    const bool is_shared = s->are_programs_known && s->n_programs > 0;
    report_gpu_line(
        d, is_shared ? DT_VERDICT_WARN : DT_VERDICT_PASS, gpu, "programs",
        is_shared ? "end them, or take another GPU (CUDA_VISIBLE_DEVICES): they share its time and memory" : "", &text);
    dt_str_fini(&text);
}

static void check_sample(dt_doctor *d, const dt_nvml_sample *s, const char *driver)
{
    dt_str text = {0};
    const struct {
        double value, unit;
        const char *name;
    } gauge[] = {
        {s->used, 0x1p30, "GiB in use"}, {s->utilisation, 1, "% at work"}, {s->temperature, 1, "degrees Celsius"}};
    for (size_t i = 0; i < sizeof(gauge) / sizeof(gauge[0]); i++) {
        if (isnan(gauge[i].value)) {
            dt_str_addf(&text, "%sno %s", i > 0 ? ", " : "", gauge[i].name);
        } else {
            dt_str_addf(&text, "%s%.*f %s", i > 0 ? ", " : "", i == 0, gauge[i].value / gauge[i].unit, gauge[i].name);
        }
    }
    dt_str_addf(&text, *driver != '\0' ? ", driver %s" : ", driver of unknown version", driver);
    dt_doctor_add_line(d, DT_VERDICT_PASS, "NVML", "", "%s", dt_str_text(&text));
    dt_str_fini(&text);
}

void dt_doctor_check_nvml(dt_doctor *d, const char *gpu, const dt_device_info *info)
{
    dt_nvml *n = NULL;
    dt_nvml_sample sample;
    dt_nvml_state state;
    if (dt_nvml_open(d->nvml, info, &n) < 0) {
        dt_doctor_add_line(
            d, DT_VERDICT_WARN, "NVML",
            "make libnvidia-ml.so.1 known; until then runs record no memory in use, utilisation, temperature", "%s",
            dt_error_text());
        return;
    }
    dt_nvml_read_sample(n, &sample);
    dt_nvml_read_state(n, &state);
    dt_nvml_close(n);
    check_sample(d, &sample, state.driver);
    check_clocks(d, gpu, &state);
    check_memory_errors(d, gpu, &state);
    check_persistence(d, gpu, &state);
    check_programs(d, gpu, &state);
}

/* ---- several ----------------------------------------------------------------------------------------------------- */

void dt_doctor_check_peers(dt_doctor *d, const dt_device_ops *ops, uint32_t n)
{
    dt_str text = {0};
    uint32_t n_pairs = 0, n_apart = 0;
    for (uint32_t i = 0; i < n; i++) {
        for (uint32_t k = i + 1; k < n; k++, n_pairs++) {
            uint32_t there = 0, back = 0;
            const bool is_known = ops->peer(i, k, &there) == DT_OK && ops->peer(k, i, &back) == DT_OK;
            if (is_known && there != 0 && back != 0) {
                continue;
            }
            if (n_apart++ < NAMED) {
                dt_str_addf(&text, "%s%u and %u%s", n_apart > 1 ? ", " : "", i, k, is_known ? "" : " (not reported)");
            }
        }
    }
    dt_error_clear();
    if (n_pairs > 0 && n_apart == 0) {
        dt_doctor_add_line(d, DT_VERDICT_PASS, "GPU pairs", "", "%u of %u reach each other's memory", n_pairs, n_pairs);
    } else if (n_pairs > 0) {
        dt_doctor_add_line(
            d, DT_VERDICT_WARN, "GPU pairs",
            "see nvidia-smi topo -p2p r; a virtual machine, an IOMMU or PCIe access control (ACS) forbids it; "
            "give a run GPUs that do (CUDA_VISIBLE_DEVICES)",
            "%u of %u do not reach each other's memory, and communicate through the host's: %s%s", n_apart, n_pairs,
            dt_str_text(&text), n_apart > NAMED ? ", ..." : "");
    }
    dt_str_fini(&text);
}

/* ---- no driver --------------------------------------------------------------------------------------------------- */

/* Does /sys/bus/pci/devices/<device>/<name> begin with these letters? */
static bool pci_begins_with(const dt_doctor *d, const char *device, const char *name, const char *letters)
{
    dt_str path = {0};
    char *bytes = NULL;
    size_t n = 0;
    dt_str_addf(&path, "%s/sys/bus/pci/devices/%s/%s", d->root, device, name);
    const bool is_so = dt_fs_read_any(dt_str_text(&path), SYS_BYTES, &bytes, &n) == DT_OK &&
                       strncmp(bytes, letters, strlen(letters)) == 0;
    dt_free(bytes);
    dt_str_fini(&path);
    return is_so;
}

/* The address of a display or 3D controller of NVIDIA into text; "" where there is none. */
static void find_controller(const dt_doctor *d, char *text, size_t bytes)
{
    dt_str path = {0};
    char **names = NULL;
    size_t n = 0;
    text[0] = '\0';
    dt_str_addf(&path, "%s/sys/bus/pci/devices", d->root);
    if (dt_fs_list(dt_str_text(&path), &names, &n) == DT_OK) {
        for (size_t i = 0; i < n && text[0] == '\0'; i++) {
            if (pci_begins_with(d, names[i], "vendor", "0x10de") && pci_begins_with(d, names[i], "class", "0x03")) {
                snprintf(text, bytes, "%s", names[i]);
            }
        }
        dt_fs_list_free(names, n);
    }
    dt_error_clear();
    dt_str_fini(&path);
}

void dt_doctor_report_no_driver(dt_doctor *d, const dt_device_ops *ops, const char *refused)
{
    char controller[64];
    dt_str module = {0};
    dt_device_versions v = {0};
    if (ops != NULL) {
        ops->versions(&v);
        dt_str_add(&module, "the module for them is installed, ");
        dt_str built = {0};
        append_module_versions(&built, &v);
        dt_str_add(&module, dt_str_text(&built));
        dt_str_fini(&built);
    } else if (refused != NULL) {
        dt_str_addf(&module, "the module for them is there, but %s", refused);
    } else {
        dt_str_add(&module, "no module for them either");
    }
    find_controller(d, controller, sizeof(controller));
    if (controller[0] != '\0') {
        dt_doctor_add_line(
            d, DT_VERDICT_WARN, "GPU",
            "install the NVIDIA driver (nvidia-smi must list the GPU); start a container with --gpus all",
            "no NVIDIA driver here (no /dev/nvidiactl), though there is a GPU at %s; %s; training runs on the CPU",
            controller, dt_str_text(&module));
    } else {
        dt_doctor_add_line(d, DT_VERDICT_PASS, "GPU", "",
                           "no NVIDIA GPU here and no driver (no /dev/nvidiactl); %s; training runs on the CPU",
                           dt_str_text(&module));
    }
    dt_str_fini(&module);
}
