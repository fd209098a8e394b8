/* SPDX-License-Identifier: Apache-2.0
 *
 * Every row of the tables of docs/reference/traffic-files.md: rows.txt has a change to a file for each. What is read
 * changes the network or the plan of vehicles, or what is reported; what is skipped changes neither; what is rejected
 * is rejected. The page has no row without a test, and rows.txt no test of a row that is not there.
 */
#include "files.h"
#include "../../plugins/env_traffic/plan.h"

enum { LINE_BYTES = 2048, CELL_BYTES = 400, ROWS_MOST = 200, TABLES = 3 };

/* ---- all that is kept of files ----------------------------------------------------------------------------------- */

static uint64_t mix(uint64_t h, double x)
{
    unsigned char bytes[sizeof(x)];
    memcpy(bytes, &x, sizeof(x));
    for (size_t i = 0; i < sizeof(bytes); i++) { /* FNV-1a */
        h = (h ^ bytes[i]) * 1099511628211u;
    }
    return h;
}

static uint64_t mix_all(uint64_t h, const double *x, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        h = mix(h, x[i]);
    }
    return h;
}
#define MIX(h, ...) mix_all(h, (const double[]){__VA_ARGS__}, sizeof((const double[]){__VA_ARGS__}) / sizeof(double))

static uint64_t print_links(uint64_t h, net_links l)
{
    return MIX(h, (double)l.word[0], (double)l.word[1], (double)l.word[2], (double)l.word[3]);
}

static uint64_t print_show(uint64_t h, const net_show *s)
{
    return print_links(print_links(print_links(print_links(h, s->green), s->minor), s->stop), s->yellow);
}

static uint64_t print_net(const net *n)
{
    uint64_t h = 14695981039346656037u;
    for (int32_t k = 0; k < n->n_lanes; k++) {
        const net_lane *l = &n->lane[k];
        double x, y, heading;
        net_point(l, l->length, &x, &y, &heading);
        h = MIX(h, l->length, l->limit, l->x0, l->y0, x, y, l->edge, l->left, l->right, l->via_of);
    }
    for (int32_t k = 0; k < n->n_links; k++) {
        const net_link *l = &n->link[k];
        h = MIX(h, l->from, l->via, l->to, l->junction, l->bit, l->hold, l->visible);
    }
    for (int32_t k = 0; k < n->n_junctions; k++) {
        const net_junction *j = &n->junction[k];
        h = MIX(print_links(h, j->stops), j->n_links, j->is_equal, j->n_phases, j->n_steps, j->start.s,
                j->starts_with_episode);
        for (int32_t i = 0; i < j->n_links; i++) {
            const net_links sets[] = {j->crosses[i], j->yields[i], j->foes[i], j->responds[i]};
            for (int m = 0; m < 4; m++) {
                h = print_links(h, sets[m]);
            }
            h = MIX(h, j->number[i]);
        }
        for (int32_t i = 0; i < j->n_steps; i++) {
            h = print_show(MIX(h, j->step[i].duration_s, j->step[i].phase), &j->step[i].show);
        }
    }
    return h;
}

static uint64_t print_plan(const trip_plan *p)
{
    uint64_t h = 14695981039346656037u;
    for (int32_t k = 0; k < p->flows.n; k++) {
        const plan_flow *w = PLAN_FLOW(p, k);
        h = MIX(h, w->kind, w->number, w->begin_s, w->end_s, w->period_s, w->n_trips);
        for (int32_t i = w->trip; i < w->trip + w->n_trips; i++) {
            const plan_trip *t = PLAN_TRIP(p, i);
            h = MIX(h, t->lane, t->pos_kind, t->speed_kind, t->pos, t->speed, t->factor, t->share, t->type);
            for (int32_t e = t->edge; e < t->edge + t->n_edges; e++) {
                h = mix(h, PLAN_EDGE(p, e));
            }
            if (t->type != NET_NONE) {
                const plan_type *v = PLAN_TYPE(p, t->type);
                h = MIX(h, v->length, v->top, v->desired, v->scale, v->factor, v->dev, v->accel, v->decel, v->gap,
                        v->tau, v->sigma, v->model);
            }
        }
    }
    return h;
}

/* ---- the page ---------------------------------------------------------------------------------------------------- */

static struct {
    char cell[CELL_BYTES];
    int is_tested;
} page[ROWS_MOST];
static int n_page;

static FILE *open_of_tree(const char *name)
{
    char path[TEXT];
    const char *tree = getenv("DT_SRCDIR");
    snprintf(path, sizeof(path), "%s/%s", tree != NULL ? tree : ".", name);
    FILE *in = fopen(path, "r");
    assert_non_null(in);
    return in;
}

/* The first cells of all tables. */
static void read_page(void)
{
    char line[LINE_BYTES];
    FILE *in = open_of_tree("docs/reference/traffic-files.md");
    int is_converted = 0; /* a table of other formats: test_roadnet */
    while (fgets(line, sizeof(line), in) != NULL) {
        is_converted = line[0] == '|' && (is_converted || strncmp(line, "| content |", 11) == 0);
        const char *end = strstr(line, " | ");
        const int is_head = strncmp(line, "| element or", 12) == 0 || strncmp(line, "| attributes |", 14) == 0;
        if (line[0] == '|' && line[1] == ' ' && end != NULL && !is_head && !is_converted) {
            assert_true(n_page < ROWS_MOST && (size_t)(end - line) < CELL_BYTES);
            snprintf(page[n_page++].cell, CELL_BYTES, "%.*s", (int)(end - line - 2), line + 2);
        }
    }
    fclose(in);
}

static void mark(const char *cell)
{
    for (int k = 0; k < n_page; k++) {
        if (strcmp(page[k].cell, cell) == 0) {
            page[k].is_tested = 1;
            return;
        }
    }
    fail_msg("docs/reference/traffic-files.md has no row \"%s\"", cell);
}

/* ---- rows -------------------------------------------------------------------------------------------------------- */

static char base[FILE_MAX]; /* the demand that rows change; "": they change the network */
static const char one_vehicle[] =
    "<routes><vehicle id='v' depart='300'><route edges='south_c c_north'/></vehicle></routes>";

static char said[16384]; /* all that was logged */

static void hear(const dt_host *h, int32_t level, const char *line)
{
    snprintf(said + strlen(said), sizeof(said) - strlen(said), "%s\n", line);
}

static dt_status load_files(const char *net_xml, const char *routes_xml, uint64_t print[2])
{
    mock_host host;
    sim s = {0};
    store("corner.net.xml", net_xml);
    store("corner.rou.xml", routes_xml);
    mock_host_init(&host);
    host.host.log = hear;
    said[0] = '\0';
    traffic_config *config = mock_config(mock_load("plugins", "env_traffic", "env_traffic"), settings(NULL));
    *config = scenario_resolve(config);
    const dt_status st = sim_create(&s, &host.host, config);
    snprintf(said + strlen(said), sizeof(said) - strlen(said), "%s", st != DT_OK ? host.message : "");
    if (st == DT_OK) {
        print[0] = print_net(&s.net);
        print[1] = print_plan(&s.plan);
    }
    sim_destroy(&s);
    free(config);
    assert_int_equal(host.n_live, 0);
    return st;
}

/* PHASES stands for 65 states, each another one. */
static void write_phases(const char *from, char *out)
{
    static const char letters[] = "Ggrs";
    const char *at = strstr(from, "PHASES");
    int n = snprintf(out, FILE_MAX, "%.*s", at == NULL ? (int)strlen(from) : (int)(at - from), from);
    for (int k = 0; at != NULL && k < 65; k++) {
        n += snprintf(out + n, (size_t)(FILE_MAX - n), "<phase duration=\"1\" state=\"%c%c%c%c\"/>", letters[k / 64],
                      letters[k % 4], letters[k / 4 % 4], letters[k / 16 % 4]);
    }
    if (at != NULL) {
        snprintf(out + n, (size_t)(FILE_MAX - n), "%s", at + strlen("PHASES"));
    }
}

static int check_row(char *line, const uint64_t plain[2])
{
    static char changed[FILE_MAX], full[FILE_MAX];
    char *cell[5] = {NULL}, *rest = line;
    for (int n = 0; rest != NULL && n < 5; n++) {
        cell[n] = strsep(&rest, "\t");
    }
    assert_non_null(cell[3]);
    mark(cell[1]);
    replace(base[0] != '\0' ? base : net_text, cell[2], cell[3], changed);
    write_phases(changed, full);
    uint64_t print[2] = {0};
    const dt_status st = base[0] != '\0' ? load_files(net_text, full, print) : load_files(full, one_vehicle, print);
    const int is_same = st == DT_OK && print[0] == plain[0] && print[1] == plain[1];
    const int is_said = cell[4] == NULL || strstr(said, cell[4]) != NULL;
    const int is_right = strcmp(cell[0], "rejected") == 0  ? (st == DT_EDATA || st == DT_ENOTFOUND) && cell[4] != NULL
                         : strcmp(cell[0], "skipped") == 0 ? is_same
                                                           : st == DT_OK && (!is_same || cell[4] != NULL);
    if (!is_right || !is_said) {
        print_error("%s is not %s with \"%s\": status %d, \"%s\"\n", cell[1], cell[0], cell[3], (int)st, said);
    }
    return is_right && is_said;
}

static void test_rows(void **test)
{
    char line[LINE_BYTES];
    uint64_t plain[2] = {0};
    int is_begun = 0, wrong = 0, tables = 0;
    read_page();
    FILE *in = open_of_tree("tests/env_traffic/rows.txt");
    while (fgets(line, sizeof(line), in) != NULL) {
        line[strcspn(line, "\n")] = '\0';
        if (line[0] == '=') {
            base[0] = '\0';
            is_begun = 0;
            tables++;
        } else if (line[0] == '>') {
            snprintf(base + strlen(base), sizeof(base) - strlen(base), "%s\n", line + 2);
        } else if (line[0] == '-') {
            if (!is_begun) {
                assert_int_equal(load_files(net_text, base[0] != '\0' ? base : one_vehicle, plain), DT_OK);
                is_begun = 1;
            }
            wrong += !check_row(line + 2, plain);
        }
    }
    fclose(in);
    assert_int_equal(tables, TABLES);
    for (int k = 0; k < n_page; k++) {
        if (!page[k].is_tested) {
            print_error("docs/reference/traffic-files.md: no test of \"%s\"\n", page[k].cell);
            wrong++;
        }
    }
    assert_int_equal(wrong, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_rows)};
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
