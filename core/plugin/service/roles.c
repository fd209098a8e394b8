/* SPDX-License-Identifier: Apache-2.0 */
#include <config.h>

#include "plugin/service/roles.h"

#include "base/err.h"

#include <string.h>

static uint32_t find_role(const dt_roles *r, const char *name)
{
    uint32_t i = 0;
    while (i < r->n && strcmp(r->name[i], name) != 0) {
        i++;
    }
    return i;
}

dt_status dt_roles_add(dt_roles *r, const char *name)
{
    const size_t bytes = strlen(name) + 1;
    if (find_role(r, name) < r->n) {
        return DT_OK;
    }
    if (bytes > DT_ROLE_BYTES) {
        return DT_FAIL(DT_EDATA, "the role %s is longer than %d bytes", name, DT_ROLE_BYTES - 1);
    }
    if (r->n == DT_ROLES_MAX) {
        return DT_FAIL(DT_EDATA, "the role %s is one more than %d", name, DT_ROLES_MAX);
    }
    memcpy(r->name[r->n++], name, bytes);
    return DT_OK;
}

void dt_roles_remove(dt_roles *r, const char *name)
{
    const uint32_t i = find_role(r, name);
    if (i < r->n) {
        memmove(r->name[i], r->name[i + 1], (size_t)(--r->n - i) * DT_ROLE_BYTES);
    }
}

bool dt_roles_contain(const dt_roles *r, const char *name)
{
    return find_role(r, name) < r->n;
}

bool dt_role_is_listed(const char *const *list, const char *name)
{
    for (; list != NULL && *list != NULL; list++) {
        if (strcmp(*list, name) == 0) {
            return true;
        }
    }
    return false;
}

bool dt_tensor_has_role(const char *tensor, const char *role)
{
    const size_t n = strlen(role);
    return strncmp(tensor, role, n) == 0 && tensor[n] == '.';
}

const dt_port *dt_port_find(const dt_port *p, uint32_t n, const char *name)
{
    for (uint32_t i = 0; i < n; i++) {
        if (strcmp(p[i].name, name) == 0) {
            return &p[i];
        }
    }
    return NULL;
}
