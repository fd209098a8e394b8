/* SPDX-License-Identifier: Apache-2.0
 *
 * dtrain's side of bench/run loader: the feed of phase 1, read as training reads it, by as many threads as are given,
 * with nothing trained.
 *
 *   bench_loader WORKERS OPTIONS...      OPTIONS as `dtrain run` takes them
 *
 * Reads commands from standard input and answers with one line each: "look N" gives for each of the first N samples,
 * not augmented, the sizes and the sum of every field, for the other side to compare with; "epochs N" feeds N epochs in
 * whole batches and gives [seconds, processor seconds, samples, vehicle rows].
 */
#include <config.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/mem.h"
#include "cli/cli.h"
#include "run/session.h"
#include "plugin/service/stage.h"
#include "train/feed.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef struct side {
    const dt_samples *source;
    dt_data_opts data;
    uint64_t seed;
    uint32_t workers, slots;
} side;

/* ---- what is read ------------------------------------------------------------------------------------------------ */

static double element(uint32_t dtype, const void *at, uint64_t i)
{
    switch (dtype) {
    case DT_F32:
        return ((const float *)at)[i];
    case DT_F64:
        return ((const double *)at)[i];
    case DT_I32:
        return ((const int32_t *)at)[i];
    case DT_I64:
        return (double)((const int64_t *)at)[i];
    default:
        return ((const uint8_t *)at)[i];
    }
}

static dt_status look_at(const side *s, uint64_t sample, char *arena, size_t room)
{
    const dt_samples *src = s->source;
    int64_t size[DT_SAMPLES_MAX_SYMBOLS + 1] = {0};
    void *field[DT_SAMPLES_MAX_FIELDS] = {NULL};
    const uint64_t key = 0;
    size_t used = 0;
    DT_TRY(src->ops->sizes(src->self, &sample, 1, size));
    size[src->n_symbols] = 1;
    DT_TRY(dt_samples_read(src, &sample, &key, 1, size, arena, room, field, &used));
    printf("{");
    for (uint32_t f = 0; f < src->n_fields; f++) {
        const uint64_t n = dt_samples_field_bytes(src, f, size) / src->shape[f].item_bytes;
        double sum = 0;
        for (uint64_t i = 0; i < n; i++) {
            sum += element(src->field[f].dtype, field[f], i);
        }
        printf("%s\"%s\": [%" PRIu64 ", %.17g]", f > 0 ? ", " : "", src->field[f].name, n, sum);
    }
    printf("}");
    return DT_OK;
}

static dt_status answer_look(const side *s, uint64_t n)
{
    const size_t room = dt_samples_bytes_max(s->source, 1);
    char *arena = dt_alloc(room);
    dt_status st = arena != NULL ? DT_OK : DT_FAIL(DT_ENOMEM, "out of memory for a sample");
    printf("[");
    for (uint64_t i = 0; i < n && i < s->source->count && st == DT_OK; i++) {
        printf("%s", i > 0 ? ", " : "");
        st = look_at(s, i, arena, room);
    }
    printf("]\n");
    dt_free(arena);
    return st;
}

/* ---- how fast ---------------------------------------------------------------------------------------------------- */

static double processor_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Every shard is waited for, touched and given back, as a worker of the trainer does it. */
static dt_status take_leaves(dt_feed *f, uint64_t n, int64_t *rows_p)
{
    const dt_feed_shard *shard = NULL;
    double waited_s = 0;
    for (uint64_t i = 0; i < n; i++) {
        DT_TRY(dt_feed_wait(f, i, &shard, &waited_s));
        for (uint32_t k = 0; k < shard->n_micro_batches; k++) {
            *rows_p += shard->micro_batch[k].size[0];
        }
        dt_feed_release(f, i);
    }
    return DT_OK;
}

static dt_status answer_epochs(const side *s, uint64_t epochs)
{
    dt_sampler sampler = {0};
    dt_feed *feed = NULL;
    const double begin = dt_clock_s(), begin_cpu = processor_s();
    DT_TRY(dt_sampler_init(&sampler, s->source, (uint64_t)s->data.batch, DT_SAMPLING_SHUFFLED, true));
    const uint64_t steps = epochs * dt_sampler_steps(&sampler);
    const dt_feed_desc d = {.source = s->source,
                            .sampler = &sampler,
                            .seed = s->seed,
                            .last_step = steps,
                            .shards = (uint32_t)s->data.shards,
                            .shard_end = (uint32_t)s->data.shards,
                            .slots = s->slots,
                            .threads = s->workers,
                            .augment = 1};
    int64_t rows = 0;
    dt_status st = dt_feed_start(&d, &feed);
    if (st == DT_OK) {
        st = take_leaves(feed, steps * d.shards, &rows);
    }
    dt_feed_stop(feed);
    dt_sampler_fini(&sampler);
    printf("[%.9g, %.9g, %" PRIu64 ", %" PRId64 "]\n", dt_clock_s() - begin, processor_s() - begin_cpu,
           steps * (uint64_t)s->data.batch, rows);
    return st;
}

static dt_status answer(const side *s)
{
    char line[256];
    while (fgets(line, sizeof(line), stdin) != NULL) {
        if (strncmp(line, "look ", 5) == 0) {
            DT_TRY(answer_look(s, strtoull(line + 5, NULL, 10)));
        } else if (strncmp(line, "epochs ", 7) == 0) {
            DT_TRY(answer_epochs(s, strtoull(line + 7, NULL, 10)));
        } else {
            return DT_FAIL(DT_EINVAL, "unknown command %s", line);
        }
        fflush(stdout);
    }
    return DT_OK;
}

static dt_status drive(dt_session *session, uint32_t workers)
{
    pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    dt_comm *comm = NULL;
    dt_stage *stage = NULL;
    side s = {.seed = session->seed, .workers = workers};
    DT_TRY(dt_config_data(session->config, 0, &s.data));
    DT_TRY(dt_comm_create_null(&comm));
    const dt_stage_desc d = {.config = session->config,
                             .loader = session->loader,
                             .comm = comm,
                             .phase = session->phase[0],
                             .demo_store = session->demo_store,
                             .seed = session->seed,
                             .threads = 1,
                             .config_lock = &lock};
    dt_status st = dt_stage_create(&d, &stage);
    if (st == DT_OK) {
        s.source = &stage->data[0].source;
        s.slots = workers + (uint32_t)(s.data.prefetch * s.data.shards); /* as the trainer has them */
        printf("%" PRIu64 "\n", s.source->count);
        fflush(stdout);
        st = answer(&s);
    }
    dt_stage_destroy(stage);
    dt_comm_destroy(comm);
    return st;
}

int main(int argc, char **argv)
{
    if (argc < 3) {
        fprintf(stderr, "usage: %s WORKERS OPTIONS...\n", argv[0]);
        return 2;
    }
    const uint32_t workers = (uint32_t)strtoul(argv[1], NULL, 10);
    argv[1] = argv[0];
    dt_args a;
    dt_session session;
    dt_status st = dt_cli_parse(argc - 1, argv + 1, &a);
    if (st == DT_OK) {
        st = dt_session_open(&a, NULL, NULL, &session);
    }
    if (st == DT_OK) {
        st = drive(&session, workers > 0 ? workers : 1);
        dt_session_close(&session);
    }
    if (st < 0) {
        fprintf(stderr, "bench_loader: %s\n", dt_error_text());
        return 1;
    }
    return 0;
}
