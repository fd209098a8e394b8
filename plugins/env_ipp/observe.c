/* SPDX-License-Identifier: Apache-2.0
 *
 * What the UAVs of env_ipp are shown. obs of a UAV: seven planes [points, points], rows to the north, of the tile of
 * every point of the lattice
 *
 *   0 place         view "field": 1 at its own; "own", where the UAV is in the middle of every plane: 1 in the field
 *   1 others        altitude / highest of UAVs within communication_m, over the point
 *   2 altitude      its own / highest, everywhere
 *   3 budget        share of the moves that is left, everywhere
 *   4 probability   that the tile is of interest, mean of what the UAV believes
 *   5 entropy       bits, mean
 *   6 footprint     share of the tile that it sees now
 *
 * and with lookahead the gain of each move. What is outside of the field is 0.
 *
 * state: planes of 0 the truth's share, 1 probability and 2 entropy by all measurements; then x, y (0 to 1 across the
 * field) and altitude / highest of every UAV; then the share of the moves that is left.
 */
#include "env_ipp.h"

int64_t ipp_obs_columns(const ipp *s)
{
    return (int64_t)IPP_PLANES * s->points * s->points + (s->config.lookahead ? IPP_MOVES : 0);
}

int64_t ipp_state_columns(const ipp *s)
{
    return (int64_t)IPP_STATE_PLANES * s->points * s->points + IPP_STATE_OF_UAV * s->config.uavs + 1;
}

static float relative_altitude(const ipp *s, uint32_t i)
{
    return (float)(s->place[i].level + 1) / FIELD_LEVELS;
}

static float remaining_budget(const ipp *s)
{
    return (float)(s->moves - s->step) / (float)s->moves;
}

/* of the tile of point k in a row, the share in [from, to), cells */
static float share_covered(const ipp *s, int32_t k, int32_t from, int32_t to)
{
    const double low = fmax((k - 0.5) * s->step_cells, 0);
    const double high = k == s->points - 1 ? s->field.cells : (k + 0.5) * s->step_cells;
    const double part = fmin(high, to) - fmax(low, from);
    return part > 0 ? (float)(part / (high - low)) : 0;
}

/* Planes of UAV i; point (x, y) of the lattice goes to (x + dx, y + dy) of every plane. */
static void write_planes(const ipp *s, uint32_t i, int32_t dx, int32_t dy, float *out)
{
    const int32_t P = s->points, n = P * P;
    const belief *b = ipp_belief(s, i);
    const float altitude = relative_altitude(s, i), budget = remaining_budget(s);
    const bool is_own = s->config.view == IPP_VIEW_OWN;
    const field_rect at = ipp_footprint(s, &s->place[i]);
    float column[IPP_MAX_POINTS];
    for (int32_t x = 0; x < P; x++) {
        column[x] = share_covered(s, x, at.x0, at.x1);
    }
    for (int32_t y = 0; y < P; y++) {
        const float row = share_covered(s, y, at.y0, at.y1);
        for (int32_t x = 0; x < P; x++) {
            const int32_t u = x + dx, v = y + dy;
            if (u < 0 || u >= P || v < 0 || v >= P) {
                continue;
            }
            float *cell = out + v * P + u;
            cell[0] = is_own || (x == s->place[i].x && y == s->place[i].y);
            belief_tile(b, &s->tables, y * P + x, &cell[4 * n], &cell[5 * n]);
            cell[6 * n] = row * column[x];
        }
    }
    for (uint32_t j = 0; j < ipp_n(s); j++) {
        const int32_t u = s->place[j].x + dx, v = s->place[j].y + dy;
        if (j != i && ipp_receives(s, i, j) && u >= 0 && u < P && v >= 0 && v < P) {
            float *cell = out + n + v * P + u;
            *cell = fmaxf(*cell, relative_altitude(s, j)); /* several may be over one point */
        }
    }
    for (int32_t k = 0; k < n; k++) {
        out[2 * n + k] = altitude;
        out[3 * n + k] = budget;
    }
}

/* Masks of UAV i, and the port moves. */
static void write_moves(ipp *s, uint32_t i, uint8_t *mask, float *moves)
{
    const double samples = 2.0 * s->level[FIELD_LEVELS - 1].half / (double)s->config.stride;
    uint8_t inside[IPP_MOVES];
    bool any = false;
    for (int32_t m = 0; m < IPP_MOVES; m++) {
        ipp_place to;
        inside[m] = ipp_target(s, &s->place[i], m, &to);
        mask[m] = inside[m] && ipp_occupant(s, i, &to) == ipp_n(s);
        any = any || mask[m];
        moves[m * IPP_COLUMNS + IPP_CHANCE] = (float)dt_random_uniform(&s->chance);
        if (inside[m]) {
            const field_rect at = ipp_footprint(s, &to);
            const double bits = belief_gain(ipp_belief(s, i), &s->tables, &at, to.level);
            moves[m * IPP_COLUMNS + IPP_GAIN] = (float)(bits / (samples * samples));
        }
    }
    if (!any) { /* others all around */
        memcpy(mask, inside, sizeof(inside));
    }
}

static void write_state(const ipp *s, float *out)
{
    const int32_t P = s->points, n = P * P, S = s->tables.stride;
    const belief *b = &s->belief[s->observes_all];
    for (int32_t y = 0; y < s->tables.n; y++) {
        const int16_t *truth = s->field.truth + (int64_t)y * S * s->field.cells;
        for (int32_t x = 0; x < s->tables.n; x++) {
            out[s->tables.tile[y] * P + s->tables.tile[x]] -= truth[x * S];
        }
    }
    for (int32_t k = 0; k < n; k++) {
        out[k] /= (float)s->tables.count[k];
        belief_tile(b, &s->tables, k, &out[n + k], &out[2 * n + k]);
    }
    out += IPP_STATE_PLANES * n;
    for (uint32_t i = 0; i < ipp_n(s); i++) {
        *out++ = (float)s->place[i].x / (float)(P - 1);
        *out++ = (float)s->place[i].y / (float)(P - 1);
        *out++ = relative_altitude(s, i);
    }
    *out = remaining_budget(s);
}

void ipp_observe(ipp *s, const dt_env_io *io, bool is_alive)
{
    const int64_t D = ipp_obs_columns(s);
    const int32_t middle = s->points / 2;
    float *moves = io->obs[1];
    for (uint32_t i = 0; i < ipp_n(s); i++, moves += IPP_MOVES * IPP_COLUMNS) {
        const bool is_own = s->config.view == IPP_VIEW_OWN;
        float *obs = (float *)io->obs[0] + i * D;
        write_planes(s, i, is_own ? middle - s->place[i].x : 0, is_own ? middle - s->place[i].y : 0, obs);
        write_moves(s, i, io->mask + (size_t)i * IPP_MOVES, moves);
        for (int32_t m = 0; m < IPP_MOVES && s->config.lookahead; m++) {
            obs[D - IPP_MOVES + m] = moves[m * IPP_COLUMNS + IPP_GAIN];
        }
        io->alive[i] = is_alive;
    }
    if (s->config.state) {
        io->size[0] = 1;
        write_state(s, io->obs[2]);
        memset(io->obs[3], 0, ipp_n(s) * sizeof(int32_t)); /* all look at row 0 */
    }
}
