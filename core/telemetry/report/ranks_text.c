/* SPDX-License-Identifier: Apache-2.0 */
#include <config.h>

#include "telemetry/report/ranks_text.h"

#include "telemetry/report/html.h"

#include <math.h>
#include <stdio.h>

static double mean_of_series(const dt_series *s)
{
    double sum = 0, n = 0;
    for (uint32_t i = 0; s != NULL && i < s->n; i++) {
        if (isfinite(s->value[i])) {
            sum += s->value[i];
            n++;
        }
    }
    return n > 0 ? sum / n : NAN;
}

/* The rank that was the slowest most often, and in which part of the records; numbers of a file are unchecked. */
static double find_slowest(const dt_series *s, uint32_t n_ranks, uint32_t *rank_p)
{
    uint32_t most = 0;
    for (uint32_t rank = 0; rank < n_ranks; rank++) {
        uint32_t n = 0;
        for (uint32_t i = 0; i < s->n; i++) {
            n += s->value[i] == rank;
        }
        *rank_p = n > most ? rank : *rank_p;
        most = n > most ? n : most;
    }
    return s->n > 0 ? (double)most / s->n : NAN;
}

bool dt_ranks_describe_waiting(const dt_records *r, uint32_t phase, uint32_t n_ranks, char out[DT_RANKS_TEXT_BYTES])
{
    enum { MOST_RANKS = 4096 };
    char busy[DT_NUMBER_BYTES], sent[DT_NUMBER_BYTES];
    uint32_t slowest = 0;
    const dt_series *who = dt_records_find(r, phase, "ranks/slowest");
    const double busy_s = mean_of_series(dt_records_find(r, phase, "ranks/busy_s"));
    const double waiting = mean_of_series(dt_records_find(r, phase, "ranks/waiting"));
    const double beyond = mean_of_series(dt_records_find(r, phase, "ranks/imbalance"));
    const double bytes = mean_of_series(dt_records_find(r, phase, "ranks/sent"));
    out[0] = '\0';
    if (n_ranks < 2 || n_ranks > MOST_RANKS || who == NULL || !isfinite(busy_s + waiting + beyond + bytes)) {
        return false;
    }
    const double part = find_slowest(who, n_ranks, &slowest);
    snprintf(out, DT_RANKS_TEXT_BYTES,
             "%u ranks: busy %s an iteration, waiting %.1f %% of the time for each other; the slowest is %.1f %% above "
             "the mean, rank %u in %.0f %% of the iterations; each sends %s",
             n_ranks, dt_duration_text(busy_s, busy), 100 * waiting, 100 * beyond, slowest, 100 * part,
             dt_bytes_text(bytes, sent));
    return true;
}
