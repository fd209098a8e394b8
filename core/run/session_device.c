/* SPDX-License-Identifier: Apache-2.0
 *
 * Workers and device of a session's phases; see session_parts.h.
 */
#include <config.h>

#include "run/session_parts.h"

#include "base/err.h"
#include "base/log.h"
#include "engine/device/open.h"
#include "plan/machine/limits.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static dt_status find_device(const dt_device_selector *w, const dt_device_ops **ops_p, uint32_t *index_p)
{
    DT_TRY(dt_device_module_open("cuda", ops_p));
    return dt_device_select(*ops_p, w, dt_device_local_rank(), index_p);
}

/* NCCL sums from GPU to GPU. */
static dt_status check_nccl_is_possible(const dt_session *s, int64_t phase, const dt_engine_opts *engine, bool has_gpu)
{
    if (s->opts[phase].comm.backend != DT_COMM_NCCL || s->n_processes == 1 || has_gpu) {
        return DT_OK;
    }
    return DT_FAIL(
        DT_EUNSUPPORTED,
        "comm.backend = \"nccl\" of phase %lld sums from GPU to GPU, but with engine.device = \"%s\" several "
        "processes compute on the CPU; use --device cuda, or comm.backend = \"mpi\"",
        (long long)phase + 1, engine->device);
}

dt_status dt_session_check_devices(const dt_session *s)
{
    for (int64_t i = s->first; i < s->last; i++) {
        const dt_engine_opts *engine = &s->opts[i].engine;
        dt_device_selector w;
        const dt_device_ops *ops = NULL;
        uint32_t index = 0;
        DT_TRY(dt_device_selector_parse(engine->device, &w));
        DT_TRY(check_nccl_is_possible(s, i, engine, w.kind == DT_DEVICE_CUDA));
        const dt_status st = w.kind == DT_DEVICE_CUDA ? find_device(&w, &ops, &index) : DT_OK;
        if (st < 0) {
            return i > s->first ? DT_CONTEXT(st, "phase %lld (%s)", (long long)i + 1, s->phase[i]->desc.id) : st;
        }
    }
    return DT_OK;
}

static dt_status open_selected_device(dt_session *s, const dt_device_selector *w)
{
    const dt_device_ops *ops = NULL;
    uint32_t index = 0;
    DT_TRY(find_device(w, &ops, &index));
    DT_TRY(ops->open(index, &s->device.handle));
    s->device.ops = ops;
    dt_str text = {0};
    dt_device_info_text(ops->info(s->device.handle), &text);
    snprintf(s->device.text, sizeof(s->device.text), "cuda:%u %s", index, dt_str_text(&text));
    dt_str_fini(&text);
    dt_log(DT_LOG_INFO, "computing on %s", s->device.text);
    return DT_OK;
}

/* What was asked for by name is there or the run ends; what was left to us may be missing, and the reason is logged. */
static dt_status open_device(dt_session *s, const char *choice)
{
    dt_device_selector w;
    DT_TRY(dt_device_selector_parse(choice, &w));
    snprintf(s->device.text, sizeof(s->device.text), "cpu");
    if (w.kind == DT_DEVICE_CPU) {
        return DT_OK;
    }
    if (w.kind == DT_DEVICE_CUDA && s->ranks > 1) {
        return DT_FAIL(DT_ECONFIG,
                       "%u virtual ranks (comm.backend = \"sim\") are one process, and a process has one GPU; start a "
                       "process for each rank (--nproc %u), or use --device cpu",
                       s->ranks, s->ranks);
    }
    if (w.kind == DT_DEVICE_CUDA) {
        return open_selected_device(s, &w);
    }
    const char *why = NULL;
    if (s->ranks > 1) {
        why = "virtual ranks run there";
    } else if (s->is_job) {
        why = "several processes run there, unless engine.device=cuda gives each a GPU of its own";
    } else if (!dt_device_driver_exists()) {
        why = "no NVIDIA driver on this machine";
    } else if (open_selected_device(s, &w) < 0) {
        why = dt_error_text();
    }
    if (why != NULL) {
        dt_log(DT_LOG_INFO, "computing on the CPU: %s", why);
        dt_error_clear();
    }
    return DT_OK;
}

void dt_session_device_close(dt_session_device *d)
{
    if (d->handle != NULL) {
        d->ops->close(d->handle);
    }
    *d = (dt_session_device){.ops = NULL};
}

/* Cores for the workers of this process: those it may use, shared with the others on this machine. */
static uint32_t count_cores(const dt_session *s)
{
    const long online = sysconf(_SC_NPROCESSORS_ONLN);
    const uint32_t mine = dt_limits_count_cores("");
    /* cores that the launcher gave to this one alone, or all of them, which they share */
    const bool is_own = s->n_local <= 1 || (online > 0 && (uint64_t)mine * s->n_local <= (uint64_t)online);
    return is_own ? mine : mine > s->n_local ? mine / s->n_local : 1;
}

dt_status dt_session_enter_phase(dt_session *s, int64_t phase)
{
    const dt_engine_opts *engine = &s->opts[phase].engine;
    s->threads = engine->threads > 0 ? (uint32_t)engine->threads : count_cores(s);
    if (strcmp(s->device.chosen_by, engine->device) == 0) {
        return DT_OK;
    }
    dt_session_device_close(&s->device);
    DT_TRY(open_device(s, engine->device));
    snprintf(s->device.chosen_by, sizeof(s->device.chosen_by), "%s", engine->device);
    return DT_OK;
}
