/* SPDX-License-Identifier: Apache-2.0
 *
 * dtrain's side of bench/run phase1_step: the real phase with the real trainer, stepped on request.
 *
 *   bench_phase1_step FOLDER N OPTIONS...      OPTIONS as `dtrain run` takes them
 *
 * Writes the batches of the first N steps (FOLDER/000/<field>.npy ..., packed as one slice, augmented as training sees
 * them) and the initial weights (FOLDER/model.safetensors), then reads commands from standard input and answers with
 * one line each: "step K" does K steps and prints [seconds, loss, gradient norm, seconds spent waiting for data] of
 * each one, "rss" prints the largest resident memory in bytes. N = 0 writes nothing. The bench imposes no work that a
 * run does not do; a run's progress line, metrics and checkpoints are left out, as they are on the other side.
 */
#include <config.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/fs.h"
#include "base/mem.h"
#include "state/checkpoint/safetensors.h"
#include "cli/cli.h"
#include "run/session.h"
#include "plugin/service/stage.h"
#include "train/sampler.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* ---- what the other side reads ----------------------------------------------------------------------------------- */

/* One array in numpy's format, version 1. */
static dt_status write_npy(const char *path, uint32_t dtype, const int64_t *dim, uint32_t rank, const void *data,
                           size_t bytes)
{
    static const char *const descr[] = {
        [DT_F32] = "<f4", [DT_F64] = "<f8", [DT_I32] = "<i4", [DT_I64] = "<i8", [DT_U8] = "|u1"};
    char shape[256] = "", header[512];
    for (uint32_t i = 0, n = 0; i < rank; i++) {
        n += (uint32_t)snprintf(shape + n, sizeof(shape) - n, "%" PRId64 ",", dim[i]);
    }
    int n = snprintf(header, sizeof(header), "{'descr': '%s', 'fortran_order': False, 'shape': (%s), }", descr[dtype],
                     shape);
    while ((10 + n + 1) % 64 != 0) {
        header[n++] = ' ';
    }
    header[n++] = '\n';
    const unsigned char magic[10] = {
        0x93, 'N', 'U', 'M', 'P', 'Y', 1, 0, (unsigned char)(n & 255), (unsigned char)(n >> 8)};
    FILE *f = fopen(path, "wb");
    if (f == NULL) {
        return DT_FAIL(DT_EIO, "%s cannot be written", path);
    }
    const bool ok = fwrite(magic, sizeof(magic), 1, f) == 1 && fwrite(header, (size_t)n, 1, f) == 1 &&
                    (bytes == 0 || fwrite(data, bytes, 1, f) == 1);
    return fclose(f) == 0 && ok ? DT_OK : DT_FAIL(DT_EIO, "%s cannot be written", path);
}

/* The batch of a step as the feed reads it, all leaves as one slice. */
static dt_status write_batch(const dt_stage *s, const dt_sampler *sampler, const char *folder, uint64_t step)
{
    const dt_samples *src = &s->data[0].source;
    const uint64_t batch = sampler->batch, per_epoch = dt_sampler_steps(sampler);
    dt_sampler_epoch epoch;
    dt_sampler_begin_epoch(&epoch, sampler, s->d.seed, (uint32_t)s->d.index, step / per_epoch);
    const size_t room = dt_samples_bytes_max(src, batch);
    uint64_t *index = dt_alloc_n(batch, sizeof(*index)), *key = dt_alloc_n(batch, sizeof(*key));
    void *arena = dt_alloc(room);
    dt_status st = index != NULL && key != NULL && arena != NULL ? DT_OK : DT_FAIL(DT_ENOMEM, "out of memory");
    int64_t size[DT_SAMPLES_MAX_SYMBOLS + 1] = {0};
    void *field[DT_SAMPLES_MAX_FIELDS] = {NULL};
    if (st == DT_OK) {
        for (uint64_t i = 0; i < batch; i++) {
            const uint64_t position = step % per_epoch * batch + i;
            index[i] = dt_sampler_sample_at(&epoch, position);
            key[i] = dt_sampler_key(&epoch, position);
        }
        st = src->ops->sizes(src->self, index, (uint32_t)batch, size);
        size[src->n_symbols] = (int64_t)batch;
    }
    size_t used = 0;
    if (st == DT_OK) {
        st = dt_samples_read(src, index, key, (uint32_t)batch, size, arena, room, field, &used);
    }
    char path[4096];
    snprintf(path, sizeof(path), "%s/%03" PRIu64, folder, step);
    mkdir(path, 0777);
    for (uint32_t f = 0; st == DT_OK && f < src->n_fields; f++) {
        int64_t dim[DT_MAX_DIMS];
        dt_samples_field_dims(src, f, size, dim);
        snprintf(path, sizeof(path), "%s/%03" PRIu64 "/%s.npy", folder, step, src->field[f].name);
        st = write_npy(path, src->field[f].dtype, dim, src->shape[f].rank, field[f],
                       dt_samples_field_bytes(src, f, size));
    }
    dt_free(index);
    dt_free(key);
    dt_free(arena);
    return st;
}

static dt_status write_weights(dt_stage *s, const char *folder)
{
    char path[4096];
    DT_TRY(dt_trainer_synchronize(s->trainer));
    dt_st_tensor *t = dt_alloc_n(s->params.n, sizeof(*t));
    if (t == NULL) {
        return DT_FAIL(DT_ENOMEM, "out of memory");
    }
    for (uint32_t i = 0; i < s->params.n; i++) {
        const dt_param *p = &s->params.param[i];
        t[i] = (dt_st_tensor){.name = p->name,
                              .dtype = DT_ST_F32,
                              .n_dims = p->n_dims,
                              .data = dt_trainer_params(s->trainer) + p->offset};
        memcpy(t[i].dim, p->dim, p->n_dims * sizeof(*p->dim));
    }
    snprintf(path, sizeof(path), "%s/model.safetensors", folder);
    dt_status st = dt_safetensors_write(path, t, s->params.n, NULL, 0);
    dt_free(t);
    return st;
}

/* ---- commands ---------------------------------------------------------------------------------------------------- */

static dt_status answer_steps(dt_stage *s, long n)
{
    printf("[");
    for (long i = 0; i < n; i++) {
        dt_progress p = {.struct_size = sizeof(p)};
        const double begin = dt_clock_s();
        dt_status st = dt_stage_iterate(s, &p);
        if (st < 0) {
            return st;
        }
        const double step_s = dt_clock_s() - begin;
        printf("%s[%.9g, %.9g, %.9g, %.9g]", i > 0 ? ", " : "", step_s, p.loss, p.grad_norm,
               dt_trainer_times_get(s->trainer).data_wait);
    }
    printf("]\n");
    return DT_OK;
}

static dt_status answer(dt_stage *s)
{
    char line[256];
    while (fgets(line, sizeof(line), stdin) != NULL) {
        if (strncmp(line, "step ", 5) == 0) {
            DT_TRY(answer_steps(s, strtol(line + 5, NULL, 10)));
        } else if (strcmp(line, "rss\n") == 0) {
            printf("%" PRIu64 "\n", dt_rss_peak_bytes());
        } else {
            return DT_FAIL(DT_EINVAL, "unknown command %s", line);
        }
        fflush(stdout);
    }
    return DT_OK;
}

static dt_status drive(dt_session *session, const char *folder, uint64_t n_steps)
{
    pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    dt_comm *comm = NULL;
    dt_stage *stage = NULL;
    dt_data_opts data;
    dt_sampler sampler = {0};
    DT_TRY(dt_config_data(session->config, 0, &data));
    DT_TRY(dt_comm_create_null(&comm));
    const dt_stage_desc d = {.config = session->config,
                             .loader = session->loader,
                             .comm = comm,
                             .phase = session->phase[0],
                             .demo_store = session->demo_store,
                             .seed = session->seed,
                             .threads = session->threads,
                             .device_ops = session->device.ops,
                             .device = session->device.handle,
                             .config_lock = &lock};
    dt_status st = dt_stage_create(&d, &stage);
    if (st == DT_OK) {
        st = dt_stage_start(stage);
    }
    if (st == DT_OK) {
        st = dt_sampler_init(&sampler, &stage->data[0].source, (uint64_t)data.batch, DT_SAMPLING_SHUFFLED, true);
    }
    for (uint64_t i = 0; st == DT_OK && i < n_steps; i++) {
        st = write_batch(stage, &sampler, folder, i);
    }
    if (st == DT_OK && n_steps > 0) {
        st = write_weights(stage, folder);
    }
    if (st == DT_OK) {
        printf("ready\n");
        fflush(stdout);
        st = answer(stage);
    }
    dt_sampler_fini(&sampler);
    dt_stage_destroy(stage);
    dt_comm_destroy(comm);
    return st;
}

int main(int argc, char **argv)
{
    if (argc < 4) {
        fprintf(stderr, "usage: %s FOLDER N OPTIONS...\n", argv[0]);
        return 2;
    }
    const char *folder = argv[1];
    const uint64_t n_steps = strtoull(argv[2], NULL, 10);
    argv[2] = argv[0];
    dt_args a;
    dt_session session;
    dt_status st = dt_cli_parse(argc - 2, argv + 2, &a);
    if (st == DT_OK) {
        st = dt_session_open(&a, NULL, NULL, &session);
    }
    if (st == DT_OK) {
        st = drive(&session, folder, n_steps);
        dt_session_close(&session);
    }
    if (st < 0) {
        fprintf(stderr, "bench_phase1_step: %s\n", dt_error_text());
        return 1;
    }
    return 0;
}
