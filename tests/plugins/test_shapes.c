/* SPDX-License-Identifier: Apache-2.0
 *
 * Junctions of tests/fixtures/shapes as env_traffic and env_sumo show them to shields: what each phase shows each link,
 * which ways cross and which end in one lane, who yields, which phases conflict, and which are all that a link has.
 * Which ways meet is said here by looking at the drawing of each junction, who yields is read from the <request>s of
 * the net, and both environments have to agree on all. Where SUMO is missing env_traffic alone is looked at.
 */
#include "sumo_folder.h"

enum { MOST = 12, MOST_PHASES = 4, ROWS = 17, SERVICE = 5 }; /* links of a signal; columns */

/* Pairs of links as "2-7 0-4"; letters of phases as the file has them, as they are numbered. */
typedef struct shape {
    const char *name, *crossing, *merging;
    const char *phase[MOST_PHASES];
    int conflicts[MOST_PHASES];
    bool is_lonely[MOST_PHASES];
    int n_links, n_phases;
} shape;

/* All turns of four roads: from west 0 right 1 straight 2 left, from south 3 to 5, east 6 to 8, north 9 to 11. Opposite
 * left turns pass each other. */
#define FOUR_CROSSING                                                                                                  \
    "1-4 1-10 7-4 7-10 " /* straight ones */                                                                           \
    "2-7 8-1 5-10 11-4 " /* left, oncoming */                                                                          \
    "2-10 8-4 5-1 11-7 " /* left, from the left */                                                                     \
    "2-5 2-11 8-5 8-11"  /* left ones at right angles */
#define FOUR_MERGING "1-3 1-11 3-11 2-4 2-6 4-6 5-7 5-9 7-9 0-8 0-10 8-10"

static const shape shapes[] = {
    {.name = "merge", .crossing = "0-2", .merging = "0-1", .phase = {"GGr", "rrG"}, .n_links = 3, .n_phases = 2},
    {.name = "shared",
     .crossing = FOUR_CROSSING,
     .merging = FOUR_MERGING,
     .phase = {"GGgrrrGGgrrr", "rrrGGgrrrGGg"},
     .n_links = 12,
     .n_phases = 2},
    {.name = "same",
     .crossing = FOUR_CROSSING,
     .merging = FOUR_MERGING,
     .phase = {"GGrrrrGGrrrr", "rrGrrrrrGrrr", "rrrGGrrrrGGr", "rrrrrGrrrrrG"},
     .n_links = 12,
     .n_phases = 4},
    {.name = "tie", .crossing = "", .merging = "", .phase = {"Grr", "rGr", "rrG"}, .n_links = 3, .n_phases = 3},
    {.name = "turns", /* from west 0 straight 1 left, 2 from south, east 3 and 4, 5 from north */
     .crossing = "0-2 0-5 3-2 3-5 0-4 3-1 1-5 4-2",
     .merging = "1-2 4-5",
     .phase = {"GgrGgr", "rGrrGr", "rrGrrG"},
     .n_links = 6,
     .n_phases = 3},
    {.name = "tram", /* 4: the track, across all; env_traffic has no trams, and no phase for them */
     .crossing = "0-1 0-3 2-1 2-3 4-0 4-1 4-2 4-3",
     .merging = "",
     .phase = {"GrGrr", "rGrGr", "rrrrG"},
     .n_links = 5,
     .n_phases = 3},
    {.name = "crossing",
     .crossing = "0-1 1-2",
     .merging = "",
     .phase = {"GGr", "rrG"},
     .conflicts = {1, 0},
     .is_lonely = {true, false},
     .n_links = 3,
     .n_phases = 2},
};
enum { N_SHAPES = sizeof(shapes) / sizeof(shapes[0]) };

typedef struct seen { /* of the one signal */
    int n_links, n_phases, n_columns;
    float phases[MOST_PHASES * ROWS], service[MOST_PHASES * SERVICE], greens[MOST_PHASES * MOST], foes[MOST * MOST];
} seen;

static const char *source_of(const char *name, const char *end)
{
    static char path[4][TEXT];
    static int k;
    const char *top = getenv("DT_SRCDIR");
    k = (k + 1) % 4;
    snprintf(path[k], TEXT, "%s/tests/fixtures/shapes/%s%s", top != NULL ? top : ".", name, end);
    return path[k];
}

/* ---- what is so -------------------------------------------------------------------------------------------------- */

static bool has_pair(const char *pairs, int a, int b)
{
    char one[16], other[16];
    snprintf(one, sizeof(one), "%d-%d ", a, b);
    snprintf(other, sizeof(other), "%d-%d ", b, a);
    for (const char *at = pairs; *at != '\0'; at += strcspn(at, " "), at += *at == ' ') {
        char pair[16];
        snprintf(pair, sizeof(pair), "%.*s ", (int)strcspn(at, " "), at);
        if (strcmp(pair, one) == 0 || strcmp(pair, other) == 0) {
            return true;
        }
    }
    return false;
}

static char *read_text(const char *path)
{
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    char *text = calloc(1, 1 << 16);
    assert_true(fread(text, 1, (1 << 16) - 1, f) > 0);
    fclose(f);
    return text;
}

/* The value of name=" in the element at `at`, in a copy; "" without one. */
static const char *value_of(const char *at, const char *name, char out[TEXT])
{
    const char *from = strstr(at, name), *end = strchr(at, '>');
    const bool has = from != NULL && from < end;
    from += has ? strlen(name) : 0;
    snprintf(out, TEXT, "%.*s", has ? (int)strcspn(from, "\"") : 0, has ? from : "");
    return out;
}

/* The link of the signal that runs over a lane inside the junction, or ends there after another one. */
static int link_over(const char *net, const char *lane)
{
    char via[TEXT], on[TEXT], link[TEXT], key[2 * TEXT];
    for (const char *c = strstr(net, "<connection "); c != NULL; c = strstr(c + 1, "<connection ")) {
        if (value_of(c, "linkIndex=\"", link)[0] == '\0') {
            continue;
        }
        value_of(c, "via=\"", via);
        snprintf(key, sizeof(key), "<connection from=\"%.*s\"", (int)strlen(via) - 2, via);
        value_of(strstr(net, key), "via=\"", on);
        if (strcmp(via, lane) == 0 || strcmp(on, lane) == 0) {
            return atoi(link);
        }
    }
    fail();
    return -1;
}

/* yields[a][b] of the file: the bits of <request>, which counts the links of the junction as its intLanes. */
static void read_yields(const char *net, bool yields[MOST][MOST], int n)
{
    int number[MOST], k = 0;
    char inside[TEXT], bits[TEXT], key[TEXT];
    const char *junction = strstr(net, "<junction id=\"c\"");
    value_of(junction, "intLanes=\"", inside);
    for (char *rest = NULL, *lane = strtok_r(inside, " ", &rest); lane != NULL; lane = strtok_r(NULL, " ", &rest)) {
        assert_true(k < n);
        number[k++] = link_over(net, lane);
    }
    assert_int_equal(k, n);
    for (int a = 0; a < n; a++) {
        snprintf(key, TEXT, "<request index=\"%d\"", a);
        value_of(strstr(junction, key), "response=\"", bits);
        for (int b = 0; b < n; b++) {
            yields[number[a]][number[b]] = bits[n - 1 - b] == '1';
        }
    }
}

/* ---- what is shown ----------------------------------------------------------------------------------------------- */

static void look(const char *env, const char *const *set, seen *out)
{
    mock_host host;
    mock_host_init(&host);
    mock_host_serve(&host, DT_SVC_FEATURES, &features);
    const dt_component *component = mock_load("plugins", env, env);
    assert_non_null(component);
    const dt_env_ops *ops = component->ops;
    void *config = mock_config(component, set), *self = calloc(1, component->state_size);
    if (ops->create(self, &host.host, config) != DT_OK) {
        print_error("%s\n", host.message);
        fail();
    }
    dt_env_spec spec = {.struct_size = sizeof(spec)};
    assert_int_equal(ops->spec(self, &spec), DT_OK);
    void *obs[DT_ENV_MAX_OBS];
    float reward[1], cost[8];
    uint8_t alive[1], terminated[1], truncated[1], mask[MOST_PHASES];
    double metric[DT_ENV_MAX_METRICS];
    int64_t size[2];
    for (uint32_t k = 0; k < spec.n_obs; k++) {
        obs[k] = calloc(1, 1 << 16);
    }
    memset(mask, 1, sizeof(mask));
    const dt_env_io io = {.struct_size = sizeof(io),
                          .n_obs = spec.n_obs,
                          .obs = obs,
                          .size = size,
                          .alive = alive,
                          .mask = mask,
                          .reward = reward,
                          .cost = cost,
                          .terminated = terminated,
                          .truncated = truncated,
                          .metric = metric};
    assert_int_equal(spec.n_agents, 1);
    assert_int_equal(ops->reset(self, &io, 1), DT_OK);
    memset(out, 0, sizeof(*out));
    out->n_phases = spec.choices[0];
    for (uint32_t k = 0; k < spec.n_obs; k++) {
        const char *name = spec.obs[k].name, *last = strrchr(spec.obs[k].dims, ' ');
        const size_t n = (size_t)atoi(last + 1), P = (size_t)spec.choices[0];
        if (strcmp(name, "phases") == 0) {
            out->n_columns = (int)n;
            memcpy(out->phases, obs[k], P * n * sizeof(float));
        } else if (strcmp(name, "service") == 0) {
            memcpy(out->service, obs[k], P * n * sizeof(float));
        } else if (strcmp(name, "greens") == 0) {
            out->n_links = (int)n;
            memcpy(out->greens, obs[k], P * n * sizeof(float));
        } else if (strcmp(name, "foes") == 0) {
            memcpy(out->foes, obs[k], n * n * sizeof(float));
        }
        free(obs[k]);
    }
    ops->destroy(self);
    free(self);
    free(config);
    assert_int_equal(host.n_live, 0);
}

static void look_traffic(const shape *x, seen *out)
{
    char net[2 * TEXT], routes[2 * TEXT];
    snprintf(net, sizeof(net), "net_file=%s", source_of(x->name, ".net.xml"));
    snprintf(routes, sizeof(routes), "routes_file=%s", source_of(x->name, ".rou.xml"));
    look("env_traffic",
         (const char *const[]){"scenario=net", net, routes, "control=signals", "right_of_way=true", NULL}, out);
}

static void look_sumo(const shape *x, seen *out)
{
    char cfg[2 * TEXT];
    snprintf(cfg, sizeof(cfg), "sumocfg=%s", source_of(x->name, ".sumocfg"));
    look("env_sumo", (const char *const[]){cfg, "right_of_way=true", NULL}, out);
}

/* ---- tests ------------------------------------------------------------------------------------------------------- */

/* The same, link by link and phase by phase. n_links, n_phases: of those that the environment has traffic for. */
static void check(const shape *x, const seen *s, int n_links, int n_phases)
{
    bool yields[MOST][MOST];
    char *net = read_text(source_of(x->name, ".net.xml"));
    read_yields(net, yields, x->n_links);
    free(net);
    assert_int_equal(s->n_links, x->n_links);
    assert_int_equal(s->n_phases, n_phases);
    for (int p = 0; p < n_phases; p++) {
        for (int k = 0; k < x->n_links; k++) {
            const char c = x->phase[p][k];
            const float want = k >= n_links ? 0 : c == 'G' ? 1 : c == 'g' ? 0.5F : 0;
            assert_true(s->greens[p * s->n_links + k] == want);
        }
        assert_true(s->phases[p * s->n_columns + 11] == (float)x->conflicts[p]);
        assert_true(s->service[p * SERVICE] == (float)x->is_lonely[p]);
        assert_true(s->service[p * SERVICE + 1] == 0); /* nobody is there yet */
        assert_true(s->service[p * SERVICE + 3] == 10);
    }
    for (int a = 0; a < n_links; a++) {
        for (int b = 0; b < n_links; b++) {
            const float meet = has_pair(x->crossing, a, b) ? 2 : has_pair(x->merging, a, b) ? 1 : 0;
            const float want = yields[a][b] ? -meet : meet;
            if (s->foes[a * s->n_links + b] != want) {
                print_error("%s: links %d and %d: %g, expected %g\n", x->name, a, b,
                            (double)s->foes[a * s->n_links + b], (double)want);
                fail();
            }
        }
    }
}

static void test_env_traffic(void **state)
{
    for (int k = 0; k < N_SHAPES; k++) {
        const int has_tram = strcmp(shapes[k].name, "tram") == 0;
        seen s;
        look_traffic(&shapes[k], &s);
        check(&shapes[k], &s, shapes[k].n_links - has_tram, shapes[k].n_phases - has_tram);
    }
}

static void test_env_sumo(void **state)
{
    for (int k = 0; k < N_SHAPES; k++) {
        seen s;
        look_sumo(&shapes[k], &s);
        check(&shapes[k], &s, shapes[k].n_links, shapes[k].n_phases);
    }
}

/* Byte by byte, but for the tram. */
static void test_both_agree(void **state)
{
    for (int k = 0; k < N_SHAPES; k++) {
        seen a, b;
        look_traffic(&shapes[k], &a);
        look_sumo(&shapes[k], &b);
        if (strcmp(shapes[k].name, "tram") != 0) {
            assert_memory_equal(a.greens, b.greens, sizeof(a.greens));
            assert_memory_equal(a.foes, b.foes, sizeof(a.foes));
            assert_int_equal(a.n_phases, b.n_phases);
            for (int p = 0; p < a.n_phases; p++) {
                assert_true(a.phases[p * a.n_columns + 11] == b.phases[p * b.n_columns + 11]);
                assert_true(a.service[p * SERVICE] == b.service[p * SERVICE]);
            }
        }
    }
}

int main(void)
{
    const struct CMUnitTest traffic[] = {cmocka_unit_test(test_env_traffic)};
    const struct CMUnitTest both[] = {cmocka_unit_test(test_env_sumo), cmocka_unit_test(test_both_agree)};
    const int failed = cmocka_run_group_tests(traffic, NULL, NULL);
    if (!has_sumo()) {
        return failed;
    }
    return failed + cmocka_run_group_tests(both, NULL, NULL);
}
