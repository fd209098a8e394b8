/* SPDX-License-Identifier: Apache-2.0
 *
 * `dtrain runs [DIR]`: the runs below a folder, the state of each and how good it is.
 */
#include <config.h>

#include "cli/cli.h"
#include "run/rundir.h"

#include "base/err.h"
#include "base/fs.h"
#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/print.h"
#include "state/checkpoint/checkpoint.h"
#include "telemetry/report/logbook.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

typedef struct row {
    char *path, *name, *why; /* why: it cannot be read */
    dt_run_state state;
} row;

typedef struct list {
    row *row;
    uint32_t n, n_unread; /* folders that could not be read */
} list;

enum { MAX_DEPTH = 8 }; /* of folders below the one that was named */

static void run_list_fini(list *l)
{
    for (uint32_t i = 0; i < l->n; i++) {
        dt_free(l->row[i].path);
        dt_free(l->row[i].name);
        dt_free(l->row[i].why);
    }
    dt_free(l->row);
    *l = (list){0};
}

/* An interrupted run that --resume cannot continue is marked. */
static void warn_of_damage(row *r)
{
    uint32_t n = 0, damaged = 0;
    if (r->state.condition != DT_RUN_INTERRUPTED) {
        return;
    }
    if (dt_ckpt_count(r->path, &n, &damaged) == DT_OK && n == 0 && damaged > 0) {
        snprintf(r->state.error, sizeof(r->state.error),
                 "nothing to resume from: %u damaged checkpoint%s in checkpoints/quarantine", damaged,
                 damaged == 1 ? "" : "s");
    }
    dt_error_clear();
}

/* A run whose files are damaged is listed as such: the others are still worth seeing. */
static dt_status add_run(list *l, const char *path, const char *name)
{
    row *grown = dt_realloc(l->row, (l->n + 1) * sizeof(*grown));
    if (grown == NULL) {
        return DT_FAIL(DT_ENOMEM, "out of memory for %u runs", l->n + 1);
    }
    l->row = grown;
    row *r = &grown[l->n];
    *r = (row){.path = dt_strdup(path), .name = dt_strdup(name)};
    l->n++;
    dt_logbook s;
    const dt_status st = r->path != NULL && r->name != NULL ? dt_logbook_open(path, &s)
                                                            : DT_FAIL(DT_ENOMEM, "out of memory for %s", path);
    if (st == DT_ENOMEM) {
        return st;
    }
    if (st < 0) {
        r->state = (dt_run_state){.condition = DT_RUN_DAMAGED, .exit_code = -1, .progress = NAN, .best = NAN};
        r->why = dt_strdup(dt_error_text());
        dt_error_clear();
        return DT_OK;
    }
    r->state = s.state;
    dt_logbook_close(&s);
    warn_of_damage(r);
    return DT_OK;
}

static bool is_run(const char *path)
{
    dt_str meta = {0};
    dt_str_addf(&meta, "%s/meta.json", path);
    const bool is = dt_fs_is_file(dt_str_text(&meta));
    dt_str_fini(&meta);
    return is;
}

static int compare_start_times(const void *a, const void *b)
{
    const row *x = a, *y = b;
    const int order = strcmp(x->state.start, y->state.start);
    return order != 0 ? order : strcmp(x->path, y->path);
}

static bool is_link(const char *path)
{
    struct stat st;
    return lstat(path, &st) == 0 && S_ISLNK(st.st_mode);
}

/* Runs below a folder; what follows the first `skip` bytes of a path is its name. A run holds no others, and
 * links are not followed: a run is listed once, and where it is. Of folders below that cannot be read one is reported.
 * */
static dt_status find_runs_below(const char *dir, size_t skip, int depth, list *l)
{
    char **name = NULL;
    size_t n = 0;
    DT_TRY(dt_fs_list(dir, &name, &n));
    dt_status st = DT_OK;
    for (size_t i = 0; i < n && st == DT_OK; i++) {
        dt_str path = {0};
        dt_str_addf(&path, "%s/%s", dir, name[i]);
        const char *text = dt_str_text(&path);
        st = dt_str_status(&path);
        if (st < 0 || is_link(text) || !dt_fs_is_dir(text)) {
            dt_str_fini(&path);
            continue;
        }
        if (is_run(text)) {
            st = add_run(l, text, text + skip);
        } else if (depth < MAX_DEPTH) {
            st = find_runs_below(text, skip, depth + 1, l);
            if (st < 0 && st != DT_ENOMEM) {
                l->n_unread++;
                dt_log(l->n_unread == 1 ? DT_LOG_WARN : DT_LOG_DEBUG, "left out: %s", dt_error_text());
                dt_error_clear();
                st = DT_OK;
            }
        }
        dt_str_fini(&path);
    }
    dt_fs_list_free(name, n);
    return st;
}

static dt_status find_all_runs(const char *dir, list *l)
{
    size_t bytes = strlen(dir);
    while (bytes > 1 && dir[bytes - 1] == '/') {
        bytes--;
    }
    char *clean = dt_strdup(dir);
    if (clean == NULL) {
        return DT_FAIL(DT_ENOMEM, "out of memory for the path of %s", dir);
    }
    clean[bytes] = '\0';
    dt_status st;
    if (is_run(clean)) {
        const char *slash = strrchr(clean, '/');
        st = add_run(l, clean, slash != NULL && slash[1] != '\0' ? slash + 1 : clean);
    } else {
        st = find_runs_below(clean, bytes + 1, 1, l);
    }
    dt_free(clean);
    if (l->n > 1) {
        qsort(l->row, l->n, sizeof(*l->row), compare_start_times);
    }
    return st;
}

/* ---- output ------------------------------------------------------------------------------------------------------ */

static void write_json(const list *l, dt_json_out *o)
{
    dt_json_arr(o, NULL);
    for (uint32_t i = 0; i < l->n; i++) {
        const row *r = &l->row[i];
        const dt_run_state *s = &r->state;
        dt_json_obj(o, NULL);
        dt_json_str(o, "run", r->path);
        dt_json_str(o, "name", r->name);
        dt_json_str(o, "state", dt_run_condition_text(s->condition));
        if (r->why != NULL) {
            dt_json_str(o, "why", r->why);
        } else {
            if (s->exit_code >= 0) {
                dt_json_i64(o, "exit_code", s->exit_code);
            } else {
                dt_json_null(o, "exit_code");
            }
            dt_json_str(o, "phase", s->phase);
            dt_json_i64(o, "phase_index", s->phase_index);
            dt_json_i64(o, "phases", s->n_phases);
            dt_json_i64(o, "ranks", s->ranks);
            dt_json_i64(o, "step", (int64_t)s->step);
            dt_json_i64(o, "steps", (int64_t)s->steps);
            dt_json_f64(o, "phase_progress", s->part);
            dt_json_f64(o, "progress", s->progress);
            dt_json_f64(o, "wall_s", s->wall_s);
            if (s->best_name[0] != '\0') {
                dt_json_obj(o, "best");
                dt_json_str(o, "name", s->best_name);
                dt_json_str(o, "is", s->best_is_min ? "min" : "max");
                dt_json_f64(o, "value", s->best);
                dt_json_i64(o, "step", (int64_t)s->best_step);
                dt_json_end(o, '}');
                dt_json_f64(o, "last", s->last);
            } else {
                dt_json_null(o, "best");
            }
            dt_json_str(o, "start", s->start);
            dt_json_str(o, "end", s->end);
            if (s->process > 0) {
                dt_json_i64(o, "process", s->process);
                dt_json_str(o, "host", s->host);
            }
            if (s->error[0] != '\0') {
                dt_json_str(o, "error", s->error);
            }
        }
        dt_json_end(o, '}');
    }
    dt_json_end(o, ']');
}

/* "failed (7)": the exit code has the reason, and scripts depend on it. */
static void describe_state(const dt_run_state *s, char *out, size_t bytes)
{
    const char *text = dt_run_condition_text(s->condition);
    if (s->condition == DT_RUN_FAILED) {
        snprintf(out, bytes, "%s (%d)", text, s->exit_code);
    } else {
        snprintf(out, bytes, "%s", text);
    }
}

static void describe_step(const dt_run_state *s, char *out, size_t bytes)
{
    if (!s->has_phase) {
        snprintf(out, bytes, "-");
    } else if (s->steps > 0) {
        snprintf(out, bytes, "%llu/%llu", (unsigned long long)s->step, (unsigned long long)s->steps);
    } else {
        snprintf(out, bytes, "%llu", (unsigned long long)s->step);
    }
}

static void describe_phase(const dt_run_state *s, char *out, size_t bytes)
{
    if (s->n_phases > 1) {
        snprintf(out, bytes, "%s %lld/%lld", s->phase, (long long)s->phase_index + 1, (long long)s->n_phases);
    } else {
        snprintf(out, bytes, "%s", s->phase[0] != '\0' ? s->phase : "-");
    }
}

/* A column for the few runs that have several. */
static bool has_runs_of_ranks(const list *l)
{
    bool is = false;
    for (uint32_t i = 0; i < l->n; i++) {
        is = is || l->row[i].state.ranks > 1;
    }
    return is;
}

/* Places that UTF-8 text takes on a terminal, a letter each. */
static int count_display_columns(const char *text)
{
    int n = 0;
    for (; *text != '\0'; text++) {
        n += ((unsigned char)*text & 0xC0) != 0x80;
    }
    return n;
}

static void print_table(const list *l)
{
    const bool shows_ranks = has_runs_of_ranks(l);
    int name = 3, phase = 5, step = 4;
    char text[192], count[64];
    for (uint32_t i = 0; i < l->n; i++) {
        dt_mask_text(l->row[i].name, true); /* a line end in a folder's name would make up a row */
        dt_mask_text(l->row[i].state.error, true);
        const int n = count_display_columns(l->row[i].name);
        name = n > name ? n : name;
        describe_phase(&l->row[i].state, text, sizeof(text));
        phase = (int)strlen(text) > phase ? (int)strlen(text) : phase;
        describe_step(&l->row[i].state, count, sizeof(count));
        step = (int)strlen(count) > step ? (int)strlen(count) : step;
    }
    dt_print("%-*s  %-11s  %-20s%s  %-*s  %*s      %%  best\n", name, "run", "state", "began",
             shows_ranks ? "  ranks" : "", phase, "phase", step, "step");
    for (uint32_t i = 0; i < l->n; i++) {
        const row *r = &l->row[i];
        const dt_run_state *s = &r->state;
        describe_state(s, text, sizeof(text));
        dt_print("%s%*s  %-11s", r->name, name - count_display_columns(r->name), "", text);
        if (r->why != NULL) {
            dt_print("  %s\n", r->why);
            continue;
        }
        describe_phase(s, text, sizeof(text));
        describe_step(s, count, sizeof(count));
        dt_print("  %-20s", s->start[0] != '\0' ? s->start : "-");
        if (shows_ranks) {
            dt_print("  %5u", s->ranks);
        }
        dt_print("  %-*s  %*s", phase, text, step, count);
        if (isnan(s->progress)) {
            dt_print("      -");
        } else {
            dt_print("  %5.1f", 100 * s->progress);
        }
        if (s->best_name[0] != '\0' && !isnan(s->best)) {
            const char *bare = strncmp(s->best_name, "eval/", 5) == 0 ? s->best_name + 5 : s->best_name;
            dt_print("  %s %.4g at step %llu", bare, s->best, (unsigned long long)s->best_step);
        }
        if (s->error[0] != '\0') {
            dt_print("  %.120s", s->error);
        }
        dt_print("\n");
    }
}

dt_status dt_verb_runs(const dt_args *a, int *code_p)
{
    list l = {0};
    const char *dir = a->n_words == 1 ? a->word[0] : dt_rundir_base_folder();
    dt_status st = DT_OK;
    if (a->n_words == 1 || dt_fs_is_dir(dir)) { /* the default folder comes with the first run */
        st = find_all_runs(dir, &l);
    }
    if (st == DT_OK && a->json) {
        dt_str text = {0};
        dt_json_out o = {.s = &text};
        write_json(&l, &o);
        st = dt_str_status(&text);
        if (st == DT_OK) {
            dt_print_line(dt_str_text(&text));
        }
        dt_str_fini(&text);
    } else if (st == DT_OK && l.n == 0) {
        dt_print("no runs in %s\n", dir);
    } else if (st == DT_OK) {
        print_table(&l);
    }
    run_list_fini(&l);
    return st;
}
