/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests of plugins/traffic/store/smooth.c and of stores whose accelerations are smoothed: against sums written out,
 * nothing of the future in what models see, noise is no danger and hard braking is.
 */
#include "fixture.h"

#include "traffic/store/smooth.h"
#include "traffic/store/store.h"

enum { FRAMES = 60 };
static const double RATE_HZ = 10, WIDTH_S = 0.5;

/* ---- the sums, written out --------------------------------------------------------------------------------------- */

static double slope(const double *time, const double *speed, int64_t a, int64_t b)
{
    return a == b ? 0 : (speed[b] - speed[a]) / (time[b] - time[a]);
}

static double centred_at(const double *time, const double *speed, int64_t n, int64_t i)
{
    double sum = 0, weight = 0;
    for (int64_t j = 0; j < n; j++) {
        const double k = exp(-fabs(time[i] - time[j]) / WIDTH_S);
        sum += k * slope(time, speed, j > 0 ? j - 1 : 0, j < n - 1 ? j + 1 : n - 1);
        weight += k;
    }
    return sum / weight;
}

static double past_at(const double *time, const double *speed, int64_t i)
{
    double sum = 0, weight = 0;
    for (int64_t j = 1; j <= i; j++) {
        const double k = exp(-(time[i] - time[j]) / WIDTH_S);
        sum += k * slope(time, speed, j - 1, j);
        weight += k;
    }
    return i > 0 ? sum / weight : 0;
}

static double uniform(uint64_t i)
{
    return (double)(i * UINT64_C(0x9E3779B97F4A7C15) >> 40) / (double)(1 << 24);
}

static void test_equals_the_sums(void **state)
{
    double time[FRAMES], speed[FRAMES], work[2 * FRAMES], accel[FRAMES];
    for (uint64_t i = 0; i < FRAMES; i++) {
        time[i] = (i > 0 ? time[i - 1] : 100) + 0.05 + 0.2 * uniform(i);
        speed[i] = 10 + 3 * uniform(1000 + i);
    }
    for (int64_t n = 1; n <= FRAMES; n += n < 4 ? 1 : 7) {
        dt_past_mean past = {0};
        dt_smooth_track(time, speed, n, WIDTH_S, work, accel);
        for (int64_t i = 0; i < n; i++) {
            assert_true(fabs(accel[i] - centred_at(time, speed, n, i)) < 1e-12);
            if (i > 0) {
                const double is = dt_past_mean_add(&past, speed[i - 1], speed[i], time[i] - time[i - 1], WIDTH_S);
                assert_true(fabs(is - past_at(time, speed, i)) < 1e-12);
            }
        }
    }
}

static void test_a_steady_change_stays_as_it_is(void **state)
{
    double time[FRAMES], speed[FRAMES], work[2 * FRAMES], accel[FRAMES];
    for (int i = 0; i < FRAMES; i++) {
        time[i] = i / RATE_HZ;
        speed[i] = 20 - 2.5 * time[i];
    }
    dt_smooth_track(time, speed, FRAMES, WIDTH_S, work, accel);
    for (int i = 0; i < FRAMES; i++) { /* the ends of the track too */
        assert_true(fabs(accel[i] + 2.5) < 1e-12);
    }
}

/* ---- stores ------------------------------------------------------------------------------------------------------ */

typedef struct track { /* of one vehicle; frames with a speed below 0 are left out */
    double speed[FRAMES], accel[FRAMES];
} track;

static dt_store *store_of(const char *name, const track *t, double smooth_s)
{
    dt_store_writer *w = NULL;
    dt_store *s = NULL;
    const dt_store_meta meta = {.frame_rate_hz = RATE_HZ, .source = "test", .smooth_s = smooth_s};
    assert_ok(dt_store_create(at(name), &meta, &w));
    assert_ok(dt_store_scene_begin(w));
    for (int f = 0; f < FRAMES; f++) {
        dt_vehicle v[2] = {{.id = 1, .speed = t->speed[f], .accel = t->accel[f], .length = 4, .width = NAN},
                           {.id = 2, .x = 500, .speed = 9, .accel = NAN, .length = 4, .width = NAN}};
        const bool is_in = t->speed[f] >= 0;
        v[0].stop_distance = v[1].stop_distance = NAN;
        assert_ok(dt_store_frame(w, f, f / RATE_HZ, v + !is_in, 1 + is_in)); /* the other one is in all */
    }
    assert_ok(dt_store_scene_end(w, "a", "x"));
    assert_ok(dt_store_commit(w));
    dt_store_destroy(w);
    assert_ok(dt_store_open(at(name), &s));
    return s;
}

static void noisy(track *t)
{
    for (uint64_t i = 0; i < FRAMES; i++) {
        t->speed[i] = 10 + 0.3 * uniform(i);
        t->accel[i] = i % 9 == 4 ? -3.41 : 0.5; /* clipped, as trackers do */
    }
}

static void test_what_a_store_keeps(void **state)
{
    track t;
    double time[FRAMES], speed[FRAMES];
    int64_t n = 0;
    noisy(&t);
    t.speed[20] = t.speed[21] = -1; /* out of sight, the same track */
    dt_store *s = store_of("s", &t, WIDTH_S);
    const dt_store_view *v = dt_store_view_of(s);
    assert_true(dt_store_smooth_s(s) == WIDTH_S);
    assert_int_equal(v->n_tracks, 2);
    for (int f = 0; f < FRAMES; f++) {
        if (t.speed[f] >= 0) {
            time[n] = f / RATE_HZ;
            speed[n++] = (double)(float)t.speed[f];
        }
    }
    assert_int_equal(v->track_ptr[1], n);
    for (int64_t i = 0; i < n; i++) {
        const int64_t r = v->track_row[i];
        assert_true(fabs((double)v->accel_centred[r] - centred_at(time, speed, n, i)) < 1e-5);
        assert_true(fabs((double)v->node[9 * r + 3] - past_at(time, speed, i)) < 1e-4);
        assert_true(v->motion[4 * r + 1] == (float)t.accel[lround(time[i] * RATE_HZ)]); /* as it was recorded */
    }
    dt_store_close(s);
}

static void test_models_see_nothing_of_the_future(void **state)
{
    track t;
    enum { NOW = 30 };
    noisy(&t);
    dt_store *a = store_of("a", &t, WIDTH_S);
    for (int f = NOW + 1; f < FRAMES; f++) {
        t.speed[f] = 0;
        t.accel[f] = -8;
    }
    dt_store *b = store_of("b", &t, WIDTH_S);
    const int64_t rows = dt_store_view_of(a)->frame_row[NOW + 1];
    assert_int_equal(rows, dt_store_view_of(b)->frame_row[NOW + 1]);
    assert_memory_equal(dt_store_view_of(a)->node, dt_store_view_of(b)->node, (size_t)rows * 9 * sizeof(float));
    assert_memory_equal(dt_store_view_of(a)->motion, dt_store_view_of(b)->motion, (size_t)rows * 4 * sizeof(float));
    assert_true(dt_store_view_of(a)->accel_centred[rows - 2] != dt_store_view_of(b)->accel_centred[rows - 2]);
    dt_store_close(a);
    dt_store_close(b);
}

static int count_risk(const dt_store *s, int state)
{
    const dt_store_view *v = dt_store_view_of(s);
    int n = 0;
    for (int64_t row = 0; row < v->n_rows; row++) {
        n += v->risk[row] == state;
    }
    return n;
}

static void test_noise_is_no_danger(void **state)
{
    track t;
    noisy(&t);
    dt_store *recorded = store_of("r", &t, 0), *smooth = store_of("s", &t, WIDTH_S);
    assert_null(dt_store_view_of(recorded)->accel_centred);
    assert_int_equal(count_risk(recorded, DT_RISK_NOW), 7);
    assert_int_equal(count_risk(smooth, DT_RISK_NOW), 0);
    assert_int_equal(count_risk(smooth, DT_RISK_POSITIVE), 0);
    dt_store_close(recorded);
    dt_store_close(smooth);
    for (int f = 25; f < FRAMES; f++) { /* now it brakes, 5 m/s^2 for 1.5 s, and the tracker says nothing of it */
        t.speed[f] -= f < 40 ? 0.5 * (f - 24) : 7.5;
        t.accel[f] = 0;
    }
    smooth = store_of("b", &t, WIDTH_S);
    const dt_store_view *v = dt_store_view_of(smooth);
    for (int f = 28; f <= 36; f++) {
        assert_int_equal(v->risk[v->frame_row[f]], DT_RISK_NOW);
    }
    assert_int_equal(v->risk[v->frame_row[10]], DT_RISK_POSITIVE);
    assert_true(count_risk(smooth, DT_RISK_NOW) <= 15);
    dt_store_close(smooth);
}

static void test_refusals(void **state)
{
    dt_store_writer *w = NULL;
    dt_store *s = NULL;
    track t;
    dt_store_meta meta = {.frame_rate_hz = RATE_HZ, .smooth_s = -0.1};
    assert_fails(dt_store_create(at("s"), &meta, &w), DT_EINVAL, "smoothing width of -0.1 s is outside [0, 10]");
    meta.smooth_s = NAN;
    assert_fails(dt_store_create(at("s"), &meta, &w), DT_EINVAL, "is outside [0, 10]");
    noisy(&t);
    dt_store_close(store_of("s", &t, WIDTH_S));
    assert_int_equal(unlink(at("s/accel_centred.npy")), 0);
    assert_fails(dt_store_open(at("s"), &s), DT_EDATA, "accel_centred.npy is missing from the store");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_equals_the_sums),
        cmocka_unit_test(test_a_steady_change_stays_as_it_is),
        cmocka_unit_test_setup_teardown(test_what_a_store_keeps, begin, end),
        cmocka_unit_test_setup_teardown(test_models_see_nothing_of_the_future, begin, end),
        cmocka_unit_test_setup_teardown(test_noise_is_no_danger, begin, end),
        cmocka_unit_test_setup_teardown(test_refusals, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
