/* SPDX-License-Identifier: Apache-2.0
 *
 * models.<role>: the roles that there are. The host wires four, and knows those of the other models that come with it
 * (config.c); a phase may wire any other by its defaults ("models.actor=actor_mlp"), and a component declares its own.
 */
#include <config.h>

#include "config/tree.h"

#include <string.h>

static uint32_t add_role(const char **role, uint32_t n, const char *name)
{
    for (uint32_t i = 0; i < n; i++) {
        if (strcmp(role[i], name) == 0) {
            return n;
        }
    }
    if (n < DT_CONFIG_MAX_ROLES) {
        role[n++] = name;
    }
    return n;
}

static uint32_t add_role_keys(const dt_node *models, const char **role, uint32_t n)
{
    for (const dt_node *m = models != NULL ? models->first : NULL; m != NULL; m = m->next) {
        n = m->text != NULL && *m->text != '\0' ? add_role(role, n, m->key) : n;
    }
    return n;
}

uint32_t dt_config_roles(const dt_config *c, const char *role[DT_CONFIG_MAX_ROLES])
{
    const dt_section *s = dt_section_find(c, "models");
    const dt_node *phases = dt_node_find(&c->root, "phases");
    uint32_t n = 0;
    for (const dt_option *o = s != NULL ? s->table : NULL; o != NULL && o->name != NULL; o++) {
        n = add_role(role, n, o->name);
    }
    for (uint32_t i = 0; i < c->n_wired; i++) {
        n = add_role(role, n, c->wired[i]);
    }
    n = add_role_keys(dt_node_find(&c->root, "models"), role, n);
    for (const dt_node *p = phases != NULL ? phases->first : NULL; p != NULL; p = p->next) {
        n = add_role_keys(dt_node_find(p, "models"), role, n);
    }
    return n;
}

bool dt_config_has_role(const dt_config *c, const char *name)
{
    const char *role[DT_CONFIG_MAX_ROLES];
    const uint32_t n = dt_config_roles(c, role);
    for (uint32_t i = 0; i < n; i++) {
        if (strcmp(role[i], name) == 0) {
            return true;
        }
    }
    return false;
}

void dt_config_role_names(const dt_config *c, dt_str *out)
{
    const char *role[DT_CONFIG_MAX_ROLES];
    const uint32_t n = dt_config_roles(c, role);
    for (uint32_t i = 0; i < n; i++) {
        dt_str_addf(out, "%s%s", i > 0 ? ", " : "", role[i]);
    }
}
