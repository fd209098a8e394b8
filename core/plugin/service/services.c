/* SPDX-License-Identifier: Apache-2.0
 *
 * The services of a stage by id. Each is in the file of its name: metrics.c, comm.c, rng.c, datasets.c, bind.c,
 * train.c; those of environments are in rl/experience and rl/policy.
 */
#include <config.h>

#include "plugin/service/stage.h"

#include "dtrain/svc/comm.h"
#include "dtrain/svc/datasets.h"
#include "dtrain/svc/metrics.h"
#include "dtrain/svc/replay.h"
#include "dtrain/svc/rng.h"
#include "dtrain/svc/rollout.h"
#include "dtrain/svc/rounds.h"
#include "dtrain/svc/wiring.h"
#include "engine/graph/graph.h"

#include <string.h>

static const void *host_service(const dt_host *h, const char *id)
{
    const dt_stage_rollouts *rollouts = dt_stage_of(h)->d.rollouts;
    if (id == NULL) {
        return NULL;
    }
    const struct {
        const char *id;
        const void *table;
    } known[] = {
        {DT_SVC_BIND, &dt_bind_service},
        {DT_SVC_TRAIN, &dt_train_service},
        {DT_SVC_GRAPH, dt_graph_api_table()},
        {DT_SVC_METRICS, &dt_metrics_service},
        {DT_SVC_COMM, &dt_comm_service},
        {DT_SVC_RNG, &dt_rng_service},
        {DT_SVC_DATASETS, &dt_datasets_service},
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
    return dt_loader_find_service(dt_stage_of(h)->d.loader, id);
}

void dt_services_init(dt_stage *s)
{
    dt_host_init(&s->host);
    s->host.priv = s;
    s->host.service = host_service;
}
