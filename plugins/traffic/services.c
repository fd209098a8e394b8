/* SPDX-License-Identifier: Apache-2.0 */
#include <config.h>

#include "traffic/services.h"

#include "base/err.h"
#include "base/fs.h"
#include "base/hash.h"
#include "base/mem.h"
#include "base/str.h"
#include "dtrain/helpers.h"
#include "dtrain/svc/datasets.h"
#include "traffic/features/features.h"
#include "traffic/store/store.h"

#include <pthread.h>
#include <string.h>

enum { MOST_JSON = 1 << 28 };

/* Stores that are open, each once for all callers through one host. */
typedef struct opened {
    const dt_host *host;
    dt_store *store;
    uint32_t users;
    struct opened *next;
} opened;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static opened *all;

static opened *find_opened(const dt_host *h, const char *path, const dt_store_view *v)
{
    pthread_mutex_lock(&lock);
    opened *o = all;
    while (o != NULL && !(o->host == h && (path != NULL ? strcmp(dt_store_path(o->store), path) == 0
                                                        : dt_store_view_of(o->store) == v))) {
        o = o->next;
    }
    pthread_mutex_unlock(&lock);
    return o;
}

static void add_opened(opened *o)
{
    pthread_mutex_lock(&lock);
    o->next = all;
    all = o;
    pthread_mutex_unlock(&lock);
}

static void unlink_store(const opened *o)
{
    pthread_mutex_lock(&lock);
    opened **at = &all;
    while (*at != o) {
        at = &(*at)->next;
    }
    *at = o->next;
    pthread_mutex_unlock(&lock);
}

static void scatter_store(void *store)
{
    dt_store_advise_random(store);
}

static void forget_store(void *store)
{
    dt_store_release_pages(store);
}

/* Of what was recorded, and of all that describes it. */
static dt_status compute_mark(const char *path, uint64_t digest, uint64_t *mark_p)
{
    char *text = NULL;
    size_t bytes = 0;
    dt_str name = {0};
    dt_str_addf(&name, "%s/store.json", path);
    dt_status st = dt_str_status(&name);
    if (st == DT_OK) {
        st = dt_fs_read_all(dt_str_text(&name), MOST_JSON, &text, &bytes);
    }
    if (st == DT_OK) {
        *mark_p = dt_hash64(text, bytes, digest);
    }
    dt_free(text);
    dt_str_fini(&name);
    return st;
}

static dt_status report_opened_store(const dt_host *h, dt_store *store)
{
    const dt_datasets_api *host = h->service(h, DT_SVC_DATASETS);
    uint64_t mark = 0;
    if (!DT_HAS(host, opened)) {
        return DT_OK;
    }
    DT_TRY(compute_mark(dt_store_path(store), dt_store_digest(store), &mark));
    return host->opened(h, &(dt_dataset){.struct_size = sizeof(dt_dataset),
                                         .path = dt_store_path(store),
                                         .digest = dt_store_digest(store),
                                         .mark = mark,
                                         .bytes = dt_store_bytes(store),
                                         .self = store,
                                         .prepare_random_reads = scatter_store,
                                         .release_pages = forget_store});
}

static dt_status open_store(const dt_host *h, const char *path, uint64_t cache_bytes, const dt_store_view **out)
{
    opened *o = find_opened(h, path, NULL);
    if (o != NULL) {
        o->users++;
        *out = dt_store_view_of(o->store);
        return DT_OK;
    }
    o = dt_alloc(sizeof(*o));
    if (o == NULL) {
        return DT_FAIL(DT_ENOMEM, "no memory to open %s", path);
    }
    dt_status st = dt_store_open_cached(path, cache_bytes > 0 ? cache_bytes : DT_STORE_CACHE_BYTES, &o->store);
    if (st == DT_OK) {
        st = report_opened_store(h, o->store);
    }
    if (st != DT_OK) {
        dt_store_close(o->store);
        dt_free(o);
        return st;
    }
    o->host = h;
    o->users = 1;
    add_opened(o);
    *out = dt_store_view_of(o->store);
    return DT_OK;
}

static void close_view(const dt_host *h, const dt_store_view *v)
{
    opened *o = find_opened(h, NULL, v);
    if (o == NULL || --o->users > 0) {
        return;
    }
    const dt_datasets_api *host = h->service(h, DT_SVC_DATASETS);
    if (DT_HAS(host, closed)) {
        host->closed(h, o->store);
    }
    unlink_store(o);
    dt_store_close(o->store);
    dt_free(o);
}

static dt_status read_rows(const dt_host *h, const dt_store_view *v, uint32_t array, int64_t from, int64_t n, void *out)
{
    return dt_store_read(dt_store_of_view(v), array, from, n, out);
}

static dt_status read_digest(const dt_host *h, const char *path, uint64_t *digest_p)
{
    dt_store *store = NULL;
    DT_TRY(dt_store_open(path, &store));
    *digest_p = dt_store_digest(store);
    dt_store_close(store);
    return DT_OK;
}

const dt_store_api dt_traffic_store = {.struct_size = sizeof(dt_store_api),
                                       .open = open_store,
                                       .close = close_view,
                                       .read = read_rows,
                                       .digest = read_digest};

const dt_provided dt_traffic_services[] = {
    {DT_SVC_STORE, &dt_traffic_store}, {DT_SVC_FEATURES, &dt_features_service}, {NULL, NULL}};
