/* SPDX-License-Identifier: Apache-2.0
 *
 * Stored samples mixed into live ones: all are drawn before one is drawn again, they are spread evenly, what is read of
 * a mixture is what its two parts would give, threads, ranks and a resumption change no bit, and what cannot be mixed
 * is refused.
 */
#include <config.h>

#include "outcome.h"

#include "base/err.h"
#include "train/mixed.h"

#include <stdlib.h>
#include <string.h>

enum { STEPS = 12, LIVE = 150, STORED = 40, N = 60, IN = 5, KEYS = 3, MOST = STORED * 5 };

static void pair_init(toy *live, toy *stored)
{
    toy_init(live);
    toy_init(stored);
    live->count = LIVE;
    live->is_live = true;
    stored->count = STORED;
    assert_int_equal(dt_samples_open(&live->source, &live->ops, live, 9), DT_OK);
    assert_int_equal(dt_samples_open(&stored->source, &stored->ops, stored, 9), DT_OK);
    live->source.is_live = true;
    live->source.keyed = KEYS;
}

/* ---- the mixture ------------------------------------------------------------------------------------------------- */

static int64_t rows_of_stored(const dt_mixed *m, uint64_t live)
{
    const dt_samples *s = dt_mixed_samples(m);
    int64_t size[2] = {0};
    assert_int_equal(s->ops->sizes(s->self, &live, 1, size), DT_OK);
    return size[1];
}

static void test_faces(void **state)
{
    toy live, stored;
    dt_mixed *m = NULL;
    pair_init(&live, &stored);
    assert_int_equal(dt_mixed_create(&live.source, &stored.source, N, &m), DT_OK);
    const dt_samples *s = dt_mixed_samples(m);
    assert_true(dt_mixed_contains(m, s));
    assert_false(dt_mixed_contains(m, &live.source));
    assert_false(dt_mixed_contains(NULL, s));
    assert_int_equal(s->count, LIVE);
    assert_int_equal(s->n_fields, 8);
    assert_int_equal(s->n_symbols, 2);
    assert_string_equal(s->symbol[1], "stored.N");
    assert_string_equal(s->field[4].name, "stored.x");
    assert_string_equal(s->field[4].dims, "stored.N 5");
    assert_int_equal(s->n_whole, 4);
    assert_true(s->slice_cap[1] >= stored.source.sample_max[0]);
    dt_mixed_destroy(m);
}

/* Where each stored sample lies is determined by its rows: 1 + 7 i mod 5 of them, so only their number is looked at
 * here. */
static void test_spread_is_even(void **state)
{
    toy live, stored;
    dt_mixed *m = NULL;
    pair_init(&live, &stored);
    assert_int_equal(dt_mixed_create(&live.source, &stored.source, N, &m), DT_OK);
    int with = 0;
    for (uint64_t i = 0; i < LIVE; i++) {
        with += rows_of_stored(m, i) > 0;
    }
    assert_int_equal(with, N); /* fewer than there are live samples: one each */
    dt_mixed_destroy(m);
    assert_int_equal(dt_mixed_create(&live.source, &stored.source, 2 * LIVE, &m), DT_OK);
    for (uint64_t i = 0; i < LIVE; i++) {
        assert_true(rows_of_stored(m, i) >= 2);
    }
    dt_mixed_destroy(m);
}

static void read_all(const dt_samples *s, uint64_t n, float *x, int64_t *key, int64_t *rows_p)
{
    uint64_t index[LIVE], use[LIVE];
    int64_t size[3];
    void *field[8] = {NULL};
    static char arena[1 << 20];
    size_t used = 0;
    for (uint64_t i = 0; i < n; i++) {
        index[i] = i;
        use[i] = 1001 + 2 * i;
    }
    assert_int_equal(s->ops->sizes(s->self, index, (uint32_t)n, size), DT_OK);
    size[2] = (int64_t)n;
    assert_int_equal(dt_samples_read(s, index, use, (uint32_t)n, size, arena, sizeof(arena), field, &used), DT_OK);
    memcpy(x, field[4], (size_t)size[1] * IN * sizeof(float));
    memcpy(key, field[7], (size_t)size[1] * sizeof(int64_t));
    *rows_p = size[1];
}

static int by_bits(const void *a, const void *b)
{
    return memcmp(a, b, IN * sizeof(float));
}

/* Rows of as many draws as there are stored samples: all of them, each once, in another order than before. */
static void test_all_before_one_again(void **state)
{
    toy live, stored;
    dt_mixed *m = NULL;
    static float x[2][MOST * IN], plain[MOST * IN];
    static int64_t key[MOST];
    int64_t rows[2];
    pair_init(&live, &stored);
    live.count = STORED;
    assert_int_equal(dt_samples_open(&live.source, &live.ops, &live, 9), DT_OK);
    live.source.is_live = true;
    live.source.keyed = -1;
    assert_int_equal(dt_mixed_create(&live.source, &stored.source, STORED, &m), DT_OK);
    for (uint64_t epoch = 0; epoch < 2; epoch++) {
        dt_mixed_draw_stored(m, 5, 1, epoch);
        read_all(dt_mixed_samples(m), STORED, x[epoch], key, &rows[epoch]);
    }
    uint64_t index[STORED], use[STORED] = {0};
    static float y[MOST * 2], w[MOST];
    void *field[4] = {plain, y, w, key};
    for (uint64_t i = 0; i < STORED; i++) {
        index[i] = i;
    }
    assert_int_equal(stored.ops.read(&stored, index, use, STORED, field), DT_OK);
    assert_int_equal(rows[0], rows[1]);
    assert_memory_not_equal(x[0], x[1], (size_t)rows[0] * IN * sizeof(float));
    qsort(plain, (size_t)rows[0], IN * sizeof(float), by_bits);
    for (int e = 0; e < 2; e++) {
        qsort(x[e], (size_t)rows[0], IN * sizeof(float), by_bits);
        assert_memory_equal(x[e], plain, (size_t)rows[0] * IN * sizeof(float));
    }
    dt_mixed_draw_stored(m, 5, 1, 0);
    read_all(dt_mixed_samples(m), STORED, x[0], key, &rows[0]);
    read_all(dt_mixed_samples(m), STORED, x[1], key, &rows[1]);
    assert_memory_equal(x[0], x[1], (size_t)rows[0] * IN * sizeof(float));
    assert_int_equal(key[0] / 16, 1001); /* the live sample's use names the stored one's */
    dt_mixed_destroy(m);
}

/* Stored samples of one live sample are augmented by keys of their own. */
static void test_keys_are_apart(void **state)
{
    enum { FEW = 5, EACH = STORED / FEW };
    toy live, stored;
    dt_mixed *m = NULL;
    static float x[MOST * IN];
    static int64_t key[MOST];
    int64_t rows = 0;
    uint64_t n = 0;
    pair_init(&live, &stored);
    live.count = FEW;
    assert_int_equal(dt_samples_open(&live.source, &live.ops, &live, 9), DT_OK);
    live.source.is_live = true;
    live.source.keyed = -1;
    assert_int_equal(dt_mixed_create(&live.source, &stored.source, STORED, &m), DT_OK);
    read_all(dt_mixed_samples(m), 1, x, key, &rows);
    for (int64_t r = 0; r < rows; r++) {
        if (r == 0 || key[r] / 16 != key[r - 1] / 16) {
            assert_int_equal(key[r] / 16, 1001 + 2 * n);
            n++;
        }
    }
    assert_int_equal(n, EACH);
    dt_mixed_destroy(m);
}

static void test_what_cannot_be_mixed(void **state)
{
    toy live, stored;
    dt_mixed *m = NULL;
    pair_init(&live, &stored);
    live.source.is_live = false;
    assert_int_equal(dt_mixed_create(&live.source, &stored.source, N, &m), DT_EPLUGIN);
    assert_non_null(strstr(dt_error_text(), "into the samples of a rollout"));
    live.source.is_live = true;
    stored.source.count = 0;
    assert_int_equal(dt_mixed_create(&live.source, &stored.source, N, &m), DT_EDATA);
    assert_non_null(strstr(dt_error_text(), "no sample of stored data"));
    stored.source.count = STORED;
    const char *const *own = stored.source.symbol;
    for (uint32_t bytes = 16; bytes <= 17; bytes++) { /* with the prefix 23, and one too many */
        static const char text[] = "a_name_of_symbols";
        char name[20];
        const char *list[DT_SAMPLES_MAX_SYMBOLS] = {name};
        snprintf(name, sizeof(name), "%.*s", (int)bytes, text);
        stored.source.symbol = list;
        assert_int_equal(dt_mixed_create(&live.source, &stored.source, N, &m), bytes == 16 ? DT_OK : DT_EPLUGIN);
        dt_mixed_destroy(m);
        m = NULL;
    }
    stored.source.symbol = own;
    stored.source.n_symbols = DT_SAMPLES_MAX_SYMBOLS;
    assert_int_equal(dt_mixed_create(&live.source, &stored.source, N, &m), DT_EPLUGIN);
    assert_non_null(strstr(dt_error_text(), "at most 64"));
    assert_null(m);
}

/* ---- training ---------------------------------------------------------------------------------------------------- */

static toy stored_toy[16];

static void with_stored(toy *t)
{
    static atomic_int next;
    toy *b = &stored_toy[atomic_fetch_add(&next, 1) % 16];
    toy_init(b);
    b->count = STORED;
    t->is_live = true;
    t->config.threads = 2;
    t->stored = b;
    t->n_stored = N;
}

static void without(toy *t)
{
    t->is_live = true;
    t->config.threads = 2;
}

static void test_bits(void **state)
{
    outcome whole, plain;
    outcome_train(with_stored, STEPS, &whole);
    outcome_train(without, STEPS, &plain);
    assert_memory_not_equal(whole.state[0], plain.state[0], plain.bytes);
    outcome_on_ranks(with_stored, STEPS, 2, &whole);
    outcome_on_ranks(with_stored, STEPS, 3, &whole);
    outcome_resumed(with_stored, STEPS, 5, &whole);
    outcome_drop(&whole);
    outcome_drop(&plain);
}

static void test_losses(void **state)
{
    toy t;
    outcome o;
    double before[2], after[2], alone = 0;
    static const char *const name[] = {"stored_mse", "mse"};
    toy_init(&t);
    with_stored(&t);
    toy_start(&t);
    dt_step_report r = {.struct_size = sizeof(r)};
    assert_int_equal(toy_step(&t, &r), DT_OK);
    assert_int_equal(r.n_losses, 2);
    assert_string_equal(r.loss_name[1], "stored_mse");
    assert_true(r.loss_value[1] == dt_trainer_step_losses(t.trainer)[1] && r.loss_value[1] > 0);
    assert_float_equal(r.loss, r.loss_value[0] + 0.5 * r.loss_value[1], 1e-12);
    assert_int_equal(dt_trainer_losses(t.trainer, name, 2, before), DT_OK);
    assert_true(dt_trainer_trains_on(t.trainer, &t.stored->source));
    outcome_run(&t, &o, 1, STEPS);
    assert_int_equal(dt_trainer_losses(t.trainer, name, 2, after), DT_OK);
    assert_true(after[0] < before[0] && after[1] < before[1]);
    dt_trainer_discard_prefetched(t.trainer); /* other stored samples */
    assert_int_equal(dt_trainer_losses(t.trainer, name, 2, before), DT_OK);
    assert_true(before[0] != after[0] && before[1] == after[1]);
    /* who asks for no loss of theirs does not read them */
    t.stored->ops.read = NULL;
    assert_int_equal(dt_trainer_losses(t.trainer, name + 1, 1, &alone), DT_OK);
    assert_true(alone == after[1]);
    toy_fini(&t);
}

static dt_status count_rows(void *user, const dt_rows *r)
{
    int64_t dim[DT_MAX_DIMS];
    uint32_t rank = 0;
    assert_non_null(dt_rows_get_output(r, "y_hat", dim, &rank));
    *(int64_t *)user += dim[0];
    return DT_OK;
}

/* Evaluation over data that is not live is of the part for stored data. */
static void test_evaluation(void **state)
{
    toy t, held;
    int64_t rows = 0, all = 0;
    toy_init(&t);
    with_stored(&t);
    toy_start(&t);
    toy_init(&held);
    held.count = 20;
    assert_int_equal(dt_samples_open(&held.source, &held.ops, &held, 9), DT_OK);
    assert_false(dt_trainer_trains_on(t.trainer, &held.source));
    for (uint64_t i = 0; i < held.count; i++) {
        int64_t size = 0;
        assert_int_equal(held.ops.sizes(&held, &i, 1, &size), DT_OK);
        all += size;
    }
    assert_int_equal(dt_trainer_evaluate(t.trainer, &held.source, &rows, count_rows), DT_OK);
    assert_int_equal(rows, all);
    toy_fini(&t);
}

static void test_nothing_to_train(void **state)
{
    toy t;
    toy_init(&t);
    with_stored(&t);
    t.freeze = "net";
    assert_int_equal(toy_try_start(&t), DT_ECONFIG);
    assert_non_null(strstr(dt_error_text(), "stored data has nothing to train"));
    toy_fini(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_faces),
        cmocka_unit_test(test_spread_is_even),
        cmocka_unit_test(test_all_before_one_again),
        cmocka_unit_test(test_keys_are_apart),
        cmocka_unit_test(test_what_cannot_be_mixed),
        cmocka_unit_test(test_bits),
        cmocka_unit_test(test_losses),
        cmocka_unit_test(test_evaluation),
        cmocka_unit_test(test_nothing_to_train),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
