/* SPDX-License-Identifier: Apache-2.0
 *
 * See store.h. The component is data_trajectory as it is, by a host that knows its services alone.
 */
#include <config.h>

#include "fuzz/fuzz.h"
#include "fuzz/store.h"

#include "../../plugins/data_trajectory/windows.h"
#include "base/err.h"
#include "base/mem.h"
#include "traffic/features/features.h"
#include "engine/tensor/dtype.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_WINDOWS = 6, STEPS = 3, FUTURE = 2 };

const dt_plugin *data_trajectory_LTX_dt_plugin_entry(void);

/* ---- a host ------------------------------------------------------------------------------------------------------ */

static dt_status host_fail(const dt_host *h, dt_status st, const char *where, const char *msg)
{
    return DT_FAIL(st, "%s", msg);
}

static void host_log(const dt_host *h, int32_t level, const char *msg)
{
    fuzz_touch_text(msg);
}

/* Two points a thousand kilometres apart are a lane, of so many pieces that a fuzzer would run out of memory first. */
static void *host_alloc(const dt_host *h, uint64_t bytes)
{
    enum { MOST_BYTES = 16 << 20 };
    return bytes <= MOST_BYTES ? dt_alloc(bytes) : NULL;
}

static void host_release(const dt_host *h, void *p)
{
    dt_free(p);
}

static dt_status store_open(const dt_host *h, const char *path, uint64_t cache_bytes, const dt_store_view **out)
{
    dt_store *s = NULL;
    DT_TRY(dt_store_open_cached(path, cache_bytes, &s));
    *out = dt_store_view_of(s);
    return DT_OK;
}

static void store_close(const dt_host *h, const dt_store_view *v)
{
    dt_store_close((dt_store *)(uintptr_t)dt_store_of_view(v));
}

static dt_status store_read(const dt_host *h, const dt_store_view *v, uint32_t array, int64_t from, int64_t n,
                            void *out)
{
    return dt_store_read(dt_store_of_view(v), array, from, n, out);
}

static const void *host_service(const dt_host *h, const char *id)
{
    static const dt_store_api store = {
        .struct_size = sizeof(store), .open = store_open, .close = store_close, .read = store_read};
    return strcmp(id, DT_SVC_STORE) == 0      ? (const void *)&store
           : strcmp(id, DT_SVC_FEATURES) == 0 ? (const void *)&dt_features_service
                                              : NULL;
}

static const dt_host host = {.struct_size = sizeof(dt_host),
                             .abi_major = DT_ABI_MAJOR,
                             .abi_minor = DT_ABI_MINOR,
                             .fail = host_fail,
                             .log = host_log,
                             .alloc = host_alloc,
                             .release = host_release,
                             .service = host_service};

/* ---- a slice ----------------------------------------------------------------------------------------------------- */

static const char symbol_letters[N_SYMBOLS + 1] = "NES";

/* Values of a field: "N 9", "N+1", "5 S 2". */
static size_t values_of(const char *dims, const int64_t size[N_SYMBOLS])
{
    size_t n = 1;
    for (const char *p = dims; *p != '\0'; p += strcspn(p, " "), p += strspn(p, " ")) {
        const char *letter = strchr(symbol_letters, *p);
        const int64_t rows = letter != NULL ? size[letter - symbol_letters] : atoll(p);
        n *= (size_t)rows + (letter != NULL && p[1] == '+');
    }
    return n;
}

typedef struct slice {
    void *out[N_FIELDS_OF_ALL];
    size_t values[N_FIELDS_OF_ALL];
    uint32_t n_fields;
} slice;

static void hold_floats(const void *p, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        fuzz_hold(isfinite(((const float *)p)[i]));
    }
}

static void hold_indices(const slice *s, uint32_t field, int64_t least, int64_t end)
{
    for (size_t i = 0; i < s->values[field]; i++) {
        const int64_t x = ((const int32_t *)s->out[field])[i];
        fuzz_hold(x >= least && x < end);
    }
}

/* Row pointers of so many rows that lead to so many edges. */
static void hold_rows(const slice *s, uint32_t field, int64_t rows, int64_t edges)
{
    const int32_t *rowptr = s->out[field];
    fuzz_hold(rowptr[0] == 0 && rowptr[rows] == edges);
    for (int64_t i = 0; i < rows; i++) {
        fuzz_hold(rowptr[i] <= rowptr[i + 1]);
    }
}

static void look_at(const slice *s, const dt_port *field, const int64_t size[N_SYMBOLS], uint32_t n)
{
    hold_rows(s, ROWPTR, size[0], size[1]);
    hold_indices(s, COL, 0, size[0]);
    hold_indices(s, STEP_OF_ROW, 0, STEPS);
    hold_indices(s, SEQ_ROW, -1, size[0]);
    hold_indices(s, SAMPLE_OF_SEQ, 0, n);
    for (uint32_t i = 0; i < s->n_fields; i++) {
        if (field[i].dtype == DT_F32) {
            hold_floats(s->out[i], s->values[i]);
        }
        fuzz_touch(s->out[i], s->values[i] * dt_dtype_bytes(field[i].dtype));
    }
}

static void read_slice(const dt_data_ops *ops, void *self, const uint64_t *index, uint32_t n, uint64_t key)
{
    const uint64_t keys[MOST_WINDOWS] = {key, key, key + 1, key, key, key};
    int64_t size[N_SYMBOLS] = {0};
    slice s = {.n_fields = 0};
    const dt_port *field = ops->fields(self, &s.n_fields);
    fuzz_hold(ops->sizes(self, index, n, size) == DT_OK);
    for (int k = 0; k < N_SYMBOLS; k++) {
        fuzz_hold(size[k] >= 0);
    }
    for (uint32_t i = 0; i < s.n_fields; i++) {
        s.values[i] = values_of(field[i].dims, size);
        s.out[i] = malloc(s.values[i] * dt_dtype_bytes(field[i].dtype) + (s.values[i] == 0));
        fuzz_hold(s.out[i] != NULL);
    }
    fuzz_hold(ops->read(self, index, keys, n, s.out) == DT_OK);
    look_at(&s, field, size, n);
    for (uint32_t i = 0; i < s.n_fields; i++) {
        free(s.out[i]);
    }
}

/* ---- windows ----------------------------------------------------------------------------------------------------- */

/* Some windows at once, and each alone, as they are and as training sees them. */
static void read_windows(const dt_data_ops *ops, void *self)
{
    uint64_t n = 0, index[MOST_WINDOWS];
    fuzz_hold(ops->count(self, &n) == DT_OK);
    const uint32_t some = n < MOST_WINDOWS ? (uint32_t)n : MOST_WINDOWS;
    for (uint32_t i = 0; i < some; i++) {
        index[i] = i < MOST_WINDOWS / 2 ? i : n - some + i;
        read_slice(ops, self, &index[i], 1, i);
    }
    if (some > 0) {
        read_slice(ops, self, index, some, 0);
        read_slice(ops, self, index, some, 77);
    }
    double *weights = n > 0 && n < 10000 ? calloc((size_t)n, sizeof(*weights)) : NULL;
    if (weights != NULL && ops->weights(self, weights, n) == DT_OK) {
        for (uint64_t i = 0; i < n; i++) {
            fuzz_hold(isfinite(weights[i]) && weights[i] >= 0);
        }
    }
    free(weights);
}

void store_windows(double frame_rate_hz, uint8_t options)
{
    const dt_component *c = data_trajectory_LTX_dt_plugin_entry()->components[0];
    const dt_data_ops *ops = c->ops;
    windows_config cfg = {.store = STORE_PATH,
                          .split = options & 3,
                          .history_s = STEPS / frame_rate_hz,
                          .horizon_s = FUTURE / frame_rate_hz,
                          .rate_hz = frame_rate_hz,
                          .folds = 2,
                          .fold = options >> 2 & 1,
                          .calibration_folds = 1,
                          .cache_mb = 1,
                          .eval_site = (options & 8) != 0 ? "here" : "",
                          .shift_m = 10,
                          .speed_noise_mps = 0.5,
                          .drop_edges = (options & 16) != 0 ? 0.5 : 0,
                          .hide_nodes = (options & 16) != 0 ? 0.5 : 0,
                          .rotate = 1,
                          .mirror = 1,
                          .balance = options >> 5 & 3,
                          .pairs = (options & 128) == 0,
                          .lanes = 1,
                          .hazard_collisions = 1,
                          .hazard_ttc_s = 1.5,
                          .hazard_mps2 = 3,
                          .hazard_steps = 2,
                          .brake_mps2 = 3,
                          .action_s = 1 / frame_rate_hz};
    if (c->check(&host, &cfg) != DT_OK) {
        return; /* a rate whose steps are no whole numbers when they are rounded */
    }
    windows *self = calloc(1, (size_t)c->state_size);
    fuzz_hold(self != NULL);
    const dt_status st = ops->create(self, &host, &cfg);
    if (st == DT_OK) {
        read_windows(ops, self);
    } else {
        fuzz_hold(*dt_error_text() != '\0');
    }
    ops->destroy(self);
    free(self);
}
