/* SPDX-License-Identifier: Apache-2.0 */
#include <config.h>

#include "config/evaluation_env.h"

#include "base/err.h"
#include "config/tree.h"

#include <string.h>

static const char key_path[] = "evaluation.env";

/* "option=value" of the list as the value that it would be in the section. */
static dt_status read_override(dt_config *c, const dt_section *s, const dt_node *list, const char *text,
                               dt_node **out_p)
{
    const char *equals = strchr(text, '=');
    if (equals == NULL || equals == text) {
        return dt_node_fail(list, key_path,
                            "\"%s\" is not option=value; put a value with spaces or commas into a list: "
                            "[\"option=a b\", \"other=1\"]",
                            text);
    }
    const char *key = dt_pool_dup(c, text, strcspn(text, " ="));
    if (key == NULL) {
        return DT_FAIL(DT_ENOMEM, "out of memory for %s", key_path);
    }
    const char *value = equals + 1 + strspn(equals + 1, " ");
    DT_TRY(dt_node_new(c, DT_NODE_PLAIN, key, value, &list->origin, out_p));
    (*out_p)->key = key;
    return dt_section_normalise_one(c, s, *out_p, key_path);
}

/* What the list sets of each option of the table: said [n_options]. */
static dt_status read_overrides(dt_config *c, int64_t phase, const dt_section *s, const dt_node **said)
{
    const dt_node *list = dt_config_effective(c, phase, "evaluation", "env");
    for (const dt_node *word = list != NULL ? list->first : NULL; word != NULL; word = word->next) {
        dt_node *value = NULL;
        DT_TRY(read_override(c, s, list, word->text, &value));
        const dt_option *o = dt_option_find(s->table, value->key);
        if (said[o - s->table] != NULL) {
            return dt_node_fail(list, key_path, "it sets %s twice", o->name);
        }
        said[o - s->table] = value;
    }
    return DT_OK;
}

static dt_status default_value_of(dt_config *c, const dt_section *s, const dt_option *o, const dt_node **out_p)
{
    const dt_origin origin = {DT_FROM_PLUGIN, s->plugin, 0};
    dt_node *value = NULL;
    DT_TRY(dt_node_new(c, DT_NODE_PLAIN, o->name, o->dfl, &origin, &value));
    DT_TRY(dt_option_normalise(c, o, o->name, value));
    *out_p = value;
    return DT_OK;
}

dt_status dt_config_evaluation_env(dt_config *c, int64_t phase, const char *section,
                                   dt_evaluation_option out[DT_EVALUATION_OPTIONS_MAX], uint32_t *n_p)
{
    dt_evaluation_opts checked;
    DT_TRY(dt_config_evaluation(c, phase, &checked)); /* the list is one from here on */
    const dt_section *s = dt_section_find(c, section);
    size_t n_options = 0;
    *n_p = 0;
    while (s != NULL && s->table != NULL && s->table[n_options].name != NULL) {
        n_options++;
    }
    const dt_node **said = dt_pool_alloc(c, (n_options + 1) * sizeof(*said));
    if (said == NULL) {
        return DT_FAIL(DT_ENOMEM, "out of memory for %s", key_path);
    }
    static const dt_option none[] = {DT_OPTION_END};
    const dt_section bare = {.name = section, .table = none};
    DT_TRY(read_overrides(c, phase, n_options > 0 ? s : &bare, said)); /* no options: whatever it sets is unknown */
    for (size_t i = 0; i < n_options; i++) {
        const dt_option *o = &s->table[i];
        const dt_node *value = said[i];
        if (value == NULL && (o->flags & DT_OPT_TRAINING) != 0 && o->dfl != NULL) {
            DT_TRY(default_value_of(c, s, o, &value));
        }
        if (value != NULL && *n_p == DT_EVALUATION_OPTIONS_MAX) {
            return DT_FAIL(DT_ECONFIG, "%s: more than %d options of %s have values of their own in evaluations",
                           key_path, DT_EVALUATION_OPTIONS_MAX, section);
        }
        if (value != NULL) {
            out[(*n_p)++] = (dt_evaluation_option){o, value->text, value->origin, said[i] != NULL};
        }
    }
    return DT_OK;
}
