/* SPDX-License-Identifier: Apache-2.0
 *
 * plugins/env_snakes against recorded games of the original (tests/fixtures/snakes/ORIGIN.md): after every step the
 * whole board agrees, what was earned, who died, and what five rules of opponents would do; and what snakes are shown.
 */
#include "../../plugins/env_snakes/observe.h"
#include "../../plugins/env_snakes/rivals.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "records.h"

#include <math.h>

enum { RULES_RECORDED = 5 };
static const uint32_t recorded[RULES_RECORDED] = {RIVAL_L1, RIVAL_L2, RIVAL_L3, RIVAL_L4, RIVAL_EVASION};

static uint32_t put(uint32_t h, uint32_t value)
{
    return (h ^ value) * UINT32_C(16777619);
}

static uint32_t digest(const board *b)
{
    uint32_t h = UINT32_C(2166136261);
    for (uint32_t i = 0; i < BOARD_SNAKES; i++) {
        const board_snake *s = &b->snake[i];
        h = put(h, s->length);
        h = s->length > 0 ? put(h, s->direction) : h;
        for (uint32_t k = 0; k < s->length; k++) {
            h = put(h, board_segment(s, k));
        }
    }
    h = put(h, b->n_beans);
    for (uint32_t i = 0; i < b->n_beans; i++) {
        h = put(h, b->bean[i]);
    }
    return h;
}

/* The sets agree with the lists. */
static void check_sets(const board *b)
{
    cells taken = {{0}}, beans = {{0}};
    uint32_t total = 0;
    for (uint32_t i = 0; i < BOARD_SNAKES; i++) {
        for (uint32_t k = 0; k < b->snake[i].length; k++, total++) {
            cells_add(&taken, board_segment(&b->snake[i], k));
        }
    }
    for (uint32_t i = 0; i < b->n_beans; i++) {
        cells_add(&beans, b->bean[i]);
    }
    assert_int_equal(cells_count(&taken), total);
    assert_memory_equal(&taken, &b->taken, sizeof(taken));
    assert_memory_equal(&beans, &b->beans, sizeof(beans));
}

/* ---- replaying --------------------------------------------------------------------------------------------------- */

static void check_rules(const board *b, records *r)
{
    for (uint32_t k = 0; k < RULES_RECORDED; k++) {
        uint8_t want[BOARD_TEAM], is[BOARD_TEAM];
        records_digits(r, want, BOARD_TEAM);
        rival_act(recorded[k], b, 1, NULL, is);
        for (uint32_t i = 0; i < BOARD_TEAM; i++) {
            if (want[i] != is[i]) {
                print_error("line %d: rule %u moves snake %u to %u, recorded %u\n", r->number, recorded[k], 3 + i,
                            is[i], want[i]);
            }
            assert_int_equal(is[i], want[i]);
        }
    }
}

static void check_step(board *b, records *r)
{
    uint8_t action[BOARD_SNAKES], turned[BOARD_SNAKES], died[BOARD_SNAKES], bean[BOARD_BEANS];
    long reward[BOARD_SNAKES];
    check_rules(b, r);
    records_digits(r, action, BOARD_SNAKES);
    records_digits(r, turned, BOARD_SNAKES);
    records_digits(r, died, BOARD_SNAKES);
    for (uint32_t i = 0; i < BOARD_SNAKES; i++) {
        /* what is replaced, and by what, follows the rule */
        const bool is_back = action[i] == cells_opposite(b->snake[i].direction);
        assert_true(is_back ? turned[i] != action[i] : turned[i] == action[i]);
        reward[i] = records_number(r, 10);
    }
    const long is_over = records_number(r, 10);
    const board_fate fate = {.direction = turned, .bean = bean, .n_beans = (uint32_t)records_number(r, 10)};
    assert_in_range(fate.n_beans, 0, BOARD_BEANS);
    for (uint32_t i = 0; i < fate.n_beans; i++) {
        bean[i] = (uint8_t)records_number(r, 10);
    }
    const uint32_t want = (uint32_t)records_number(r, 16);
    board_step(b, action, &fate);
    for (uint32_t i = 0; i < BOARD_SNAKES; i++) {
        assert_int_equal(b->died >> i & 1, died[i]);
        assert_int_equal(b->reward[i], reward[i]);
    }
    assert_int_equal(b->is_over, is_over);
    if (digest(b) != want) {
        print_error("line %d: another board than the recorded one\n", r->number);
    }
    assert_int_equal(digest(b), want);
    check_sets(b);
}

static void test_games(void **state)
{
    board b = {.n_beans = 0};
    records r;
    uint32_t games = 0, steps = 0, died = 0, ate = 0, over = 0;
    for (records_open(&r, "games.txt"); records_next(&r);) {
        if (records_is(&r, "game")) {
            records_board(&r, &b);
            games++;
        } else if (records_is(&r, "step")) {
            check_step(&b, &r);
            steps++;
            died += (uint32_t)__builtin_popcount(b.died);
            ate += (uint32_t)__builtin_popcount(b.ate);
            over += b.is_over;
        } else {
            assert_true(records_is(&r, "end"));
        }
    }
    fclose(r.f);
    print_message("# %u games, %u steps, %u deaths, %u beans, %u ends before their time\n", games, steps, died, ate,
                  over);
    assert_int_equal(games, 9);
    assert_true(steps > 1000 && died > 300 && ate > 150 && over == 3);
}

/* ---- views ------------------------------------------------------------------------------------------------------- */

static void check_rows(records *r, const board *b, uint32_t kind)
{
    const observe_kind k = {.kind = kind, .max_steps = 200};
    const uint32_t width = observe_width(&k);
    float row[BOARD_TEAM * 30] = {0};
    observe_team(&k, b, 0, row);
    for (uint32_t i = 0; i < BOARD_TEAM; i++) {
        assert_true(records_next(r) && records_is(r, "row"));
        for (uint32_t c = 0; c < width; c++) {
            const double want = records_real(r), is = (double)row[i * width + c];
            if (fabs(is - want) > 1e-6 * (1 + fabs(want))) {
                print_error("line %d: column %u is %.9g, recorded %.9g\n", r->number, c, is, want);
            }
            assert_true(fabs(is - want) <= 1e-6 * (1 + fabs(want)));
        }
    }
}

/* The other team, shown the same with the teams exchanged. */
static void exchange(const board *b, board *out)
{
    *out = *b;
    memcpy(out->snake, b->snake + BOARD_TEAM, BOARD_TEAM * sizeof(*b->snake));
    memcpy(out->snake + BOARD_TEAM, b->snake, BOARD_TEAM * sizeof(*b->snake));
}

static void test_views(void **state)
{
    records r;
    uint32_t n = 0;
    for (records_open(&r, "views.txt"); records_next(&r); n++) {
        board b, other;
        assert_true(records_is(&r, "view"));
        records_board(&r, &b);
        check_rows(&r, &b, OBSERVE_26);
        check_rows(&r, &b, OBSERVE_30);
        exchange(&b, &other);
        for (uint32_t kind = OBSERVE_26; kind <= OBSERVE_PATHS; kind++) {
            const observe_kind k = {.kind = kind, .rows = CELLS_ROWS, .columns = CELLS_COLUMNS, .max_steps = 200};
            const size_t bytes = BOARD_TEAM * observe_width(&k) * sizeof(float);
            float *first = calloc(1, bytes), *second = calloc(1, bytes);
            observe_team(&k, &b, 0, first);
            observe_team(&k, &other, 1, second);
            assert_memory_equal(first, second, bytes);
            free(first);
            free(second);
        }
    }
    fclose(r.f);
    assert_int_equal(n, 16);
}

/* Neighbours of sets by bits are those of cells. */
static void test_spread(void **state)
{
    dt_random random;
    dt_random_init(&random, 1, 0);
    for (uint32_t t = 0; t < 400 + CELLS; t++) {
        cells set = {{0}}, want = {{0}};
        for (uint32_t k = 0; k < t % 7 && t >= CELLS; k++) {
            cells_add(&set, dt_random_below(&random, CELLS));
        }
        if (t < CELLS) {
            cells_add(&set, t);
        }
        for (uint32_t c = 0; c < CELLS; c++) {
            for (uint32_t d = 0; d < CELLS_DIRECTIONS && cells_has(&set, c); d++) {
                cells_add(&want, cells_neighbour(c, d));
            }
        }
        const cells is = cells_neighbours(&set);
        assert_memory_equal(&is, &want, sizeof(is));
    }
}

/* By hand: a snake in a dead end of three cells, beans beyond and across the edge. */
static void test_paths(void **state)
{
    static const uint8_t own[] = {1, 0, 19}, wall[] = {21, 22, 23, 24, 4, 184, 183, 182, 181},
                         far[3][3] = {{90, 91, 92}, {110, 111, 112}, {130, 131, 132}};
    const observe_kind k = {.kind = OBSERVE_PATHS, .max_steps = 200};
    float row[BOARD_TEAM * 64] = {0};
    board b;
    memset(&b, 0, sizeof(b));
    board_place(&b, 0, own, 3, CELLS_RIGHT);
    board_place(&b, 1, wall, 9, CELLS_LEFT);
    board_place(&b, 2, far[0], 3, CELLS_LEFT);
    board_place(&b, 3, far[1], 3, CELLS_LEFT);
    board_place(&b, 4, far[2], 3, CELLS_LEFT);
    static const uint8_t last[] = {150, 151, 152};
    board_place(&b, 5, last, 3, CELLS_LEFT);
    board_add_bean(&b, 3);
    board_add_bean(&b, 100);
    observe_team(&k, &b, 0, row);
    const float *right = row + CELLS_RIGHT * OBSERVE_DIRECTION, *left = row + CELLS_LEFT * OBSERVE_DIRECTION;
    assert_true(row[CELLS_UP * OBSERVE_DIRECTION] == 1 && row[CELLS_DOWN * OBSERVE_DIRECTION] == 1);
    assert_true(left[0] == 1 && left[1] == 0); /* its neck */
    assert_true(right[0] == 0 && right[2] == 0 && right[3] == 0 && right[4] == 0);
    assert_true(right[5] == 1.0F / 3.0F && right[6] == 1.0F / 3.0F); /* the bean two steps away, nobody else's */
    assert_true(right[7] == 2.0F / CELLS && right[8] == 1);          /* cells 2 and 3, less than it is long */
    const float *near_by = row + CELLS_DIRECTIONS * OBSERVE_DIRECTION;
    assert_true(near_by[0] == 0 && near_by[1] == 0.2F); /* bean 3: two columns to the right */
}

/* By hand: planes of 5 times 5 cells around a head at row 0, column 1, and the numbers of the game. */
static void test_planes(void **state)
{
    static const uint8_t place[BOARD_SNAKES][9] = {{1, 0, 19},      {21, 22, 23, 24, 4, 184, 183, 182, 181},
                                                   {90, 91, 92},    {39, 38, 37},
                                                   {198, 199, 179}, {150, 151, 152}};
    static const int8_t marked[][3] = {/* plane, row, column from the head */
                                       {0, 0, -1}, {0, 0, -2},  {1, 1, 1},   {1, 1, 2}, {1, -1, 2}, {1, -1, 1},
                                       {1, -1, 0}, {2, -1, -2}, {2, -2, -2}, {3, 1, 0}, {4, 1, -2}, {5, 0, 2}};
    static const float game[] = {3 / 20.0F, (2 + 7 - 1 - 4) / 20.0F, 0.75F, 9 / 20.0F, 3 / 20.0F};
    const observe_kind k = {.kind = OBSERVE_PLANES, .rows = 5, .columns = 5, .max_steps = 200};
    float row[BOARD_TEAM * (6 * 25 + OBSERVE_GAME)] = {0}, want[6 * 25] = {0};
    board b;
    memset(&b, 0, sizeof(b));
    for (uint32_t i = 0; i < BOARD_SNAKES; i++) {
        board_place(&b, i, place[i], i == 1 ? 9 : 3, i == 0 ? CELLS_RIGHT : CELLS_LEFT);
    }
    board_add_bean(&b, 3);
    board_add_bean(&b, 100);
    b.step = 50;
    b.score[1] = 2, b.score[2] = 7, b.score[3] = 1, b.score[5] = 4;
    assert_int_equal(observe_width(&k), 6 * 25 + OBSERVE_GAME);
    observe_team(&k, &b, 0, row);
    for (size_t i = 0; i < sizeof(marked) / sizeof(marked[0]); i++) {
        want[marked[i][0] * 25 + (marked[i][1] + 2) * 5 + marked[i][2] + 2] = 1;
    }
    for (int i = 0; i < 6 * 25; i++) {
        if (row[i] != want[i]) {
            print_error("plane %d, row %d, column %d\n", i / 25, i % 25 / 5 - 2, i % 5 - 2);
        }
        assert_true(row[i] == want[i]);
    }
    for (uint32_t d = 0; d < CELLS_DIRECTIONS; d++) {
        assert_true(row[6 * 25 + d] == (d == CELLS_RIGHT ? 1.0F : 0.0F));
    }
    for (int i = 0; i < 5; i++) {
        assert_true(fabsf(row[6 * 25 + 4 + i] - game[i]) < 1e-6F);
    }
}

/* A bean is one's own where no other snake is there as soon; far away from all else. */
static void test_own_beans(void **state)
{
    static const uint8_t own[] = {42, 41, 40},
                         far[4][3] = {{122, 121, 120}, {126, 125, 124}, {142, 141, 140}, {146, 145, 144}};
    static const uint8_t other[2][3] = {{48, 49, 50}, {49, 50, 51}};
    const observe_kind k = {.kind = OBSERVE_PATHS, .max_steps = 200};
    for (uint32_t is_farther = 0; is_farther < 2; is_farther++) {
        float row[BOARD_TEAM * 64] = {0};
        board b;
        memset(&b, 0, sizeof(b));
        board_place(&b, 0, own, 3, CELLS_RIGHT);
        board_place(&b, 3, other[is_farther], 3, CELLS_LEFT);
        for (uint32_t i = 0; i < 4; i++) {
            board_place(&b, i + (i < 2 ? 1 : 2), far[i], 3, CELLS_RIGHT);
        }
        board_add_bean(&b, 45); /* three steps from the own head, three or four from the other */
        observe_team(&k, &b, 0, row);
        const float *right = row + CELLS_RIGHT * OBSERVE_DIRECTION;
        assert_true(right[5] == 0.25F);
        assert_true(right[6] == (is_farther ? 0.25F : 0.0F));
    }
}

/* Cell k of a way through all cells, along the rows there and back. */
static uint8_t way(uint32_t k)
{
    const uint32_t row = k % CELLS / CELLS_COLUMNS, column = k % CELLS_COLUMNS;
    return (uint8_t)(row * CELLS_COLUMNS + (row % 2 == 0 ? column : CELLS_COLUMNS - 1 - column));
}

/* Six snakes one behind the other on it, a bean before each of the first five: the length of the last is asked for. */
static void place_on_way(board *b, uint32_t last, uint8_t action[BOARD_SNAKES])
{
    uint32_t at = 0;
    memset(b, 0, sizeof(*b));
    for (uint32_t i = 0; i < BOARD_SNAKES; i++, at++) {
        uint8_t cell[CELLS];
        const uint32_t n = i < 5 ? 32 : last;
        for (uint32_t k = n; k > 0; k--, at++) {
            cell[k - 1] = way(at);
        }
        for (action[i] = 0; cells_neighbour(cell[0], action[i]) != way(at); action[i]++) {
        }
        board_place(b, i, cell, n, action[i]);
        if (i < 5) {
            board_add_bean(b, way(at));
        }
    }
}

/* A game is over when snakes and five beans do not fit any more; one segment less, and they do just so. */
static void test_full_board(void **state)
{
    for (uint32_t more = 0; more < 2; more++) {
        uint8_t action[BOARD_SNAKES];
        board b;
        place_on_way(&b, 30 + more, action);
        check_sets(&b);
        assert_int_equal(cells_count(&b.taken), 190 + more);
        const board_fate fate = {.direction = action};
        board_step(&b, action, &fate);
        assert_int_equal(b.died, 0);
        assert_int_equal(b.ate, 0x1f); /* the sixth only moves on */
        assert_int_equal(cells_count(&b.taken), 195 + more);
        assert_int_equal(b.is_over, more);
    }
}

/* ---- by chance --------------------------------------------------------------------------------------------------- */

/* of n draws with probability p, 5 deviations */
static void near_share(uint32_t is, double n, double p)
{
    const double off = (is - n * p) * (is - n * p);
    assert_true(off <= 25 * n * p * (1 - p));
}

static void test_begin(void **state)
{
    enum { N = 20000 };
    uint32_t bean[CELLS] = {0}, direction[CELLS_DIRECTIONS] = {0}, same = 0;
    for (uint64_t seed = 0; seed < N; seed++) {
        board b, again;
        board_begin(&b, seed);
        board_begin(&again, seed);
        assert_memory_equal(&b, &again, sizeof(b));
        check_sets(&b);
        assert_int_equal(b.n_beans, BOARD_BEANS);
        for (uint32_t i = 0; i < BOARD_SNAKES; i++) {
            const board_snake *s = &b.snake[i];
            assert_int_equal(s->length, BOARD_LENGTH);
            assert_int_equal(cells_neighbour(board_segment(s, 2), s->direction), board_segment(s, 1));
            assert_int_equal(cells_neighbour(board_segment(s, 1), s->direction), board_head(s));
            direction[s->direction]++;
        }
        for (uint32_t i = 0; i < BOARD_BEANS; i++) {
            bean[b.bean[i]]++;
        }
        board_begin(&again, seed + 1);
        same += memcmp(b.bean, again.bean, sizeof(b.bean)) == 0;
    }
    for (uint32_t c = 0; c < CELLS; c++) {
        near_share(bean[c], N, (double)BOARD_BEANS / CELLS);
    }
    for (uint32_t d = 0; d < CELLS_DIRECTIONS; d++) {
        near_share(direction[d], (double)N * BOARD_SNAKES, 0.25);
    }
    assert_int_equal(same, 0);
}

/* Long random games: sets and lists agree, scores telescope, an action backwards becomes each of the others. */
static void test_chance(void **state)
{
    enum { GAMES = 300, STEPS = 200 };
    uint32_t turned[CELLS_DIRECTIONS] = {0}, backwards = 0;
    for (uint64_t seed = 0; seed < GAMES; seed++) {
        board b;
        dt_random r;
        dt_random_init(&r, seed, 1);
        board_begin(&b, seed);
        for (uint32_t t = 0; t < STEPS && !b.is_over; t++) {
            uint8_t action[BOARD_SNAKES];
            rival_act(RIVAL_L2, &b, 0, &r, action);
            rival_act(seed % RIVALS, &b, 1, &r, action + BOARD_TEAM);
            const uint32_t was = b.snake[5].direction;
            action[5] = t % 2 == 0 ? (uint8_t)cells_opposite(was) : action[5];
            board_step(&b, action, NULL);
            check_sets(&b);
            if (t % 2 == 0 && was == CELLS_UP && (b.died >> 5 & 1) == 0) {
                backwards++;
                turned[b.snake[5].direction]++;
            }
            for (uint32_t i = 0; i < BOARD_SNAKES; i++) {
                assert_int_equal(b.score[i], (int32_t)b.snake[i].length - BOARD_LENGTH);
            }
        }
    }
    assert_int_equal(turned[CELLS_DOWN], 0);
    assert_true(backwards > 3000);
    assert_true(turned[CELLS_UP] > backwards / 4 && turned[CELLS_LEFT] > backwards / 4 &&
                turned[CELLS_RIGHT] > backwards / 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_games),      cmocka_unit_test(test_views),  cmocka_unit_test(test_spread),
        cmocka_unit_test(test_paths),      cmocka_unit_test(test_planes), cmocka_unit_test(test_own_beans),
        cmocka_unit_test(test_full_board), cmocka_unit_test(test_begin),  cmocka_unit_test(test_chance),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
