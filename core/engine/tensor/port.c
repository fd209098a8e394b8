/* SPDX-License-Identifier: Apache-2.0 */
#include <config.h>

#include "engine/tensor/port.h"

#include "base/err.h"
#include "base/name.h"

#include <string.h>

/* Bytes of a token of dims, 0: it is none. */
static size_t token_bytes(const char *t, bool can_be_zero)
{
    char symbol[DT_NAME_MOST_SYMBOL + 1] = "";
    const size_t n = strcspn(t, " "), bare = n > 2 && t[n - 2] == '+' && t[n - 1] == '1' ? n - 2 : n;
    if (n > 0 && n < 16 && (t[0] != '0' || (can_be_zero && n == 1)) && strspn(t, "0123456789") == n) {
        return n;
    }
    memcpy(symbol, t, bare < sizeof(symbol) ? bare : 0);
    return dt_name_is(DT_NAME_SYMBOL, symbol) || dt_name_is(DT_NAME_WORD, symbol) ? n : 0;
}

static bool are_dims(const char *dims, bool can_be_zero)
{
    for (uint32_t rank = 0; *dims != '\0'; rank++) {
        const size_t n = token_bytes(dims, can_be_zero);
        if (n == 0 || rank == DT_MAX_DIMS) {
            return false;
        }
        dims += n;
        if (*dims == ' ' && *++dims == '\0') {
            return false;
        }
    }
    return true;
}

dt_status dt_ports_check(dt_status code, const char *id, const char *what, const dt_port *port, uint32_t n,
                         bool may_repeat)
{
    if (port == NULL && n > 0) {
        return DT_FAIL(code, "%s: %u %ss, but their list is NULL; pass the list, or 0 of them", id, n, what);
    }
    for (uint32_t i = 0; i < n; i++) {
        const dt_port *p = &port[i];
        DT_TRY(dt_name_check(code, DT_NAME_WORD, DT_NAME_MOST_PORT, p->name, "%s: %s %u", id, what, i));
        DT_TRY(dt_text_check(code, DT_PORT_MOST_DIMS, p->dims, "%s: dims of %s %s", id, what, p->name));
        if (!are_dims(p->dims, (p->flags & DT_PORT_OPTIONAL) != 0)) { /* nothing of it may be needed */
            return DT_FAIL(
                code,
                "%s: dims of %s %s are \"%s\"; expected at most %d tokens with one blank between two, each a "
                "number of at least 1, a symbol such as N, or N+1",
                id, what, p->name, p->dims, DT_MAX_DIMS);
        }
        if (p->dtype < DT_F32 || p->dtype > DT_BF16) {
            return DT_FAIL(code, "%s: %s %s has the dtype %u; expected one of DT_F32 to DT_BF16 (%d to %d)", id, what,
                           p->name, p->dtype, DT_F32, DT_BF16);
        }
        for (uint32_t k = 0; k < i && !may_repeat; k++) {
            if (strcmp(port[k].name, p->name) == 0) {
                return DT_FAIL(code, "%s: %ss %u and %u are both named %s; rename one", id, what, k, i, p->name);
            }
        }
    }
    return DT_OK;
}
