/* SPDX-License-Identifier: Apache-2.0
 *
 * A fake host for phase1_world_model: models, data, a trainer and metrics that write down what they are asked for, and
 * four vehicles whose metrics are computed by hand.
 */
#ifndef DTRAIN_TESTS_PHASES_PHASE1_HOST_H
#define DTRAIN_TESTS_PHASES_PHASE1_HOST_H

#include "mock/mock.h" /* before cmocka.h, which has a macro fail() */

#include "dtrain/svc/bind.h"
#include "dtrain/svc/metrics.h"
#include "dtrain/svc/train.h"

#include "unit.h"

/* The opaque things of the services: one of each. */
struct dt_data {
    bool is_eval;
};
struct dt_model {
    const char *role;
};
struct dt_train {
    dt_train_desc desc;
};
struct dt_rows {
    int64_t S;
};

enum { T = 2, F = 5, S = 4, N = 6, K = 3 };

/* Four vehicles, 2 history steps and 5 future steps at 1 Hz. Vehicles 0 and 1 are complete, 3 is positive already. */
typedef struct world {
    mock_host host; /* first */
    mock_graph graph;
    dt_data data[2];
    dt_model model[2];
    dt_train train;
    dt_rows rows;
    uint64_t n_samples;
    const char *missing; /* a field that the data lacks */
    const char *absent;  /* a value that evaluation lacks */
    char overrides[MOCK_TEXT], wants[MOCK_TEXT], reports[MOCK_TEXT];
    double value[128][16]; /* of reports, in their order */
    uint32_t n_reports;
    float horizon[F];
    uint64_t step;
    dt_status step_status; /* what a step ends with, where it fails */
    float motion[T][S][6], target[S][F][2], future[S][F][2], spread[S][F][2], risk[N];
    int32_t seq_row[T][S], site[S], sample_of_seq[S];
    uint8_t complete[S], risk_state[N];
    bool has_futures, has_sites, has_temperature, epoch_end;
    const char *regions_dims; /* of the world model's port, or NULL */
    float temperature[F][2], regions[150];
    const char *futures_dims; /* of the world model's port */
    float futures[S][K][F][2], spreads[S][K][F][2], probability[S][K];
} world;

extern world *w; /* services get no user pointer from dt_bind_api's handles */

typedef struct phase {
    const dt_component *c;
    const dt_phase_ops *ops;
    void *config, *self;
} phase;

void world_init(void);
/* What check or create said. */
dt_status phase_open(phase *p, const char *const *set);
void phase_close(phase *p); /* and the world */

#endif
