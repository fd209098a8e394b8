/* SPDX-License-Identifier: Apache-2.0
 *
 * The library of dtrain/policy.h: a policy file, its compiled graph, and the room for one step of one world. What
 * the trainer's rollout does with rows (core/rl/buffer/buffer.c) is done here for one instance: the rows of places that
 * are seen are put together, indices of places become indices of rows, and history is kept; actions are those of
 * core/rl/buffer/dist.c. Threads: an object belongs to one thread.
 */
#include <config.h>

#include "dtrain/policy.h"

#include "base/err.h"
#include "base/print.h"
#include "base/mem.h"
#include "export/policy_check.h"
#include "export/policy_load.h"
#include "engine/graph/plan.h"
#include "rl/buffer/dist.h"
#include "engine/tensor/dtype.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { OUT_LOGITS, OUT_MEAN, OUT_LOG_STD, OUT_LOW, OUT_HIGH, OUT_ALLOW, N_OUTS };
static const char *const output_name[N_OUTS] = {[OUT_LOGITS] = "logits", [OUT_MEAN] = "mean", [OUT_LOG_STD] = "log_std",
                                                [OUT_LOW] = "low",       [OUT_HIGH] = "high", [OUT_ALLOW] = "allow"};

typedef struct feed { /* an input, as the step makes it */
    int64_t obs;      /* GIVEN, STEPS: number among info's obs */
    char *room;       /* NULL: the caller's rows are read as they are */
    float *memory;    /* HISTORY: [window, places, row] */
} feed;

struct dt_policy {
    dt_policy_file f;
    dt_policy_info info;
    dt_port obs[DT_BUNDLE_MAX_INPUTS];
    char dims[DT_BUNDLE_MAX_INPUTS][DT_POLICY_DIMS_BYTES]; /* of obs, where they differ from the graph's */
    dt_dim symbol[DT_GRAPH_MAX_SYMBOLS];
    int32_t ragged[DT_GRAPH_MAX_SYMBOLS]; /* info's symbols in the graph */
    dt_policy_facts facts;
    feed feed[DT_BUNDLE_MAX_INPUTS];
    void *field[DT_BUNDLE_MAX_INPUTS];
    dt_plan *plan;
    dt_exec *exec;
    const dt_view *out[N_OUTS];
    int64_t size[DT_GRAPH_MAX_SYMBOLS];
    uint32_t n_rows;
    int32_t *row;   /* [places] row of a place that is seen, else -1 */
    uint32_t *age;  /* [places] steps since the agent came, at most window */
    uint8_t *acted; /* [places] in the step before */
    uint64_t steps; /* remembered so far */
    uint8_t *mask;  /* [n_choices] of the place being acted for */
    int32_t *act_i; /* [n_heads] */
    float *act_f;   /* [2, n_continuous] drawn, executed */
    char *memory;   /* after all of these */
};

/* ---- load -------------------------------------------------------------------------------------------------------- */

/* "15 S 6" to "S 15 6" */
static void move_rows_first(const char *dims, char out[DT_POLICY_DIMS_BYTES])
{
    const size_t steps = strcspn(dims, " ");
    const char *rows = dims + steps + (dims[steps] == ' ');
    const size_t n = strcspn(rows, " ");
    snprintf(out, DT_POLICY_DIMS_BYTES, "%.*s %.*s%s", (int)n, rows, (int)steps, dims, rows + n);
}

static void describe_policy(dt_policy *p)
{
    const dt_policy_file *f = &p->f;
    dt_policy_info *x = &p->info;
    *x = (dt_policy_info){.struct_size = sizeof(*x),
                          .phase = f->phase,
                          .environment = f->environment,
                          .obs = p->obs,
                          .symbols = p->symbol,
                          .choices = f->choices,
                          .low = f->low,
                          .high = f->high,
                          .settings = f->setting,
                          .n_heads = f->n_heads,
                          .n_continuous = f->n_continuous,
                          .n_settings = f->n_settings,
                          .n_choices = p->facts.n_choices,
                          .places = p->facts.places,
                          .window = p->facts.window};
    for (int32_t i = 0; i < (int32_t)f->n_symbols; i++) {
        if (i != p->facts.A && i != p->facts.B) {
            p->ragged[x->n_symbols] = i;
            p->symbol[x->n_symbols++] = (dt_dim){f->symbol[i], f->most[i]};
        }
    }
    for (uint32_t i = 0; i < f->n_inputs; i++) {
        if (f->input[i].kind == DT_BUNDLE_GIVEN || f->input[i].kind == DT_BUNDLE_STEPS) {
            p->feed[i].obs = x->n_obs;
            p->obs[x->n_obs] = f->port[i];
            if (f->input[i].kind == DT_BUNDLE_STEPS) {
                move_rows_first(f->port[i].dims, p->dims[x->n_obs]);
                p->obs[x->n_obs].dims = p->dims[x->n_obs];
                p->obs[x->n_obs].flags = DT_PORT_STEPS;
            }
            x->n_obs++;
        }
    }
}

/* n * bytes fits: of inputs and places dt_policy_check has seen to that, the rest is bounded */
static char *read_inputs(dt_policy *p, size_t *at, size_t n, size_t bytes)
{
    char *start = p->memory != NULL ? p->memory + *at : NULL;
    *at += (n * bytes + 63) / 64 * 64;
    return start;
}

/* Twice: to count, and to hand out. */
static dt_status lay_out_memory(dt_policy *p)
{
    const dt_policy_info *x = &p->info;
    size_t at = 0;
    for (int pass = 0; pass < 2; pass++) {
        at = 0;
        p->row = (int32_t *)(void *)read_inputs(p, &at, x->places, sizeof(*p->row));
        p->age = (uint32_t *)(void *)read_inputs(p, &at, x->places, sizeof(*p->age));
        p->acted = (uint8_t *)read_inputs(p, &at, x->places, 1);
        p->mask = (uint8_t *)read_inputs(p, &at, x->n_choices, 1);
        p->act_i = (int32_t *)(void *)read_inputs(p, &at, x->n_heads, sizeof(*p->act_i));
        p->act_f = (float *)(void *)read_inputs(p, &at, 2 * (size_t)x->n_continuous, sizeof(*p->act_f));
        for (uint32_t i = 0; i < p->f.n_inputs; i++) {
            const dt_policy_input *d = &p->facts.input[i];
            p->feed[i].room = d->room_bytes > 0 ? read_inputs(p, &at, d->room_bytes, 1) : NULL;
            p->feed[i].memory = d->memory_bytes > 0 ? (float *)(void *)read_inputs(p, &at, d->memory_bytes, 1) : NULL;
        }
        if (pass == 0) {
            p->memory = dt_alloc(at);
            if (p->memory == NULL) {
                return DT_FAIL(DT_ENOMEM, "out of memory for %u places", x->places);
            }
        }
    }
    return DT_OK;
}

static dt_status compile_plan(dt_policy *p)
{
    const dt_plan_desc d = {
        .kernels = DT_KERNELS_CPU, .reuse = true, .fuse = true, .outputs_only = true, .cap = p->f.most};
    DT_TRY(dt_plan_compile(p->f.graph, &d, &p->plan));
    const dt_plan_info *x = dt_plan_info_get(p->plan);
    size_t bytes = p->facts.room_bytes;
    if (!dt_add_size(bytes, x->arena_bytes, &bytes) || !dt_add_size(bytes, x->kept_bytes, &bytes) ||
        bytes > DT_POLICY_MOST_BYTES) {
        return DT_FAIL(DT_EUNSUPPORTED,
                       "its inputs and networks need %zu MB with the most rows that it names, at most %zu are given",
                       bytes >> 20, DT_POLICY_MOST_BYTES >> 20);
    }
    DT_TRY(dt_exec_create(p->plan, &p->exec));
    for (int o = 0; o < N_OUTS; o++) {
        p->out[o] = dt_exec_output(p->exec, output_name[o]);
    }
    return DT_OK;
}

/* Of a file that has been read. */
static dt_status prepare_policy(dt_policy *p)
{
    DT_TRY(dt_policy_check(&p->f, &p->facts));
    describe_policy(p);
    DT_TRY(lay_out_memory(p));
    return compile_plan(p);
}

static dt_status copy_error_message(dt_status st, char *message, size_t bytes)
{
    if (message != NULL && bytes > 0) {
        snprintf(message, bytes, "%s", dt_error_text());
        dt_mask_text(message, false); /* a character that the end cut through */
    }
    dt_error_clear();
    return st;
}

/* bytes NULL: the file of that name. */
static dt_status load_policy(const void *bytes, size_t n_bytes, const char *name, dt_policy **out_p)
{
    dt_policy *p = dt_alloc(sizeof(*p));
    if (p == NULL) {
        return DT_FAIL(DT_ENOMEM, "out of memory for a policy");
    }
    dt_status st =
        bytes != NULL ? dt_policy_file_read_bytes(bytes, n_bytes, name, &p->f) : dt_policy_file_read(name, &p->f);
    if (st == DT_OK && (st = prepare_policy(p)) < 0) {
        st = DT_CONTEXT(st, "%s", name);
    }
    if (st < 0) {
        dt_policy_free(p);
        return st;
    }
    *out_p = p;
    return DT_OK;
}

dt_status dt_policy_load(const char *path, dt_policy **out_p, char *message, size_t message_bytes)
{
    const dt_status st = load_policy(NULL, 0, path, out_p);
    return st < 0 ? copy_error_message(st, message, message_bytes) : DT_OK;
}

dt_status dt_policy_load_bytes(const void *bytes, size_t n_bytes, const char *name, dt_policy **out_p, char *message,
                               size_t message_bytes)
{
    const dt_status st = load_policy(bytes, n_bytes, name, out_p);
    return st < 0 ? copy_error_message(st, message, message_bytes) : DT_OK;
}

void dt_policy_free(dt_policy *p)
{
    if (p != NULL) {
        dt_exec_destroy(p->exec);
        dt_plan_destroy(p->plan);
        dt_free(p->memory);
        dt_policy_file_fini(&p->f);
        dt_free(p);
    }
}

const dt_policy_info *dt_policy_describe(const dt_policy *p)
{
    return &p->info;
}

void dt_policy_reset(dt_policy *p)
{
    memset(p->acted, 0, p->info.places);
}

/* ---- what comes in ----------------------------------------------------------------------------------------------- */

static bool is_place_seen(const dt_policy_io *io, uint32_t a)
{
    return io->alive == NULL || io->alive[a] != 0 || (io->truncated != NULL && io->truncated[a] != 0);
}

static bool is_place_acting(const dt_policy_io *io, uint32_t a)
{
    return io->alive == NULL || io->alive[a] != 0;
}

static dt_status check_sizes(dt_policy *p, const dt_policy_io *io)
{
    const dt_policy_info *x = &p->info;
    if (io->struct_size < sizeof(*io)) {
        return DT_FAIL(DT_EINVAL, "struct_size is %u, expected %zu", io->struct_size, sizeof(*io));
    }
    if (io->n_places > x->places) {
        return DT_FAIL(DT_EINVAL, "n_places is %u, the policy was made for at most %u", io->n_places, x->places);
    }
    if ((x->n_obs > 0 && io->obs == NULL) || (x->n_symbols > 0 && io->size == NULL) ||
        (x->n_heads > 0 && io->act_i == NULL) || (x->n_continuous > 0 && io->act_f == NULL)) {
        return DT_FAIL(DT_EINVAL, "obs, size, act_i and act_f are required if the policy has them");
    }
    for (uint32_t k = 0; k < x->n_symbols; k++) {
        if (io->size[k] < 0 || io->size[k] > x->symbols[k].size) {
            return DT_FAIL(DT_EINVAL, "size of %s is %lld, the policy was made for 0 to %lld", x->symbols[k].name,
                           (long long)io->size[k], (long long)x->symbols[k].size);
        }
        p->size[p->ragged[k]] = io->size[k];
    }
    for (uint32_t k = 0; k < x->n_obs; k++) {
        if (io->obs[k] == NULL) {
            return DT_FAIL(DT_EINVAL, "observation %s is missing", x->obs[k].name);
        }
    }
    return DT_OK;
}

/* Rows of places that are seen, in order. */
static void number_present_rows(dt_policy *p, const dt_policy_io *io)
{
    p->n_rows = 0;
    for (uint32_t a = 0; a < io->n_places; a++) {
        p->row[a] = is_place_seen(io, a) ? (int32_t)p->n_rows++ : -1;
    }
    p->size[p->facts.A] = p->n_rows;
    if (p->facts.B >= 0) {
        p->size[p->facts.B] = 1;
    }
}

static dt_status check_index_values(const dt_policy *p, const dt_policy_io *io, uint32_t input)
{
    const dt_bundle_input *x = &p->f.input[input];
    const dt_policy_input *d = &p->facts.input[input];
    const bool is_of_places = d->symbol == p->facts.A, counts_places = x->index_of == p->facts.A;
    const int32_t *v = io->obs[p->feed[input].obs];
    const int64_t rows = (is_of_places ? (int64_t)io->n_places : p->size[d->symbol]) + d->plus;
    const int64_t each = (int64_t)(d->row_bytes / sizeof(*v));
    const int64_t end = counts_places ? (int64_t)io->n_places : p->size[x->index_of];
    const int64_t most = d->plus != 0 ? end : end - 1;
    int32_t before = 0;
    for (int64_t i = 0; i < rows * each; i++) {
        if (is_of_places && p->row[i / each] < 0) {
            continue;
        }
        const int32_t least = d->plus != 0 ? before : counts_places ? -1 : d->least;
        if (v[i] < least || v[i] > most) {
            return DT_FAIL(DT_EINVAL, "observation %s: element %lld is %d, expected %d to %lld", x->name, (long long)i,
                           v[i], least, (long long)most);
        }
        before = d->plus != 0 ? v[i] : before;
    }
    if (d->plus != 0 && (v[0] != 0 || before != end)) {
        return DT_FAIL(DT_EINVAL, "observation %s goes from %d to %d, expected 0 to %lld", x->name, v[0], before,
                       (long long)end);
    }
    return DT_OK;
}

/* Rows of places that are seen, together; indices of places become those of rows. */
static void *write_rows(const dt_policy *p, const dt_policy_io *io, uint32_t input)
{
    const dt_policy_input *d = &p->facts.input[input];
    char *room = p->feed[input].room;
    const bool is_of_places = d->symbol == p->facts.A, counts_places = p->f.input[input].index_of == p->facts.A;
    const size_t n = is_of_places ? p->n_rows : (size_t)(p->size[d->symbol] + d->plus);
    const char *from = io->obs[p->feed[input].obs];
    if (!counts_places && (!is_of_places || n == io->n_places)) {
        return (void *)(uintptr_t)from;
    }
    if (!is_of_places) {
        memcpy(room, from, n * d->row_bytes);
    }
    for (uint32_t a = 0; a < io->n_places && is_of_places; a++) {
        if (p->row[a] >= 0) {
            memcpy(room + (size_t)p->row[a] * d->row_bytes, from + (size_t)a * d->row_bytes, d->row_bytes);
        }
    }
    int32_t *v = (int32_t *)(void *)room;
    if (counts_places) {
        for (size_t i = 0; i < n * (d->row_bytes / sizeof(*v)); i++) {
            v[i] = v[i] >= 0 ? p->row[v[i]] : -1;
        }
    }
    return room;
}

/* [T,rows,...] of rows that are [T,...] */
static void *write_steps(const dt_policy *p, const dt_policy_io *io, uint32_t input)
{
    const dt_policy_input *d = &p->facts.input[input];
    char *room = p->feed[input].room;
    const bool is_of_places = d->symbol == p->facts.A;
    const size_t n = is_of_places ? p->n_rows : (size_t)p->size[d->symbol];
    const size_t all = is_of_places ? io->n_places : n;
    const char *from = io->obs[p->feed[input].obs];
    for (size_t i = 0; i < all; i++) {
        const int64_t row = is_of_places ? p->row[i] : (int64_t)i;
        if (row >= 0) {
            for (size_t t = 0; t < d->steps; t++) {
                memcpy(room + (t * n + (size_t)row) * d->row_bytes, from + (i * d->steps + t) * d->row_bytes,
                       d->row_bytes);
            }
        }
    }
    return room;
}

/* ---- memory ------------------------------------------------------------------------------------------------------ */

static void keep_history(dt_policy *p, const dt_policy_io *io)
{
    const uint32_t W = p->info.window, places = p->info.places;
    const size_t now = p->steps % W;
    for (uint32_t a = 0; a < io->n_places; a++) {
        p->age[a] = p->acted[a] == 0 ? 0 : p->age[a] < W ? p->age[a] + 1 : W;
    }
    for (uint32_t i = 0; i < p->f.n_inputs; i++) {
        const size_t row_bytes = p->facts.input[i].row_bytes;
        if (p->feed[i].memory != NULL) {
            const char *from = io->obs[p->feed[p->f.input[i].of].obs];
            memcpy((char *)p->feed[i].memory + now * places * row_bytes, from, io->n_places * row_bytes);
        }
    }
    p->steps++;
}

static void reset_absent(dt_policy *p, const dt_policy_io *io)
{
    for (uint32_t a = 0; a < p->info.places; a++) {
        p->acted[a] = a < io->n_places && is_place_acting(io, a);
    }
}

/* [W,A,D], or [W,A] of ones where d has no memory; oldest first, zeros before the agent came */
static void *write_history(const dt_policy *p, const dt_policy_io *io, uint32_t input)
{
    const feed *d = &p->feed[input];
    const size_t row_bytes = p->facts.input[input].row_bytes;
    const uint32_t W = p->info.window, places = p->info.places;
    char *out = d->room;
    for (uint32_t w = 0; w < W; w++) {
        const uint32_t back = W - 1 - w;
        for (uint32_t a = 0; a < io->n_places; a++) {
            if (p->row[a] < 0) {
                continue;
            }
            const bool is_there = back <= p->age[a];
            if (d->memory == NULL) {
                *(float *)(void *)out = is_there ? 1 : 0;
            } else if (is_there) {
                const size_t slot = (p->steps - 1 - back) % W;
                memcpy(out, (const char *)d->memory + (slot * places + a) * row_bytes, row_bytes);
            } else {
                memset(out, 0, row_bytes);
            }
            out += row_bytes;
        }
    }
    return d->room;
}

static void *write_mask(const dt_policy *p, const dt_policy_io *io, const feed *d)
{
    const size_t M = p->info.n_choices;
    float *out = (float *)(void *)d->room;
    for (uint32_t a = 0; a < io->n_places; a++) {
        if (p->row[a] >= 0) {
            for (size_t c = 0; c < M; c++) {
                *out++ = io->mask == NULL ? 1 : io->mask[a * M + c];
            }
        }
    }
    return d->room;
}

/* ---- act --------------------------------------------------------------------------------------------------------- */

static dt_status run_policy_plan(dt_policy *p, const dt_policy_io *io)
{
    static const dt_kernel_run how = {.training = 0};
    for (uint32_t i = 0; i < p->f.n_inputs; i++) {
        switch (p->f.input[i].kind) {
        case DT_BUNDLE_HISTORY:
        case DT_BUNDLE_PRESENT:
            p->field[i] = write_history(p, io, i);
            break;
        case DT_BUNDLE_STEPS:
            p->field[i] = write_steps(p, io, i);
            break;
        case DT_BUNDLE_MASK:
            p->field[i] = write_mask(p, io, &p->feed[i]);
            break;
        default:
            p->field[i] = write_rows(p, io, i);
            break;
        }
    }
    const dt_exec_feed all = {
        .size = p->size, .field = p->field, .params = p->f.values, .run = &how, .params_version = 1};
    return dt_exec_run(p->exec, &all);
}

static const float *output_row(const dt_policy *p, int o, size_t row, size_t items)
{
    const dt_view *v = p->out[o];
    return v == NULL ? NULL : (const float *)v->data + (v->rank == 1 ? 0 : row * items);
}

static dt_status choose_actions(dt_policy *p, const dt_policy_io *io, uint32_t a)
{
    const dt_policy_info *x = &p->info;
    const size_t row = (size_t)p->row[a], H = x->n_heads, C = x->n_continuous, M = x->n_choices;
    const dt_dist d = {.choices = x->choices,
                       .low = x->low,
                       .high = x->high,
                       .n_heads = x->n_heads,
                       .n_continuous = x->n_continuous,
                       .is_squashed = p->f.is_squashed};
    const dt_dist_row r = {.logits = output_row(p, OUT_LOGITS, row, M),
                           .allow = output_row(p, OUT_ALLOW, row, M),
                           .mean = output_row(p, OUT_MEAN, row, C),
                           .log_std = output_row(p, OUT_LOG_STD, row, C),
                           .low = output_row(p, OUT_LOW, row, C),
                           .high = output_row(p, OUT_HIGH, row, C),
                           .mask = p->mask,
                           .drawn_i = p->act_i,
                           .drawn_f = p->act_f,
                           .executed_f = p->act_f + C};
    if (io->mask != NULL) {
        memcpy(p->mask, io->mask + a * M, M);
    } else {
        memset(p->mask, 1, M);
    }
    const dt_dist_result out = dt_dist_draw_action(&d, NULL, 0, true, &r);
    if (isnan(out.log_prob)) {
        return DT_FAIL(DT_EDIVERGED, "the policy's outputs for place %u are not finite, or its mask allows no choice",
                       a);
    }
    if (H > 0) {
        memcpy(io->act_i + a * H, r.drawn_i, H * sizeof(*r.drawn_i));
    }
    if (C > 0) {
        memcpy(io->act_f + a * C, r.executed_f, C * sizeof(*r.executed_f));
    }
    if (io->report != NULL) {
        io->report[a] =
            (uint8_t)((out.is_changed ? DT_POLICY_CHANGED : 0) | (out.is_infeasible ? DT_POLICY_INFEASIBLE : 0));
    }
    return DT_OK;
}

static dt_status act_one_step(dt_policy *p, const dt_policy_io *io)
{
    const dt_policy_info *x = &p->info;
    DT_TRY(check_sizes(p, io));
    number_present_rows(p, io);
    if (p->n_rows > 0) {
        for (uint32_t i = 0; i < p->f.n_inputs; i++) {
            if (p->f.input[i].kind == DT_BUNDLE_GIVEN && p->f.input[i].index_of >= 0) {
                DT_TRY(check_index_values(p, io, i));
            }
        }
    }
    if (x->window > 1) {
        keep_history(p, io);
        reset_absent(p, io);
    }
    if (x->n_heads > 0) {
        memset(io->act_i, 0, (size_t)io->n_places * x->n_heads * sizeof(*io->act_i));
    }
    if (x->n_continuous > 0) {
        memset(io->act_f, 0, (size_t)io->n_places * x->n_continuous * sizeof(*io->act_f));
    }
    if (io->report != NULL) {
        memset(io->report, 0, io->n_places);
    }
    DT_TRY(p->n_rows > 0 ? run_policy_plan(p, io) : DT_OK);
    for (uint32_t a = 0; a < io->n_places; a++) {
        DT_TRY(is_place_acting(io, a) ? choose_actions(p, io, a) : DT_OK);
    }
    return DT_OK;
}

dt_status dt_policy_act(dt_policy *p, const dt_policy_io *io, char *message, size_t message_bytes)
{
    const dt_status st = act_one_step(p, io);
    return st < 0 ? copy_error_message(st, message, message_bytes) : DT_OK;
}

const float *dt_policy_output(const dt_policy *p, const char *name, int64_t *dim, uint32_t *rank_p)
{
    const dt_view *v = dt_exec_output(p->exec, name);
    if (v == NULL || v->dtype != DT_F32 || v->data == NULL) {
        return NULL;
    }
    memcpy(dim, v->dim, sizeof(v->dim));
    if (p->n_rows == 0 && v->rank > 0) {
        dim[0] = 0;
    }
    *rank_p = (uint32_t)v->rank;
    return v->data;
}
