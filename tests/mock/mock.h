/* SPDX-License-Identifier: Apache-2.0
 *
 * libdtmock: a fake host, so that plugins are tested without the real one. It loads a plugin, fills its configuration
 * from the option table, keeps what the plugin said (failure, log), counts memory, records parameters and graphs.
 * It computes nothing: a tensor is a number in a list. Threads: one.
 */
#ifndef DTRAIN_TESTS_MOCK_MOCK_H
#define DTRAIN_TESTS_MOCK_MOCK_H

#include "dtrain/helpers.h"
#include "dtrain/svc/graph.h"
#include <stdbool.h>

enum { MOCK_TEXT = 1024, MOCK_MAX = 256, MOCK_NAME = 64 };

typedef struct mock_host {
    dt_host host; /* first: a dt_host * is a mock_host * */
    dt_status status;
    char message[MOCK_TEXT]; /* the last failure */
    char log[MOCK_TEXT];     /* the last log line */
    int64_t n_live;          /* blocks not released */
    int64_t fail_alloc;      /* the n-th allocation from now fails; 0 = none */
    uint32_t n_services;
    const char *service_id[8];
    const void *service[8];
} mock_host;

void mock_host_init(mock_host *m);
/* The text has each of these words, which blanks separate: keys and values of a message, whatever its wording. */
bool mock_names(const char *text, const char *words);
void mock_host_serve(mock_host *m, const char *id, const void *service);

/* The component id of <folder>/.libs/<file>.so, NULL with a line on standard error when it cannot be had. */
const dt_component *mock_load(const char *folder, const char *file, const char *id);
/* Zeroed configuration with every default, then set ("key=value", NULL). Freed by free(). Aborts on an unknown key. */
void *mock_config(const dt_component *c, const char *const *set);

typedef struct mock_param {
    char name[MOCK_NAME];
    int64_t dim[4], count;
    uint32_t n_dims, init;
    double a;
    bool used; /* a graph asked for it */
} mock_param;

typedef struct mock_params {
    dt_params reg; /* first */
    mock_param param[MOCK_MAX];
    uint32_t n;
    uint32_t fails_at; /* the n-th parameter from now is refused; 0: none */
} mock_params;

void mock_params_init(mock_params *p);
mock_param *mock_params_find(mock_params *p, const char *name);
int64_t mock_params_total(const mock_params *p);

struct dt_tensor {
    uint32_t op; /* 0: an input, parameter or output of a model */
    char name[MOCK_NAME];
    dt_tensor *in[8];
    uint32_t n_in;
    dt_attr attr;
};

typedef struct mock_graph {
    dt_graph graph; /* first */
    dt_tensor tensor[2 * MOCK_MAX];
    uint32_t n;
    mock_params *params;   /* what param() may name; NULL: nothing */
    char error[MOCK_TEXT]; /* the first error; "" */
    struct {
        char name[MOCK_NAME], symbol[8];
        double weight;
        dt_tensor *value;
    } loss[8];
    uint32_t n_losses;
    struct {
        char name[MOCK_NAME];
        dt_tensor *value;
    } output[8];
    uint32_t n_outputs;
    uint32_t purpose; /* DT_FOR_*; 0: training */
} mock_graph;

void mock_graph_init(mock_graph *g, mock_params *params);
dt_tensor *mock_graph_tensor(mock_graph *g, const char *name); /* a new value without history */
uint32_t mock_graph_count(const mock_graph *g, uint32_t op);

#endif
