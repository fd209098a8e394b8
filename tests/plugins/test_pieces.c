/* SPDX-License-Identifier: Apache-2.0
 *
 * Lanes cut into pieces (roads: lanes_town.h): how they follow each other, what hangs together, what is told of them,
 * and which are near a place, against a walk over all of them.
 */
#include "lanes_town.h"
#include "../../plugins/data_trajectory/pieces.h"

static pieces cut;

static void cut_up(double flip, double a, double x0, double y0)
{
    lay(flip, a, x0, y0);
    start();
    assert_int_equal(pieces_init(&cut, &host.host, &roads, "town"), DT_OK);
}

static void put_away(void)
{
    pieces_fini(&cut);
    stop();
}

static int64_t first_of(int64_t i)
{
    return cut.of_lane[i];
}

static int64_t last_of(int64_t i)
{
    return cut.of_lane[i + 1] - 1;
}

static bool has_edge(int64_t target, int64_t source, int32_t relation)
{
    int n = 0;
    for (int64_t k = cut.edge_ptr[target]; k < cut.edge_ptr[target + 1]; k++) {
        n += cut.edge[k].source == source && cut.edge[k].relation == relation;
    }
    assert_in_range(n, 0, 1);
    return n == 1;
}

static int64_t n_edges(int64_t target)
{
    return cut.edge_ptr[target + 1] - cut.edge_ptr[target];
}

static void test_pieces_of_a_lane(void **state)
{
    (void)state;
    cut_up(1, 0, 0, 0);
    const int64_t want[LANES] = {7, 7, 3, 2, 0}; /* 110 m and 110 m, 40 m, 31 m round the corner, nobody drives */
    for (int64_t i = 0; i < LANES; i++) {
        assert_int_equal(cut.of_lane[i + 1] - cut.of_lane[i], want[i]);
    }
    assert_int_equal(cut.n, 19);
    for (int64_t i = 0; i < cut.n; i++) {
        const piece *p = &cut.piece[i];
        assert_true(i == first_of(p->lane) || hypot(p->from[0] - p[-1].to[0], p->from[1] - p[-1].to[1]) < 1e-9);
        assert_true(fabs(p->length - (p->lane == TURN ? p->length : p->lane == ON ? 40 / 3. : 110 / 7.)) < 1e-9);
    }
    const piece *corner = &cut.piece[first_of(TURN)]; /* half of a quarter of a circle, of 16 chords */
    assert_true(fabs(corner->turn - M_PI / 4 * 7 / 8) < 1e-9 && fabs(corner->heading - M_PI / 8) < 1e-9);
    assert_true(fabs(corner[1].to[0] - 130) < 1e-9 && fabs(corner[1].to[1] - 20) < 1e-9);
    put_away();
}

static void test_what_hangs_together(void **state)
{
    (void)state;
    cut_up(1, 0, 0, 0);
    for (int64_t i = 0; i < cut.n; i++) {
        assert_true(cut.edge[cut.edge_ptr[i]].source == i && has_edge(i, i, PIECES_SELF)); /* itself first */
    }
    const int64_t a = first_of(RIGHT), z = last_of(RIGHT);
    assert_true(has_edge(a, a + 1, PIECES_NEXT) && has_edge(a + 1, a, PIECES_PREVIOUS));
    assert_true(has_edge(a, first_of(LEFT), PIECES_LEFT) && has_edge(first_of(LEFT), a, PIECES_RIGHT));
    assert_true(has_edge(a, a + 4, PIECES_AHEAD));
    assert_int_equal(n_edges(a), 4); /* nothing before it, nothing to the right */
    assert_true(has_edge(z, first_of(ON), PIECES_NEXT) && has_edge(z, first_of(TURN), PIECES_NEXT));
    assert_true(has_edge(first_of(ON), z, PIECES_PREVIOUS) && has_edge(first_of(TURN), z, PIECES_PREVIOUS));
    assert_true(has_edge(z - 1, last_of(ON), PIECES_AHEAD)); /* through what turns least */
    assert_true(has_edge(z, z - 1, PIECES_PREVIOUS) && has_edge(z, last_of(LEFT), PIECES_LEFT));
    assert_int_equal(n_edges(z), 5); /* no four pieces ahead */
    assert_int_equal(n_edges(last_of(LEFT)), 3);
    assert_true(cut.piece[z].parts && !cut.piece[z].ends && !cut.piece[a].parts && cut.piece[last_of(ON)].ends);
    assert_false(cut.piece[first_of(ON)].meets);
    next[1] = ON; /* now the right lane goes on twice, and the left one does, too */
    put_away();
    next_ptr[1] = 1;
    cut_up(1, 0, 0, 0); /* both lanes lead into ON */
    assert_true(cut.piece[first_of(ON)].meets && has_edge(first_of(ON), last_of(LEFT), PIECES_PREVIOUS));
    assert_false(cut.piece[last_of(RIGHT)].parts);
    put_away();
    next_ptr[1] = 2;
    next[1] = TURN;
}

static void test_what_is_told(void **state)
{
    (void)state;
    static float node_0[19 * PIECES_COLUMNS], edge_0[128 * PIECES_EDGE_COLUMNS];
    float out[PIECES_EDGE_COLUMNS], told[PIECES_COLUMNS];
    cut_up(1, 0, 0, 0);
    pieces_tell(&cut, last_of(RIGHT), 1, told);
    const float want[PIECES_COLUMNS] = {110 / 7.f / 20, 0, 0, 1, 0, 1, 0, 0, 0, 1, 0, 0, 0, 0};
    for (int d = 0; d < PIECES_COLUMNS; d++) {
        assert_true(fabsf(told[d] - want[d]) < 1e-6f);
    }
    pieces_tell_edge(&cut, first_of(RIGHT), &(pieces_edge){(int32_t)first_of(LEFT), PIECES_LEFT}, 1, out);
    const float beside[PIECES_EDGE_COLUMNS] = {0, 0, 0, 1, 0, 0, 0, 3.5f / 8, 0, 1};
    for (int d = 0; d < PIECES_EDGE_COLUMNS; d++) {
        assert_true(fabsf(out[d] - beside[d]) < 1e-6f);
    }
    const int64_t n = cut.edge_ptr[cut.n];
    assert_true(cut.n == 19 && n < 128);
    for (int64_t i = 0; i < cut.n; i++) {
        pieces_tell(&cut, i, 1, node_0 + i * PIECES_COLUMNS);
        for (int64_t k = cut.edge_ptr[i]; k < cut.edge_ptr[i + 1]; k++) {
            pieces_tell_edge(&cut, i, &cut.edge[k], 1, edge_0 + k * PIECES_EDGE_COLUMNS);
        }
    }
    put_away();
    for (int turn = 0; turn < 4; turn++) { /* turned and moved, then mirrored and read with left for right */
        const double flip = turn < 2 ? 1 : -1;
        cut_up(flip, 0.7 * turn - 1, 300 * turn, -40);
        assert_int_equal(cut.edge_ptr[cut.n], n);
        for (int64_t i = 0; i < cut.n; i++) {
            pieces_tell(&cut, i, flip, told);
            for (int d = 0; d < PIECES_COLUMNS; d++) {
                assert_true(fabsf(told[d] - node_0[i * PIECES_COLUMNS + d]) < 1e-5f);
            }
            for (int64_t k = cut.edge_ptr[i]; k < cut.edge_ptr[i + 1]; k++) {
                /* left comes before right, so mirrored the two are told in another order */
                int n_same = 0;
                for (int64_t j = cut.edge_ptr[i]; j < cut.edge_ptr[i + 1]; j++) {
                    pieces_tell_edge(&cut, i, &cut.edge[j], flip, out);
                    bool is_same = true;
                    for (int d = 0; d < PIECES_EDGE_COLUMNS; d++) {
                        is_same = is_same && fabsf(out[d] - edge_0[k * PIECES_EDGE_COLUMNS + d]) < 1e-5f;
                    }
                    n_same += is_same;
                }
                assert_int_equal(n_same, 1);
            }
        }
        put_away();
    }
}

/* Distance of a place to a piece's box, along the axis where it is greater. */
static double far_from(const piece *p, double x, double y)
{
    const double at[2] = {x, y};
    double far = 0;
    for (int d = 0; d < 2; d++) {
        far = fmax(far, fmax(fmin(p->from[d], p->to[d]) - at[d], at[d] - fmax(p->from[d], p->to[d])));
    }
    return far;
}

static void check_grid(const pieces_grid *g, double reach_m, double x, double y)
{
    const int64_t cell = pieces_cell_at(g, 0, x, y);
    int64_t k = cell < 0 ? 0 : g->cell[cell].first, end = cell < 0 ? 0 : g->cell[cell + 1].first;
    for (int64_t i = 0; i < cut.n; i++) {
        const double far = far_from(&cut.piece[i], x, y);
        const bool is_there = k < end && g->item[k] == i;
        assert_true(is_there ? far <= reach_m + g->cell_m : far > reach_m);
        k += is_there;
    }
    assert_int_equal(k, end); /* ascending, each once */
}

static void test_what_is_near(void **state)
{
    (void)state;
    cut_up(1, 0.4, -120, 33);
    for (int i = 0; i < 2000; i++) {
        const double x = -500 + 9.7 * (i % 100), y = -420 + 47.3 * (i / 100);
        check_grid(&cut.far, PIECES_REACH_M, x, y);
        check_grid(&cut.near, PIECES_NEAR_M, x, y);
        check_grid(&cut.near, PIECES_NEAR_M, x / 5, y / 5);
    }
    assert_int_equal(pieces_cell_at(&cut.far, 1, 0, 0), -1);
    assert_int_equal(pieces_cell_at(&cut.far, -1, 0, 0), -1);
    assert_int_equal(pieces_cell_at(&cut.far, 0, 1e300, -1e300), -1);
    put_away();
}

static void test_too_much_road_or_no_memory(void **state)
{
    (void)state;
    lay(1, 0, 0, 0);
    xy[2 * 4] = 3e7; /* the left lane, 30 000 km */
    start();
    assert_int_equal(pieces_init(&cut, &host.host, &roads, "town"), DT_EDATA);
    assert_non_null(
        strstr(host.message, "lane_nodes: the lanes of town, up to number 1, make more than 1048576 pieces"));
    assert_non_null(strstr(host.message, "or say lane_nodes = false"));
    put_away();
    for (int n = 1; n <= 15; n++) {
        lay(1, 0, 0, 0);
        start();
        host.fail_alloc = n;
        assert_int_equal(pieces_init(&cut, &host.host, &roads, "town"), n < 15 ? DT_ENOMEM : DT_OK);
        host.fail_alloc = 0;
        put_away();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pieces_of_a_lane),
        cmocka_unit_test(test_what_hangs_together),
        cmocka_unit_test(test_what_is_told),
        cmocka_unit_test(test_what_is_near),
        cmocka_unit_test(test_too_much_road_or_no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
