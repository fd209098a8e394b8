/* SPDX-License-Identifier: Apache-2.0
 *
 * core/run/rank_load.c with ranks whose times are known: what each says of itself since the last time, and what is
 * recorded of all.
 */
#include "run/rank.h"

#define dt_clock_s            fake_clock_s
#define dt_comm_waited_s      fake_waited
#define dt_comm_sent_bytes    fake_sent
#define dt_comm_size          fake_size
#define dt_metrics_add_scalar fake_scalar
static double fake_clock_s(void);
static double fake_waited(const dt_comm *c);
static uint64_t fake_sent(const dt_comm *c);
static uint32_t fake_size(const dt_comm *c);
static void fake_scalar(dt_metrics *m, const char *name, double value);
#include "../../core/run/rank_load.c"

#include "mock/recorded.h"

#include <stdint.h>

static double now_s, waited_s;
static uint64_t sent;
static uint32_t ranks;

static double fake_clock_s(void)
{
    return now_s;
}
static double fake_waited(const dt_comm *c)
{
    return waited_s;
}
static uint64_t fake_sent(const dt_comm *c)
{
    return sent;
}
static uint32_t fake_size(const dt_comm *c)
{
    return ranks;
}
static void fake_scalar(dt_metrics *m, const char *name, double value)
{
    record_scalar(NULL, name, value);
}

static void test_take(void **state)
{
    static dt_rank k;
    now_s = 100, waited_s = 7, sent = 900;
    dt_rank_message w = dt_rank_measure_load(&k, 3);
    assert_true(w.requests == 3 && w.took_s == 0); /* since when is not known yet */
    now_s = 104, waited_s = 8.5, sent = 1000;
    w = dt_rank_measure_load(&k, 1);
    assert_true(w.requests == 1 && w.took_s == 4 && w.waited_s == 1.5F && w.sent == 100);
    w = dt_rank_measure_load(&k, 0);
    assert_true(w.took_s == 0 && w.waited_s == 0 && w.sent == 0);
}

static void test_show(void **state)
{
    static dt_rank_message words[3];
    static dt_rank k;
    static dt_run_context run;
    k.messages = words;
    k.r = &run;
    ranks = 3;
    words[0] = (dt_rank_message){.took_s = 10, .waited_s = 4, .sent = 30};
    words[1] = (dt_rank_message){.took_s = 10, .waited_s = 1, .sent = 60};
    words[2] = (dt_rank_message){.took_s = 10, .waited_s = 7, .sent = 90};
    n_recorded = 0;
    dt_rank_record_load(&k); /* busy for 6, 9 and 3 s */
    assert_int_equal(n_recorded, 5);
    assert_true(fabs(recorded_value("ranks/busy_s") - 6) < 1e-9 && fabs(recorded_value("ranks/waiting") - 0.4) < 1e-9);
    assert_true(fabs(recorded_value("ranks/imbalance") - 0.5) < 1e-9 && recorded_value("ranks/slowest") == 1);
    assert_true(fabs(recorded_value("ranks/sent") - 60) < 1e-9);
    n_recorded = 0;
    ranks = 1; /* nobody to compare it with */
    dt_rank_record_load(&k);
    ranks = 3;
    for (int i = 0; i < 3; i++) { /* busy for no time; then nothing was measured */
        words[i] = (dt_rank_message){.took_s = 10, .waited_s = 10};
    }
    dt_rank_record_load(&k);
    memset(words, 0, sizeof(words));
    dt_rank_record_load(&k);
    assert_int_equal(n_recorded, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_take), cmocka_unit_test(test_show)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
