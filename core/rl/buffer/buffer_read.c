/* SPDX-License-Identifier: Apache-2.0
 *
 * See buffer.h: samples of a round as data, packed by rows.
 */
#include <config.h>

#include "rl/buffer/buffer_internal.h"

#include "base/err.h"

#include <string.h>

/* Of the slots of all ranks' instances. */
static uint64_t global_slot(const dt_buffer_reader *r, uint32_t j)
{
    const dt_buffer_desc *d = &r->b->d;
    const uint64_t M = d->all > 0 ? d->all : d->instances, n = r->index[j];
    const bool is_own = d->all > 0 && r->b->place == NULL; /* counted among a rank's instances */
    return (d->window - 1) * M + (is_own ? n / d->instances * M + d->first + n % d->instances : n);
}

/* Rows of places, row by row, into out. */
static char *copy_places(const dt_buffer_reader *r, size_t slot, const char *base, size_t bytes, char *out)
{
    const uint32_t A = r->b->l->spec.n_agents;
    for (size_t at = slot * A; at < (slot + 1) * A; at++) {
        if ((r->b->row[at] & r->which) != 0) {
            memcpy(out, base + at * bytes, bytes);
            out += bytes;
        }
    }
    return out;
}

static void read_places(const dt_buffer_reader *r, const void *base, size_t bytes, char *out)
{
    for (uint32_t j = 0; j < r->n; j++) {
        out = copy_places(r, dt_reader_slot(r, j), base, bytes, out);
    }
}

void dt_buffer_scale_rows(const dt_buffer_scale *s, float *x, int64_t rows, int64_t D)
{
    if (s->mean != NULL) {
        for (int64_t i = 0; i < rows; i++) {
            for (int64_t d = 0; d < D; d++) {
                float v = (x[i * D + d] - s->mean[d]) * s->scale[d];
                if (s->clip > 0) {
                    v = v < -s->clip ? -s->clip : v > s->clip ? s->clip : v;
                }
                x[i * D + d] = v;
            }
        }
    }
}

/* Rows of slot `at`, of the sample whose slot is `slot`. Of row pointers the last one is the next sample's first. */
static char *copy_ragged(const dt_buffer_reader *r, const dt_obs_port *o, uint32_t port, size_t slot, size_t at,
                         const int64_t *before, char *out)
{
    const dt_buffer *b = r->b;
    const size_t bytes = (size_t)b->size[at * b->l->spec.n_symbols + (uint32_t)o->symbol - 1] * o->row_bytes;
    memcpy(out, b->obs[port] + (size_t)b->at[port][at] * o->row_bytes, bytes);
    if (o->index_of >= 0) {
        dt_reader_shift_indices(r, slot, o->index_of, before, out, (int64_t)(bytes / sizeof(int32_t)));
    }
    return out + bytes;
}

static void read_obs(const dt_buffer_reader *r, uint32_t port, char *out)
{
    const dt_buffer *b = r->b;
    const dt_obs_port *o = &b->l->obs[port];
    int64_t before[1 + DT_ENV_MAX_SYMBOLS] = {0};
    char *const start = out;
    for (uint32_t j = 0; j < r->n; j++) {
        const size_t slot = dt_reader_slot(r, j);
        const int32_t places = dt_reader_places(r, slot);
        if (places == 0) {
            continue;
        }
        if (o->symbol == 0) {
            char *const begin = out;
            out = copy_places(r, slot, b->obs[port], o->row_bytes, out);
            if (o->index_of >= 0) {
                dt_reader_shift_indices(r, slot, o->index_of, before, begin, (out - begin) / (int64_t)sizeof(int32_t));
            }
        } else {
            out = copy_ragged(r, o, port, slot, slot, before, out);
        }
        dt_reader_add_own(r, slot, before);
        if (o->symbol > 0 && dt_reader_next_rows(r, slot, (uint32_t)o->symbol) > 0) {
            out = copy_ragged(r, o, port, slot, slot + b->d.instances, before, out);
        }
        dt_reader_add_next(r, slot, before);
        before[0] += places;
    }
    if (o->plus) {
        const int32_t end = (int32_t)before[o->index_of];
        memcpy(out, &end, sizeof(end));
    }
    if (o->is_plain) {
        dt_buffer_scale_rows(&b->scale[port], (float *)(void *)start, before[0], o->row_items);
    }
}

/* out[step][row] of rows that are [step] */
static void read_steps(const dt_buffer_reader *r, uint32_t port, char *out)
{
    const dt_buffer *b = r->b;
    const dt_obs_port *o = &b->l->obs[port];
    const uint32_t A = b->l->spec.n_agents, S = b->l->spec.n_symbols;
    int64_t size[1 + DT_ENV_MAX_SYMBOLS];
    dt_buffer_get_sizes(b, r->which, r->index, r->n, size);
    const size_t stride = (size_t)size[o->symbol] * (o->row_bytes / (size_t)o->steps);
    for (uint32_t j = 0; j < r->n; j++) {
        const size_t slot = dt_reader_slot(r, j), after = slot + b->d.instances;
        if (o->symbol == 0) {
            out = dt_reader_copy_steps(r, o, port, slot * A, (int64_t)A, stride, out);
        } else if (dt_reader_places(r, slot) > 0) {
            const uint32_t k = (uint32_t)o->symbol;
            out = dt_reader_copy_steps(r, o, port, (size_t)b->at[port][slot], b->size[slot * S + k - 1], stride, out);
            if (dt_reader_next_rows(r, slot, k) > 0) {
                out = dt_reader_copy_steps(r, o, port, (size_t)b->at[port][after], dt_reader_next_rows(r, slot, k),
                                           stride, out);
            }
        }
    }
}

/* out[w][row]: the rows of w steps ago, oldest first; zeros before the agent came. */
static void read_history(const dt_buffer_reader *r, const dt_buffer_field *f, float *out)
{
    const dt_buffer *b = r->b;
    const dt_obs_port *o = &b->l->obs[f->port];
    const uint32_t W = b->d.window, A = b->l->spec.n_agents;
    const size_t D = f->kind == FIELD_PRESENT ? 1 : (size_t)o->row_items;
    for (uint32_t w = 0; w < W; w++) {
        const size_t back = W - 1 - w;
        for (uint32_t j = 0; j < r->n; j++) {
            const size_t slot = dt_reader_slot(r, j);
            for (size_t at = slot * A; at < (slot + 1) * A; at++) {
                if ((b->row[at] & r->which) == 0) {
                    continue;
                }
                const bool is_there = back <= b->age[at];
                if (f->kind == FIELD_PRESENT) {
                    *out = is_there;
                } else if (is_there) {
                    const size_t from = at - back * b->d.instances * A;
                    memcpy(out, b->obs[f->port] + from * o->row_bytes, o->row_bytes);
                    dt_buffer_scale_rows(&b->scale[f->port], out, 1, (int64_t)D);
                } else {
                    memset(out, 0, D * sizeof(float));
                }
                out += D;
            }
        }
    }
}

/* out[w][row], or of the current step alone, [row]: what came from the step before; zeros at an agent's first step. */
static void read_carried(const dt_buffer_reader *r, const dt_buffer_field *f, float *out)
{
    const dt_buffer *b = r->b;
    const uint32_t A = b->l->spec.n_agents;
    const size_t columns = b->carried_columns[f->port];
    for (size_t back = f->kind == FIELD_CARRIED ? 1 : b->d.window; back-- > 0;) {
        for (uint32_t j = 0; j < r->n; j++) {
            const size_t slot = dt_reader_slot(r, j);
            for (size_t at = slot * A; at < (slot + 1) * A; at++) {
                if ((b->row[at] & r->which) == 0) {
                    continue;
                }
                if (back < b->age[at]) {
                    memcpy(out, b->carried[f->port] + (at - back * b->d.instances * A) * columns,
                           columns * sizeof(*out));
                } else {
                    memset(out, 0, columns * sizeof(*out));
                }
                out += columns;
            }
        }
    }
}

/* Rows of the step after, of agents that were not ended by this one; else zeros. Where more is wanted of transitions,
 * also of those that were truncated by it: there it is what they saw last. */
static void read_next_rows(const dt_buffer_reader *r, const dt_buffer_field *f, char *out)
{
    const dt_buffer *b = r->b;
    const bool is_seen = b->d.transitions > 1 && f->kind == FIELD_NEXT;
    const uint8_t ended = is_seen ? DT_STEP_TERMINATED : DT_STEP_TERMINATED | DT_STEP_TRUNCATED;
    const dt_obs_port *o = &b->l->obs[f->port];
    const size_t A = b->l->spec.n_agents, bytes = f->kind == FIELD_NEXT_PRESENT ? sizeof(float) : o->row_bytes;
    for (uint32_t j = 0; j < r->n; j++) {
        const size_t slot = dt_reader_slot(r, j);
        for (size_t at = slot * A; at < (slot + 1) * A; at++) {
            if ((b->row[at] & r->which) == 0) {
                continue;
            }
            const bool is_there = (b->flag[at] & DT_STEP_ACTED) != 0 && (b->flag[at] & ended) == 0;
            if (f->kind == FIELD_NEXT_PRESENT) {
                *(float *)(void *)out = is_there;
            } else if (is_there) {
                memcpy(out, b->obs[f->port] + (at + b->d.instances * A) * o->row_bytes, o->row_bytes);
                if (o->is_plain) {
                    dt_buffer_scale_rows(&b->scale[f->port], (float *)(void *)out, 1, o->row_items);
                }
            } else {
                memset(out, 0, bytes);
            }
            out += bytes;
        }
    }
}

/* Rows of the step after, among those of its symbol that follow the sample's own; -1 for agents that ended. */
static void read_next_index(const dt_buffer_reader *r, uint32_t port, int32_t *out)
{
    const dt_buffer *b = r->b;
    const dt_obs_port *o = &b->l->obs[port];
    const size_t A = b->l->spec.n_agents, n = o->row_bytes / sizeof(int32_t);
    int64_t before[1 + DT_ENV_MAX_SYMBOLS] = {0};
    for (uint32_t j = 0; j < r->n; j++) {
        const size_t slot = dt_reader_slot(r, j);
        const int32_t places = dt_reader_places(r, slot);
        if (places == 0) {
            continue;
        }
        dt_reader_add_own(r, slot, before);
        for (size_t at = slot * A; at < (slot + 1) * A; at++) {
            if ((b->row[at] & r->which) == 0) {
                continue;
            }
            if ((b->flag[at] & DT_STEP_ACTED) != 0 && (b->flag[at] & DT_STEP_TERMINATED) == 0) {
                memcpy(out, b->obs[port] + (at + b->d.instances * A) * o->row_bytes, o->row_bytes);
                dt_reader_shift_indices(r, slot, o->index_of, before, out, (int64_t)n);
            } else {
                memset(out, 0xff, o->row_bytes); /* -1 */
            }
            out += n;
        }
        dt_reader_add_next(r, slot, before);
        before[0] += places;
    }
}

/* An observation as the slice has it. */
static void read_port(const dt_buffer_reader *r, uint32_t port, bool is_next, void *out)
{
    const dt_obs_port *o = &r->b->l->obs[port];
    if (dt_obs_is_lists(o)) {
        dt_buffer_read_list_pointers(r, port, is_next, out);
    } else if (r->b->length[o->symbol] != NULL) {
        dt_buffer_read_lists(r, port, out);
    } else if (is_next) {
        read_next_index(r, port, out);
    } else if (o->steps > 0) {
        read_steps(r, port, out);
    } else {
        read_obs(r, port, out);
    }
}

static void read_kept_values(const dt_buffer_reader *r, uint32_t k, void *out)
{
    const dt_buffer *b = r->b;
    const size_t bytes = b->kept_columns[k] * sizeof(float);
    int64_t size[1 + DT_ENV_MAX_SYMBOLS];
    if (b->kept[k] != NULL) {
        read_places(r, b->kept[k], bytes, out);
    } else {
        dt_buffer_get_sizes(b, r->which, r->index, r->n, size);
        memset(out, 0, (size_t)size[0] * bytes);
    }
}

static void read_mask(const dt_buffer_reader *r, float *out)
{
    const dt_buffer *b = r->b;
    const uint32_t A = b->l->spec.n_agents, n = b->l->n_choices;
    for (uint32_t j = 0; j < r->n; j++) {
        const size_t slot = dt_reader_slot(r, j);
        for (size_t at = slot * A; at < (slot + 1) * A; at++) {
            if ((b->row[at] & r->which) != 0) {
                for (uint32_t c = 0; c < n; c++) {
                    *out++ = b->mask[at * n + c];
                }
            }
        }
    }
}

static bool is_any_allowed(const uint8_t *mask, size_t n)
{
    for (size_t c = 0; c < n; c++) {
        if (mask[c] != 0) {
            return true;
        }
    }
    return false;
}

/* Of an agent that does not act in the step after, the mask need not allow anything: what forbids all choices
 * of a head, and that of terminated agents, allows all of them. */
static void read_next_mask(const dt_buffer_reader *r, float *out)
{
    const dt_buffer *b = r->b;
    const dt_env_spec *s = &b->l->spec;
    const size_t A = s->n_agents, n = b->l->n_choices;
    for (uint32_t j = 0; j < r->n; j++) {
        const size_t slot = dt_reader_slot(r, j);
        for (size_t at = slot * A; at < (slot + 1) * A; at++) {
            const uint8_t *mask = b->mask + (at + b->d.instances * A) * n;
            for (uint32_t h = 0; h < s->n_heads && (b->row[at] & r->which) != 0; h++) {
                const size_t C = (size_t)s->choices[h];
                const bool is_open = (b->flag[at] & DT_STEP_TERMINATED) != 0 || !is_any_allowed(mask, C);
                for (size_t c = 0; c < C; c++) {
                    *out++ = is_open || mask[c] != 0;
                }
                mask += C;
            }
        }
    }
}

/* How a step ended the agent, or that what follows it is not known: 1, else 0. */
static void read_end_flags(const dt_buffer_reader *r, uint8_t flag, float *out)
{
    const dt_buffer *b = r->b;
    const size_t A = b->l->spec.n_agents;
    for (uint32_t j = 0; j < r->n; j++) {
        const size_t slot = dt_reader_slot(r, j);
        for (size_t at = slot * A; at < (slot + 1) * A; at++) {
            if ((b->row[at] & r->which) != 0) {
                const bool is_open = flag == DT_STEP_TRUNCATED && (b->report[at] & DT_REPORT_OPEN) != 0 &&
                                     (b->flag[at] & DT_STEP_TERMINATED) == 0;
                *out++ = is_open || (b->flag[at] & flag) != 0;
            }
        }
    }
}

/* The discount of what follows a row; where it was terminated, nothing. */
static void read_discount(const dt_buffer_reader *r, float *out)
{
    const dt_buffer *b = r->b;
    const size_t A = b->l->spec.n_agents;
    for (uint32_t j = 0; j < r->n; j++) {
        const size_t slot = dt_reader_slot(r, j);
        for (size_t at = slot * A; at < (slot + 1) * A; at++) {
            if ((b->row[at] & r->which) != 0) {
                *out++ = (b->flag[at] & DT_STEP_TERMINATED) != 0 ? 0 : (float)b->d.gamma;
            }
        }
    }
}

/* Rows of a round count alike. */
static void read_weight(const dt_buffer_reader *r, float *out)
{
    for (uint32_t j = 0; j < r->n; j++) {
        for (int32_t n = dt_reader_places(r, dt_reader_slot(r, j)); n > 0; n--) {
            *out++ = 1;
        }
    }
}

static void read_places_of_rows(const dt_buffer_reader *r, int32_t *out)
{
    const dt_buffer *b = r->b;
    const size_t A = b->l->spec.n_agents;
    for (uint32_t j = 0; j < r->n; j++) {
        const size_t slot = dt_reader_slot(r, j);
        for (size_t a = 0; a < A; a++) {
            if ((b->row[slot * A + a] & r->which) != 0) {
                *out++ = (int32_t)a;
            }
        }
    }
}

/* Per row: the row of each place of its instance, -1 where there is none. */
static void read_team_rows(const dt_buffer_reader *r, int32_t *out)
{
    const size_t A = r->b->l->spec.n_agents;
    int32_t first = 0;
    for (uint32_t j = 0; j < r->n; j++) {
        const size_t slot = dt_reader_slot(r, j);
        const int32_t rows = dt_reader_places(r, slot);
        int32_t row = first;
        for (size_t a = 0; a < A && rows > 0; a++) {
            out[a] = (r->b->row[slot * A + a] & r->which) != 0 ? row++ : -1;
        }
        for (int32_t i = 1; i < rows; i++) {
            memcpy(out + (size_t)i * A, out, A * sizeof(*out));
        }
        out += (size_t)rows * A;
        first = row;
    }
}

/* What the agents at the other places of the instance do: n numbers of each, zeros at its own place and where none
 * acts. */
static void read_actions_of_others(const dt_buffer_reader *r, uint32_t kind, size_t n, float *out)
{
    const dt_buffer *b = r->b;
    const size_t A = b->l->spec.n_agents;
    for (uint32_t j = 0; j < r->n; j++) {
        const size_t begin = dt_reader_slot(r, j) * A, end = begin + A;
        for (size_t at = begin; at < end; at++) {
            if ((b->row[at] & r->which) == 0) {
                continue;
            }
            memset(out, 0, A * n * sizeof(*out));
            for (size_t other = begin; other < end; other++, out += n) {
                if (other == at || (b->row[other] & DT_ROW_ACTS) == 0) {
                    continue;
                }
                if (kind == FIELD_OTHERS) {
                    out[b->act_i[other]] = 1;
                } else {
                    memcpy(out, b->executed_f + other * n, n * sizeof(*out));
                }
            }
        }
    }
}

static void read_costs(const dt_buffer_reader *r, const float *planes, float *out)
{
    const dt_buffer *b = r->b;
    const uint32_t A = b->l->spec.n_agents, K = b->l->spec.n_costs;
    for (uint32_t j = 0; j < r->n; j++) {
        const size_t slot = dt_reader_slot(r, j);
        for (size_t at = slot * A; at < (slot + 1) * A; at++) {
            if ((b->row[at] & r->which) != 0) {
                for (uint32_t k = 0; k < K; k++) {
                    *out++ = planes[k * b->n_places + at];
                }
            }
        }
    }
}

/* The sample's key names its use (epoch and position); without one, the row's place in the run does. */
static void read_keys(const dt_buffer_reader *r, int64_t *out)
{
    const dt_buffer *b = r->b;
    const uint32_t A = b->l->spec.n_agents;
    for (uint32_t j = 0; j < r->n; j++) {
        const size_t slot = dt_reader_slot(r, j);
        const bool is_used = r->key != NULL && r->key[j] != 0;
        const uint64_t base = is_used ? r->key[j] : (b->key_base + global_slot(r, j)) * A;
        for (uint32_t a = 0; a < A; a++) {
            if ((b->row[slot * A + a] & r->which) != 0) {
                *out++ = (int64_t)((base + a) & INT64_MAX);
            }
        }
    }
}

static void read_field(const dt_buffer_reader *r, const dt_buffer_field *f, void *out)
{
    const dt_buffer *b = r->b;
    const dt_env_spec *s = &b->l->spec;
    switch (f->kind) {
    case FIELD_OBS:
    case FIELD_STEPS:
        read_port(r, f->port, false, out);
        break;
    case FIELD_HISTORY:
    case FIELD_PRESENT:
        read_history(r, f, out);
        break;
    case FIELD_CARRIED:
    case FIELD_CARRIED_HISTORY:
        read_carried(r, f, out);
        break;
    case FIELD_ACTION_I:
        read_places(r, b->act_i, s->n_heads * sizeof(int32_t), out);
        break;
    case FIELD_ACTION_F:
        read_places(r, b->act_f, s->n_continuous * sizeof(float), out);
        break;
    case FIELD_MASK:
        read_mask(r, out);
        break;
    case FIELD_LOG_PROB:
        read_places(r, b->log_prob, sizeof(float), out);
        break;
    case FIELD_VALUE:
        read_places(r, b->value, sizeof(float), out);
        break;
    case FIELD_ADVANTAGE:
        read_places(r, b->advantage, sizeof(float), out);
        break;
    case FIELD_TARGET:
        read_places(r, b->target, sizeof(float), out);
        break;
    case FIELD_COST_VALUE:
        read_costs(r, b->cost_value, out);
        break;
    case FIELD_COST_ADVANTAGE:
        read_costs(r, b->cost_advantage, out);
        break;
    case FIELD_COST_TARGET:
        read_costs(r, b->cost_target, out);
        break;
    case FIELD_NEXT_INDEX:
        read_port(r, f->port, true, out);
        break;
    case FIELD_NEXT:
    case FIELD_NEXT_PRESENT:
        read_next_rows(r, f, out);
        break;
    case FIELD_COST_IN:
        read_costs(r, b->cost_in, out);
        break;
    case FIELD_REWARD:
        read_places(r, b->reward, sizeof(float), out);
        break;
    case FIELD_COST:
        read_costs(r, b->cost, out);
        break;
    case FIELD_TERMINATED:
        read_end_flags(r, DT_STEP_TERMINATED, out);
        break;
    case FIELD_TRUNCATED:
        read_end_flags(r, DT_STEP_TRUNCATED, out);
        break;
    case FIELD_EXECUTED:
        read_places(r, b->executed_f, s->n_continuous * sizeof(float), out);
        break;
    case FIELD_PLACE:
        read_places_of_rows(r, out);
        break;
    case FIELD_NEXT_MASK:
        read_next_mask(r, out);
        break;
    case FIELD_OTHERS:
        read_actions_of_others(r, f->kind, b->l->n_choices, out);
        break;
    case FIELD_OTHERS_F:
        read_actions_of_others(r, f->kind, s->n_continuous, out);
        break;
    case FIELD_DISCOUNT:
        read_discount(r, out);
        break;
    case FIELD_WEIGHT:
        read_weight(r, out);
        break;
    case FIELD_TEAM_ROWS:
        read_team_rows(r, out);
        break;
    case FIELD_ANNOTATION:
        read_places(r, b->annotation[f->port], b->annotation_columns[f->port] * sizeof(float), out);
        break;
    case FIELD_KEPT:
        read_kept_values(r, f->port, out);
        break;
    default:
        read_keys(r, out);
        break;
    }
}

void dt_buffer_pack_samples(const dt_buffer *b, uint32_t which, const uint64_t *index, const uint64_t *key, uint32_t n,
                            uint64_t want, void *const *out)
{
    const dt_buffer_reader r = {
        .b = b, .index = index, .key = key, .n = n, .which = which, .first = dt_buffer_slot(b, 0, 0)};
    for (uint32_t f = 0; f < b->n_fields; f++) {
        if ((want >> f & 1) != 0) {
            read_field(&r, &b->field[f], out[f]);
        }
    }
}

bool dt_buffer_is_observed(const dt_buffer *b, uint32_t f)
{
    switch (b->field[f].kind) {
    case FIELD_OBS:
    case FIELD_STEPS:
    case FIELD_HISTORY:
    case FIELD_PRESENT:
    case FIELD_MASK:
    case FIELD_ROW_KEY:
    case FIELD_PLACE:
    case FIELD_TEAM_ROWS:
    case FIELD_CARRIED:
    case FIELD_CARRIED_HISTORY:
        return true;
    default:
        return false;
    }
}

/* ---- as data ----------------------------------------------------------------------------------------------------- */

static const dt_port *data_fields(const void *self, uint32_t *n_p)
{
    const dt_buffer *b = self;
    *n_p = b->n_fields;
    return b->port;
}

static const char *const *data_symbols(const void *self, uint32_t *n_p)
{
    const dt_buffer *b = self;
    *n_p = 1 + b->l->spec.n_symbols;
    return b->symbol;
}

static dt_status data_count(const void *self, uint64_t *n_p)
{
    const dt_buffer *b = self;
    *n_p = (uint64_t)b->d.steps * b->d.instances;
    return DT_OK;
}

/* Before anything was collected a sample may turn out as large as it can be. */
static dt_status data_sizes(const void *self, const uint64_t *index, uint32_t n, int64_t *size)
{
    const dt_buffer *b = self;
    if (b->is_filled) {
        dt_buffer_get_sizes(b, DT_ROW_ACTS, index, n, size);
        return DT_OK;
    }
    for (int32_t k = 0; k <= (int32_t)b->l->spec.n_symbols; k++) {
        size[k] = dt_buffer_max_rows(b, k) * n;
    }
    return DT_OK;
}

static dt_status data_read(void *self, const uint64_t *index, const uint64_t *key, uint32_t n, void *const *out)
{
    const dt_buffer *b = self;
    if (!b->is_filled) {
        return DT_FAIL(DT_EPLUGIN, "the rollout's data is read before anything was collected");
    }
    uint64_t want = 0;
    for (uint32_t f = 0; f < b->n_fields; f++) {
        want |= out[f] != NULL ? UINT64_C(1) << f : 0;
    }
    dt_buffer_pack_samples(b, DT_ROW_ACTS, index, key, n, want, out);
    return DT_OK;
}

const dt_data_ops dt_buffer_data = {.struct_size = sizeof(dt_data_ops),
                                    .fields = data_fields,
                                    .symbols = data_symbols,
                                    .count = data_count,
                                    .sizes = data_sizes,
                                    .read = data_read};
