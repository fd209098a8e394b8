/* SPDX-License-Identifier: Apache-2.0
 *
 * See limits.h.
 */
#include "limits.h"

#include "dtrain/helpers.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { NAME_MAX_BYTES = 64 };

static dt_status refuse(const dt_host *h, const char *phase, const dt_wiring *w, const char *why, const char *word)
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

static dt_status read_one(limits *l, const dt_host *h, const char *phase, const dt_wiring *w, const char *word)
{
    const dt_env_spec *e = w->spec;
    const char *colon = strchr(word, ':');
    char *end = NULL;
    const double limit = colon != NULL ? strtod(colon + 1, &end) : 0;
    if (colon == NULL || end == colon + 1 || *end != '\0' || !(limit >= 0 && limit < INFINITY)) {
        return refuse(h, phase, w, "cannot read", word);
    }
    for (uint32_t k = 0; k < e->n_costs; k++) {
        if (strlen(e->costs[k]) == (size_t)(colon - word) && strncmp(e->costs[k], word, (size_t)(colon - word)) == 0) {
            if (l->has[k]) {
                return refuse(h, phase, w, "a second limit in", word);
            }
            l->has[k] = 1;
            l->at[k] = limit;
            return DT_OK;
        }
    }
    return refuse(h, phase, w, "no such cost as in", word);
}

dt_status limits_read(limits *l, const dt_host *h, const char *phase, const dt_wiring *w, const char *text)
{
    if (text[strspn(text, " ,")] == '\0') {
        return refuse(h, phase, w, "nothing is limited by", text);
    }
    while (*(text += strspn(text, " ,")) != '\0') {
        char word[NAME_MAX_BYTES];
        const size_t n = strcspn(text, " ,");
        snprintf(word, sizeof(word), "%.*s", (int)n, text);
        if (n >= sizeof(word)) {
            return refuse(h, phase, w, "too long a word", word);
        }
        DT_TRY_H(read_one(l, h, phase, w, word));
        text += n;
    }
    return DT_OK;
}
