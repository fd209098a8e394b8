/* SPDX-License-Identifier: Apache-2.0
 *
 * data_trajectory in a fake host that opens real stores: what its tests share to make one and to read samples of it.
 */
#ifndef DTRAIN_TESTS_PLUGINS_TRAJECTORY_BENCH_H
#define DTRAIN_TESTS_PLUGINS_TRAJECTORY_BENCH_H

#include "mock/mock.h" /* before cmocka.h, which has a macro fail() */

#include "../traffic/fixture.h"

#include "traffic/features/features.h"
#include "traffic/store/store.h"

enum { MAX_FIELDS = 40, MAX_BYTES = 1 << 20 };

typedef struct bench {
    mock_host host;
    const dt_component *c;
    const dt_data_ops *ops;
    void *config, *self;
    void *out[MAX_FIELDS];
    const dt_port *field;
    uint32_t n_fields;
    int64_t size[3]; /* N E S */
} bench;

static dt_store *open_store;

static dt_status serve_open(const dt_host *h, const char *path, uint64_t cache_bytes, const dt_store_view **out)
{
    assert_true(cache_bytes > 0 && cache_bytes % (1 << 20) == 0);
    dt_status st = dt_store_open(path, &open_store);
    if (st < 0) {
        return (h->fail)(h, st, NULL, dt_error_text()); /* the parentheses keep cmocka's macro away */
    }
    *out = dt_store_view_of(open_store);
    return DT_OK;
}

static void serve_close(const dt_host *h, const dt_store_view *v)
{
    assert_ptr_equal(v, dt_store_view_of(open_store));
    dt_store_close(open_store);
    open_store = NULL;
}

static dt_status serve_read(const dt_host *h, const dt_store_view *v, uint32_t array, int64_t from, int64_t n,
                            void *out)
{
    return dt_store_read(dt_store_of_view(v), array, from, n, out);
}

static const dt_store_api store_api = {
    .struct_size = sizeof(store_api), .open = serve_open, .close = serve_close, .read = serve_read};

static dt_status bench_open(bench *b, const char *store, const char *const *set)
{
    char path[1100];
    const char *all[24] = {path};
    memset(b, 0, sizeof(*b));
    mock_host_init(&b->host);
    mock_host_serve(&b->host, DT_SVC_STORE, &store_api);
    mock_host_serve(&b->host, DT_SVC_FEATURES, &dt_features_service);
    b->c = mock_load("plugins", "data_trajectory", "data_trajectory");
    assert_non_null(b->c);
    b->ops = b->c->ops;
    snprintf(path, sizeof(path), "store=%s", at(store));
    for (int i = 0; set[i] != NULL; i++) {
        all[i + 1] = set[i];
    }
    b->config = mock_config(b->c, all);
    b->self = calloc(1, b->c->state_size);
    assert_true(b->config != NULL && b->self != NULL);
    dt_status st = b->c->check(&b->host.host, b->config);
    return st < 0 ? st : b->ops->create(b->self, &b->host.host, b->config);
}

static void bench_free_out(bench *b)
{
    for (uint32_t i = 0; i < MAX_FIELDS; i++) {
        free(b->out[i]);
        b->out[i] = NULL;
    }
}

static void bench_close(bench *b)
{
    bench_free_out(b);
    b->ops->destroy(b->self);
    assert_int_equal(b->host.n_live, 0);
    assert_null(open_store);
    free(b->self);
    free(b->config);
}

__attribute__((unused)) static uint64_t bench_count(const bench *b)
{
    uint64_t n = 0;
    assert_int_equal(b->ops->count(b->self, &n), DT_OK);
    return n;
}

/* Values of a field in a slice of these sizes. */
static size_t values_of(const bench *b, const char *dims)
{
    char text[64];
    size_t n = 1;
    snprintf(text, sizeof(text), "%s", dims);
    for (char *t = strtok(text, " "); t != NULL; t = strtok(NULL, " ")) {
        static const char symbols[] = "NES";
        const char *symbol = strchr(symbols, t[0]);
        n *= symbol != NULL ? (size_t)b->size[symbol - symbols] + (t[1] == '+' ? 1 : 0) : (size_t)atoi(t);
    }
    return n;
}

static size_t bytes_of(uint32_t dtype)
{
    return dtype == DT_U8 ? 1 : dtype == DT_I64 || dtype == DT_F64 ? 8 : 4;
}

/* Reads into buffers exactly as large as sizes says, so that a sanitizer sees a step too far; all bytes 0xcc before. */
static void bench_read(bench *b, const uint64_t *index, const uint64_t *key, uint32_t n)
{
    bench_free_out(b);
    b->field = b->ops->fields(b->self, &b->n_fields);
    assert_int_equal(b->ops->sizes(b->self, index, n, b->size), DT_OK);
    for (uint32_t i = 0; i < b->n_fields; i++) {
        size_t bytes = values_of(b, b->field[i].dims) * bytes_of(b->field[i].dtype);
        b->out[i] = malloc(bytes + 1);
        memset(b->out[i], 0xcc, bytes + 1);
    }
    assert_int_equal(b->ops->read(b->self, index, key, n, b->out), DT_OK);
    for (uint32_t i = 0; i < b->n_fields; i++) {
        size_t bytes = values_of(b, b->field[i].dims) * bytes_of(b->field[i].dtype);
        assert_int_equal(((unsigned char *)b->out[i])[bytes], 0xcc);
    }
}

__attribute__((unused)) static void *field_of(const bench *b, const char *name)
{
    for (uint32_t i = 0; i < b->n_fields; i++) {
        if (strcmp(b->field[i].name, name) == 0) {
            return b->out[i];
        }
    }
    fail_msg("no field %s", name);
    return NULL;
}

__attribute__((unused)) static bool is_near(double a, double b)
{
    return fabs(a - b) < 2e-4 * fmax(1, fabs(b));
}

#endif
