/* SPDX-License-Identifier: Apache-2.0 */
#include <config.h>

#include "plan/fit.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"

#include <math.h>
#include <stdio.h>

/* Of each worker of environments this process holds a socket, memory and what it writes. */
enum { FILES_A_PROCESS = 3, PROCESSES_A_CORE = 32, SHARE_BYTES = 96, KEY_BYTES = 192 };
static const double near_full = 0.9; /* of what there is: a plan is right to a tenth */

static const double target_room = 0.12; /* of an advised memory.target_gb: what is not in the plan */

static double gigabytes(uint64_t bytes)
{
    return (double)bytes / 1e9;
}

static uint64_t excess_bytes(uint64_t a, uint64_t b)
{
    return a > b ? a - b : 0;
}

/* That the system cannot take back. */
static uint64_t unreclaimable_bytes(const dt_forecast *f)
{
    return excess_bytes(f->resident, f->recordings) + f->processes;
}

dt_status dt_fit_measure(const dt_stage *s, const dt_forecast *f, dt_fit *out)
{
    *out = (dt_fit){.target_gb = s->opts.memory.target_gb,
                    .alike = dt_comm_local_size(s->d.comm) / dt_comm_process_size(s->d.comm)};
    out->is_known = dt_limits_read("", &out->room);
    out->held = dt_rss_bytes() + (f->rollout.processes > 0 ? f->rollout.instance : 0);
    return DT_OK;
}

/* ---- memory ------------------------------------------------------------------------------------------------------ */

static const char *append_share(const dt_forecast *f, uint64_t here, char text[SHARE_BYTES])
{
    text[0] = '\0';
    if (f->processes > 0) {
        snprintf(text, SHARE_BYTES, " (%.4g in this process, %.4g in processes of environments)", gigabytes(here),
                 gigabytes(f->processes));
    }
    return text;
}

static bool is_above_target(const dt_fit *fit, const dt_forecast *f)
{
    return fit->target_gb > 0 && (double)(f->resident + f->processes) > fit->target_gb * 1e9;
}

static dt_status check_target(const dt_fit *fit, const dt_forecast *f, bool may_log)
{
    const uint64_t all = f->resident + f->processes;
    if (fit->target_gb <= 0 || (double)all <= near_full * fit->target_gb * 1e9) {
        return DT_OK;
    }
    if (!is_above_target(fit, f)) {
        if (may_log) {
            dt_log(DT_LOG_WARN, "%.2f GB are planned, close to memory.target_gb = %g; plans are accurate to 10 %%",
                   gigabytes(all), fit->target_gb);
        }
        return DT_OK;
    }
    char share[SHARE_BYTES];
    return DT_FAIL(DT_ECONFIG,
                   "the plan takes %.4g GB%s, and memory.target_gb = %g allows less; raise memory.target_gb to %.2f",
                   gigabytes(all), append_share(f, f->resident, share), fit->target_gb,
                   ceil(gigabytes(all) * (1 + target_room) * 100) / 100);
}

static dt_status check_memory(const dt_fit *fit, const dt_forecast *f, bool may_log)
{
    const dt_limits *r = &fit->room;
    const uint64_t n = fit->alike > 1 ? fit->alike : 1, need = unreclaimable_bytes(f) * n,
                   more = excess_bytes(need, fit->held * n);
    if (!fit->is_known || (double)more <= near_full * (double)r->memory) {
        return DT_OK;
    }
    if (more > r->memory + r->swap) {
        char share[SHARE_BYTES], swap[64] = "", of[64] = "";
        if (n > 1) {
            snprintf(of, sizeof(of), " of %llu processes", (unsigned long long)n);
        }
        if (r->swap > 0) {
            snprintf(swap, sizeof(swap), " and %.4g GB of swap", gigabytes(r->swap));
        }
        return DT_FAIL(DT_ECONFIG, "the plan%s takes %.4g GB%s, but %s has %.4g GB, of which %.4g GB%s are free", of,
                       gigabytes(need), n > 1 ? "" : append_share(f, excess_bytes(f->resident, f->recordings), share),
                       r->by, gigabytes(r->total), gigabytes(r->memory), swap);
    }
    if (may_log && more > r->memory) {
        dt_log(DT_LOG_WARN, "the plan takes %.4g GB more than the %.4g GB that are free: the rest is swapped, and slow",
               gigabytes(more - r->memory), gigabytes(r->memory));
    } else if (may_log) {
        dt_log(DT_LOG_WARN, "the plan takes %.4g GB of %.4g GB that are free (%s); plans are accurate to 10 %%",
               gigabytes(more), gigabytes(r->memory), r->by);
    }
    return DT_OK;
}

/* ---- processes --------------------------------------------------------------------------------------------------- */

static dt_status check_processes(const dt_fit *fit, const dt_forecast *f, bool may_log)
{
    const dt_limits *r = &fit->room;
    const uint64_t n = (uint64_t)f->rollout.processes + f->rollout.evaluating;
    const uint64_t more = excess_bytes(n, 1); /* the first one is there */
    if (more * FILES_A_PROCESS > r->files) {
        return DT_FAIL(DT_ECONFIG,
                       "%llu processes of environments, %u of them while it evaluates, need %llu open "
                       "files, and %llu may still be opened: raise ulimit -n, or lower env.workers",
                       (unsigned long long)n, f->rollout.evaluating, (unsigned long long)(more * FILES_A_PROCESS),
                       (unsigned long long)r->files);
    }
    if (more > r->processes) {
        return DT_FAIL(DT_ECONFIG,
                       "%llu processes of environments, %u of them while it evaluates, and %llu may still "
                       "be started: raise ulimit -u or pids.max of the container, or lower env.workers",
                       (unsigned long long)n, f->rollout.evaluating, (unsigned long long)r->processes);
    }
    if (may_log && f->rollout.processes > PROCESSES_A_CORE * r->cores) {
        dt_log(DT_LOG_WARN,
               "%u processes of environments take turns on %u core%s; %u collect as fast, and take less memory",
               f->rollout.processes, r->cores, r->cores == 1 ? "" : "s", PROCESSES_A_CORE * r->cores);
    }
    return DT_OK;
}

dt_status dt_fit_check(const dt_fit *fit, const dt_forecast *f, bool may_log)
{
    DT_TRY(check_target(fit, f, may_log));
    DT_TRY(check_memory(fit, f, may_log));
    return check_processes(fit, f, may_log);
}

/* The trainer's own budget counts what training touches; the plan counts the whole process. So that a larger target is
 * never refused where a smaller one is kept to, what the trainer can do without goes before anything is refused. */
static dt_status reduce_to_target(dt_stage *s, uint64_t max_steps, dt_forecast *f, dt_fit *fit, bool may_log)
{
    bool is_smaller = false;
    while (is_above_target(fit, f) && s->trainer != NULL && dt_trainer_release_memory(s->trainer)) {
        is_smaller = true;
        DT_TRY(dt_forecast_create(s, max_steps, f));
        DT_TRY(dt_fit_measure(s, f, fit));
    }
    if (is_smaller && may_log) {
        dt_log(DT_LOG_INFO,
               "the plan is above memory.target_gb = %g otherwise: %u shard%s of a batch at a time, without "
               "prefetching; results are unchanged",
               fit->target_gb, dt_trainer_concurrent_shards(s->trainer),
               dt_trainer_concurrent_shards(s->trainer) == 1 ? "" : "s");
    }
    return DT_OK;
}

dt_status dt_fit_stage(dt_stage *s, uint64_t max_steps, dt_forecast *f, bool may_log, bool *is_beyond_p)
{
    dt_fit fit;
    DT_TRY(dt_fit_measure(s, f, &fit));
    DT_TRY(reduce_to_target(s, max_steps, f, &fit, may_log));
    dt_status st = dt_fit_check(&fit, f, may_log);
    if (st < 0 && f->rollout.processes > 0 && !s->tries_processes) {
        s->tries_processes = true;
        dt_error_clear();
        DT_TRY(dt_forecast_create(s, max_steps, f));
        DT_TRY(dt_fit_measure(s, f, &fit));
        st = dt_fit_check(&fit, f, may_log);
    }
    *is_beyond_p = st < 0;
    return st;
}

/* ---- what to change ---------------------------------------------------------------------------------------------- */

/* Is the key an integer above 1 in this phase? */
static bool can_lower(const dt_stage_desc *d, const char *key)
{
    const char *text = NULL;
    dt_origin origin;
    int64_t value = 0;
    const bool is_there = dt_config_get(d->config, d->index, key, &text, &origin) == DT_OK;
    return is_there && dt_parse_i64(text, &value) && value > 1;
}

static bool has_environment(const dt_stage_desc *d)
{
    const char *text = NULL;
    dt_origin origin;
    return dt_config_get(d->config, d->index, "env.id", &text, &origin) == DT_OK && text[0] != '\0';
}

dt_status dt_fit_advise(const dt_stage_desc *d, dt_status st)
{
    dt_limits r;
    (void)dt_limits_read("", &r);
    const bool is_short = st == DT_ENOMEM && (d->device_ops != NULL || r.address != UINT64_MAX);
    if (st != DT_ECONFIG && !is_short) {
        return st;
    }
    char batch[KEY_BYTES], limit[96] = "";
    dt_error reason;
    dt_str lower = {0};
    dt_error_save(&reason, st);
    snprintf(batch, sizeof(batch), "%s.train_batch", d->phase->desc.id);
    const char *const keys[] = {"env.instances", batch, "data.batch", "engine.threads"};
    pthread_mutex_lock(d->config_lock);
    for (size_t i = has_environment(d) ? 0 : 1; i < sizeof(keys) / sizeof(keys[0]); i++) {
        if (can_lower(d, keys[i])) {
            dt_str_addf(&lower, "%s%s", lower.bytes > 0 ? " or " : "lower ", keys[i]);
        }
    }
    pthread_mutex_unlock(d->config_lock);
    dt_error_clear();
    if (is_short && d->device_ops == NULL) {
        snprintf(limit, sizeof(limit), " (%s leaves %.4g GB to map)", r.address_by, (double)r.address / 1e9);
    }
    st = DT_FAIL(DT_ECONFIG, "%s%s; %s%ssmaller models or --profile memory", reason.text, limit, dt_str_text(&lower),
                 lower.bytes > 0 ? ", or use " : "use ");
    dt_str_fini(&lower);
    return st;
}

/* ---- text -------------------------------------------------------------------------------------------------------- */

void dt_fit_text(const dt_fit *fit, const dt_forecast *f, dt_str *out)
{
    const dt_limits *r = &fit->room;
    dt_str_addf(out, "  machine      %u core%s", r->cores, r->cores == 1 ? "" : "s");
    if (fit->is_known) {
        dt_str_addf(out, "; %.1f MB of memory free of %.1f MB (%s)", (double)r->memory / 1e6, (double)r->total / 1e6,
                    r->by);
        if (r->swap > 0) {
            dt_str_addf(out, ", swap %.1f MB", (double)r->swap / 1e6);
        }
    }
    if (r->address != UINT64_MAX) {
        dt_str_addf(out, "; %.1f MB may be mapped (%s)", (double)r->address / 1e6, r->address_by);
    }
    if (fit->target_gb > 0) {
        dt_str_addf(out, "; memory.target_gb allows %.1f MB", fit->target_gb * 1e3);
    }
    dt_str_addf(out, "; the plan takes %.1f MB%s\n", (double)(f->resident + f->processes) / 1e6,
                f->recordings > 0 ? ", recordings included" : "");
}

void dt_fit_json(const dt_fit *fit, const dt_forecast *f, dt_json_out *o)
{
    const dt_limits *r = &fit->room;
    dt_json_obj(o, "machine");
    dt_json_i64(o, "cores", r->cores);
    dt_json_i64(o, "memory_free", (int64_t)r->memory);
    dt_json_i64(o, "memory", (int64_t)r->total);
    dt_json_i64(o, "swap_free", (int64_t)r->swap);
    dt_json_str(o, "memory_by", r->by);
    if (r->address != UINT64_MAX) {
        dt_json_i64(o, "address_space_free", (int64_t)r->address);
        dt_json_str(o, "address_space_by", r->address_by);
    }
    dt_json_f64(o, "target", fit->target_gb * 1e9);
    dt_json_bool(o, "fits", dt_fit_check(fit, f, false) == DT_OK);
    dt_json_end(o, '}');
    dt_error_clear();
}
