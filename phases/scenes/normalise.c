/* SPDX-License-Identifier: Apache-2.0 */
#include "normalise.h"

#include "dtrain/traffic/normalise.h"
#include "dtrain/svc/comm.h"

#include <stdio.h>
#include <string.h>

#define CONSTANT(name) "perception.constant." name

enum { SPEED = 2, LINE = 400 };

static const char *const node_name[DT_NODE_FEATURES] = {"x",      "y",      "speed",         "acceleration", "sine",
                                                        "cosine", "length", "stop distance", "controlled"};
static const char *const edge_name[DT_EDGE_FEATURES] = {"gap", "lateral offset", "closing speed",
                                                        "inverse time to collision"};

typedef struct found {
    bool has_constants, is_trained;
} found;

static dt_status find_constants(const prediction *p, const dt_train_api *train, const dt_train *t, found *out)
{
    static const char role[] = "perception.";
    *out = (found){0};
    for (uint64_t i = 0;; i++) {
        dt_train_param is = {.struct_size = sizeof(is)};
        const dt_status st = train->parameter(t, i, &is);
        if (st == DT_ENOTFOUND) {
            return DT_OK;
        }
        if (st < 0) {
            return DT_FAIL_H(p->h, st, "%s: looking at the parameters", p->phase);
        }
        if (strncmp(is.name, role, sizeof(role) - 1) == 0) {
            out->has_constants = out->has_constants || strcmp(is.name, CONSTANT("node_scale")) == 0;
            out->is_trained = out->is_trained || is.is_trained;
        }
    }
}

static bool is_rank_0(const prediction *p)
{
    const dt_comm_api *comm = p->h->service(p->h, DT_SVC_COMM);
    return comm == NULL || comm->rank(p->h) == 0;
}

/* Names of features that are almost constant. */
static void append_unscaled(char *text, const dt_normaliser *k, const char *const *name, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        const size_t used = strlen(text);
        if (k[i].is_left && used < LINE) {
            snprintf(text + used, LINE - used, "%s%s", used > 0 ? ", " : "", name[i]);
        }
    }
}

static void log_normalisation(const prediction *p, const dt_field_stat *node, const dt_normaliser *n,
                              const dt_normaliser *e)
{
    static const float unit[DT_NODE_FEATURES] = DT_NODE_SCALE;
    char left[LINE] = "";
    append_unscaled(left, n, node_name, DT_NODE_FEATURES);
    append_unscaled(left, e, edge_name, DT_EDGE_FEATURES);
    dt_logf(p->h, 2,
            "perception is normalised by %.0f vehicles, those of all frames trained on: speed %.3g m/s, its "
            "deviation %.3g m/s; positions as far as %.4g m",
            node[SPEED].n, node[SPEED].mean / (double)unit[SPEED], node[SPEED].std / (double)unit[SPEED],
            1 / (n[DT_NORMALISED_X].scale * (double)unit[DT_NORMALISED_X]));
    if (left[0] != '\0') {
        dt_logf(p->h, 2, "almost constant in these frames, so scaled by fixed numbers: %s", left);
    }
}

/* Statistics are of features as the data scales them, so that one is a unit of each. */
static void make_normalisers(const dt_field_stat *stat, const uint32_t *kind, uint32_t n, dt_normaliser *k)
{
    static const float unit[DT_NODE_FEATURES] = DT_NODE_SCALE;
    for (uint32_t i = 0; i < n; i++) {
        switch (kind[i]) {
        case DT_FEATURE_POSITION:
            k[i] = dt_normaliser_position(&stat[DT_NORMALISED_X], &stat[DT_NORMALISED_Y], 1);
            break;
        case DT_FEATURE_MEASURE:
            k[i] = dt_normaliser_measure(&stat[i], 1);
            break;
        case DT_FEATURE_ACCELERATION:
            k[i] = dt_normaliser_acceleration(1 / (double)unit[DT_NORMALISED_ACCELERATION]);
            break;
        default:
            k[i] = dt_normaliser_of(0, 1, 0);
            break;
        }
    }
}

static dt_status set_constants(const dt_train_api *train, dt_train *t, const char *shift, const char *scale,
                               const dt_normaliser *k, uint32_t n)
{
    float a[DT_NODE_FEATURES], b[DT_NODE_FEATURES];
    for (uint32_t i = 0; i < n; i++) {
        a[i] = (float)k[i].shift;
        b[i] = (float)k[i].scale;
    }
    DT_TRY_H(train->constant_set(t, shift, a, n));
    return train->constant_set(t, scale, b, n);
}

static dt_status fit_constants(const prediction *p, const dt_train_api *train, dt_train *t, const dt_field_stat *node,
                               const dt_field_stat *edge)
{
    static const uint32_t node_kind[DT_NODE_FEATURES] = DT_NODE_KINDS, edge_kind[DT_EDGE_FEATURES] = DT_EDGE_KINDS;
    dt_normaliser n[DT_NODE_FEATURES], e[DT_EDGE_FEATURES];
    make_normalisers(node, node_kind, DT_NODE_FEATURES, n);
    make_normalisers(edge, edge_kind, DT_EDGE_FEATURES, e);
    DT_TRY_H(set_constants(train, t, CONSTANT("node_shift"), CONSTANT("node_scale"), n, DT_NODE_FEATURES));
    DT_TRY_H(set_constants(train, t, CONSTANT("edge_shift"), CONSTANT("edge_scale"), e, DT_EDGE_FEATURES));
    if (is_rank_0(p)) {
        log_normalisation(p, node, n, e);
    }
    return DT_OK;
}

/* All ranks fail if one cannot read. */
static dt_status agree_status(const prediction *p, dt_status mine)
{
    const dt_comm_api *comm = p->h->service(p->h, DT_SVC_COMM);
    return comm != NULL ? comm->agree(p->h, mine) : mine;
}

static dt_status read_statistics(const prediction *p, const dt_data *data, dt_field_stat *node, dt_field_stat *edge)
{
    DT_TRY_H(p->bind->data_statistics(data, "nodes", node, DT_NODE_FEATURES));
    return p->bind->data_statistics(data, "edges", edge, DT_EDGE_FEATURES);
}

static dt_status reject_refit(const prediction *p, const found *is)
{
    return DT_FAIL_H(p->h, DT_ECONFIG, "%s.refit_normalisation is set, but perception %s", p->phase,
                     !is->has_constants ? "is not normalised by a store; set its option normalise to \"store\", as "
                                          "risk_gnn has it"
                                        : "is frozen, and it was trained on features as they were normalised before; "
                                          "train it, or set refit_normalisation to false");
}

dt_status normalise_fit(const prediction *p, const dt_train_api *train, dt_train *t, const dt_data *data, int is_forced)
{
    found is = {0};
    float scale[DT_NODE_FEATURES];
    if (p->perception == NULL) {
        return DT_OK;
    }
    DT_TRY_H(find_constants(p, train, t, &is));
    if (is_forced && (!is.has_constants || !is.is_trained)) {
        return reject_refit(p, &is);
    }
    if (!is.has_constants) {
        return DT_OK;
    }
    DT_TRY_H(train->constant_get(t, CONSTANT("node_scale"), scale, DT_NODE_FEATURES));
    if (scale[DT_NORMALISED_ACCELERATION] != 1 && !is_forced) { /* always set by a fit */
        if (is_rank_0(p)) {
            dt_logf(p->h, 2, "perception keeps its normalisation; %s.refit_normalisation fits it to this store",
                    p->phase);
        }
        return DT_OK;
    }
    if (!is.is_trained) {
        if (is_rank_0(p)) {
            dt_logf(p->h, 1, "perception is frozen and was never normalised: it sees features scaled by fixed numbers");
        }
        return DT_OK;
    }
    dt_field_stat node[DT_NODE_FEATURES], edge[DT_EDGE_FEATURES];
    DT_TRY_H(agree_status(p, read_statistics(p, data, node, edge)));
    return fit_constants(p, train, t, node, edge);
}
