/* SPDX-License-Identifier: Apache-2.0 */
#include "limits.h"

#include "dtrain/helpers.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { NAME_MAX_BYTES = 64 };

static dt_status reject_limits(const dt_host *h, const char *phase, const dt_wiring *w, const char *why,
                               const char *word)
{
    const dt_env_spec *e = w->spec;
    char names[512] = "";
    for (uint32_t k = 0, at = 0; k < e->n_costs && at < sizeof(names); k++) {
        at += (uint32_t)snprintf(names + at, sizeof(names) - at, "%s%s", k > 0 ? ", " : "", e->costs[k]);
    }
    return DT_FAIL_H(h, DT_ECONFIG,
                     "%s.limits: %s \"%s\"; write cost:limit,..., limits at least 0, with the costs of "
                     "%s: %s",
                     phase, why, word, w->env_id, names[0] != '\0' ? names : "it has none");
}

static dt_status parse_limit(limits *l, const dt_host *h, const char *phase, const dt_wiring *w, const char *word)
{
    const dt_env_spec *e = w->spec;
    const char *colon = strchr(word, ':');
    char *end = NULL;
    const double limit = colon != NULL ? strtod(colon + 1, &end) : 0;
    if (colon == NULL || end == colon + 1 || *end != '\0' || !(limit >= 0 && limit < INFINITY)) {
        return reject_limits(h, phase, w, "cannot read", word);
    }
    for (uint32_t k = 0; k < e->n_costs; k++) {
        if (strlen(e->costs[k]) == (size_t)(colon - word) && strncmp(e->costs[k], word, (size_t)(colon - word)) == 0) {
            if (l->has[k]) {
                return reject_limits(h, phase, w, "a second limit in", word);
            }
            l->has[k] = 1;
            l->at[k] = limit;
            return DT_OK;
        }
    }
    return reject_limits(h, phase, w, "no such cost as in", word);
}

dt_status limits_parse(limits *l, const dt_host *h, const char *phase, const dt_wiring *w, const char *text)
{
    if (text[strspn(text, " ,")] == '\0') {
        return reject_limits(h, phase, w, "no cost is limited by", text);
    }
    while (*(text += strspn(text, " ,")) != '\0') {
        char word[NAME_MAX_BYTES];
        const size_t n = strcspn(text, " ,");
        snprintf(word, sizeof(word), "%.*s", (int)n, text);
        if (n >= sizeof(word)) {
            return reject_limits(h, phase, w, "too long a word", word);
        }
        DT_TRY_H(parse_limit(l, h, phase, w, word));
        text += n;
    }
    return DT_OK;
}

void limits_report(const limits *l, const dt_host *h, const dt_metrics_api *m, const dt_wiring *w)
{
    char key[96];
    for (uint32_t k = 0; k < w->spec->n_costs; k++) {
        if (l->has[k]) {
            snprintf(key, sizeof(key), "limits/%s", w->spec->costs[k]);
            m->report(h, key, &l->at[k], 0);
        }
    }
}

dt_status limits_fail_unevaluated(const dt_host *h, const char *phase, const dt_wiring *w, uint32_t k, double limit)
{
    const dt_env_spec *e = w->spec;
    char longest[96] = "";
    if (e->max_steps > 0) {
        snprintf(longest, sizeof(longest), " (an episode of %s has up to %u steps)", w->env_id, e->max_steps);
    }
    return DT_FAIL_H(h, DT_ECONFIG,
                     "%s.limits: the limit %g of cost %s was never evaluated, because no episode with this cost ended "
                     "while the phase trained%s: the limit had no effect; train for more rounds (%s.iterations), "
                     "collect more steps in each (%s.train_batch), or shorten the episodes",
                     phase, limit, e->costs[k], longest, phase, phase);
}

uint64_t limits_count_rounds(uint64_t rounds, double cost, double limit)
{
    return cost > limit ? rounds + 1 : 0;
}

int64_t limits_worst_excess(const limits *l, uint32_t n, double aim, const double *cost, double rows, double *excess_p)
{
    int64_t worst = -1;
    double most = -INFINITY;
    for (uint32_t k = 0; k < n; k++) {
        const double limit = aim * l->at[k];
        const double over = cost[k] - limit, scale = fmax(cost[k], limit);
        const double share = scale > 0 ? over / scale : 0;
        excess_p[k] = NAN;
        if (!l->has[k] || !(rows > 0)) {
            continue;
        }
        excess_p[k] = over / rows;
        if (share > most) {
            most = share;
            worst = k;
        }
    }
    return worst;
}
