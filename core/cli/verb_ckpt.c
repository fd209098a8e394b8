/* SPDX-License-Identifier: Apache-2.0
 *
 * `dtrain ckpt list|inspect|verify`.
 */
#include <config.h>

#include "cli/cli.h"

#include "base/err.h"
#include "base/fs.h"
#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/print.h"
#include "state/checkpoint/checkpoint.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* parameters: of the models; -1: they were not looked at. */
static void print_info_json(const dt_ckpt_info *i, int64_t parameters, dt_json_out *o)
{
    dt_json_obj(o, NULL);
    dt_json_i64(o, "step", (int64_t)i->step);
    dt_json_str(o, "phase", i->phase);
    dt_json_str(o, "weights_hash", i->weights_hash);
    dt_json_str(o, "state_hash", i->state_hash);
    dt_json_i64(o, "ranks", i->ranks);
    dt_json_str(o, "reduction", i->reduction);
    dt_json_i64(o, "shards", i->leaves);
    dt_json_i64(o, "epoch", (int64_t)i->epoch);
    dt_json_bool(o, "phase_end", i->phase_end);
    if (i->metric_name[0] != '\0') {
        dt_json_f64(o, i->metric_name, i->metric);
    }
    dt_json_str(o, "config_hash", i->config_hash);
    dt_json_str(o, "wall_time", i->wall_time);
    if (parameters >= 0) {
        dt_json_i64(o, "parameters", parameters);
    }
    dt_json_i64(o, "bytes", (int64_t)i->bytes);
    dt_json_str(o, "path", i->path);
    dt_json_bool(o, "valid", i->valid);
    if (!i->valid) {
        dt_json_str(o, "why", i->why);
    }
    dt_json_arr(o, "plugins");
    for (uint32_t k = 0; k < i->n_plugins; k++) {
        dt_json_obj(o, NULL);
        dt_json_str(o, "name", i->plugins[k].name);
        dt_json_str(o, "version", i->plugins[k].version);
        dt_json_str(o, "abi", i->plugins[k].abi);
        dt_json_end(o, '}');
    }
    dt_json_end(o, ']');
    dt_json_end(o, '}');
}

static void print_info_text(const dt_ckpt_info *i, int64_t parameters)
{
    dt_print("%s\n  step %llu, epoch %llu of phase %s%s, saved %s by %u rank%s\n", i->path, (unsigned long long)i->step,
             (unsigned long long)i->epoch, i->phase, i->phase_end ? " (its end)" : "", i->wall_time, i->ranks,
             i->ranks == 1 ? "" : "s");
    if (strcmp(i->reduction, "fast") == 0) {
        dt_print("  gradients were summed by engine.reduction = fast: results depend on the number of ranks\n");
    }
    dt_print("  weights %s  state %s  %.1f MB\n", i->weights_hash, i->state_hash, (double)i->bytes / 1e6);
    if (parameters >= 0) {
        dt_print("  %lld parameters\n", (long long)parameters);
    }
    if (i->metric_name[0] != '\0') {
        dt_print("  %s %g\n", i->metric_name, i->metric);
    }
    for (uint32_t k = 0; k < i->n_plugins; k++) {
        dt_print("  plugin %s %s (abi %s)\n", i->plugins[k].name, i->plugins[k].version, i->plugins[k].abi);
    }
}

static dt_status print_checkpoint(const dt_ckpt_info *i, int64_t parameters, bool json)
{
    if (!json) {
        print_info_text(i, parameters);
        return DT_OK;
    }
    dt_str text = {0};
    dt_json_out o = {.s = &text};
    print_info_json(i, parameters, &o);
    dt_status st = dt_str_status(&text);
    dt_print_line(dt_str_text(&text));
    dt_str_fini(&text);
    return st;
}

/* All of them, frozen ones too: as the log of a run reports it. */
static int64_t count_parameters(const dt_ckpt *c)
{
    const dt_safetensors *model = dt_ckpt_model(c);
    int64_t sum = 0;
    for (uint32_t i = 0; i < dt_safetensors_count(model); i++) {
        sum += (int64_t)(dt_safetensors_at(model, i)->bytes / sizeof(float));
    }
    return sum;
}

/* What would be taken: damaged ones are skipped and reported, as where weights are loaded. */
static dt_status inspect_checkpoint(const char *path, dt_ckpt_info *info, int64_t *parameters_p)
{
    dt_str skipped = {0};
    dt_ckpt *c = NULL;
    dt_status st = dt_ckpt_open(path, false, &skipped, &c);
    if (st == DT_OK) {
        *info = *dt_ckpt_info_get(c);
        *parameters_p = count_parameters(c);
        if (skipped.bytes > 0) {
            dt_log_lines(DT_LOG_WARN, dt_str_text(&skipped));
            dt_log(DT_LOG_WARN, "using %s", info->path);
        }
    }
    dt_ckpt_close(c);
    dt_str_fini(&skipped);
    return st;
}

/* What the phase counts, as its progress line names it: a phase with environments keeps a rollout. */
static const char *progress_unit(const dt_ckpt_info *i)
{
    dt_str path = {0};
    dt_str_addf(&path, "%s/plugin-rollout.bin", i->path);
    const bool acts = dt_str_status(&path) == DT_OK && dt_fs_is_file(dt_str_text(&path));
    dt_str_fini(&path);
    return acts ? "round" : "epoch";
}

static void print_list_entry(const dt_ckpt_info *i)
{
    char metric[DT_CKPT_NAME_BYTES + 32] = "";
    if (i->metric_name[0] != '\0' && !isnan(i->metric)) {
        snprintf(metric, sizeof(metric), "  %s %.4g", i->metric_name, i->metric);
    }
    dt_print("%12llu  %s %-5llu %-24s %s  %s%s%s\n", (unsigned long long)i->step, progress_unit(i),
             (unsigned long long)i->epoch, i->phase, i->weights_hash, i->wall_time, metric,
             i->phase_end ? "  end" : "");
}

static dt_status list_checkpoints(const char *path, bool json)
{
    dt_ckpt_info *info = NULL;
    uint32_t n = 0;
    dt_str text = {0};
    dt_json_out o = {.s = &text};
    DT_TRY(dt_ckpt_list(path, &info, &n));
    dt_json_arr(&o, NULL);
    for (uint32_t i = 0; i < n; i++) {
        if (json) {
            print_info_json(&info[i], -1, &o);
        } else if (info[i].valid) {
            print_list_entry(&info[i]);
        } else {
            dt_print("%s: %s\n", info[i].path, info[i].why);
        }
    }
    dt_json_end(&o, ']');
    if (json) {
        dt_print_line(dt_str_text(&text));
    } else if (n == 0) {
        dt_print("no checkpoints in %s\n", path);
    }
    dt_str_fini(&text);
    dt_free(info);
    return DT_OK;
}

/* Every byte of every one of them; what is wrong with one is in its `why`. next_p: the one that a resume takes, -1
 * when there is none. */
static dt_status verify_all_bytes(dt_ckpt_info *info, uint32_t n, uint32_t *n_damaged_p, int64_t *next_p)
{
    *n_damaged_p = 0;
    *next_p = -1;
    for (uint32_t i = 0; i < n; i++) {
        dt_ckpt_info read;
        const dt_status st = info[i].valid ? dt_ckpt_verify(info[i].path, &read) : DT_EDATA;
        if (st < 0 && st != DT_EDATA && st != DT_EIO && st != DT_ENOTFOUND) {
            return st;
        }
        if (st < 0 && info[i].valid) {
            info[i].valid = false;
            snprintf(info[i].why, sizeof(info[i].why), "%s", dt_error_text());
        }
        dt_error_clear();
        *next_p = st == DT_OK ? (int64_t)i : *next_p;
        *n_damaged_p += st < 0;
    }
    return DT_OK;
}

static dt_status print_verdicts(const char *path, const dt_ckpt_info *info, uint32_t n, uint32_t n_damaged,
                                int64_t next)
{
    dt_str text = {0};
    dt_json_out o = {.s = &text};
    dt_json_obj(&o, NULL);
    dt_json_str(&o, "path", path);
    if (next >= 0) {
        dt_json_str(&o, "resume", info[next].path);
    }
    dt_json_i64(&o, "damaged", n_damaged);
    dt_json_arr(&o, "checkpoints");
    for (uint32_t i = 0; i < n; i++) {
        print_info_json(&info[i], -1, &o);
    }
    dt_json_end(&o, ']');
    dt_json_end(&o, '}');
    const dt_status st = dt_str_status(&text);
    dt_print_line(dt_str_text(&text));
    dt_str_fini(&text);
    return st;
}

static dt_status verify_checkpoints(const char *path, bool json)
{
    dt_ckpt_info *info = NULL;
    uint32_t n = 0, n_damaged = 0;
    int64_t next = -1;
    DT_TRY(dt_ckpt_list(path, &info, &n));
    dt_status st =
        n > 0 ? verify_all_bytes(info, n, &n_damaged, &next) : DT_FAIL(DT_ENOTFOUND, "no checkpoint in %s", path);
    const bool is_one = n == 1 && strcmp(info[0].path, path) == 0;
    if (st == DT_OK && is_one) { /* one that was named */
        st = n_damaged > 0 ? DT_FAIL(DT_EDATA, "%s", info[0].why) : print_checkpoint(&info[0], -1, json);
    } else if (st == DT_OK && json) {
        st = print_verdicts(path, info, n, n_damaged, next);
    } else {
        for (uint32_t i = 0; i < n && st == DT_OK; i++) {
            dt_print("%12llu  %-7s  %s\n", (unsigned long long)info[i].step, info[i].valid ? "good" : "damaged",
                     info[i].valid ? info[i].phase : info[i].why);
        }
        if (st == DT_OK && next >= 0) {
            dt_print("a resume continues from step %llu\n", (unsigned long long)info[next].step);
        }
    }
    if (st == DT_OK && n_damaged > 0) {
        st = DT_FAIL(DT_EDATA, "%u of %u checkpoint%s in %s: damaged%s", n_damaged, n, n == 1 ? "" : "s", path,
                     next >= 0 ? "" : ", none is left to resume from");
    }
    dt_free(info);
    return st;
}

dt_status dt_verb_ckpt_list(const dt_args *a, int *code_p)
{
    return list_checkpoints(a->word[1], a->json);
}

dt_status dt_verb_ckpt_inspect(const dt_args *a, int *code_p)
{
    dt_ckpt_info *info = dt_alloc(sizeof(*info));
    int64_t parameters = 0;
    if (info == NULL) {
        return DT_FAIL(DT_ENOMEM, "out of memory");
    }
    dt_status st = inspect_checkpoint(a->word[1], info, &parameters);
    if (st == DT_OK) {
        st = print_checkpoint(info, parameters, a->json);
    }
    dt_free(info);
    return st;
}

dt_status dt_verb_ckpt_verify(const dt_args *a, int *code_p)
{
    return verify_checkpoints(a->word[1], a->json);
}
