/* SPDX-License-Identifier: Apache-2.0 */
#include "region.h"

#include <math.h>

enum { RINGS = 20, SPOKES = 4 };
#define PI 3.14159265358979

/* In units of 1 / 2 pi. */
static double density_at(const region_gaussian *g, int64_t n, double x, double y)
{
    double sum = 0;
    for (int64_t j = 0; j < n; j++) {
        const double a = (x - g[j].x) / g[j].sigma_x, b = (y - g[j].y) / g[j].sigma_y;
        sum += g[j].p / (g[j].sigma_x * g[j].sigma_y) * exp(-0.5 * (a * a + b * b));
    }
    return sum;
}

/* Share of points with a higher density, of equal weight: rings of equal probability, rotated against each other. */
static double share_of_denser_points(const region_gaussian *g, int64_t n, const region_gaussian *of, double least)
{
    int found = 0;
    for (int i = 0; i < RINGS; i++) {
        const double r = sqrt(-2 * log1p(-(i + 0.5) / RINGS));
        for (int k = 0; k < SPOKES; k++) {
            const double turn = 2 * PI * (k + 0.382 * i) / SPOKES;
            found += density_at(g, n, of->x + r * of->sigma_x * cos(turn), of->y + r * of->sigma_y * sin(turn)) > least;
        }
    }
    return (double)found / (RINGS * SPOKES);
}

double region_level(const region_gaussian *g, int64_t n, double x, double y)
{
    if (n == 1) {
        const double a = (x - g->x) / g->sigma_x, b = (y - g->y) / g->sigma_y;
        return -expm1(-0.5 * (a * a + b * b));
    }
    const double here = density_at(g, n, x, y);
    double level = 0;
    for (int64_t j = 0; j < n; j++) {
        if (g[j].p > 0) {
            level += g[j].p * share_of_denser_points(g, n, &g[j], here);
        }
    }
    return level;
}

static double scaled_distance(const region_gaussian *g, double x, double y)
{
    return hypot((x - g->x) / g->sigma_x, (y - g->y) / g->sigma_y);
}

double region_distance(const region_gaussian *g, int64_t n, double x, double y)
{
    const double most = 1 - 0.5 / (RINGS * SPOKES);
    if (n == 1) {
        return scaled_distance(g, x, y);
    }
    const double level = region_level(g, n, x, y);
    if (level < most) {
        return sqrt(-2 * log1p(-level));
    }
    double nearest = INFINITY;
    for (int64_t j = 0; j < n; j++) {
        nearest = g[j].p > 0 ? fmin(nearest, scaled_distance(&g[j], x, y)) : nearest;
    }
    return fmax(nearest, sqrt(-2 * log1p(-most)));
}

/* Log-sum-exp: far away each summand is 0. */
double region_log_density(const region_gaussian *g, int64_t n, double x, double y)
{
    double part[REGION_MAX], most = -INFINITY, sum = 0;
    for (int64_t j = 0; j < n; j++) {
        const double d = scaled_distance(&g[j], x, y);
        part[j] = g[j].p > 0 ? log(g[j].p / (2 * PI * g[j].sigma_x * g[j].sigma_y)) - 0.5 * d * d : -INFINITY;
        most = fmax(most, part[j]);
    }
    for (int64_t j = 0; j < n; j++) {
        sum += exp(part[j] - most);
    }
    return most > -INFINITY ? most + log(sum) : most;
}
