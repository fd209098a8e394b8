/* SPDX-License-Identifier: Apache-2.0 */
#include <config.h>

#include "cli/sweep_table.h"

#include "base/err.h"
#include "base/fs.h"
#include "base/json.h"
#include "base/print.h"
#include "base/str.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool has_value(const dt_sweep_row *r)
{
    return !r->has_failed && isfinite(r->value);
}

static bool sorts_min; /* for qsort alone */

/* Trials that trained longest first, of these the best; those without a value last. */
static int compare_rows(const void *a, const void *b)
{
    const dt_sweep_row *p = a, *q = b;
    if (has_value(p) != has_value(q)) {
        return has_value(p) ? -1 : 1;
    }
    if (has_value(p) && p->step != q->step) {
        return p->step > q->step ? -1 : 1;
    }
    if (has_value(p) && p->value != q->value) {
        return (p->value < q->value) == sorts_min ? -1 : 1;
    }
    return p->trial < q->trial ? -1 : 1;
}

static void describe_trial(const dt_sweep_row *r, char *out, size_t bytes)
{
    if (r->has_failed) {
        snprintf(out, bytes, "failed (%d)", r->exit_code);
    } else {
        snprintf(out, bytes, "%s", has_value(r) ? "done" : r->is_unknown ? "unknown" : "waiting");
    }
}

static void append_value(const dt_sweep_table *s, const dt_sweep_row *r, uint32_t k, dt_str *out)
{
    dt_sweep_schedule_append_value(s->schedule, r->trial, r->rung, k, out);
}

/* Of a population: where a trial is, and which trial it was in each generation. */
static void write_lineage(const dt_sweep_table *s, const dt_sweep_row *r, dt_json_out *o)
{
    dt_str folder = {0};
    if (s->sweep->search != DT_SEARCH_PBT) {
        return;
    }
    dt_sweep_schedule_append_folder(s->schedule, r->trial, r->rung, &folder);
    dt_json_str(o, "folder", dt_str_text(&folder));
    dt_json_arr(o, "history");
    for (uint32_t rung = 0; rung <= r->rung; rung++) {
        dt_json_obj(o, NULL);
        dt_json_i64(o, "from", dt_sweep_schedule_source(s->schedule, r->trial, rung) + 1);
        for (uint32_t k = 0; k < s->sweep->space.n; k++) {
            dt_str value = {0};
            dt_sweep_schedule_append_value(s->schedule, r->trial, rung, k, &value);
            dt_json_str(o, s->sweep->space.parameter[k].key, dt_str_text(&value));
            dt_str_fini(&value);
        }
        dt_json_end(o, '}');
    }
    dt_json_end(o, ']');
    dt_str_fini(&folder);
}

/* Where values come from, for pictures of them. */
static void write_space(const dt_space *s, dt_json_out *o)
{
    dt_json_arr(o, "space");
    for (uint32_t k = 0; k < s->n; k++) {
        const dt_parameter *p = &s->parameter[k];
        dt_json_obj(o, NULL);
        dt_json_str(o, "key", p->key);
        dt_json_str(o, "scale", p->n_values > 0 ? "values" : p->is_log ? "log" : "linear");
        if (p->n_values == 0) {
            dt_json_f64(o, "min", p->min);
            dt_json_f64(o, "max", p->max);
        } else {
            dt_json_arr(o, "values");
            for (uint32_t i = 0; i < p->n_values; i++) {
                dt_json_str(o, NULL, p->value[i]);
            }
            dt_json_end(o, ']');
        }
        dt_json_end(o, '}');
    }
    dt_json_end(o, ']');
}

static void write_seed_values(const dt_sweep_table *s, const dt_sweep_row *r, dt_json_out *o)
{
    dt_json_arr(o, "seed_values");
    for (uint32_t k = 0; k < s->sweep->n_seeds; k++) {
        dt_json_f64(o, NULL, r->seed_value[k]);
    }
    dt_json_end(o, ']');
}

static void write_head(const dt_sweep *s, dt_json_out *o)
{
    dt_json_str(o, "metric", s->metric);
    dt_json_str(o, "goal", s->is_min ? "min" : "max");
    dt_json_str(o, "search", dt_search_names[s->search]);
    dt_json_arr(o, "seeds");
    for (uint32_t k = 0; k < s->n_seeds; k++) {
        dt_json_i64(o, NULL, (int64_t)s->seeds[k]);
    }
    dt_json_end(o, ']');
    write_space(&s->space, o);
}

static void write_json(const dt_sweep_table *s, dt_json_out *o)
{
    char state[64];
    dt_json_obj(o, NULL);
    write_head(s->sweep, o);
    dt_json_arr(o, "trials");
    for (uint32_t i = 0; i < s->sweep->trials; i++) {
        const dt_sweep_row *r = &s->row[i];
        describe_trial(r, state, sizeof(state));
        dt_json_obj(o, NULL);
        dt_json_i64(o, "trial", r->trial + 1);
        dt_json_str(o, "state", state);
        dt_json_i64(o, "steps", (int64_t)r->step);
        dt_json_f64(o, "value", has_value(r) ? r->value : (double)NAN);
        write_seed_values(s, r, o);
        write_lineage(s, r, o);
        dt_json_obj(o, "parameters");
        for (uint32_t k = 0; k < s->sweep->space.n; k++) {
            dt_str value = {0};
            append_value(s, r, k, &value);
            dt_json_str(o, s->sweep->space.parameter[k].key, dt_str_text(&value));
            dt_str_fini(&value);
        }
        dt_json_end(o, '}');
        dt_json_end(o, '}');
    }
    dt_json_end(o, ']');
    dt_json_end(o, '}');
}

static void print_table(const dt_sweep_table *s)
{
    char state[64];
    dt_print("%-6s  %-11s  %10s  %12s", "trial", "state", "steps", s->sweep->metric);
    for (uint32_t k = 0; k < s->sweep->space.n; k++) {
        dt_print("  %s", s->sweep->space.parameter[k].key);
    }
    dt_print("\n");
    for (uint32_t i = 0; i < s->sweep->trials; i++) {
        const dt_sweep_row *r = &s->row[i];
        describe_trial(r, state, sizeof(state));
        dt_print("%-6u  %-11s  %10llu  ", r->trial + 1, state, (unsigned long long)r->step);
        if (has_value(r)) {
            dt_print("%12.6g", r->value);
        } else {
            dt_print("%12s", "-");
        }
        for (uint32_t k = 0; k < s->sweep->space.n; k++) {
            dt_str value = {0};
            append_value(s, r, k, &value);
            dt_print("  %*s", (int)strlen(s->sweep->space.parameter[k].key), dt_str_text(&value));
            dt_str_fini(&value);
        }
        dt_print("\n");
    }
    if (has_value(&s->row[0])) {
        dt_print("\nbest: trial %u,", s->row[0].trial + 1);
        for (uint32_t k = 0; k < s->sweep->space.n; k++) {
            dt_str value = {0};
            append_value(s, &s->row[0], k, &value);
            dt_print(" --set %s=%s", s->sweep->space.parameter[k].key, dt_str_text(&value));
            dt_str_fini(&value);
        }
        dt_print("\n");
    }
}

dt_status dt_sweep_table_write(const dt_sweep_table *t, const char *folder, dt_sweep_print print)
{
    dt_str text = {0}, path = {0};
    dt_json_out o = {.s = &text};
    sorts_min = t->sweep->is_min;
    qsort(t->row, t->sweep->trials, sizeof(*t->row), compare_rows);
    write_json(t, &o);
    dt_status st = dt_str_status(&text);
    if (st == DT_OK && print == DT_SWEEP_PRINT_JSON) {
        dt_print_line(dt_str_text(&text));
    } else if (st == DT_OK && print == DT_SWEEP_PRINT_TABLE) {
        print_table(t);
    }
    dt_str_addf(&path, "%s/summary.json", folder);
    dt_str_add(&text, "\n");
    if (st == DT_OK) {
        st = dt_fs_write_text(&path, &text);
    }
    dt_str_fini(&path);
    dt_str_fini(&text);
    return st;
}
