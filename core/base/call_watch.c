/* SPDX-License-Identifier: Apache-2.0 */
#include <config.h>

#include "base/call_watch.h"

#include <pthread.h>
#include <stdio.h>

_Thread_local dt_call_slot *dt_call_here;
atomic_bool dt_call_has_pulsed;

static pthread_mutex_t helpers_lock = PTHREAD_MUTEX_INITIALIZER; /* helper and next of all slots */

void dt_call_help_begin(dt_call_slot *mine, dt_call_slot *of)
{
    if (of == NULL) {
        return;
    }
    pthread_mutex_lock(&helpers_lock);
    mine->next = of->helper;
    of->helper = mine;
    pthread_mutex_unlock(&helpers_lock);
    dt_call_here = mine;
}

void dt_call_help_end(dt_call_slot *of)
{
    if (of == NULL || dt_call_here == NULL) {
        return;
    }
    pthread_mutex_lock(&helpers_lock);
    dt_call_slot **at = &of->helper;
    while (*at != NULL && *at != dt_call_here) {
        at = &(*at)->next;
    }
    *at = *at != NULL ? (*at)->next : NULL;
    pthread_mutex_unlock(&helpers_lock);
    dt_call_here = NULL;
}

static bool describe_own(const dt_call_slot *s, char *out, size_t bytes)
{
    const char *culprit = atomic_load(&s->culprit), *call = atomic_load(&s->call);
    const uint32_t n = atomic_load(&s->n), first = atomic_load(&s->first);
    char which[64] = "";
    if (call == NULL) {
        return false;
    }
    if (n == 1) {
        snprintf(which, sizeof(which), ", instance %u,", first);
    } else if (n > 1) {
        snprintf(which, sizeof(which), ", instances %u to %u,", first, first + n - 1);
    }
    snprintf(out, bytes, "%s of %s%s", call, culprit != NULL ? culprit : "a plugin", which);
    return true;
}

bool dt_call_describe(const dt_call_slot *s, char *out, size_t bytes)
{
    bool is_in_call = false;
    pthread_mutex_lock(&helpers_lock);
    for (const dt_call_slot *h = s->helper; h != NULL && !is_in_call; h = h->next) {
        is_in_call = describe_own(h, out, bytes);
    }
    pthread_mutex_unlock(&helpers_lock);
    return is_in_call || describe_own(s, out, bytes);
}
