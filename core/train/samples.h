/* SPDX-License-Identifier: Apache-2.0
 *
 * A bound data component as the trainer sees it, and the cutting of batches: which samples belong to which shard, and
 * which samples of a shard run together as one micro-batch. Everything here depends on data and configuration alone.
 *
 *   batch t of epoch e  positions [t*B, (t+1)*B) of the epoch's order (sampler.h)
 *   shard s of S         positions [s*B/S, (s+1)*B/S) of the batch
 *   micro-batch               consecutive samples of a shard whose sizes stay within the micro-batch capacities, at
 *   least one; of a
 *                       source of parts that cannot be read together a shard is put in their order before, and no
 *                       micro-batch leaves one of them
 * Why: docs/explanation/ranks.md. Threads: [any] after open.
 */
#ifndef DTRAIN_CORE_TRAIN_SAMPLES_H
#define DTRAIN_CORE_TRAIN_SAMPLES_H

#include "base/rng.h"
#include "dtrain/plugin.h"
#include <stdbool.h>

enum { DT_SAMPLES_MAX_SYMBOLS = 15, DT_SAMPLES_MAX_FIELDS = 64 };

typedef struct dt_field_shape {  /* a port's dims, understood once */
    int64_t number[DT_MAX_DIMS]; /* size, or what is added to the live size (SYMBOL+1) */
    int32_t symbol[DT_MAX_DIMS]; /* index, -1 for a number */
    uint32_t rank, item_bytes;
} dt_field_shape;

typedef struct dt_samples_part { /* some of the samples */
    const uint64_t *index;       /* [n]; NULL: first, first + 1, ... */
    uint64_t first, n;
} dt_samples_part;

typedef struct dt_samples {
    const dt_data_ops *ops;
    void *self;
    const dt_port *field;
    const char *const *symbol; /* the data's symbols; the graph adds "B" after them */
    uint32_t n_fields, n_symbols;
    uint64_t count;                             /* samples */
    int64_t sample_max[DT_SAMPLES_MAX_SYMBOLS]; /* largest single sample per symbol */
    double sample_mean[DT_SAMPLES_MAX_SYMBOLS];
    double sample_std[DT_SAMPLES_MAX_SYMBOLS];     /* zeros where samples are live */
    int64_t slice_cap[DT_SAMPLES_MAX_SYMBOLS + 1]; /* capacity of a micro-batch per symbol, "B" last */
    dt_field_shape shape[DT_SAMPLES_MAX_FIELDS];
    bool is_live;     /* samples change, and are read from memory: not ahead, and no unused field */
    int32_t keyed;    /* live: the one field that depends on keys, -1: none */
    uint32_t n_whole; /* live: so many last fields are read all or none */
    uint64_t skipped; /* live: bit f: field f is not read, its address is NULL */
    /* live: see dt_samples_fetch_parts; NULL: every rank can read every sample at any time */
    dt_status (*bring)(void *self, uint64_t skipped, const dt_samples_part *part);
    /* streamed: samples are numbered on without an end, and an epoch is a window of count of them. turn: [collective]
     * those of this window can be read from now on, and no others; no thread reads meanwhile, and windows come in
     * order. DT_DONE: the stream has ended before. NULL: every epoch is of the same samples. */
    dt_status (*turn)(void *self, uint64_t window);
    double room; /* streamed: how many times as large as those that were seen samples may be */
    uint64_t (*part)(const void *self, uint64_t index); /* what a sample is read with; NULL: all are read together */
    const char *apart;                                  /* next to part: the field that makes it so */
} dt_samples;

/* Reads the component's faces, scans all samples' sizes, and sets capacities for micro-batches of about slice_rows of
 * the first symbol. Errors: DT_EPLUGIN (a port that cannot be understood), DT_EDATA. */
/* At most DT_SAMPLES_MOST of them: more is a mistake of the source, and each is asked for its size here. */
#define DT_SAMPLES_MOST (UINT64_C(1) << 40)
dt_status dt_samples_open(dt_samples *s, const dt_data_ops *ops, void *self, int64_t slice_rows) DT_NODISCARD;

/* The same for a source whose samples change: they are not looked at, largest is how large one may be per symbol. Its
 * read leaves out fields whose address is NULL; only the field named keyed depends on keys. */
dt_status dt_samples_open_live(dt_samples *s, const dt_data_ops *ops, void *self, const int64_t *largest,
                               int64_t slice_rows, const char *keyed) DT_NODISCARD;

/* The same without sizes and capacities, which the caller sets; the last n_whole fields are read all or none. */
dt_status dt_samples_open_mixed(dt_samples *s, const dt_data_ops *ops, void *self, uint32_t n_whole) DT_NODISCARD;

/* [collective] part[ranks]: what each rank reads next, until this is called again; all ranks know all parts. No rank
 * writes meanwhile. Fails on all ranks or on none. */
dt_status dt_samples_fetch_parts(const dt_samples *s, const dt_samples_part *part) DT_NODISCARD;

/* Live dims of field f. */
void dt_samples_field_dims(const dt_samples *s, uint32_t f, const int64_t *size, int64_t dim[DT_MAX_DIMS]);
/* Bytes of field f for these live sizes. */
size_t dt_samples_field_bytes(const dt_samples *s, uint32_t f, const int64_t *size);

/* How many samples of index[0..n) make the next micro-batch; their sizes go to size[n_symbols], "B" at [n_symbols]. */
dt_status dt_samples_cut_micro_batch(const dt_samples *s, const uint64_t *index, uint32_t n, uint32_t *take_p,
                                     int64_t *size);

/* Reads one micro-batch into arena (64-byte aligned pieces); field pointers go to field[n_fields]; used_p gets the
 * bytes. */
dt_status dt_samples_read(const dt_samples *s, const uint64_t *index, const uint64_t *key, uint32_t n,
                          const int64_t *size, char *arena, size_t arena_bytes, void **field, size_t *used_p);

/* Bytes that any micro-batch of n samples needs at most in dt_samples_read. */
size_t dt_samples_bytes_max(const dt_samples *s, uint64_t n_samples);
/* The same of one micro-batch alone, which keeps to the capacities. */
size_t dt_samples_slice_bytes(const dt_samples *s);

#endif
