/* SPDX-License-Identifier: Apache-2.0
 *
 * See names.h. Open addressing with linear probing.
 */
#include <config.h>

#include "traffic/text/names.h"
#include "base/err.h"
#include "base/hash.h"
#include "base/mem.h"

#include <inttypes.h>
#include <string.h>
#include <sys/auxv.h>

enum { LEAST = 64 }; /* a power of two */

uint64_t dt_names_seed(void)
{
    const void *random = (const void *)(uintptr_t)getauxval(AT_RANDOM);
    uint64_t seed = 0;
    if (random != NULL) {
        memcpy(&seed, random, sizeof(seed));
    }
    return seed;
}

static size_t bucket_of(const dt_names *t, const char *name)
{
    size_t b = (size_t)dt_hash64(name, strlen(name), t->seed) & (t->n_buckets - 1);
    while (t->bucket[b] != 0 && strcmp(t->name[t->bucket[b] - 1], name) != 0) {
        b = (b + 1) & (t->n_buckets - 1);
    }
    return b;
}

/* Half of the buckets stay empty. */
static dt_status grow_table(dt_names *t)
{
    if (t->cap == DT_NAMES_MOST) {
        return DT_FAIL(DT_EDATA, "more than %d names", DT_NAMES_MOST);
    }
    const int32_t cap = t->cap == 0 ? LEAST : 2 * t->cap;
    char **name = dt_realloc(t->name, (size_t)cap * sizeof(*name));
    if (name != NULL) {
        t->name = name;
    }
    int32_t *bucket = dt_alloc_n(2 * (size_t)cap, sizeof(*bucket));
    if (name == NULL || bucket == NULL) {
        dt_free(bucket);
        return DT_FAIL(DT_ENOMEM, "no memory for %" PRId32 " names", cap);
    }
    dt_free(t->bucket);
    t->bucket = bucket;
    t->seed = dt_names_seed();
    t->n_buckets = 2 * (size_t)cap;
    t->cap = cap;
    for (int32_t i = 0; i < t->n; i++) {
        t->bucket[bucket_of(t, t->name[i])] = i + 1;
    }
    return DT_OK;
}

dt_status dt_names_add(dt_names *t, const char *name, int32_t *number_p, bool *is_new_p)
{
    if (t->n == t->cap) {
        DT_TRY(grow_table(t));
    }
    const size_t b = bucket_of(t, name);
    *is_new_p = t->bucket[b] == 0;
    if (*is_new_p) {
        t->name[t->n] = dt_strdup(name);
        if (t->name[t->n] == NULL) {
            return DT_FAIL(DT_ENOMEM, "no memory for the name %.60s", name);
        }
        t->bucket[b] = ++t->n;
    }
    *number_p = t->bucket[b] - 1;
    return DT_OK;
}

int32_t dt_names_find(const dt_names *t, const char *name)
{
    return t->n_buckets == 0 ? -1 : t->bucket[bucket_of(t, name)] - 1;
}

void dt_names_fini(dt_names *t)
{
    for (int32_t i = 0; i < t->n; i++) {
        dt_free(t->name[i]);
    }
    dt_free(t->name);
    dt_free(t->bucket);
    *t = (dt_names){.n = 0};
}

bool dt_has_control(const char *name)
{
    while (*name != '\0' && (unsigned char)*name >= ' ' && *name != '\x7f') {
        name++;
    }
    return *name != '\0';
}
