/* SPDX-License-Identifier: Apache-2.0 */
#include <config.h>

#include "study/plan.h"

#include "base/err.h"
#include "study/child.h"
#include "study/trainings.h"
#include "telemetry/report/flat.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static uint64_t bytes_of(const dt_flat *f, uint32_t phase, const char *key)
{
    char path[64];
    snprintf(path, sizeof(path), "phases/%u/%s", phase, key);
    const double v = dt_flat_number(f, path, 0);
    return v > 0 ? (uint64_t)v : 0;
}

static void read_needs(const dt_flat *f, dt_study_plan *out)
{
    *out = (dt_study_plan){0};
    for (uint32_t i = 0; bytes_of(f, i, "planned_peak") > 0; i++) {
        const uint64_t memory = bytes_of(f, i, "planned_peak") + bytes_of(f, i, "planned_peak_processes");
        const uint64_t device = bytes_of(f, i, "planned_peak_device");
        out->memory = memory > out->memory ? memory : out->memory;
        out->device = device > out->device ? device : out->device;
    }
}

dt_status dt_study_plan_read(dt_words *command, dt_study_plan *out, int *code_p)
{
    char path[64];
    pid_t pid = 0;
    dt_flat f = {0};
    dt_words_add(command, "--dry-run");
    dt_words_add(command, "--json");
    const int fd = memfd_create("plan", MFD_CLOEXEC);
    if (fd < 0) {
        return DT_FAIL(DT_EIO, "cannot make a temporary file: %s", strerror(errno));
    }
    dt_status st = dt_child_start(command, fd, -1, &pid);
    if (st == DT_OK) {
        (void)dt_child_ended(pid, true, code_p);
        snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
        st = *code_p == 0 ? dt_flat_read(path, &f) : DT_OK;
    }
    if (st == DT_OK) {
        read_needs(&f, out);
    }
    dt_flat_fini(&f);
    close(fd);
    return st;
}

uint32_t dt_study_count_parallel(const dt_study_plan *p, uint32_t n, uint32_t cores, uint64_t memory)
{
    uint64_t most = p->device > 0 ? 1 : cores;
    if (memory > 0 && p->memory > 0) {
        const uint64_t fit = memory / 10 * 9 / p->memory;
        most = fit < most ? fit : most;
    }
    most = most < n ? most : n;
    most = most < DT_TRAININGS_MAX ? most : DT_TRAININGS_MAX;
    return most > 0 ? (uint32_t)most : 1;
}
