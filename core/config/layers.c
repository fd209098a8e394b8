/* SPDX-License-Identifier: Apache-2.0
 *
 * What a layer sets in a phase: values of it that hold there, whatever else is set.
 */
#include <config.h>

#include "config/schema.h"
#include "config/tree.h"

#include "base/err.h"

#include <string.h>

static uint32_t count_layer_values(const dt_node *n, dt_layer layer)
{
    uint32_t sum = 0;
    if (n == NULL || n->kind != DT_NODE_GROUP) {
        return n != NULL && n->origin.layer == layer;
    }
    for (const dt_node *child = n->first; child != NULL; child = child->next) {
        sum += count_layer_values(child, layer);
    }
    return sum;
}

/* id [n]: of a component, as the configuration names it. */
static bool is_section_of_id(const char *section, const char *id, size_t n)
{
    static const char env[] = "env_"; /* "cartpole" is env_cartpole */
    const size_t skip = strncmp(section, env, sizeof(env) - 1) == 0 ? sizeof(env) - 1 : 0;
    return n > 0 && ((strlen(section) == n && memcmp(section, id, n) == 0) ||
                     (strlen(section + skip) == n && memcmp(section + skip, id, n) == 0));
}

/* Is that the section of something that the phase names by this key? */
static bool is_wired_by_key(const dt_config *c, int64_t phase, const char *key, const char *section)
{
    const char *id = "";
    dt_origin origin;
    if (dt_config_get(c, phase, key, &id, &origin) != DT_OK) {
        dt_error_clear();
        return false;
    }
    return is_section_of_id(section, id, strlen(id));
}

static bool is_section_of_mix(const dt_config *c, int64_t phase, const char *section)
{
    const dt_node *list = dt_config_effective(c, phase, "env", "mix");
    for (const dt_node *word = list != NULL ? list->first : NULL; word != NULL; word = word->next) {
        if (word->text != NULL && is_section_of_id(section, word->text, strcspn(word->text, ": "))) {
            return true;
        }
    }
    return false;
}

/* The phase's own section, dtrain's, and those of what it is wired to. */
static bool concerns_phase(const dt_config *c, int64_t phase, const char *section, const char *id)
{
    const char *role[DT_CONFIG_MAX_ROLES];
    const uint32_t n = dt_config_roles(c, role);
    if (strcmp(section, id) == 0 || dt_config_is_host_section(section) ||
        is_wired_by_key(c, phase, "env.id", section) || is_section_of_mix(c, phase, section) ||
        is_wired_by_key(c, phase, "data.source", section)) {
        return strcmp(section, "phases") != 0;
    }
    for (uint32_t i = 0; i < n; i++) {
        if (strcmp(dt_config_model(c, phase, role[i]), section) == 0) {
            return true;
        }
    }
    return false;
}

void dt_config_list_unused(const dt_config *c, int64_t phase, const char *id, dt_layer layer, dt_str *out)
{
    dt_str_clear(out);
    for (const dt_node *n = c->root.first; n != NULL; n = n->next) {
        if (strcmp(n->key, id) == 0 && count_layer_values(n, layer) > 0) {
            dt_str_clear(out);
            return;
        }
        if (!concerns_phase(c, phase, n->key, id) && count_layer_values(n, layer) > 0) {
            dt_str_addf(out, "%s%s", out->bytes > 0 ? ", " : "", n->key);
        }
    }
}

uint32_t dt_config_count_values(const dt_config *c, int64_t phase, const char *id, dt_layer layer)
{
    uint32_t sum = count_layer_values(dt_config_phase_node(c, phase), layer);
    for (const dt_node *n = c->root.first; n != NULL; n = n->next) {
        if (concerns_phase(c, phase, n->key, id)) {
            sum += count_layer_values(n, layer);
        }
    }
    return sum;
}
