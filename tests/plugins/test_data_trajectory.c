/* SPDX-License-Identifier: Apache-2.0
 *
 * data_trajectory in a fake host over real stores: every window against what was recorded, packing, splits, turning,
 * refusals. Nothing here reads the store the way the plugin does.
 */
#include "trajectory_bench.h"
#include "trajectory_recording.h"

/* ---- windows against the recording ------------------------------------------------------------------------------- */

/* Anchors of scene s whose past and future lie inside it: frames 6, 8, ... 48, but for the empty frame 20. */
static bool is_anchor(int s, int f)
{
    int n = 0;
    for (int c = 0; c < CARS; c++) {
        n += recorded[s][f][c].is_there;
    }
    return f >= (T - 1) * STRIDE && f + F * STRIDE < FRAMES && f % 2 == 0 && n > 0;
}

/* Column of car c at (s, f) seen in the frame of *o. */
static void own_xy(const seen *o, const seen *p, double *x, double *y)
{
    *x = (p->x - o->x) * cos(o->heading) + (p->y - o->y) * sin(o->heading);
    *y = (p->y - o->y) * cos(o->heading) - (p->x - o->x) * sin(o->heading);
}

/* Rows before car c in frame f of scene s. */
static int rank_of(int s, int f, int c)
{
    int n = 0;
    for (int k = 0; k < c; k++) {
        n += recorded[s][f][k].is_there;
    }
    return n;
}

static void check_vehicle(const bench *b, int s, int anchor, int c, int64_t seq, const int64_t base[T], double mx,
                          double my)
{
    const int64_t S = b->size[2];
    const int32_t *seq_row = field_of(b, "seq_row"), *step = field_of(b, "step_of_row");
    const float *present = field_of(b, "present"), *motion = field_of(b, "motion"), *node = field_of(b, "nodes");
    const float *target = field_of(b, "target"), *weight = field_of(b, "target_weight");
    const seen *o = &recorded[s][anchor][c];
    bool is_complete = true;
    double x = 0, y = 0;
    for (int k = 0; k < T; k++) {
        int f = anchor - (T - 1 - k) * STRIDE;
        const seen *p = &recorded[s][f][c];
        const float *m = motion + (k * S + seq) * 6;
        is_complete = is_complete && p->is_there;
        assert_true(present[k * S + seq] == (p->is_there ? 1 : 0));
        if (!p->is_there) {
            assert_int_equal(seq_row[k * S + seq], -1);
            assert_true(m[0] == 0 && m[1] == 0 && m[2] == 0 && m[3] == 0 && m[4] == 0 && m[5] == 0);
            continue;
        }
        int64_t row = base[k] + rank_of(s, f, c);
        assert_int_equal(seq_row[k * S + seq], row);
        assert_int_equal(step[row], k);
        own_xy(o, p, &x, &y);
        assert_true(is_near(m[0], x + o->speed * (anchor - f) / 10.0) && is_near(m[1], y));
        assert_true(is_near(m[2], cos(p->heading - o->heading)) && is_near(m[3], sin(p->heading - o->heading)));
        assert_true(is_near(m[4], p->speed) && is_near(m[5], p->accel));
        const float *v = node + row * 9;
        assert_true(is_near(v[0] * 30, p->x - mx) && is_near(v[1] * 30, p->y - my));
        assert_true(is_near(v[2] * 10, p->speed) && is_near(v[3] * 2, p->accel));
        assert_true(is_near(v[4], sin(p->heading)) && is_near(v[5], cos(p->heading)));
        assert_true(is_near(v[6] * 4 + 5, 4 + c) && is_near(200 - v[7] * 100, 10 * c) && v[8] == 0);
    }
    const float *pose = (const float *)field_of(b, "pose") + 4 * seq;
    int first = 0;
    while (!recorded[s][anchor][first].is_there) {
        first++;
    }
    assert_true(is_near(pose[0], o->x - recorded[s][anchor][first].x));
    assert_true(is_near(pose[1], o->y - recorded[s][anchor][first].y));
    assert_true(is_near(pose[2], o->heading) && is_near(pose[3], 4 + c));
    for (int k = 0; k < F; k++) {
        const seen *p = &recorded[s][anchor + (k + 1) * STRIDE][c];
        is_complete = is_complete && p->is_there;
        assert_true(weight[seq * F + k] == (p->is_there ? 1 : 0));
        own_xy(o, p, &x, &y);
        assert_true(is_near(target[2 * (seq * F + k)], p->is_there ? x : 0));
        assert_true(is_near(target[2 * (seq * F + k) + 1], p->is_there ? y : 0));
    }
    assert_int_equal(((uint8_t *)field_of(b, "complete"))[seq], is_complete);
}

/* One sample that stands at these rows and sequences of the slice; returns its number of complete windows. */
static int check_sample(const bench *b, int s, int anchor, int32_t number, int64_t *row_p, int64_t *seq_p)
{
    int64_t base[T];
    double mx = 0, my = 0;
    int n = 0, complete = 0, nth = 0;
    for (int k = 0; k < T; k++) {
        base[k] = *row_p;
        *row_p += rank_of(s, anchor - (T - 1 - k) * STRIDE, CARS);
    }
    for (int c = 0; c < CARS; c++) {
        if (recorded[s][anchor][c].is_there) {
            mx += recorded[s][anchor][c].x;
            my += recorded[s][anchor][c].y;
            n++;
        }
    }
    for (int c = 0; c < CARS; c++) {
        if (recorded[s][anchor][c].is_there) {
            assert_int_equal(((int32_t *)field_of(b, "sample_of_seq"))[*seq_p], number);
            /* a sequence has the key that its sample's rows begin with */
            assert_int_equal(((int64_t *)field_of(b, "seq_key"))[*seq_p],
                             ((int64_t *)field_of(b, "row_key"))[base[0]] + nth++);
            complete += ((uint8_t *)field_of(b, "complete"))[*seq_p];
            check_vehicle(b, s, anchor, c, (*seq_p)++, base, mx / n, my / n);
        }
    }
    return complete;
}

static void check_graph(const bench *b)
{
    const int32_t *rowptr = field_of(b, "rowptr"), *col = field_of(b, "col"), *step = field_of(b, "step_of_row");
    const float *edge = field_of(b, "edges"), *node = field_of(b, "nodes");
    assert_int_equal(rowptr[0], 0);
    assert_int_equal(rowptr[b->size[0]], b->size[1]);
    for (int64_t r = 0; r < b->size[0]; r++) {
        assert_true(rowptr[r] < rowptr[r + 1]);
        assert_int_equal(col[rowptr[r]], r); /* itself first */
        for (int32_t e = rowptr[r]; e < rowptr[r + 1]; e++) {
            assert_true(col[e] >= 0 && col[e] < b->size[0]);
            assert_int_equal(step[col[e]], step[r]); /* sources stand in the target's own frame */
            double dx = 30 * (node[9 * col[e]] - node[9 * r]), dy = 30 * (node[9 * col[e] + 1] - node[9 * r + 1]);
            double lateral = dy * node[9 * r + 5] - dx * node[9 * r + 4];
            assert_true(fabs(4 * edge[4 * e + 1] - lateral) < 2e-3);
        }
    }
}

static void test_windows(void **state)
{
    bench b;
    write_store("s", 10);
    assert_int_equal(bench_open(&b, "s", (const char *const[]){WINDOW, "split=all", NULL}), DT_OK);
    uint64_t index = 0;
    int complete = 0;
    for (int s = 0; s < SCENES; s++) {
        for (int f = 0; f < FRAMES; f++) {
            if (!is_anchor(s, f)) {
                continue;
            }
            int64_t row = 0, seq = 0;
            bench_read(&b, &index, (const uint64_t[]){0}, 1);
            complete += check_sample(&b, s, f, 0, &row, &seq);
            assert_int_equal(row, b.size[0]);
            assert_int_equal(seq, b.size[2]);
            check_graph(&b);
            index++;
        }
    }
    assert_int_equal(bench_count(&b), index);
    assert_true(complete > 50); /* the cases above are not all of one kind */
    bench_close(&b);
}

/* A slice of several samples is those samples one after another. */
static void test_packing(void **state)
{
    bench b;
    write_store("s", 10);
    assert_int_equal(bench_open(&b, "s", (const char *const[]){WINDOW, "split=all", NULL}), DT_OK);
    uint64_t anchors[3] = {0, 0, 0}, n = 0;
    int frame[3] = {0}, scene[3] = {0};
    const uint64_t want[3] = {40, 3, 17}; /* not in order */
    for (int s = 0; s < SCENES; s++) {
        for (int f = 0; f < FRAMES; f++) {
            for (int i = 0; i < 3 && is_anchor(s, f); i++) {
                if (want[i] == n) {
                    anchors[i] = n;
                    scene[i] = s;
                    frame[i] = f;
                }
            }
            n += is_anchor(s, f);
        }
    }
    bench_read(&b, anchors, (const uint64_t[]){0, 0, 0}, 3);
    int64_t row = 0, seq = 0;
    for (int32_t i = 0; i < 3; i++) {
        check_sample(&b, scene[i], frame[i], i, &row, &seq);
    }
    assert_int_equal(row, b.size[0]);
    assert_int_equal(seq, b.size[2]);
    check_graph(&b);
    int64_t *key = field_of(&b, "row_key");
    for (int64_t i = 1; i < b.size[0]; i++) {
        for (int64_t j = 0; j < i; j++) {
            assert_true(key[i] != key[j]);
        }
    }
    bench_read(&b, anchors, NULL, 0); /* none at all */
    assert_int_equal(b.size[0] + b.size[1] + b.size[2], 0);
    assert_int_equal(((int32_t *)field_of(&b, "rowptr"))[0], 0);
    bench_close(&b);
}

static void test_risk_fields(void **state)
{
    bench b;
    write_store("s", 10);
    assert_int_equal(bench_open(&b, "s", (const char *const[]){WINDOW, "split=all", NULL}), DT_OK);
    int kinds[4] = {0};
    for (uint64_t i = 0; i < bench_count(&b); i++) {
        bench_read(&b, &i, NULL, 1);
        const uint8_t *risk = field_of(&b, "risk_state");
        const float *label = field_of(&b, "risk_label"), *weight = field_of(&b, "risk_weight");
        const float *node = field_of(&b, "nodes");
        for (int64_t r = 0; r < b.size[0]; r++) {
            kinds[risk[r]]++;
            assert_true(label[r] == (risk[r] == DT_RISK_POSITIVE || risk[r] == DT_RISK_NOW ? 1 : 0));
            assert_true(weight[r] == (risk[r] == DT_RISK_UNKNOWN ? 0 : 1));
            if (node[9 * r + 3] * 2 < -3.001) {
                assert_int_equal(risk[r], DT_RISK_NOW);
            }
        }
    }
    assert_true(kinds[1] > 0 && kinds[2] > 0 && kinds[3] > 0);
    bench_close(&b);
}

/* A copy of a field as it is now; free it. */
static float *copy_of(const bench *b, const char *name, size_t *n_p)
{
    for (uint32_t i = 0; i < b->n_fields; i++) {
        if (strcmp(b->field[i].name, name) == 0) {
            *n_p = values_of(b, b->field[i].dims);
            float *copy = malloc(*n_p * sizeof(float));
            memcpy(copy, b->out[i], *n_p * sizeof(float));
            return copy;
        }
    }
    fail_msg("no field %s", name);
    return NULL;
}

enum { A_NODES, A_EDGES, A_MOTION, A_TARGET, N_AUGMENTED };
static const char *const augmented[N_AUGMENTED] = {"nodes", "edges", "motion", "target"};

/* The augmented fields of sample 5 under this key, with these options. */
static void read_augmented(const char *const *set, uint64_t key, float *out[N_AUGMENTED], size_t n[N_AUGMENTED])
{
    bench b;
    uint64_t index = 5;
    assert_int_equal(bench_open(&b, "s", set), DT_OK);
    bench_read(&b, &index, &key, 1);
    for (int i = 0; i < N_AUGMENTED; i++) {
        out[i] = copy_of(&b, augmented[i], &n[i]);
    }
    bench_close(&b);
}

static void assert_same(const float *a, const float *b, size_t n, size_t width, size_t negated, size_t negated_too)
{
    for (size_t i = 0; i < n; i++) {
        double sign = i % width == negated || i % width == negated_too ? -1 : 1;
        assert_true(fabs(a[i] - sign * b[i]) < 1e-5 * fmax(1, fabs(b[i])));
    }
}

/* Turning moves x, y, sin, cos of the nodes as one rigid body and nothing else; the key alone decides. */
static void test_turning(void **state)
{
    const char *const set[] = {WINDOW, "rotate=true", "mirror=false", "shift_m=0", NULL};
    float *plain[N_AUGMENTED], *turned[N_AUGMENTED], *again[N_AUGMENTED], *other[N_AUGMENTED];
    size_t n[N_AUGMENTED];
    write_store("s", 10);
    read_augmented(set, 0, plain, n);
    read_augmented(set, 1234, turned, n);
    read_augmented(set, 1234, again, n);
    read_augmented(set, 1235, other, n);
    const float *p = plain[A_NODES], *t = turned[A_NODES];
    double cos_a = p[5] * t[5] + p[4] * t[4], sin_a = t[4] * p[5] - t[5] * p[4];
    assert_true(fabs(sin_a) > 1e-3); /* it does turn */
    for (size_t r = 0; r < n[A_NODES]; r += 9, p += 9, t += 9) {
        assert_true(fabs(t[0] - (p[0] * cos_a - p[1] * sin_a)) < 1e-4);
        assert_true(fabs(t[1] - (p[0] * sin_a + p[1] * cos_a)) < 1e-4);
        assert_true(fabs(t[4] - (p[4] * cos_a + p[5] * sin_a)) < 1e-5);
        assert_memory_equal(p + 6, t + 6, 3 * sizeof(float));
        assert_memory_equal(p + 2, t + 2, 2 * sizeof(float));
    }
    for (int i = 0; i < N_AUGMENTED; i++) {
        assert_memory_equal(turned[i], again[i], n[i] * sizeof(float));
        assert_true((memcmp(turned[i], other[i], n[i] * sizeof(float)) != 0) == (i == A_NODES));
        assert_true((memcmp(turned[i], plain[i], n[i] * sizeof(float)) != 0) == (i == A_NODES));
        free(plain[i]);
        free(turned[i]);
        free(again[i]);
        free(other[i]);
    }
}

/* The mirror turns y and sin of nodes, motion and target and the lateral offset of edges, for half of the keys. */
static void test_mirror(void **state)
{
    const char *const set[] = {WINDOW, "mirror=true", "rotate=false", "shift_m=0", NULL};
    float *plain[N_AUGMENTED], *seen_as[N_AUGMENTED];
    size_t n[N_AUGMENTED];
    int n_mirrored = 0;
    enum { KEYS = 24, NONE = 99 };
    write_store("s", 10);
    read_augmented(set, 0, plain, n);
    for (uint64_t key = 1; key <= KEYS; key++) {
        read_augmented(set, key, seen_as, n);
        bool is_mirrored = seen_as[A_NODES][4] != plain[A_NODES][4];
        n_mirrored += is_mirrored;
        assert_same(seen_as[A_NODES], plain[A_NODES], n[A_NODES], 9, is_mirrored ? 1 : NONE, is_mirrored ? 4 : NONE);
        assert_same(seen_as[A_EDGES], plain[A_EDGES], n[A_EDGES], 4, is_mirrored ? 1 : NONE, NONE);
        assert_same(seen_as[A_MOTION], plain[A_MOTION], n[A_MOTION], 6, is_mirrored ? 1 : NONE, is_mirrored ? 3 : NONE);
        assert_same(seen_as[A_TARGET], plain[A_TARGET], n[A_TARGET], 2, is_mirrored ? 1 : NONE, NONE);
        for (int i = 0; i < N_AUGMENTED; i++) {
            free(seen_as[i]);
        }
    }
    assert_true(n_mirrored > 4 && n_mirrored < KEYS - 4);
    for (int i = 0; i < N_AUGMENTED; i++) {
        free(plain[i]);
    }
}

/* The centre moves by one vector of at most shift_m along each axis. */
static void test_shift(void **state)
{
    const char *const set[] = {WINDOW, "rotate=false", "mirror=false", "shift_m=3", NULL};
    float *plain[N_AUGMENTED], *moved[N_AUGMENTED];
    size_t n[N_AUGMENTED];
    write_store("s", 10);
    read_augmented(set, 0, plain, n);
    read_augmented(set, 7, moved, n);
    double x = moved[A_NODES][0] - plain[A_NODES][0], y = moved[A_NODES][1] - plain[A_NODES][1];
    assert_true(fabs(x) <= 0.1 && fabs(y) <= 0.1 && x != 0 && y != 0); /* 3 m of 30 */
    for (size_t i = 0; i < n[A_NODES]; i++) {
        double by = i % 9 == 0 ? x : i % 9 == 1 ? y : 0;
        assert_true(fabs(moved[A_NODES][i] - plain[A_NODES][i] - by) < 1e-5);
    }
    for (int i = 0; i < N_AUGMENTED; i++) {
        assert_true(i == A_NODES || memcmp(moved[i], plain[i], n[i] * sizeof(float)) == 0);
        free(plain[i]);
        free(moved[i]);
    }
}

/* ---- roads ------------------------------------------------------------------------------------------------------- */

static bool has_field(const bench *b, const char *name)
{
    uint32_t n = 0;
    const dt_port *field = b->ops->fields(b->self, &n);
    for (uint32_t i = 0; i < n; i++) {
        if (strcmp(field[i].name, name) == 0) {
            return true;
        }
    }
    return false;
}

static void assert_without_roads(const char *store, const char *const *set)
{
    bench b;
    assert_int_equal(bench_open(&b, store, set), DT_OK);
    assert_false(has_field(&b, "lane") || has_field(&b, "path"));
    bench_close(&b);
}

/* lane and path of samples, with these options. */
static void read_roads(const char *const *set, const uint64_t *index, uint64_t key, uint32_t n, float *out[2],
                       size_t size[2])
{
    bench b;
    const uint64_t keys[2] = {key, key};
    assert_int_equal(bench_open(&b, "r", set), DT_OK);
    bench_read(&b, index, keys, n);
    out[0] = copy_of(&b, "lane", &size[0]);
    out[1] = copy_of(&b, "path", &size[1]);
    bench_close(&b);
}

static void free_roads(float *out[2])
{
    free(out[0]);
    free(out[1]);
}

/* What vehicles see of roads does not depend on how a scene is turned and moved, what is read next to it or what else
 * is asked for; mirrored, left is right. Without roads nothing is added. */
static void test_roads(void **state)
{
    const uint64_t sample[2] = {2, 70};
    const char *const still[] = {WINDOW, "lanes=true", "mirror=false", NULL};
    const char *const all[] = {WINDOW, "lanes=true", NULL};
    float *plain[2], *seen_as[2], *last[2];
    size_t n[2], n_both[2], n_last[2];
    write_store("s", 10);
    write_store_of("r", 10, true, &(dt_packing){0});
    assert_without_roads("s", all);
    assert_without_roads("r", (const char *const[]){WINDOW, NULL});

    read_roads(still, sample, 0, 1, plain, n);
    const size_t S = n[1] / (41 * 4), R = n[0] / S;
    size_t on_lane = 0;
    for (size_t i = 0; i < S; i++) {
        on_lane += plain[0][i * R] == 1;
    }
    assert_true(on_lane > 0 && on_lane < S);
    read_roads(still, sample, 99, 1, seen_as, n);
    assert_memory_equal(plain[0], seen_as[0], n[0] * sizeof(float));
    assert_memory_equal(plain[1], seen_as[1], n[1] * sizeof(float));
    free_roads(seen_as);
    int n_mirrored = 0;
    for (uint64_t key = 1; key < 12; key++) {
        read_roads(all, sample, key, 1, seen_as, n);
        const bool is_mirrored = memcmp(plain[0], seen_as[0], n[0] * sizeof(float)) != 0;
        n_mirrored += is_mirrored;
        for (size_t i = 0; i < n[1]; i++) { /* dx dy and the change of the normal, of which x turns round then */
            const double sign = is_mirrored && (i % 4 == 1 || i % 4 == 2) ? -1 : 1;
            assert_true(fabs((double)plain[1][i] - sign * (double)seen_as[1][i]) < 1e-5);
        }
        free_roads(seen_as);
    }
    assert_true(n_mirrored > 0 && n_mirrored < 11);

    read_roads((const char *const[]){WINDOW, "lanes=true", "pairs=true", NULL}, sample, 0, 2, seen_as, n_both);
    read_roads(all, sample + 1, 0, 1, last, n_last);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(n_both[i], n[i] + n_last[i]);
        assert_memory_equal(plain[i], seen_as[i], n[i] * sizeof(float));
        assert_memory_equal(last[i], seen_as[i] + n[i], n_last[i] * sizeof(float));
    }
    free_roads(plain);
    free_roads(seen_as);
    free_roads(last);
}

/* ---- unknown headings -------------------------------------------------------------------------------------------- */

/* No number is NAN; who has no heading at the anchor has no future to learn from, and what was known is as it was. */
static void test_unknown_headings(void **state)
{
    const char *const set[] = {WINDOW, "lanes=true", "pairs=true", "mirror=false", NULL};
    bench b;
    int n_unknown = 0, n_known = 0;
    record();
    for (int s = 0; s < SCENES; s++) {
        for (int f = 0; f < FRAMES; f++) {
            recorded[s][f][3].heading = NAN;
            recorded[s][f][4].heading = f < FRAMES / 2 ? NAN : recorded[s][f][4].heading;
            recorded[s][f][3].speed = f % 2 == 0 ? 0 : 3;
        }
    }
    write_recorded("r", 10, true, &(dt_packing){0});
    assert_int_equal(bench_open(&b, "r", set), DT_OK);
    for (uint64_t i = 0; i < bench_count(&b); i++) {
        const uint64_t key = i % 3;
        bench_read(&b, &i, &key, 1);
        for (uint32_t k = 0; k < b.n_fields; k++) {
            const size_t n = b.field[k].dtype == DT_F32 ? values_of(&b, b.field[k].dims) : 0;
            for (size_t v = 0; v < n; v++) {
                if (!isfinite(((const float *)b.out[k])[v])) {
                    fail_msg("%s[%zu] of sample %d is %g", b.field[k].name, v, (int)i,
                             (double)((const float *)b.out[k])[v]);
                }
            }
        }
        const float *motion = field_of(&b, "motion"), *weight = field_of(&b, "target_weight");
        for (int64_t v = 0; v < b.size[2]; v++) {
            const float *m = motion + ((T - 1) * b.size[2] + v) * 6;
            const bool is_known = m[2] == 1;
            assert_true(is_known || (m[2] == 0 && m[3] == 0));
            float sum = 0;
            for (int k = 0; k < F; k++) {
                sum += weight[v * F + k];
            }
            assert_true(is_known || (sum == 0 && !((const uint8_t *)field_of(&b, "complete"))[v]));
            n_known += is_known && sum > 0;
            n_unknown += !is_known;
        }
    }
    assert_true(n_known > 100 && n_unknown > 50);
    bench_close(&b);
}

/* ---- splits ------------------------------------------------------------------------------------------------------ */

/* Which scenes a split shows. */
static uint32_t scenes_of(const char *const *set)
{
    bench b;
    uint32_t mask = 0;
    assert_int_equal(bench_open(&b, "s", set), DT_OK);
    for (uint64_t i = 0; i < bench_count(&b); i++) {
        bench_read(&b, &i, NULL, 1);
        const float *motion = field_of(&b, "motion");
        for (int s = 0; s < SCENES; s++) { /* the speed of the first car at the anchor names the scene */
            for (int f = 0; f < FRAMES; f++) {
                for (int c = 0; c < CARS; c++) {
                    if (recorded[s][f][c].is_there &&
                        motion[((T - 1) * b.size[2]) * 6 + 4] == (float)recorded[s][f][c].speed) {
                        mask |= 1u << s;
                    }
                }
            }
        }
    }
    bench_close(&b);
    return mask;
}

static void test_splits(void **state)
{
    write_store("s", 10);
    uint32_t all = 0, group = 1u << 0 | 1u << 1; /* a#1 and a#2 */
    for (int fold = 0; fold < 3; fold++) {
        char text[32];
        snprintf(text, sizeof(text), "fold=%d", fold);
        uint32_t held = scenes_of((const char *const[]){WINDOW, text, "split=eval", NULL});
        uint32_t kept = scenes_of((const char *const[]){WINDOW, text, "split=train", NULL});
        assert_true(held != 0 && kept != 0);
        assert_int_equal(held & kept, 0);
        assert_int_equal(held | kept, (1u << SCENES) - 1);
        assert_true((held & group) == 0 || (held & group) == group);
        assert_int_equal(all & held, 0);
        all |= held;

        /* what calibrates is taken from train, whole recordings of it, and eval stays */
        uint32_t left =
            scenes_of((const char *const[]){WINDOW, text, "split=calibration", "calibration_folds=4", NULL});
        uint32_t rest = scenes_of((const char *const[]){WINDOW, text, "split=train", "calibration_folds=4", NULL});
        assert_true(left != 0 && rest != 0);
        assert_int_equal(left & rest, 0);
        assert_int_equal(left | rest, kept);
        assert_true((left & group) == 0 || (left & group) == group);
        assert_int_equal(scenes_of((const char *const[]){WINDOW, text, "split=eval", "calibration_folds=4", NULL}),
                         held);

        /* of one fold: what is trained on, and none is left out */
        const char *const same[] = {WINDOW, text, "split=calibration", "calibration_folds=1", NULL};
        const char *const whole[] = {WINDOW, text, "split=train", "calibration_folds=1", NULL};
        assert_int_equal(scenes_of(same), kept);
        assert_int_equal(scenes_of(whole), kept);
    }
    assert_int_equal(
        scenes_of((const char *const[]){WINDOW, "split=calibration", "calibration_folds=4", "eval_scenes=all", NULL}),
        (1u << SCENES) - 1);
    assert_int_equal(all, (1u << SCENES) - 1);
    const char *const eval[] = {WINDOW, "eval_site=south", "split=eval", NULL};
    const char *const train[] = {WINDOW, "eval_site=south", "split=train", NULL};
    assert_int_equal(scenes_of(eval), 1u << 3 | 1u << 4 | 1u << 5);
    assert_int_equal(scenes_of(train), 1u << 0 | 1u << 1 | 1u << 2 | 1u << 6);
}

/* Training anchors may have a short past and future; the missing steps are absent, not invented. */
static void test_short_anchors(void **state)
{
    bench b;
    write_store("s", 10);
    const char *const set[] = {
        WINDOW, "split=train", "min_history_s=0", "min_future_s=0.2", "eval_site=south", "train_stride_s=0.1", NULL};
    assert_int_equal(bench_open(&b, "s", set), DT_OK);
    uint64_t first = 0;
    bench_read(&b, &first, NULL, 1);
    const int32_t *seq_row = field_of(&b, "seq_row");
    for (int64_t i = 0; i < (T - 1) * b.size[2]; i++) {
        assert_int_equal(seq_row[i], -1);
    }
    for (int64_t i = 0; i < b.size[2]; i++) {
        assert_int_equal(seq_row[(T - 1) * b.size[2] + i], i);
        assert_int_equal(((uint8_t *)field_of(&b, "complete"))[i], 0);
    }
    uint64_t last = bench_count(&b) - 1;
    bench_read(&b, &last, NULL, 1);
    const float *weight = field_of(&b, "target_weight");
    for (int64_t i = 0; i < b.size[2]; i++) {
        for (int k = 1; k < F; k++) {
            assert_true(weight[i * F + k] == 0);
        }
    }
    bench_close(&b);
}

/* ---- refusals ---------------------------------------------------------------------------------------------------- */

static void refuse(const char *store, const char *const *set, dt_status code, const char *words)
{
    bench b;
    assert_int_equal(bench_open(&b, store, set), code);
    if (strstr(b.host.message, words) == NULL) {
        fail_msg("\"%s\" does not say \"%s\"", b.host.message, words);
    }
    bench_close(&b);
}

/* Recordings of many names with the same motion are one: a split is left without any, and the reason is reported. */
static void test_motion_that_all_share(void **state)
{
    static const char *const words = "split train of the data has no samples: scenes that share their vehicles' motion "
                                     "count as one recording";
    record();
    for (int s = 1; s < SCENES; s++) {
        memcpy(recorded[s], recorded[0], sizeof(recorded[s]));
    }
    write_recorded("s", 10, false, &(dt_packing){0});
    refuse("s", (const char *const[]){WINDOW, "split=train", NULL}, DT_EDATA, words);
    refuse("s", (const char *const[]){WINDOW, "split=train", NULL}, DT_EDATA, "and so do a#2 and b of");
    refuse("s", (const char *const[]){WINDOW, "split=eval", "fold=1", NULL}, DT_EDATA, "split eval of the data has no");
    /* none of these is the reason */
    assert_true(scenes_of((const char *const[]){WINDOW, "split=train", "eval_scenes=all", NULL}) == (1u << SCENES) - 1);
    assert_true(scenes_of((const char *const[]){WINDOW, "split=train", "eval_site=south", NULL}) != 0);
    const char *const longer[] = {"history_s=8", "horizon_s=8", "rate_hz=5", "min_history_s=8", "split=train", NULL};
    assert_true(scenes_of(longer) == 0);
}

/* No choice of scenes helps where all are shorter than a window of evaluations; a shorter horizon, which is advised,
 * does. */
static void test_scenes_shorter_than_a_window(void **state)
{
    static const char *const words = "history_s = 8 and horizon_s = 8 lasts ";
    write_store("s", 10);
    refuse("s", (const char *const[]){"history_s=8", "horizon_s=8", "rate_hz=5", "split=eval", NULL}, DT_EDATA, words);
    refuse("s", (const char *const[]){"history_s=8", "horizon_s=8", "rate_hz=5", "split=eval", "eval_scenes=all", NULL},
           DT_EDATA, words);
    assert_true(scenes_of((const char *const[]){WINDOW, "split=eval", "eval_scenes=all", NULL}) != 0);
}

static void test_refusals(void **state)
{
    write_store("s", 10);
    refuse("s", (const char *const[]){"history_s=0.5", NULL}, DT_ECONFIG, "2.5 and 25 steps");
    refuse("s", (const char *const[]){"horizon_s=0", NULL}, DT_ECONFIG, "15 and 0 steps");
    refuse("s", (const char *const[]){"folds=3", "fold=3", NULL}, DT_ECONFIG, "fold 3 is not below folds = 3");
    refuse("s", (const char *const[]){"split=calibration", NULL}, DT_ECONFIG, "calibration_folds 0: split calibration");
    refuse("s", (const char *const[]){"rate_hz=4", NULL}, DT_ECONFIG, "rate_hz 4 does not divide the 10 Hz");
    refuse("s", (const char *const[]){"rate_hz=20", NULL}, DT_ECONFIG, "rate_hz 20 does not divide");
    refuse("s", (const char *const[]){"eval_site=moon", "split=eval", NULL}, DT_ECONFIG,
           "\"moon\" is not among the store's sites: north, south");
    refuse("s", (const char *const[]){"pairs=true", "action_s=0.25", NULL}, DT_ECONFIG,
           "an action of 0.25 s is 2.5 frames of a recording of 10 Hz");
    refuse("gone", (const char *const[]){NULL}, DT_ENOTFOUND, "there is no store at");
    bench b;
    int64_t size[3];
    assert_int_equal(bench_open(&b, "s", (const char *const[]){WINDOW, NULL}), DT_OK);
    uint64_t n = bench_count(&b);
    assert_int_equal(b.ops->sizes(b.self, &n, 1, size), DT_EINVAL);
    assert_non_null(strstr(b.host.message, "is not below"));
    bench_close(&b);
    for (int64_t k = 1; k <= 3; k++) { /* the samples, the scenes dealt, the recordings: every memory may be refused */
        memset(&b, 0, sizeof(b));
        mock_host_init(&b.host);
        mock_host_serve(&b.host, DT_SVC_STORE, &store_api);
        b.c = mock_load("plugins", "data_trajectory", "data_trajectory");
        b.ops = b.c->ops;
        char path[1100];
        snprintf(path, sizeof(path), "store=%s", at("s"));
        b.config = mock_config(b.c, (const char *const[]){path, WINDOW, "split=eval", NULL});
        b.self = calloc(1, b.c->state_size);
        b.host.fail_alloc = k;
        assert_int_equal(b.ops->create(b.self, &b.host.host, b.config), DT_ENOMEM);
        bench_close(&b);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_windows, begin, end),
        cmocka_unit_test_setup_teardown(test_packing, begin, end),
        cmocka_unit_test_setup_teardown(test_risk_fields, begin, end),
        cmocka_unit_test_setup_teardown(test_turning, begin, end),
        cmocka_unit_test_setup_teardown(test_mirror, begin, end),
        cmocka_unit_test_setup_teardown(test_shift, begin, end),
        cmocka_unit_test_setup_teardown(test_roads, begin, end),
        cmocka_unit_test_setup_teardown(test_unknown_headings, begin, end),
        cmocka_unit_test_setup_teardown(test_splits, begin, end),
        cmocka_unit_test_setup_teardown(test_short_anchors, begin, end),
        cmocka_unit_test_setup_teardown(test_motion_that_all_share, begin, end),
        cmocka_unit_test_setup_teardown(test_scenes_shorter_than_a_window, begin, end),
        cmocka_unit_test_setup_teardown(test_refusals, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
