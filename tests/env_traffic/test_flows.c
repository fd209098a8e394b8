/* SPDX-License-Identifier: Apache-2.0
 *
 * Flows: every combination of begin, end, number and rates brings the vehicles that SUMO brings, as recorded in
 * tests/fixtures/sumo/flows.txt (flows.py compares the record with an installed SUMO).
 */
#include "files.h"

typedef struct departures {
    int n;
    double first, second, last;
} departures;

/* SUMO's steps are 1 s: what is due in the last second is not looked at there. */
static departures read_departures(const sim *s, double begin, double end)
{
    departures d = {0};
    assert_true(s->n_sources == 1);
    for (int32_t i = 0; i < s->source[0].n; i++) {
        const double t = begin + s->source[0].due[i].due;
        if (t > end - 1) {
            break;
        }
        d.first = d.n == 0 ? t : d.first;
        d.second = d.n == 1 ? t : d.second;
        d.last = t;
        d.n++;
    }
    return d;
}

typedef struct row {
    double begin, end;
    char attributes[TEXT], result[TEXT];
} row;

/* What one episode brings; message: why there is none. */
static dt_status draw_departures(const char *routes, const row *w, uint64_t seed, departures *out, char *message)
{
    char begin[64], episode[64];
    snprintf(begin, sizeof(begin), "begin_s=%.17g", w->begin);
    snprintf(episode, sizeof(episode), "episode_s=%.17g", w->end - w->begin);
    sim s = {0};
    mock_host host;
    store("corner.rou.xml", routes);
    mock_host_init(&host);
    traffic_config *config = mock_config(mock_load("plugins", "env_traffic", "env_traffic"),
                                         settings((const char *const[]){begin, episode, NULL}));
    *config = scenario_resolve(config);
    const dt_status st = sim_create(&s, &host.host, config);
    snprintf(message, MOCK_TEXT, "%s", st != DT_OK ? host.message : "");
    if (st == DT_OK) {
        sim_reset(&s, seed);
        *out = read_departures(&s, w->begin, w->end);
    }
    sim_destroy(&s);
    free(config);
    return st;
}

static void try_row(const row *w)
{
    char routes[4 * TEXT], message[MOCK_TEXT];
    const int n_scale = strncmp(w->attributes, "scale=", 6) == 0 ? (int)strcspn(w->attributes, " ") : 0;
    snprintf(routes, sizeof(routes),
             "<routes><vType id='t' %.*s/><route id='r' edges='south_c c_north'/><flow id='f' type='t' route='r' %s/>"
             "</routes>",
             n_scale, w->attributes, w->attributes + n_scale);
    departures d = {0}, known = {0};
    const dt_status st = draw_departures(routes, w, 1, &d, message);
    int good = st == DT_OK;
    if (strcmp(w->result, "rejected") == 0) {
        good = st == DT_EDATA && strstr(message, "corner.rou.xml:1: <flow>") != NULL;
    } else if (sscanf(w->result, "random %d", &known.n) == 1) { /* two draws of one distribution */
        good = good && fabs((double)d.n - known.n) <= 5 * sqrt(2.0 * known.n) &&
               (strstr(w->attributes, "number") == NULL || known.n >= 60 || d.n == known.n);
    } else {
        const int n = sscanf(w->result, "%d %lf %lf %lf", &known.n, &known.first, &known.second, &known.last);
        if (known.n == 0) {
            good = (st == DT_ECONFIG && strstr(message, "no vehicle is due") != NULL) || (good && d.n == 0);
        } else {
            good = good && d.n == known.n && fabs(d.first - known.first) < 0.02 &&
                   (n < 3 || (fabs(d.second - known.second) < 0.02 && fabs(d.last - known.last) < 1));
        }
    }
    if (!good) {
        print_error("%g to %g s: %s: SUMO: %s; here: %d %g %g %g %s\n", w->begin, w->end, w->attributes, w->result, d.n,
                    d.first, d.second, d.last, message);
    }
    assert_true(good);
}

static void test_combinations(void **test)
{
    static char table[FILE_MAX];
    load("flows.txt", table);
    store("corner.net.xml", net_text);
    int n = 0;
    for (char *line = strtok(table, "\n"); line != NULL; line = strtok(NULL, "\n")) {
        row w;
        if (line[0] == '#') {
            continue;
        }
        assert_int_equal(sscanf(line, "%lf | %lf | %511[^|]| %511[^\n]", &w.begin, &w.end, w.attributes, w.result), 4);
        try_row(&w);
        n++;
    }
    assert_true(n > 100);
}

/* A flow that draws one vehicle of ten from a type of another scale: within what 16 seeds of SUMO 1.15 bring, and a
 * little more. */
static void test_mixed_scales(void **test)
{
    static const struct {
        const char *scale, *attributes;
        int least, most;
    } c[] = {{"0", "end='3600' period='exp(0.1)'", 300, 420},  {"0", "end='3600' probability='0.1'", 270, 380},
             {"0", "end='3600' period='10'", 0, 60},           {"0", "number='50' probability='0.1'", 0, 49},
             {"0.1", "end='3600' period='10'", 36, 110},       {"0.1", "end='3600' period='exp(0.1)'", 140, 310},
             {"0.5", "end='3600' period='exp(0.1)'", 270, 400}};
    const row w = {.begin = 0, .end = 4000};
    for (size_t i = 0; i < sizeof(c) / sizeof(c[0]); i++) {
        for (uint64_t seed = 1; seed <= 5; seed++) {
            char routes[4 * TEXT], message[MOCK_TEXT];
            departures d = {0};
            snprintf(routes, sizeof(routes),
                     "<routes><vTypeDistribution id='t'><vType id='a' probability='.9'/><vType id='b' probability='.1' "
                     "scale='%s'/></vTypeDistribution><route id='r' edges='south_c c_north'/><flow id='f' type='t' "
                     "route='r' begin='0' %s/></routes>",
                     c[i].scale, c[i].attributes);
            assert_int_equal(draw_departures(routes, &w, seed, &d, message), DT_OK);
            if (d.n < c[i].least || d.n > c[i].most) {
                fail_msg("scale %s, %s: %d, expected %d to %d", c[i].scale, c[i].attributes, d.n, c[i].least,
                         c[i].most);
            }
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_combinations), cmocka_unit_test(test_mixed_scales)};
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
