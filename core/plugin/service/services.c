/* SPDX-License-Identifier: Apache-2.0
 *
 * The services of a stage by id; the small ones are here, those of bind.c, train.c and the experience have files of
 * their own.
 */
#include <config.h>

#include "plugin/service/stage.h"

#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/rng.h"
#include "dtrain/svc/comm.h"
#include "dtrain/svc/datasets.h"
#include "dtrain/svc/metrics.h"
#include "dtrain/svc/rng.h"
#include "dtrain/svc/replay.h"
#include "dtrain/svc/rollout.h"
#include "dtrain/svc/rounds.h"
#include "dtrain/svc/wiring.h"
#include "engine/graph/graph.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- metrics ----------------------------------------------------------------------------------------------------- */

static void metrics_scalar(const dt_host *h, const char *name, double value)
{
    dt_metrics_scalar(dt_stage_of(h)->d.metrics, name, value);
}

static void metrics_report(const dt_host *h, const char *key, const double *value, uint32_t n)
{
    dt_stage *s = dt_stage_of(h);
    const uint32_t count = n > 0 ? n : 1;
    if (s->results.n == DT_STAGE_MAX_RESULTS) {
        dt_log(DT_LOG_WARN, "%s has more than %d results; %s is left out", s->d.phase->desc.id, DT_STAGE_MAX_RESULTS,
               key);
        return;
    }
    dt_result *r = &s->results.at[s->results.n];
    r->key = dt_strdup(key);
    r->value = dt_alloc_n(count, sizeof(double));
    if (r->key == NULL || r->value == NULL) {
        dt_free(r->key);
        dt_free(r->value);
        return;
    }
    memcpy(r->value, value, count * sizeof(double));
    r->n = count;
    r->is_list = n > 0;
    s->results.n++;
}

static bool grow_pictures(dt_results *r)
{
    if (r->n_pictures < r->cap_pictures) {
        return true;
    }
    const uint32_t cap = r->cap_pictures > 0 ? 2 * r->cap_pictures : 64;
    dt_result *grown = dt_realloc(r->picture, cap * sizeof(*grown));
    if (grown == NULL) {
        return false;
    }
    r->picture = grown;
    r->cap_pictures = cap;
    return true;
}

/* What there is no room for is left out: pictures are never worth a run. */
static void metrics_picture(const dt_host *h, const char *key, const float *value, uint32_t rows, uint32_t columns)
{
    dt_stage *s = dt_stage_of(h);
    const uint64_t n = (uint64_t)columns * (rows > 0 ? rows : 1);
    if (s->results.n_pictures == DT_STAGE_MAX_PICTURES || n > DT_STAGE_MAX_PICTURE_VALUES) {
        dt_log(DT_LOG_WARN, "%s leaves more for pictures than %d tables of %d numbers; %s is left out",
               s->d.phase->desc.id, DT_STAGE_MAX_PICTURES, DT_STAGE_MAX_PICTURE_VALUES, key);
        return;
    }
    if (dt_comm_rank(s->d.comm) != 0 || n == 0 || !grow_pictures(&s->results)) {
        return;
    }
    dt_result r = {.key = dt_strdup(key), .value = dt_alloc_n(n, sizeof(double)), .n = (uint32_t)n};
    if (r.key == NULL || r.value == NULL) {
        dt_free(r.key);
        dt_free(r.value);
        return;
    }
    for (uint64_t i = 0; i < n; i++) { /* digits that a picture can show, and no more in the file */
        char text[32];
        r.value[i] = value[i];
        if (r.value[i] == floor(r.value[i])) {
            continue;
        }
        snprintf(text, sizeof(text), "%.6g", (double)value[i]);
        r.value[i] = dt_parse_f64(text, &r.value[i]) ? r.value[i] : (double)NAN;
        r.value[i] = fabs(r.value[i]) < 1e-6 ? 0 : r.value[i];
    }
    r.is_list = true;
    r.columns = rows > 0 ? columns : 0;
    s->results.picture[s->results.n_pictures++] = r;
}

static const dt_metrics_api metrics_service = {.struct_size = sizeof(dt_metrics_api),
                                               .scalar = metrics_scalar,
                                               .report = metrics_report,
                                               .picture = metrics_picture};

/* ---- comm -------------------------------------------------------------------------------------------------------- */

static uint32_t comm_rank(const dt_host *h)
{
    return dt_comm_rank(dt_stage_of(h)->d.comm);
}

static uint32_t comm_size(const dt_host *h)
{
    return dt_comm_size(dt_stage_of(h)->d.comm);
}

static dt_status comm_all_gather(const dt_host *h, const void *mine, uint64_t bytes, void *all)
{
    return dt_comm_all_gather(dt_stage_of(h)->d.comm, mine, bytes, all);
}

static dt_status comm_barrier(const dt_host *h)
{
    return dt_comm_barrier(dt_stage_of(h)->d.comm);
}

static dt_status comm_agree(const dt_host *h, dt_status mine)
{
    return dt_comm_agree(dt_stage_of(h)->d.comm, mine);
}

static dt_status comm_broadcast(const dt_host *h, uint32_t root, void *data, uint64_t bytes)
{
    dt_comm *c = dt_stage_of(h)->d.comm;
    if (root >= dt_comm_size(c)) {
        return DT_FAIL(DT_EINVAL, "broadcast from rank %u; there are %u, from 0 on", root, dt_comm_size(c));
    }
    return dt_comm_broadcast(c, root, data, bytes);
}

static void reduce_rank(uint32_t how, const double *of_rank, double *value, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++) {
        switch (how) {
        case DT_RANKS_SUM:
            value[i] += of_rank[i];
            break;
        case DT_RANKS_MIN:
            value[i] = fmin(value[i], of_rank[i]);
            break;
        default:
            value[i] = fmax(value[i], of_rank[i]);
            break;
        }
    }
}

/* Few numbers, so that gathering them costs less than a tree of their own would. */
static dt_status comm_reduce(const dt_host *h, uint32_t how, double *value, uint64_t n)
{
    dt_comm *c = dt_stage_of(h)->d.comm;
    const uint32_t ranks = dt_comm_size(c);
    size_t bytes = 0, total = 0;
    if (how < DT_RANKS_SUM || how > DT_RANKS_MAX) {
        return DT_FAIL(DT_EINVAL, "reduce by %u; expected DT_RANKS_SUM, DT_RANKS_MIN or DT_RANKS_MAX", how);
    }
    if (!dt_mul_size(n, sizeof(*value), &bytes) || !dt_mul_size(bytes, ranks, &total)) {
        return DT_FAIL(DT_EINVAL, "reduce of %llu numbers on %u ranks: more than fits in memory", (unsigned long long)n,
                       ranks);
    }
    double *all = dt_alloc_n(ranks, bytes > 0 ? bytes : 1);
    dt_status st =
        dt_comm_agree(c, all != NULL ? DT_OK : DT_FAIL(DT_ENOMEM, "no memory for %zu bytes of all ranks", total));
    if (st == DT_OK) {
        st = dt_comm_all_gather(c, value, bytes, all);
    }
    if (st == DT_OK) {
        memcpy(value, all, bytes);
        for (uint32_t r = 1; r < ranks; r++) {
            reduce_rank(how, all + r * n, value, n);
        }
    }
    dt_free(all);
    return st;
}

static const dt_comm_api comm_service = {.struct_size = sizeof(dt_comm_api),
                                         .rank = comm_rank,
                                         .size = comm_size,
                                         .all_gather = comm_all_gather,
                                         .barrier = comm_barrier,
                                         .agree = comm_agree,
                                         .broadcast = comm_broadcast,
                                         .reduce = comm_reduce};

/* ---- rng --------------------------------------------------------------------------------------------------------- */

static dt_rng_key rng_key(const dt_host *h, uint32_t stream, uint64_t key)
{
    const dt_stage *s = dt_stage_of(h);
    return (dt_rng_key){.seed = s->d.seed, .phase = (uint32_t)s->d.index, .op = stream, .sample = key};
}

static void rng_uniform(const dt_host *h, uint32_t stream, uint64_t key, uint64_t i, double *out, uint32_t n)
{
    const dt_rng_key k = rng_key(h, stream, key);
    for (uint32_t j = 0; j < n; j++) {
        out[j] = dt_rng_uniform(&k, i + j);
    }
}

static void rng_normal(const dt_host *h, uint32_t stream, uint64_t key, uint64_t i, double *out, uint32_t n)
{
    const dt_rng_key k = rng_key(h, stream, key);
    for (uint32_t j = 0; j < n; j++) {
        out[j] = dt_rng_normal(&k, i + j);
    }
}

static const dt_rng_api rng_service = {.struct_size = sizeof(dt_rng_api), .uniform = rng_uniform, .normal = rng_normal};

/* ---- data sets --------------------------------------------------------------------------------------------------- */

static dt_status dataset_opened(const dt_host *h, const dt_dataset *d)
{
    dt_stage *s = dt_stage_of(h);
    if (s->n_datasets == DT_STAGE_MAX_DATASETS) {
        return DT_FAIL(DT_EPLUGIN, "more than %d data sets are open", DT_STAGE_MAX_DATASETS);
    }
    s->dataset[s->n_datasets++] = *d;
    return DT_OK;
}

static void dataset_closed(const dt_host *h, const void *self)
{
    dt_stage *s = dt_stage_of(h);
    for (uint32_t i = 0; i < s->n_datasets; i++) {
        if (s->dataset[i].self == self) {
            s->dataset[i] = s->dataset[--s->n_datasets];
            return;
        }
    }
}

static const dt_datasets_api datasets_service = {
    .struct_size = sizeof(dt_datasets_api), .opened = dataset_opened, .closed = dataset_closed};

/* ---- by id ------------------------------------------------------------------------------------------------------- */

static const void *host_service(const dt_host *h, const char *id)
{
    const dt_stage_rollouts *rollouts = dt_stage_of(h)->d.rollouts;
    const struct {
        const char *id;
        const void *table;
    } known[] = {
        {DT_SVC_BIND, &dt_bind_service},
        {DT_SVC_TRAIN, &dt_train_service},
        {DT_SVC_GRAPH, dt_graph_api_table()},
        {DT_SVC_METRICS, &metrics_service},
        {DT_SVC_COMM, &comm_service},
        {DT_SVC_RNG, &rng_service},
        {DT_SVC_DATASETS, &datasets_service},
        {DT_SVC_ROLLOUT, rollouts != NULL ? rollouts->service : NULL},
        {DT_SVC_REPLAY, rollouts != NULL ? rollouts->replay : NULL},
        {DT_SVC_WIRING, rollouts != NULL ? rollouts->wiring : NULL},
        {DT_SVC_ROUNDS, rollouts != NULL ? rollouts->rounds : NULL},
    };
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        if (strcmp(known[i].id, id) == 0) {
            return known[i].table;
        }
    }
    return dt_loader_service(dt_stage_of(h)->d.loader, id);
}

void dt_services_init(dt_stage *s)
{
    dt_services_bare(&s->host);
    s->host.priv = s;
    s->host.service = host_service;
}
