/* SPDX-License-Identifier: Apache-2.0 */
#include <config.h>

#include "traffic/inspect/normalisation.h"
#include "traffic/features/features.h"

#include <math.h>

static const uint32_t node_kind[DT_NODE_FEATURES] = DT_NODE_KINDS, edge_kind[DT_EDGE_FEATURES] = DT_EDGE_KINDS;
static const float node_scale[DT_NODE_FEATURES] = DT_NODE_SCALE, edge_scale[DT_EDGE_FEATURES] = DT_EDGE_SCALE;

static double scale_unit(float scale)
{
    return 1 / fabs((double)scale);
}

/* Least and greatest distance from the middle of a frame, along x and y. */
static void measure_extent(const dt_store_view *v, dt_field_stat reach[2])
{
    for (int64_t f = 0; f < v->n_frames; f++) {
        const int64_t from = v->frame_row[f], end = v->frame_row[f + 1];
        for (int d = 0; d < 2 && end > from; d++) {
            double centre = 0;
            for (int64_t r = from; r < end && v->frame_centre == NULL; r++) {
                centre += v->pose[3 * r + d] / (double)(end - from);
            }
            centre = v->frame_centre != NULL ? v->frame_centre[2 * f + d] : centre;
            for (int64_t r = from; r < end; r++) {
                const double x = v->pose[3 * r + d] - centre;
                reach[d].min = fmin(reach[d].min, x);
                reach[d].max = fmax(reach[d].max, x);
                reach[d].n += 1;
            }
        }
    }
}

static dt_normaliser make_normaliser(const dt_feature_stat *s, int64_t n, float scale)
{
    const dt_field_stat is = {.n = (double)n, .min = s->min, .max = s->max, .mean = s->mean, .std = s->std};
    return dt_normaliser_measure(&is, scale_unit(scale));
}

dt_normalisation dt_normalisation_measure(const dt_store *s)
{
    const dt_store_view *v = dt_store_view_of(s);
    dt_field_stat reach[2] = {{0}};
    dt_normalisation k;
    measure_extent(v, reach);
    for (int d = 0; d < DT_NODE_FEATURES; d++) {
        switch (node_kind[d]) {
        case DT_FEATURE_POSITION:
            k.node[d] = dt_normaliser_position(&reach[0], &reach[1], scale_unit(node_scale[d]));
            break;
        case DT_FEATURE_MEASURE:
            k.node[d] = make_normaliser(dt_store_node_stat(s) + d, v->n_rows, node_scale[d]);
            break;
        case DT_FEATURE_ACCELERATION:
            k.node[d] = dt_normaliser_acceleration(1);
            break;
        default:
            k.node[d] = dt_normaliser_of(0, 1, 0);
            break;
        }
    }
    for (int d = 0; d < DT_EDGE_FEATURES; d++) { /* every vehicle has one to itself, which statistics leave out */
        k.edge[d] = make_normaliser(dt_store_edge_stat(s) + d, v->n_edges - v->n_rows, edge_scale[d]);
    }
    return k;
}

static void list_left(dt_str *out, const dt_normaliser *k, const char *const *name, int n)
{
    for (int d = 0; d < n; d++) {
        if (k[d].is_left) {
            dt_str_addf(out, "%s%s", out->bytes > 0 ? ", " : "", name[d]);
        }
    }
}

void dt_normalisation_text(const dt_normalisation *k, dt_str *out)
{
    dt_str left = {0};
    list_left(&left, k->node, dt_node_feature_name, DT_NODE_FEATURES);
    list_left(&left, k->edge, dt_edge_feature_name, DT_EDGE_FEATURES);
    dt_str_add(out, "normalised by all of it (risk_gnn.normalise = \"store\"): ");
    if (k->node[DT_NORMALISED_X].is_left == 0) {
        dt_str_addf(out, "positions as far as %.4g m from the middle of their frame, ",
                    1 / k->node[DT_NORMALISED_X].scale);
    }
    dt_str_addf(out, "accelerations within %g m/s^2, measures by mean and std", DT_ACCELERATION_BOUND);
    if (left.bytes > 0) {
        dt_str_addf(out, "; constant, and not normalised: %s", dt_str_text(&left));
    }
    dt_str_add(out, "\n");
    dt_str_fini(&left);
}

static void write_objects(dt_json_out *o, const dt_normaliser *k, const uint32_t *kind, const char *const *name, int n)
{
    static const char *const word[] = {[DT_FEATURE_AS_IS] = "as it is",
                                       [DT_FEATURE_POSITION] = "position",
                                       [DT_FEATURE_MEASURE] = "measure",
                                       [DT_FEATURE_ACCELERATION] = "acceleration"};
    for (int d = 0; d < n; d++) {
        dt_json_obj(o, name[d]);
        dt_json_str(o, "kind", word[k[d].is_left ? DT_FEATURE_AS_IS : kind[d]]);
        dt_json_f64(o, "shift", k[d].shift);
        dt_json_f64(o, "scale", k[d].scale);
        dt_json_end(o, '}');
    }
}

void dt_normalisation_json(const dt_normalisation *k, dt_json_out *o)
{
    dt_json_obj(o, "normalised");
    write_objects(o, k->node, node_kind, dt_node_feature_name, DT_NODE_FEATURES);
    write_objects(o, k->edge, edge_kind, dt_edge_feature_name, DT_EDGE_FEATURES);
    dt_json_end(o, '}');
}
