/* SPDX-License-Identifier: Apache-2.0 */
#include <config.h>

#include "rl/evaluate/risk.h"

#include "base/err.h"
#include "base/mem.h"
#include "engine/graph/ir.h"

#include <math.h>
#include <string.h>

struct dt_risk {
    dt_policy *policy;
    const dt_view *output;
    uint64_t want;                     /* fields it reads, as bits */
    uint32_t symbol;                   /* whose rows it speaks of */
    uint32_t n_symbols;                /* ragged ones */
    void *field[DT_BUFFER_MAX_FIELDS]; /* of one sample */
    void *arena;
    size_t arena_bytes, policy_bytes;
    float *risk;
};

static dt_status map_fields(dt_risk *s, const dt_samples *source, const int64_t *cap)
{
    for (int pass = 0; pass < 2; pass++) {
        size_t at = 0;
        for (uint32_t f = 0; f < source->n_fields; f++) {
            const bool is_read = (s->want >> f & 1) != 0;
            s->field[f] = is_read && pass == 1 ? (char *)s->arena + at : NULL;
            if (is_read) {
                at += (dt_samples_field_bytes(source, f, cap) + 63) / 64 * 64;
            }
        }
        if (pass == 0) {
            s->arena_bytes = at;
            DT_TRY(dt_arena_map(at, &s->arena));
        }
    }
    return DT_OK;
}

static dt_status check_output(dt_risk *s, const dt_rollout *r, const int64_t *cap)
{
    const dt_env_spec *spec = &r->env->layout.spec;
    while (s->symbol < spec->n_symbols && strcmp(spec->symbols[s->symbol].name, "N") != 0) {
        s->symbol++;
    }
    s->n_symbols = spec->n_symbols;
    if (s->symbol == spec->n_symbols || s->output->dtype != DT_F32 || s->output->rank != 1) {
        return DT_BREACH(DT_ESHAPE, "the phase's output \"picture/risk\" is not [N] f32 of environment %s",
                         r->env->comp->desc.id);
    }
    for (uint32_t f = 0; f < r->buffer.n_fields; f++) {
        s->want |= dt_policy_reads_field(s->policy, r->buffer.field[f].name) ? UINT64_C(1) << f : 0;
    }
    if (r->env->layout.lists[1 + s->symbol] > 0) {
        return DT_FAIL(DT_EUNSUPPORTED,
                       "the phase's output \"picture/risk\" is of rows N, of which each agent in %s has a list of its "
                       "own: pictures cannot map vehicles to rows",
                       r->env->comp->desc.id);
    }
    s->risk = dt_alloc_n((size_t)cap[1 + s->symbol] + 1, sizeof(*s->risk));
    return s->risk != NULL ? map_fields(s, &r->data.source, cap) : DT_FAIL(DT_ENOMEM, "out of memory for risks");
}

/* As the phase recorded it for learning, so that nothing is made where there is nothing to see. */
static bool is_risk_recorded(const dt_trainer *t)
{
    const dt_ir *ir = dt_graph_ir(dt_trainer_graph(t));
    for (uint32_t i = 0; i < ir->n_outputs; i++) {
        if (strcmp(ir->output[i].name, "picture/risk") == 0) {
            return true;
        }
    }
    return false;
}

dt_status dt_risk_open(dt_rollout *r, dt_trainer *t, dt_risk **out_p)
{
    int64_t cap[2 + DT_ENV_MAX_SYMBOLS];
    dt_samples acting = r->data.source;
    acting.n_fields -= r->d.n_kept; /* what acting computes is not available here */
    const int32_t n = (int32_t)r->env->layout.spec.n_symbols;
    *out_p = NULL;
    if (!is_risk_recorded(t)) {
        return DT_OK; /* not even a graph is recorded, whose arenas were not planned */
    }
    dt_risk *s = dt_alloc(sizeof(*s));
    if (s == NULL) {
        return DT_FAIL(DT_ENOMEM, "out of memory for risks");
    }
    for (int32_t k = 0; k <= n; k++) {
        cap[k] = dt_layout_max_rows(&r->env->layout, k);
    }
    cap[n + 1] = 1;
    const dt_policy_desc d = {.source = &acting, .cap = cap, .pieces = 1, .places = 1, .pictures = true};
    dt_status st = dt_policy_create(t, &d, &s->policy);
    s->output = st == DT_OK ? dt_policy_output(s->policy, 0, "picture/risk") : NULL;
    if (s->output != NULL) {
        uint64_t resident = 0, mapped = 0;
        double mean[1 + DT_ENV_MAX_SYMBOLS] = {0};
        dt_policy_arenas_get(s->policy, mean, 1, &mapped, &resident);
        s->policy_bytes = mapped;
        st = check_output(s, r, cap);
    }
    if (st < 0 || s->output == NULL) {
        dt_risk_close(s);
        return st;
    }
    *out_p = s;
    return DT_OK;
}

void dt_risk_close(dt_risk *s)
{
    if (s != NULL) {
        dt_policy_destroy(s->policy);
        dt_arena_unmap(s->arena, s->arena_bytes);
        dt_free(s->risk);
        dt_free(s);
    }
}

uint64_t dt_risk_bytes(const dt_risk *s)
{
    return s != NULL ? s->policy_bytes + dt_arena_bytes(s->arena_bytes) : 0;
}

dt_status dt_risk_predict(dt_risk *s, const dt_buffer *b, uint64_t index, const float **risk_p, uint32_t *n_p)
{
    int64_t size[2 + DT_ENV_MAX_SYMBOLS] = {0};
    *risk_p = s->risk;
    *n_p = 0;
    dt_buffer_get_sizes(b, DT_ROW_SEEN, &index, 1, size);
    size[1 + s->n_symbols] = 1;
    if (size[0] == 0) {
        return DT_OK;
    }
    dt_buffer_pack_samples(b, DT_ROW_SEEN, &index, NULL, 1, s->want, s->field);
    DT_TRY(dt_policy_use_current_params(s->policy));
    DT_TRY(dt_policy_run(s->policy, 0, size, s->field));
    const float *logit = s->output->data;
    for (int64_t i = 0; i < size[1 + s->symbol]; i++) {
        s->risk[i] = 1 / (1 + expf(-logit[i]));
    }
    *n_p = (uint32_t)size[1 + s->symbol];
    return DT_OK;
}
