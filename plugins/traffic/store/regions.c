/* SPDX-License-Identifier: Apache-2.0 */
#include <config.h>

#include "traffic/store/regions.h"
#include "traffic/map/bounds.h"
#include "base/err.h"
#include "base/mem.h"

#include <inttypes.h>
#include <math.h>

enum { HALVES_BINS = 4096 };

static dt_status reserve_regions(int64_t n_rows, dt_regions *out)
{
    *out = (dt_regions){.of = dt_alloc_n((size_t)n_rows, sizeof(*out->of))};
    return out->of != NULL ? DT_OK : DT_FAIL(DT_ENOMEM, "no memory for the regions of %" PRId64 " rows", n_rows);
}

void dt_regions_fini(dt_regions *r)
{
    dt_free(r->of);
    *r = (dt_regions){0};
}

/* ---- tiles ------------------------------------------------------------------------------------------------------- */

/* From numbers of tiles to those of tiles that have a row, in their order. */
static dt_status number_tiles(int64_t n_rows, int64_t n_tiles, dt_regions *r)
{
    int32_t *number = dt_alloc_n((size_t)n_tiles, sizeof(*number));
    if (number == NULL) {
        return DT_FAIL(DT_ENOMEM, "no memory for %" PRId64 " tiles", n_tiles);
    }
    for (int64_t i = 0; i < n_rows; i++) {
        number[r->of[i]] = 1;
    }
    for (int64_t k = 0; k < n_tiles; k++) {
        r->n += number[k];
        number[k] = r->n - 1;
    }
    for (int64_t i = 0; i < n_rows; i++) {
        r->of[i] = number[r->of[i]];
    }
    dt_free(number);
    return DT_OK;
}

dt_status dt_regions_make_tiles(const double *pose, int64_t n_rows, double tile_m, dt_regions *out)
{
    dt_bounds all = {.has_any = false};
    for (int64_t i = 0; i < n_rows; i++) {
        dt_bounds_add(&all, pose + 3 * i);
    }
    const double n_x = floor((all.most[0] - all.least[0]) / tile_m) + 1;
    const double n_y = floor((all.most[1] - all.least[1]) / tile_m) + 1;
    if (!(n_x * n_y <= DT_REGIONS_MAX)) {
        return DT_FAIL(DT_EINVAL, "tiles of %g m make %g times %g of them, at most %d can be: larger ones", tile_m, n_x,
                       n_y, DT_REGIONS_MAX);
    }
    dt_regions r;
    DT_TRY(reserve_regions(n_rows, &r));
    for (int64_t i = 0; i < n_rows; i++) {
        const double x = floor((pose[3 * i] - all.least[0]) / tile_m);
        const double y = floor((pose[3 * i + 1] - all.least[1]) / tile_m);
        r.of[i] = (int32_t)(y * n_x + x);
    }
    const dt_status st = number_tiles(n_rows, (int64_t)(n_x * n_y), &r);
    if (st != DT_OK) {
        dt_regions_fini(&r);
        return st;
    }
    *out = r;
    return DT_OK;
}

/* ---- halves ------------------------------------------------------------------------------------------------------ */

typedef struct cutting {
    const double *pose;
    int64_t n_rows;
    double least_m;
    dt_regions *r;
    int64_t bin[HALVES_BINS];
} cutting;

static int bin_index(double at, double least, double most)
{
    const int bin = (int)((at - least) / (most - least) * HALVES_BINS);
    return bin < HALVES_BINS ? bin : HALVES_BINS - 1; /* the last one has its end */
}

/* The first bin after a cut that leaves as near to share of all rows before it as can be. */
static int bin_of_cut(const int64_t *bin, double share)
{
    int64_t all = 0, before = 0;
    for (int b = 0; b < HALVES_BINS; b++) {
        all += bin[b];
    }
    const double wanted = share * (double)all;
    double least = INFINITY;
    int best = 1;
    for (int b = 1; b < HALVES_BINS; b++) {
        before += bin[b - 1];
        const double off = fabs((double)before - wanted);
        if (off < least) {
            least = off;
            best = b;
        }
    }
    return best;
}

/* Region k becomes two: k keeps about its share of the rows, the others go to number r->n. */
static dt_status cut_region(cutting *c, int32_t k, double share)
{
    dt_bounds box = {.has_any = false};
    int32_t *of = c->r->of;
    for (int64_t i = 0; i < c->n_rows; i++) {
        if (of[i] == k) {
            dt_bounds_add(&box, c->pose + 3 * i);
        }
    }
    const int axis = box.most[0] - box.least[0] >= box.most[1] - box.least[1] ? 0 : 1;
    const double least = box.least[axis], most = box.most[axis];
    if (!(most - least >= 2 * c->least_m) || !(most > least)) {
        return DT_FAIL(DT_EINVAL,
                       "a region of %g m is to be cut, and each half would be narrower than the halo of %g m: ask for "
                       "fewer regions or a smaller halo",
                       most - least, c->least_m);
    }
    for (int b = 0; b < HALVES_BINS; b++) {
        c->bin[b] = 0;
    }
    for (int64_t i = 0; i < c->n_rows; i++) {
        c->bin[of[i] == k ? bin_index(c->pose[3 * i + axis], least, most) : 0] += of[i] == k;
    }
    const int cut = bin_of_cut(c->bin, share);
    const double left_m = (most - least) * cut / HALVES_BINS, right_m = most - least - left_m;
    if (left_m < c->least_m || right_m < c->least_m) {
        return DT_FAIL(
            DT_EINVAL,
            "regions of equal numbers of vehicles would be %g m and %g m wide, narrower than the halo of %g m: "
            "ask for fewer regions, a smaller halo or tiles",
            left_m, right_m, c->least_m);
    }
    for (int64_t i = 0; i < c->n_rows; i++) {
        if (of[i] == k && bin_index(c->pose[3 * i + axis], least, most) >= cut) {
            of[i] = c->r->n;
        }
    }
    c->r->n++;
    return DT_OK;
}

/* wanted [n]: into how many a region is to be cut yet. */
static dt_status cut_all(cutting *c, int32_t *wanted, int32_t n)
{
    wanted[0] = n;
    for (int32_t k = 0; k < c->r->n; k++) {
        while (wanted[k] > 1) {
            const int32_t half = wanted[k] / 2;
            DT_TRY(cut_region(c, k, (double)half / wanted[k]));
            wanted[c->r->n - 1] = wanted[k] - half;
            wanted[k] = half;
        }
    }
    return DT_OK;
}

dt_status dt_regions_make_halves(const double *pose, int64_t n_rows, int32_t n, double least_m, dt_regions *out)
{
    dt_regions r;
    if (n < 1 || n > DT_REGIONS_MAX) {
        return DT_FAIL(DT_EINVAL, "%" PRId32 " regions are outside [1, %d]", n, DT_REGIONS_MAX);
    }
    DT_TRY(reserve_regions(n_rows, &r));
    r.n = 1;
    cutting *c = dt_alloc(sizeof(*c));
    int32_t *wanted = dt_alloc_n((size_t)n, sizeof(*wanted));
    dt_status st = DT_OK;
    if (c == NULL || wanted == NULL) {
        st = DT_FAIL(DT_ENOMEM, "no memory for %" PRId32 " regions", n);
    } else {
        *c = (cutting){.pose = pose, .n_rows = n_rows, .least_m = least_m, .r = &r};
        st = cut_all(c, wanted, n);
    }
    dt_free(c);
    dt_free(wanted);
    if (st != DT_OK) {
        dt_regions_fini(&r);
        return st;
    }
    *out = r;
    return DT_OK;
}
