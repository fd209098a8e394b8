/* SPDX-License-Identifier: Apache-2.0
 *
 * A data source on trial, outside of any run: created, asked for its fields, and its first, middle and last samples
 * read into guarded buffers. For `dtrain check`. Its host serves stores, features and random numbers, and counts its
 * memory. Threads: [main].
 */
#ifndef DTRAIN_CORE_PLUGIN_TRIAL_PROBE_DATA_H
#define DTRAIN_CORE_PLUGIN_TRIAL_PROBE_DATA_H

#include "plugin/trial/probe.h"
#include "plugin/service/stage.h"

enum { DT_PROBE_MAX_SYMBOLS = 8, DT_PROBE_MAX_FIELDS = 64 };

typedef struct dt_probe_data {
    const dt_loaded *data;
    dt_probe_host host;
    dt_trial *trial; /* notified of calls; NULL */
    dt_stage stage;  /* serves through it; nothing else of it is in use */
    void *state;     /* owned */
    bool is_created;
    const dt_port *field;
    const char *symbol[DT_PROBE_MAX_SYMBOLS + 1]; /* and "B" */
    uint32_t n_fields, n_symbols;
    uint64_t count; /* samples */
} dt_probe_data;

/* config: filled by the component's option table; it must outlive the trial. No trial yet. */
dt_status dt_probe_data_create(dt_probe_data *p, const dt_loaded *data, const void *config) DT_NODISCARD;
dt_status dt_probe_data_describe(dt_probe_data *p) DT_NODISCARD; /* fields and symbols: legal shapes */
dt_status dt_probe_data_count_samples(dt_probe_data *p) DT_NODISCARD;
/* Sizes add up; every byte of a buffer is written and none past it; the same samples and keys give the same bytes,
 * augmented or not. With no samples there is nothing to do. */
dt_status dt_probe_data_read(dt_probe_data *p) DT_NODISCARD;
/* Of every field that it knows statistics of: they can be so, and are the same when asked again. n_p: such fields. */
dt_status dt_probe_data_statistics(dt_probe_data *p, uint32_t *n_p) DT_NODISCARD;
/* Calls the component's destroy; then host.n_live counts leaks, and n_datasets what was left open. */
void dt_probe_data_destroy(dt_probe_data *p, uint32_t *n_datasets_p);

#endif
