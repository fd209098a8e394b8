/* SPDX-License-Identifier: Apache-2.0 */
#include <config.h>

#include "run/run_start.h"

#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "run/baselines.h"
#include "state/snapshot/snapshot.h"

#include <stdio.h>
#include <string.h>

/* A run from its beginning. */
static void start_fresh(const dt_session *s, dt_run_start *out)
{
    *out = (dt_run_start){.begin = s->first};
}

void dt_run_start_fini(dt_run_start *c)
{
    dt_ckpt_close(c->resume);
    c->resume = NULL;
}

/* Names the options; where the earlier configuration cannot be read, some are taken to differ. */
static void warn_of_differences(const dt_session *s, const dt_ckpt_info *info)
{
    dt_str path = {0}, names = {0};
    dt_str_addf(&path, "%s/config.cfg", info->path);
    const bool is_known =
        dt_str_status(&path) == DT_OK && dt_config_list_differences(s->config, dt_str_text(&path), &names) == DT_OK;
    dt_error_clear();
    if (!is_known || names.bytes > 0) {
        dt_log(
            DT_LOG_WARN,
            "the configuration differs from the one that saved %s%s%s: results will differ from an uninterrupted run",
            info->path, names.bytes > 0 ? " in " : "", dt_str_text(&names));
    }
    dt_str_fini(&names);
    dt_str_fini(&path);
}

/* The configuration has to have the checkpoint's phase where it was. */
static dt_status check_phase(const dt_session *s, const dt_ckpt_info *info, const dt_run_start *c)
{
    char hash[65];
    DT_TRY(dt_config_hash(s->config, hash));
    if (strcmp(hash, info->config_hash) != 0) {
        warn_of_differences(s, info);
    }
    if (c->begin >= s->n_phases || strcmp(s->phase[c->begin]->desc.id, info->phase) != 0) {
        return DT_FAIL(DT_ECONFIG,
                       "%s was saved in phase %s (number %lld), which this configuration does not have there",
                       info->path, info->phase, (long long)c->begin + 1);
    }
    return DT_OK;
}

/* --phase selects some of the phases: the checkpoint has to lie in them, or end the one before. */
static dt_status check_range(const dt_session *s, const dt_ckpt_info *info, const dt_run_start *c)
{
    const long long number = (long long)c->begin + 1;
    if (c->begin >= s->last) {
        return DT_FAIL(DT_ECONFIG,
                       "%s is of phase %lld (%s), after what --phase requests; continue without --phase, or from a "
                       "checkpoint of an earlier phase",
                       info->path, number, info->phase);
    }
    if (c->begin < s->first && !info->phase_end) {
        return DT_FAIL(DT_ECONFIG,
                       "%s is of phase %lld (%s), which is not over yet; continue without --phase, then --phase may "
                       "start after it",
                       info->path, number, info->phase);
    }
    return DT_OK;
}

/* A phase that is over is skipped: the next one begins with what it handed over. */
static void skip_finished_phase(const dt_session *s, const dt_ckpt_info *info, dt_run_start *c)
{
    const int64_t next = c->begin + 1 > s->first ? c->begin + 1 : s->first;
    if (next < s->last) {
        dt_log(DT_LOG_INFO, "%s ends phase %lld (%s), continuing with phase %lld (%s)", info->path,
               (long long)c->begin + 1, info->phase, (long long)next + 1, s->phase[next]->desc.id);
    } else {
        dt_log(DT_LOG_INFO, "%s ends phase %lld (%s): nothing is left to do", info->path, (long long)c->begin + 1,
               info->phase);
    }
    c->base_step = info->step;
    c->begin = next;
    c->spent_ms = 0;
    dt_run_start_fini(c);
}

/* Entered again it would end immediately, or --phase selects later phases only. */
static dt_status is_run_over(const dt_session *s, const dt_ckpt_info *info, const dt_run_start *c, bool *out_p)
{
    char hash[65];
    DT_TRY(dt_config_hash_phase(s->config, c->begin, hash));
    *out_p = info->phase_end && (strcmp(hash, info->phase_hash) == 0 || c->begin < s->first);
    return DT_OK;
}

/* Another arithmetic class continues with results that differ in the last bits. */
static dt_status check_cpu(const dt_session *s, const dt_ckpt_info *info, dt_run_start *c)
{
    char cpu[sizeof(info->cpu)];
    DT_TRY(dt_snapshot_cpu_class(s->config, c->begin, cpu, sizeof(cpu)));
    c->is_other_cpu = strcmp(cpu, info->cpu) != 0;
    if (c->is_other_cpu) {
        dt_log(DT_LOG_WARN,
               "%s was computed in the arithmetic class %s, here it is %s: results will differ in the last digits from "
               "an uninterrupted run (meta.json: not_reproducible_from_step; DTRAIN_CPU_ISA lowers what is used)",
               info->path, info->cpu, cpu);
    }
    return DT_OK;
}

/* The library sums in an order that follows from the number of ranks. */
static dt_status check_ranks(const dt_session *s, const dt_ckpt_info *info, dt_run_start *c)
{
    const uint32_t ranks = s->n_processes > 1 ? s->n_processes : s->ranks;
    for (int64_t i = c->begin; i < s->last && info->ranks != ranks; i++) {
        c->is_other_sum = c->is_other_sum || s->opts[i].engine.reduction == DT_REDUCTION_FAST;
    }
    if (c->is_other_sum) {
        dt_log(DT_LOG_WARN,
               "engine.reduction = fast, and %s was saved by %u rank%s, here there %s %u: results will differ in the "
               "last digits from an uninterrupted run (meta.json: not_reproducible_from_step; exact sums do not)",
               info->path, info->ranks, info->ranks == 1 ? "" : "s", ranks == 1 ? "is" : "are", ranks);
    }
    return DT_OK;
}

/* Did the run stop while the phase that this checkpoint ends was compared with others? */
static bool has_pending_baselines(const dt_ckpt_info *info)
{
    dt_str run = {0};
    size_t n = strlen(info->path);
    for (int up = 0; up < 2; up++) { /* <run>/checkpoints/<step> */
        while (n > 0 && info->path[n - 1] != '/') {
            n--;
        }
        n -= n > 0;
    }
    dt_str_add_n(&run, info->path, n);
    const bool is_pending = n > 0 && dt_str_status(&run) == DT_OK &&
                            dt_baselines_are_pending(dt_str_text(&run), info->phase_index, info->phase);
    dt_str_fini(&run);
    return is_pending;
}

static dt_status continue_from_checkpoint(const dt_session *s, dt_run_start *c)
{
    const dt_ckpt_info *info = dt_ckpt_info_get(c->resume);
    dt_snapshot_place at;
    DT_TRY(dt_snapshot_read_position(c->resume, &at));
    c->begin = at.phase_index;
    c->base_step = at.base_step;
    c->pending = at.pending;
    c->patience = at.patience;
    DT_TRY(check_phase(s, info, c));
    DT_TRY(check_range(s, info, c));
    DT_TRY(check_cpu(s, info, c));
    DT_TRY(check_ranks(s, info, c));
    bool ends = false;
    DT_TRY(is_run_over(s, info, c, &ends));
    if (ends && c->begin >= s->first && has_pending_baselines(info)) {
        dt_log(DT_LOG_INFO, "the baselines of phase %lld (%s) are pending: it is evaluated again, and they with it",
               (long long)c->begin + 1, info->phase);
        c->pending = DT_PENDING_END;
        return DT_OK;
    }
    if (ends) {
        skip_finished_phase(s, info, c);
        return DT_OK;
    }
    c->spent_ms = info->phase_ms;
    dt_log(DT_LOG_INFO, "resuming %s at step %llu", info->path, (unsigned long long)at.step);
    return DT_OK;
}

dt_status dt_run_start_find(const dt_session *s, const char *resume, bool is_plan, dt_run_start *out)
{
    if (resume == NULL) {
        start_fresh(s, out);
        return DT_OK;
    }
    const dt_status st = dt_run_start_resume(s, resume, is_plan, out);
    /* exit code 2; none that is valid is DT_EDATA, 4 */
    return st == DT_ENOTFOUND ? DT_CONTEXT(DT_ECONFIG, "--resume") : st;
}

dt_status dt_run_start_resume(const dt_session *s, const char *path, bool is_plan, dt_run_start *out)
{
    dt_str skipped = {0};
    dt_run_start c = {.resume = NULL};
    dt_status st = dt_ckpt_open(path, !is_plan, &skipped, &c.resume);
    if (skipped.bytes > 0) {
        dt_log_lines(DT_LOG_WARN, dt_str_text(&skipped));
    }
    dt_str_fini(&skipped);
    if (st == DT_OK) {
        st = continue_from_checkpoint(s, &c);
    }
    if (st < 0) {
        dt_run_start_fini(&c);
        return st;
    }
    *out = c;
    return DT_OK;
}

dt_status dt_run_start_share(dt_comm *c, dt_run_start *s)
{
    typedef struct shared {
        dt_run_start start;
        char path[sizeof(((dt_ckpt_info *)0)->path)];
    } shared;
    shared *word = dt_alloc(sizeof(*word));
    const bool is_first = dt_comm_rank(c) == 0;
    dt_status st = word != NULL ? DT_OK : DT_FAIL(DT_ENOMEM, "out of memory");
    if (st == DT_OK && is_first) {
        word->start = *s;
        snprintf(word->path, sizeof(word->path), "%s", s->resume != NULL ? dt_ckpt_info_get(s->resume)->path : "");
    }
    st = dt_comm_agree(c, st);
    if (st == DT_OK) {
        st = dt_comm_broadcast(c, 0, word, sizeof(*word));
    }
    if (st == DT_OK && !is_first) {
        *s = word->start;
        s->resume = NULL;
        if (word->path[0] != '\0') {
            st = dt_ckpt_open(word->path, false, NULL, &s->resume);
        }
    }
    dt_free(word);
    return st == DT_ECOMM || st == DT_EPEER ? st : dt_comm_agree(c, st);
}

bool dt_status_is_retryable(dt_status st)
{
    switch (st) {
    case DT_ENOMEM:
    case DT_EIO:
    case DT_EPLUGIN:
    case DT_EBROKEN:
    case DT_ECOMM:
    case DT_EPEER:
    case DT_EDIVERGED:
        return true;
    default:
        return false;
    }
}
