/* SPDX-License-Identifier: Apache-2.0 */
#include <config.h>

#include "study/compare_runs.h"

#include "base/err.h"
#include "base/fs.h"
#include "base/mem.h"
#include "config/tree.h"
#include "study/journal.h"

#include <stdio.h>
#include <string.h>

enum { MAX_RUNS = 4096 };

/* ---- folders ----------------------------------------------------------------------------------------------------- */

static bool has_file(const char *folder, const char *name)
{
    dt_str path = {0};
    dt_str_addf(&path, "%s/%s", folder, name);
    const bool has = dt_str_status(&path) == DT_OK && dt_fs_is_file(dt_str_text(&path));
    dt_str_fini(&path);
    return has;
}

static dt_status add_run(dt_compare *c, const char *path)
{
    if (c->n_runs == MAX_RUNS) {
        return DT_FAIL(DT_ECONFIG, "more than %d runs to compare", MAX_RUNS);
    }
    dt_compare_run *grown = dt_realloc(c->run, (c->n_runs + 1) * sizeof(*grown));
    char *copy = grown != NULL ? dt_strdup(path) : NULL;
    c->run = grown != NULL ? grown : c->run;
    if (copy == NULL) {
        return DT_FAIL(DT_ENOMEM, "out of memory for %u runs", c->n_runs + 1);
    }
    grown[c->n_runs++] = (dt_compare_run){.path = copy, .group = c->n_groups};
    return DT_OK;
}

/* The runs in a folder, and in folders of it: environments by folder, seeds in each. */
static dt_status add_runs_of(dt_compare *c, const char *folder, int depth)
{
    char **name = NULL;
    size_t n = 0;
    DT_TRY(dt_fs_list(folder, &name, &n));
    dt_status st = DT_OK;
    for (size_t i = 0; i < n && st == DT_OK; i++) {
        dt_str path = {0};
        dt_str_addf(&path, "%s/%s", folder, name[i]);
        const char *text = dt_str_text(&path);
        st = dt_str_status(&path);
        if (st == DT_OK && has_file(text, "meta.json")) {
            st = add_run(c, text);
        } else if (st == DT_OK && depth > 0 && dt_fs_is_dir(text)) {
            st = add_runs_of(c, text, depth - 1);
        }
        dt_str_fini(&path);
    }
    dt_fs_list_free(name, n);
    return st;
}

/* summary.json lists the best one first. */
static dt_status find_best_trial(const char *sweep, dt_str *folder)
{
    dt_str path = {0};
    dt_flat f = {0};
    dt_str_addf(&path, "%s/summary.json", sweep);
    dt_status st = dt_str_status(&path);
    if (st == DT_OK && dt_fs_is_file(dt_str_text(&path))) {
        st = dt_flat_read(dt_str_text(&path), &f);
    }
    if (st == DT_OK && strcmp(dt_flat_text(&f, "trials/0/state"), "done") != 0) {
        st = DT_FAIL(DT_ECONFIG, "the sweep in %s has no result yet: run it, or compare folders of its trials", sweep);
    }
    if (st == DT_OK) {
        const char *own = dt_flat_text(&f, "trials/0/folder"); /* of a population */
        dt_str_addf(folder, "%s/%s", sweep, own);
        if (own[0] == '\0') {
            dt_str_addf(folder, "trial-%04u", (unsigned)dt_flat_number(&f, "trials/0/trial", 0));
        }
        st = dt_str_status(folder);
    }
    dt_flat_fini(&f);
    dt_str_fini(&path);
    return st;
}

static dt_status add_members(dt_compare *c, const char *folder, dt_str *name)
{
    dt_str_add(name, folder);
    while (name->bytes > 1 && dt_str_text(name)[name->bytes - 1] == '/') {
        dt_str_cut(name, name->bytes - 1);
    }
    DT_TRY(dt_str_status(name));
    if (has_file(folder, "meta.json")) {
        return add_run(c, dt_str_text(name));
    }
    if (!dt_journal_is_of(folder, "sweep")) {
        return add_runs_of(c, dt_str_text(name), 1);
    }
    dt_str trial = {0};
    dt_status st = find_best_trial(dt_str_text(name), &trial);
    if (st == DT_OK) {
        st = add_runs_of(c, dt_str_text(&trial), 0);
    }
    if (st == DT_OK) {
        dt_str_clear(name);
        dt_str_add(name, dt_str_text(&trial));
        st = dt_str_status(name);
    }
    dt_str_fini(&trial);
    return st;
}

static dt_status add_group(dt_compare *c, const char *folder)
{
    const uint32_t first = c->n_runs;
    dt_str name = {0};
    dt_compare_group *grown = dt_realloc(c->group, (c->n_groups + 1) * sizeof(*grown));
    if (grown == NULL) {
        return DT_FAIL(DT_ENOMEM, "out of memory for %u groups of runs", c->n_groups + 1);
    }
    c->group = grown;
    dt_status st = add_members(c, folder, &name);
    if (st == DT_OK && c->n_runs == first) {
        st = DT_FAIL(DT_ECONFIG, "%s is not a run, and holds none", folder);
    }
    if (st == DT_OK) {
        grown[c->n_groups] =
            (dt_compare_group){.name = dt_strdup(dt_str_text(&name)), .first = first, .n = c->n_runs - first};
        st = grown[c->n_groups].name != NULL ? DT_OK : DT_FAIL(DT_ENOMEM, "out of memory for a group of runs");
        c->n_groups++;
    }
    dt_str_fini(&name);
    return st;
}

dt_status dt_compare_find_runs(const char *const *path, uint32_t n, dt_compare *out)
{
    for (uint32_t i = 0; i < n; i++) {
        for (uint32_t k = 0; k < i; k++) {
            if (strcmp(path[i], path[k]) == 0) {
                return DT_FAIL(DT_ECONFIG, "%s is named twice", path[i]);
            }
        }
        DT_TRY(add_group(out, path[i]));
    }
    return DT_OK;
}

/* ---- what was learned -------------------------------------------------------------------------------------------- */

static const char *option_of(const dt_flat *config, int phase, const char *key)
{
    char path[192];
    snprintf(path, sizeof(path), "phases.%d.%s/value", phase, key);
    const dt_flat_item *own = phase >= 0 ? dt_flat_find(config, path) : NULL;
    snprintf(path, sizeof(path), "%s/value", key);
    return own != NULL ? own->text : dt_flat_text(config, path);
}

/* The entry of `phases` that these records are of, -1: there are no entries. A plugin may have several: records come in
 * their order. */
static int find_entry(const dt_flat *config, const dt_records *r, uint32_t phase)
{
    char path[64];
    uint32_t earlier = 0;
    int entry = -1;
    for (uint32_t p = 0; p < phase; p++) {
        earlier += strcmp(r->phase[p].id, r->phase[phase].id) == 0;
    }
    for (int i = 0;; i++) {
        snprintf(path, sizeof(path), "phases.%d.plugin/value", i);
        const dt_flat_item *item = dt_flat_find(config, path);
        if (item == NULL) {
            return entry;
        }
        if (!dt_same_plugin(item->text, r->phase[phase].id)) {
            continue;
        }
        entry = i;
        if (earlier == 0) {
            return entry;
        }
        earlier--;
    }
}

/* Options of the environment, as they are in this phase: "env_cartpole.length". */
static void add_options(const dt_flat *config, int phase, const char *section, dt_str *out)
{
    for (uint32_t i = 0; i < config->n; i++) {
        char key[160];
        const char *path = config->item[i].path, *end = strrchr(path, '/');
        const size_t bytes = strlen(section);
        if (end == NULL || strcmp(end, "/value") != 0 || strncmp(path, section, bytes) != 0 || path[bytes] != '.') {
            continue;
        }
        snprintf(key, sizeof(key), "%.*s", (int)(end - path), path);
        dt_str_addf(out, "%s = %s\n", key, option_of(config, phase, key));
    }
}

dt_status dt_run_facts_read_task(const dt_logbook *l, uint32_t phase, dt_run_facts *out)
{
    const int entry = find_entry(&l->config, l->records, phase);
    const char *env = option_of(&l->config, entry, "env.id"), *store = option_of(&l->config, entry, "data.store");
    if (env[0] == '\0') {
        dt_str_addf(&out->task, "data %s", store);
        dt_str_addf(&out->identity, "data %s\n", store);
    } else {
        char section[96];
        const bool has_prefix = strncmp(env, "env_", 4) == 0;
        snprintf(section, sizeof(section), "%s%s", has_prefix ? "" : "env_", env);
        const char *id = strcmp(section, "env_gym") == 0 ? option_of(&l->config, entry, "env_gym.id") : "";
        dt_str_addf(&out->task, "%s%s%s", section, id[0] != '\0' ? " " : "", id);
        dt_str_addf(&out->identity, "%s\n", dt_str_text(&out->task));
        add_options(&l->config, entry, section, &out->identity);
    }
    DT_TRY(dt_str_status(&out->task));
    return dt_str_status(&out->identity);
}
