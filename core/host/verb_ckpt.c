/* SPDX-License-Identifier: Apache-2.0
 *
 * `dtrain ckpt list|inspect|verify`.
 */
#include <config.h>

#include "host/cli.h"

#include "base/err.h"
#include "base/json.h"
#include "base/mem.h"
#include "checkpoint/checkpoint.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static void info_json(const dt_ckpt_info *i, dt_json_out *o)
{
    dt_json_obj(o, NULL);
    dt_json_i64(o, "step", (int64_t)i->step);
    dt_json_str(o, "phase", i->phase);
    dt_json_str(o, "weights_hash", i->weights_hash);
    dt_json_str(o, "state_hash", i->state_hash);
    dt_json_i64(o, "ranks", i->ranks);
    dt_json_i64(o, "shards", i->leaves);
    dt_json_i64(o, "epoch", (int64_t)i->epoch);
    dt_json_bool(o, "phase_end", i->phase_end);
    if (i->metric_name[0] != '\0') {
        dt_json_f64(o, i->metric_name, i->metric);
    }
    dt_json_str(o, "config_hash", i->config_hash);
    dt_json_str(o, "wall_time", i->wall_time);
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

static void info_text(const dt_ckpt_info *i)
{
    printf("%s\n  step %llu, epoch %llu of phase %s%s, saved %s by %u rank%s\n", i->path, (unsigned long long)i->step,
           (unsigned long long)i->epoch, i->phase, i->phase_end ? " (its end)" : "", i->wall_time, i->ranks,
           i->ranks == 1 ? "" : "s");
    printf("  weights %s  state %s  %.1f MB\n", i->weights_hash, i->state_hash, (double)i->bytes / 1e6);
    if (i->metric_name[0] != '\0') {
        printf("  %s %g\n", i->metric_name, i->metric);
    }
    for (uint32_t k = 0; k < i->n_plugins; k++) {
        printf("  plugin %s %s (abi %s)\n", i->plugins[k].name, i->plugins[k].version, i->plugins[k].abi);
    }
}

static dt_status print_one(const dt_ckpt_info *i, bool json)
{
    if (!json) {
        info_text(i);
        return DT_OK;
    }
    dt_str text = {0};
    dt_json_out o = {.s = &text};
    info_json(i, &o);
    dt_status st = dt_str_status(&text);
    puts(dt_str_text(&text));
    dt_str_fini(&text);
    return st;
}

static dt_status list(const char *path, bool json)
{
    dt_ckpt_info *info = NULL;
    uint32_t n = 0;
    dt_str text = {0};
    dt_json_out o = {.s = &text};
    DT_TRY(dt_ckpt_list(path, &info, &n));
    dt_json_arr(&o, NULL);
    for (uint32_t i = 0; i < n; i++) {
        if (json) {
            info_json(&info[i], &o);
        } else if (info[i].valid) {
            printf("%12llu  epoch %-5llu %-24s %s  %s%s\n", (unsigned long long)info[i].step,
                   (unsigned long long)info[i].epoch, info[i].phase, info[i].weights_hash, info[i].wall_time,
                   info[i].phase_end ? "  end" : "");
        } else {
            printf("%s: %s\n", info[i].path, info[i].why);
        }
    }
    dt_json_end(&o, ']');
    if (json) {
        puts(dt_str_text(&text));
    } else if (n == 0) {
        printf("no checkpoints in %s\n", path);
    }
    dt_str_fini(&text);
    dt_free(info);
    return DT_OK;
}

dt_status dt_verb_ckpt(const dt_args *a)
{
    if (a->n_words != 2) {
        return DT_FAIL(DT_ECONFIG, "usage: dtrain ckpt list RUN | inspect CHECKPOINT | verify CHECKPOINT");
    }
    dt_ckpt_info *info = dt_alloc(sizeof(*info));
    if (info == NULL) {
        return DT_FAIL(DT_ENOMEM, "out of memory");
    }
    dt_status st = DT_OK;
    if (strcmp(a->word[0], "list") == 0) {
        st = list(a->word[1], a->json);
    } else if (strcmp(a->word[0], "inspect") == 0) {
        st = dt_ckpt_inspect(a->word[1], info);
        st = st == DT_OK ? print_one(info, a->json) : st;
    } else if (strcmp(a->word[0], "verify") == 0) {
        dt_ckpt *c = NULL;
        st = dt_ckpt_open(a->word[1], false, NULL, &c); /* reads and checks every byte */
        if (st == DT_OK) {
            st = print_one(dt_ckpt_info_get(c), a->json);
            dt_ckpt_close(c);
        }
    } else {
        st = DT_FAIL(DT_ECONFIG, "dtrain ckpt %s: expected list, inspect or verify", a->word[0]);
    }
    dt_free(info);
    return st;
}
