/* SPDX-License-Identifier: Apache-2.0
 *
 * Which options that influence results differ from those of an earlier configuration, as dtrain wrote it. See config.h.
 */
#include <config.h>

#include "config/options.h"
#include "config/tree.h"
#include "base/err.h"
#include "base/str.h"

#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum { PATH_BYTES = 256 };

typedef struct comparison {
    const dt_config *c;
    dt_config *earlier;
    dt_str *out;
} comparison;

static bool is_one_of(const char *word, const char *words)
{
    const size_t n = strlen(word);
    for (const char *w = words; *w != '\0'; w += strspn(w, " ")) {
        const size_t bytes = strcspn(w, " ");
        if (bytes == n && strncmp(w, word, n) == 0) {
            return true;
        }
        w += bytes;
    }
    return false;
}

/* Has no phase a use for it? Host options that another one switches off, and when a phase is evaluated or ends. */
static bool is_unused_option(const dt_config *c, const char *section, const char *key)
{
    static const struct {
        const char *section, *keys, *by_section, *by_key, *values; /* of use with one of these */
    } rule[] = {
        {"training", "beta1 beta2 eps", "training", "optimizer", "adam adamw"},
        {"training", "momentum", "training", "optimizer", "sgd"},
        {"training", "step_size step_gamma", "training", "scheduler", "step"},
        {"training", "t_max eta_min", "training", "scheduler", "cosine linear"},
        {"amp",
         "dtype scaling initial_scale static_scale min_scale max_scale growth_factor backoff_factor growth_interval "
         "hysteresis hysteresis_mode max_skips",
         "amp", "enabled", "true"},
    };
    if (strcmp(section, "stop") == 0 || (strcmp(section, "training") == 0 && strcmp(key, "eval_interval") == 0)) {
        return true; /* the weights of a step are the same */
    }
    for (size_t i = 0; i < sizeof(rule) / sizeof(rule[0]); i++) {
        if (strcmp(section, rule[i].section) != 0 || !is_one_of(key, rule[i].keys)) {
            continue;
        }
        for (int64_t phase = 0; phase < dt_config_n_phases(c); phase++) {
            const dt_node *n = dt_config_effective(c, phase, rule[i].by_section, rule[i].by_key);
            if (n == NULL || n->text == NULL || is_one_of(n->text, rule[i].values)) {
                return false;
            }
        }
        return true;
    }
    return false;
}

static bool is_equal_value(const dt_node *a, const dt_node *b)
{
    const dt_node *p = a->first, *q = b->first;
    double x = 0, y = 0;
    while (p != NULL && q != NULL && is_equal_value(p, q)) {
        p = p->next;
        q = q->next;
    }
    if (p != NULL || q != NULL || a->text == NULL || b->text == NULL || a->kind == DT_NODE_LIST) {
        return p == NULL && q == NULL && a->kind == b->kind;
    }
    return strcmp(a->text, b->text) == 0 ||
           (dt_parse_f64(a->text, &x) && dt_parse_f64(b->text, &y) && !(x < y) && !(x > y));
}

/* Its value in the earlier configuration, or else the default, in canonical form; NULL: none that its option takes. */
static const dt_node *earlier_value(dt_config *c, dt_node *was, const char *path, const dt_option *o)
{
    const dt_origin origin = {.layer = DT_FROM_RUN};
    if (was == NULL && o != NULL && o->dfl != NULL &&
        dt_node_new(c, DT_NODE_PLAIN, o->name, o->dfl, &origin, &was) < 0) {
        was = NULL;
    }
    if (was != NULL && o != NULL && dt_option_normalise(c, o, path, was) < 0) {
        was = NULL;
    }
    return was;
}

/* Below the root of the earlier one: "training.epochs", "phases.0.stop.time". NULL: it has none. */
static dt_node *find_earlier_node(const dt_config *c, const char *path)
{
    dt_node *n = (dt_node *)(uintptr_t)&c->root;
    for (const char *at = path; n != NULL && *at != '\0';) {
        char key[PATH_BYTES];
        const size_t bytes = strcspn(at, ".");
        int64_t i = 0;
        snprintf(key, sizeof(key), "%.*s", (int)bytes, at);
        n = n->kind == DT_NODE_LIST && dt_parse_i64(key, &i) ? dt_node_at(n, i) : dt_node_find(n, key);
        at += bytes + (at[bytes] == '.');
    }
    return n;
}

/* Of a section's key: in one phase, or in any (-1). */
static bool differs_in_phases(const comparison *x, int64_t phase, const char *section, const char *key,
                              const dt_option *o)
{
    const int64_t begin = phase >= 0 ? phase : 0, end = phase >= 0 ? phase + 1 : dt_config_n_phases(x->c);
    for (int64_t i = begin; i < end; i++) {
        const dt_node *is = dt_config_effective(x->c, i, section, key);
        const dt_node *was = earlier_value(x->earlier, dt_config_effective(x->earlier, i, section, key), key, o);
        if (is != NULL && (was == NULL || !is_equal_value(is, was))) {
            return true;
        }
    }
    return false;
}

/* A value for all phases, or of a phase. Where both are there, what holds is compared once. */
static void compare_value(void *user, const char *path, const dt_node *n, const dt_option *o)
{
    const comparison *x = user;
    char section[PATH_BYTES];
    int64_t phase = -1;
    int used = 0;
    const char *own = sscanf(path, "phases.%" SCNd64 ".%n", &phase, &used) == 1 && used > 0 ? path + used : path;
    const char *dot = strchr(own, '.'), *key = dot != NULL ? dot + 1 : own;
    snprintf(section, sizeof(section), "%.*s", (int)(dot != NULL ? dot - own : 0), own);
    if (o == &dt_schema_phase[0] || is_unused_option(x->c, section, key)) {
        return;
    }
    bool is = false;
    if (dot == NULL || dt_config_n_phases(x->c) == 0) {
        const dt_node *was = earlier_value(x->earlier, find_earlier_node(x->earlier, path), path, o);
        is = was == NULL || !is_equal_value(n, was);
    } else {
        is = (own == path || find_earlier_node(x->c, own) == NULL) && differs_in_phases(x, phase, section, key, o);
    }
    if (is) {
        dt_str_addf(x->out, "%s%s", x->out->bytes > 0 ? ", " : "", path);
    }
}

dt_status dt_config_list_differences(const dt_config *c, const char *earlier, dt_str *out)
{
    comparison x = {.c = c, .out = out};
    dt_config *was = NULL;
    dt_status st = dt_config_create(&was);
    if (st == DT_OK) {
        st = dt_config_read_file(was, DT_FROM_RUN, earlier);
    }
    if (st == DT_OK) {
        x.earlier = was;
        dt_config_each_result(c, compare_value, &x);
        dt_error_clear(); /* of values that their options do not take any more: these differ */
        st = dt_str_status(out);
    }
    dt_config_destroy(was);
    return st;
}
