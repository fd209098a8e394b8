/* SPDX-License-Identifier: Apache-2.0
 *
 * phases/scenes/pictures.c: which samples and vehicles are kept, where their points are, and which scenes are reported;
 * numbers by hand.
 */
#include "mock/mock.h" /* before cmocka.h, which has a macro fail() */
#include "../../phases/scenes/pictures.h"

#include "unit.h"

enum { T = 2, F = 2, K = 2, P = 2, MOST = 70, MOTION_COLUMNS = 6 };

static struct {
    char name[96];
    float value[16];
    uint32_t rows, columns;
} drawn[128];
static int n_drawn;

static void picture(const dt_host *h, const char *key, const float *value, uint32_t rows, uint32_t columns)
{
    const uint32_t n = (rows > 0 ? rows : 1) * (columns > 0 ? columns : 1);
    assert_true(n_drawn < 128 && n <= 16);
    snprintf(drawn[n_drawn].name, sizeof(drawn[0].name), "%s", key);
    memcpy(drawn[n_drawn].value, value, n * sizeof(*value));
    drawn[n_drawn].rows = rows;
    drawn[n_drawn++].columns = columns;
}

static const dt_metrics_api metrics = {.struct_size = sizeof(metrics), .picture = picture};

static void expect(const char *name, int n, const double *want)
{
    for (int i = 0; i < n_drawn; i++) {
        if (strcmp(drawn[i].name, name) == 0) {
            for (int k = 0; k < n; k++) {
                if (fabs((double)drawn[i].value[k] - want[k]) > 1e-5) {
                    fail_msg("%s, number %d: %g is not %g", name, k, (double)drawn[i].value[k], want[k]);
                }
            }
            return;
        }
    }
    fail_msg("%s is not drawn", name);
}

static bool is_drawn(const char *name)
{
    for (int i = 0; i < n_drawn; i++) {
        if (strcmp(drawn[i].name, name) == 0) {
            return true;
        }
    }
    return false;
}

static float motion[T][MOST][MOTION_COLUMNS], target[MOST][F][2], future[MOST][F][2], spread[MOST][F][2], pose[MOST][4];
static float futures[MOST][K][F][2], probability[MOST][K], path[MOST][P][4];
static int32_t of[MOST];
static uint8_t complete[MOST];
static uint64_t sample[2];

/* Sequences are [T,S,...]: S as it is in the slice. */
static pictures_batch slice(int64_t S)
{
    return (pictures_batch){.motion = &motion[0][0][0],
                            .target = &target[0][0][0],
                            .future = &future[0][0][0],
                            .spread = &spread[0][0][0],
                            .pose = &pose[0][0],
                            .sample_of_seq = of,
                            .complete = complete,
                            .sample = sample,
                            .S = S,
                            .n_samples = 2};
}

static void set_motion(int64_t S, int t, int v, float x, float y, float speed)
{
    float *m = &motion[0][0][0] + ((int64_t)t * S + v) * MOTION_COLUMNS;
    m[0] = x;
    m[1] = y;
    m[4] = speed;
}

/* Three vehicles; the second is not complete. The first is at (10, 20) and heads north, so that (x, y) of its frame is
 * at (10 - y, 20 + x); the third is at the origin and heads east. */
static void test_places(void **state)
{
    mock_host h;
    pictures s;
    enum { S = 3 };
    memset(&s, 0, sizeof(s));
    memset(motion, 0, sizeof(motion));
    mock_host_init(&h);
    pictures_begin(&s, &h.host, T, F, 0.5, 2);
    of[0] = of[1] = 0, of[2] = 1;
    complete[0] = complete[2] = 1, complete[1] = 0;
    sample[0] = 5, sample[1] = 6;
    memcpy(pose[0], (const float[4]){10, 20, (float)(acos(-1) / 2), 7}, sizeof(pose[0]));
    memcpy(pose[2], (const float[4]){0, 0, 0, 8}, sizeof(pose[2]));
    set_motion(S, 0, 0, 0.25F, 0.1F, 9);
    set_motion(S, 1, 0, 0, 0, 4); /* 4 m/s now: half a second ago the frame was 2 m back */
    set_motion(S, 1, 2, 0, 0, 1);
    memcpy(target[0], (const float[F][2]){{1, 2}, {3, 4}}, sizeof(target[0]));
    memcpy(future[0], (const float[F][2]){{1, 1}, {3, 0}}, sizeof(future[0])); /* 4 m off at the end */
    memcpy(target[2], (const float[F][2]){{1, 0}, {2, 0}}, sizeof(target[2]));
    memcpy(future[2], (const float[F][2]){{9, 9}, {2, 1}}, sizeof(future[2])); /* 1 m */
    memcpy(spread[0], (const float[F][2]){{0, (float)log(2)}, {(float)log(3), (float)log(4)}}, sizeof(spread[0]));
    memcpy(futures[0], (const float[K][F][2]){{{1, 0}, {2, 0}}, {{0, 1}, {0, 2}}}, sizeof(futures[0]));
    memcpy(probability[0], (const float[K]){0.75F, 0.25F}, sizeof(probability[0]));
    memcpy(path[0], (const float[P][4]){{5, 0, 9, 9}, {1, 3, 9, 9}}, sizeof(path[0]));
    pictures_batch z = slice(S);
    z.futures = &futures[0][0][0][0];
    z.probability = &probability[0][0];
    z.path = &path[0][0][0];
    z.K = K;
    z.P = P;
    assert_int_equal(pictures_add(&s, &z), DT_OK);
    assert_true(s.n_scenes == 2 && s.n_vehicles == 2);
    n_drawn = 0;
    pictures_report(&s, &metrics, (const uint32_t[]){1, 2}, 2);
    expect("trajectories/horizon", 2, (const double[]){1, 2});
    expect("trajectories/0/rmse_m", 1, (const double[]){1}); /* the best first */
    expect("trajectories/1/rmse_m", 1, (const double[]){4});
    expect("trajectories/0/share", 1, (const double[]){0});
    expect("trajectories/1/share", 1, (const double[]){1});
    assert_false(is_drawn("trajectories/2/rmse_m"));
    assert_false(is_drawn("trajectories/1/vehicle/1/pose"));
    expect("trajectories/1/vehicle/0/pose", 4, (const double[]){10, 20, acos(-1) / 2, 7});
    expect("trajectories/1/vehicle/0/history", 4, (const double[]){10 - 0.1, 20 + 0.25 - 2, 10, 20});
    expect("trajectories/1/vehicle/0/future", 4, (const double[]){8, 21, 6, 23});
    expect("trajectories/1/vehicle/0/predicted", 4, (const double[]){9, 21, 10, 23});
    expect("trajectories/1/vehicle/0/spread", 4, (const double[]){1, 2, 3, 4});
    expect("trajectories/1/vehicle/0/futures/0", 4, (const double[]){10, 21, 10, 22});
    expect("trajectories/1/vehicle/0/futures/1", 4, (const double[]){9, 20, 8, 20});
    expect("trajectories/1/vehicle/0/probability", 2, (const double[]){0.75, 0.25});
    expect("trajectories/1/vehicle/0/lane", 4, (const double[]){10, 25, 7, 26});  /* pieces one after another */
    expect("trajectories/1/vehicle/0/constant", 2, (const double[]){10, 20 + 4}); /* 4 m/s for a second */
    expect("trajectories/0/vehicle/0/constant", 2, (const double[]){1, 0});
    pictures_free(&s);
    assert_int_equal(h.n_live, 0);
}

/* Of 100 samples 48 are kept, evenly: the k-th is the first at or after k / 48 of all. Of one 64 vehicles at most. */
static void test_kept(void **state)
{
    mock_host h;
    pictures s;
    memset(&s, 0, sizeof(s));
    mock_host_init(&h);
    pictures_begin(&s, &h.host, T, F, 0.5, 100);
    memset(of, 0, sizeof(of));
    memset(complete, 1, sizeof(complete));
    uint32_t n = 0;
    for (uint64_t i = 0; i < 100; i++) {
        const uint32_t before = s.n_scenes;
        const pictures_batch z = slice(i == 0 ? MOST : 1);
        sample[0] = i;
        assert_int_equal(pictures_add(&s, &z), DT_OK);
        const bool is_kept = i == (n * 100 + 47) / 48 && n < PICTURES_KEPT;
        assert_int_equal(s.n_scenes - before, is_kept);
        n += is_kept;
        assert_int_equal(s.n_vehicles, n > 0 ? 64 + n - 1 : 0);
    }
    assert_int_equal(n, PICTURES_KEPT);
    pictures_begin(&s, &h.host, T, F, 0.5, 48); /* as many as there is room for: all */
    for (uint64_t i = 0; i < 48; i++) {
        const pictures_batch z = slice(1);
        sample[0] = i;
        assert_int_equal(pictures_add(&s, &z), DT_OK);
        assert_int_equal(s.n_scenes, i + 1);
    }
    n_drawn = 0; /* without futures and lanes; 48 scenes: those at 0.25, 0.5, 0.9 and all of 47 */
    pictures_report(&s, &metrics, (const uint32_t[]){1}, 1);
    expect("trajectories/0/share", 1, (const double[]){12 / 47.0});
    expect("trajectories/1/share", 1, (const double[]){24 / 47.0});
    expect("trajectories/2/share", 1, (const double[]){42 / 47.0});
    expect("trajectories/3/share", 1, (const double[]){1});
    assert_false(is_drawn("trajectories/0/vehicle/0/probability") || is_drawn("trajectories/0/vehicle/0/lane"));
    pictures_free(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_places), cmocka_unit_test(test_kept)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
