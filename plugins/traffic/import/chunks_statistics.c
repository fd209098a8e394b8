/* SPDX-License-Identifier: Apache-2.0
 *
 * statistics.json of a recording in chunks. See chunks.h.
 *
 * {"<feature>":{"min":x,"max":x,"mean":x,"std":x,"count":n},...} over every value of the chunks that is not missing.
 * Features: the numbers of a vehicle (x y heading speed accel length width stop_distance), controlled as 0 or 1,
 * sin_heading and cos_heading, acceleration as another name of accel. Compared with 0.1 % of the feature's range plus
 * 1e-3, which leaves room for rounded figures; std may be that of the population or of the sample.
 */
#include <config.h>

#include "traffic/import/chunks.h"
#include "base/err.h"
#include "base/fs.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

static const char *const stat_names[] = {[DT_CHUNKS_X] = "x",
                                         [DT_CHUNKS_Y] = "y",
                                         [DT_CHUNKS_HEADING] = "heading",
                                         [DT_CHUNKS_SPEED] = "speed",
                                         [DT_CHUNKS_ACCEL] = "accel",
                                         [DT_CHUNKS_LENGTH] = "length",
                                         [DT_CHUNKS_WIDTH] = "width",
                                         [DT_CHUNKS_STOP] = "stop_distance",
                                         [DT_CHUNKS_CONTROLLED] = "controlled",
                                         [DT_CHUNKS_SIN] = "sin_heading",
                                         [DT_CHUNKS_COS] = "cos_heading",
                                         [DT_CHUNKS_N_STATS] = NULL};

void dt_chunks_count_value(dt_chunks_stat *s, double x)
{
    double d = x - s->mean;
    s->n++;
    s->mean += d / (double)s->n;
    s->m2 += d * (x - s->mean);
    s->min = s->n == 1 || x < s->min ? x : s->min;
    s->max = s->n == 1 || x > s->max ? x : s->max;
}

static dt_status compare_statistic(dt_json *j, const char *feature, const char *what, double said, double found,
                                   double tolerance)
{
    return fabs(said - found) <= tolerance ? DT_OK
                                           : dt_json_fail(j,
                                                          "%s of %s is %.9g, but the chunks give %.9g (tolerance %.3g)"
                                                          ": the statistics belong to other chunks",
                                                          what, feature, said, found, tolerance);
}

static dt_status read_statistics_member(dt_json *j, const char *feature, dt_chunks *c)
{
    int i = 0;
    while (i < DT_CHUNKS_N_STATS && strcmp(feature, stat_names[i]) != 0) {
        i++;
    }
    i = strcmp(feature, "acceleration") == 0 ? DT_CHUNKS_ACCEL : i;
    if (i == DT_CHUNKS_N_STATS) {
        if (c->n_unknown_stats++ == 0) {
            snprintf(c->unknown_stat, sizeof(c->unknown_stat), "%s", feature);
        }
        return dt_json_skip(j);
    }
    const dt_chunks_stat *s = &c->stat[i];
    c->stat[i].has_entry = true;
    double n = (double)s->n, tolerance = 1e-3 + 1e-3 * (s->n > 0 ? s->max - s->min : 0);
    double population = s->n > 0 ? sqrt(s->m2 / n) : 0, sample = s->n > 1 ? sqrt(s->m2 / (n - 1)) : population;
    char key[DT_IN_KEY_BYTES];
    dt_status st;
    DT_TRY(dt_expect_object(j, feature));
    while ((st = dt_expect_key(j, key)) == DT_OK) {
        double x = 0;
        bool is_null = false;
        if (strcmp(key, "count") == 0) {
            int64_t count = 0;
            DT_TRY(dt_expect_i64(j, key, &count));
            if (count != s->n) {
                return dt_json_fail(j, "count of %s is %" PRId64 ", but the chunks hold %" PRId64 " values", feature,
                                    count, s->n);
            }
            continue;
        }
        DT_TRY(dt_expect_f64(j, key, &x, s->n == 0 ? &is_null : NULL));
        if (is_null || s->n == 0) {
            continue;
        }
        if (strcmp(key, "min") == 0) {
            DT_TRY(compare_statistic(j, feature, key, x, s->min, tolerance));
        } else if (strcmp(key, "max") == 0) {
            DT_TRY(compare_statistic(j, feature, key, x, s->max, tolerance));
        } else if (strcmp(key, "mean") == 0) {
            DT_TRY(compare_statistic(j, feature, key, x, s->mean, tolerance));
        } else if (strcmp(key, "std") == 0) {
            DT_TRY(compare_statistic(j, feature, key, x, fabs(x - population) < fabs(x - sample) ? population : sample,
                                     tolerance));
        }
    }
    return st == DT_DONE ? DT_OK : st;
}

static dt_status read_statistics(dt_json *j, dt_chunks *c)
{
    char key[DT_IN_KEY_BYTES];
    dt_status st;
    DT_TRY(dt_expect_object(j, "statistics.json"));
    while ((st = dt_expect_key(j, key)) == DT_OK) {
        DT_TRY(read_statistics_member(j, key, c));
    }
    return st == DT_DONE ? dt_expect_end(j) : st;
}

static void report_unchecked(const dt_chunks *c, dt_str *notes)
{
    const char *before = "statistics.json has no entry for ";
    for (int i = 0; i < DT_CHUNKS_N_STATS; i++) {
        if (c->stat[i].n > 0 && !c->stat[i].has_entry) {
            dt_str_addf(notes, "%s%s", before, stat_names[i]);
            before = ", ";
        }
    }
    dt_str_add(notes, *before == ',' ? ": nothing to check them against\n" : "");
    if (c->n_unknown_stats > 0) {
        const char *near = dt_suggest_word(c->unknown_stat, stat_names);
        dt_str_addf(notes, "statistics.json has %" PRId64 " features that are not known, as \"%s\"%s%s%s: skipped\n",
                    c->n_unknown_stats, c->unknown_stat, near == NULL ? "" : ", did you mean \"",
                    near == NULL ? "" : near, near == NULL ? "" : "\"?");
    }
}

dt_status dt_chunks_read_statistics(dt_chunks *c, dt_str *notes)
{
    char path[DT_CHUNKS_PATH_BYTES];
    dt_chunks_document d;
    DT_TRY(dt_chunks_path(c, "statistics.json", path));
    if (!dt_fs_is_file(path)) {
        dt_str_add(notes, "no statistics.json: nothing to check the chunks against\n");
        return DT_OK;
    }
    DT_TRY(dt_chunks_open(path, &d));
    dt_status st = read_statistics(d.json, c);
    dt_chunks_close(&d);
    if (st == DT_OK) {
        report_unchecked(c, notes);
    }
    return st;
}
