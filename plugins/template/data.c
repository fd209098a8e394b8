/* SPDX-License-Identifier: Apache-2.0
 *
 * template: a data source. Swings of a pendulum, seen at uneven times: each sample is a row of a few sightings, and the
 * question is where the pendulum is a while later.
 *
 *   time    "P"    f32   s, when it was seen; of one sample after the other, sample by sample
 *   angle   "P"    f32   rad, what was seen
 *   first   "B+1"  i32   sightings of sample i are rows first[i] .. first[i+1]-1
 *   target  "B"    f32   rad, horizon_s after the last sighting
 *
 * Samples differ in size: symbol "P" names what varies, sizes reports how much of it some samples take together, and
 * they are read packed one after another. What a sample holds depends on its index alone, so that any thread and any
 * rank reads the same; only augmentation may depend on key.
 *
 *   make && dtrain check ./template.so
 *   DTRAIN_PLUGIN_PATH=. dtrain --plugin MY_PHASE --set data.source=template
 */
#include <dtrain/helpers.h>
#include <dtrain/random.h>
#include <math.h>

enum { FEWEST = 2, MOST = 9 }; /* sightings of a sample */
#define PERIOD_S 2.0
#define TURN     6.283185307179586 /* rad */

typedef struct template_config { /* the host fills it from the section template */
    int64_t samples;
    double horizon_s, noise;
    uint32_t split, reserved;
} template_config;

static const char *const splits[] = {"train", "eval", NULL};
static const dt_option options[] = {
    DT_OPTION(template_config, samples, DT_OPT_I64, "2048", "1", 1, 1e9, NULL, "split of the samples"),
    DT_OPTION(template_config, horizon_s, DT_OPT_F64, "0.5", "s", 0, 60, NULL, "how far after the last sighting"),
    DT_OPTION(template_config, noise, DT_OPT_F64, "0.01", "rad", 0, 10, NULL,
              "of every use of a sighting, if augmented"),
    DT_OPTION_WITH(template_config, split, DT_OPT_ENUM, "train", NULL, 0, 0, splits,
                   "split of samples; the phase sets it", DT_OPT_SPLIT, NULL),
    DT_OPTION_END};

DT_STATE_DEFINE(state, template_config); /* the host allocates it, zeroed */
DT_CREATE_DEFINE(create, state);
DT_PORTS_DEFINE(fields, {"time", "P", DT_F32, 0}, {"angle", "P", DT_F32, 0}, {"first", "B+1", DT_I32, 0},
                {"target", "B", DT_F32, 0});

static const char *const *symbols(const void *self, uint32_t *n_p)
{
    static const char *const names[] = {"P"};
    (void)self;
    *n_p = 1;
    return names;
}

static dt_status count(const void *self, uint64_t *n_p)
{
    *n_p = (uint64_t)((const state *)self)->config.samples;
    return DT_OK;
}

/* All chance of sample i of a split: how many sightings, where the swing begins, how wide it is. */
static uint32_t begin(const state *s, uint64_t i, dt_random *r, double *phase_p, double *width_p)
{
    dt_random_init(r, i, s->config.split);
    *phase_p = TURN * dt_random_uniform(r);
    *width_p = 0.1 + dt_random_uniform(r);
    return FEWEST + dt_random_below(r, MOST - FEWEST + 1);
}

static dt_status sizes(const void *self, const uint64_t *index, uint32_t n, int64_t *size)
{
    double phase = 0, width = 0;
    dt_random r;
    size[0] = 0;
    for (uint32_t i = 0; i < n; i++) {
        size[0] += begin((const state *)self, index[i], &r, &phase, &width);
    }
    return DT_OK;
}

/* Called by worker threads, each with buffers that are exactly as large as sizes reports. */
static dt_status read_samples(void *self, const uint64_t *index, const uint64_t *key, uint32_t n, void *const *out)
{
    const state *s = (const state *)self;
    float *time = (float *)out[0], *angle = (float *)out[1], *target = (float *)out[3];
    int32_t *first = (int32_t *)out[2], at = 0;
    first[0] = 0;
    for (uint32_t i = 0; i < n; i++) {
        double phase = 0, width = 0, t = 0;
        dt_random r, chance;
        const uint32_t seen = begin(s, index[i], &r, &phase, &width);
        dt_random_init(&chance, key != NULL ? key[i] : 0, 1);
        for (uint32_t k = 0; k < seen; k++, at++) {
            const double swing = width * sin(phase + TURN * t / PERIOD_S);
            const double off = key != NULL && key[i] != 0 ? 2 * dt_random_uniform(&chance) - 1 : 0;
            time[at] = (float)t;
            angle[at] = (float)(swing + s->config.noise * off);
            t += 0.05 + 0.2 * dt_random_uniform(&r);
        }
        first[i + 1] = at;
        target[i] = (float)(width * sin(phase + TURN * (t + s->config.horizon_s) / PERIOD_S));
    }
    return DT_OK;
}

DT_DATA_DEFINE(data, "template", "swings of a pendulum, seen at uneven times", "none", template_config, state, options,
               DT_OPS(DT_SET(create, create), DT_SET(fields, fields), DT_SET(symbols, symbols), DT_SET(count, count),
                      DT_SET(sizes, sizes), DT_SET(read, read_samples), DT_SET(destroy, dt_no_op)),
               DT_SET(flags, DT_COMP_DETERMINISTIC));

DT_PLUGIN_DEFINE_ONE(data, "template", "0.1", "you", "Apache-2.0");
