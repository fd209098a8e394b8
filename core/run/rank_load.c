/* SPDX-License-Identifier: Apache-2.0
 *
 * How the work of a run is spread over its ranks; see rank.h. It travels with the agreement that ends every iteration,
 * so that it costs no message of its own.
 */
#include <config.h>

#include "run/rank.h"

#include "base/clock.h"

dt_rank_message dt_rank_measure_load(dt_rank *k, uint32_t requests)
{
    const double now = dt_clock_s(), waited = dt_comm_waited_s(k->comm);
    const uint64_t sent = dt_comm_sent_bytes(k->comm);
    const dt_rank_message w = {.requests = requests,
                               .took_s = k->load.at_s > 0 ? (float)(now - k->load.at_s) : 0,
                               .waited_s = (float)(waited - k->load.waited_s),
                               .sent = sent - k->load.sent};
    k->load.at_s = now;
    k->load.waited_s = waited;
    k->load.sent = sent;
    return w;
}

void dt_rank_record_load(const dt_rank *k)
{
    const uint32_t n = dt_comm_size(k->comm);
    dt_metrics *m = k->r->metrics;
    double busy = 0, most = 0, waited = 0, took = 0, sent = 0;
    uint32_t slowest = 0;
    for (uint32_t i = 0; i < n; i++) {
        const dt_rank_message *w = &k->messages[i];
        const double own = (double)w->took_s - (double)w->waited_s;
        slowest = own > most ? i : slowest;
        most = own > most ? own : most;
        busy += own / n;
        waited += (double)w->waited_s;
        took += (double)w->took_s;
        sent += (double)w->sent / n;
    }
    if (n == 1 || took <= 0 || busy <= 0) {
        return;
    }
    dt_metrics_add_scalar(m, "ranks/busy_s", busy);
    dt_metrics_add_scalar(m, "ranks/waiting", waited / took);
    dt_metrics_add_scalar(m, "ranks/imbalance", most / busy - 1);
    dt_metrics_add_scalar(m, "ranks/slowest", slowest);
    dt_metrics_add_scalar(m, "ranks/sent", sent);
}
