/* SPDX-License-Identifier: Apache-2.0
 *
 * The shipped models of images in a fake host over the real graph: which observation is the image and how it is laid
 * out, what is rejected, and what they compute against the same formulas written out in double.
 */
#include "models/bench.h"

enum { AGENTS = 2, ROWS = 5, COLUMNS = 6, CHOICES = 3, MOST = 512 };
#define SMALL "channels=3 2", "kernels=3 2", "strides=2 1", "hidden=4"
#define IMAGE(a, b, c)                                                                                                 \
    {"D", 0}, {"obs_dim1", a}, {"obs_dim2", b}, {"obs_dim3", c},                                                       \
    {                                                                                                                  \
        "obs_bytes", 1                                                                                                 \
    }

typedef struct image {
    int rows, columns, channels, size;
    double x[MOST]; /* [rows, columns, channels] */
} image;

/* relu of a convolution with the parameters <name>.{w,b}, over x surrounded by `padding` zeros */
static image convolve(const bench *b, const char *name, const image *x, int channels, int k, int stride, int padding)
{
    char text[MOCK_NAME];
    image y = {.rows = (x->rows + 2 * padding - k) / stride + 1,
               .columns = (x->columns + 2 * padding - k) / stride + 1,
               .channels = channels};
    snprintf(text, sizeof(text), "%.60s.w", name);
    const float *w = param(b, text);
    snprintf(text, sizeof(text), "%.60s.b", name);
    const float *bias = param(b, text);
    for (int at = 0; at < y.rows * y.columns * channels; at++) {
        const int p = at / channels / y.columns, q = at / channels % y.columns, m = at % channels;
        double sum = (double)bias[m];
        for (int i = 0; i < k * k * x->channels; i++) {
            const int row = p * stride + i / x->channels / k - padding,
                      column = q * stride + i / x->channels % k - padding;
            if (row >= 0 && row < x->rows && column >= 0 && column < x->columns) {
                sum += (double)w[m * k * k * x->channels + i] *
                       x->x[(row * x->columns + column) * x->channels + i % x->channels];
            }
        }
        y.x[at] = fmax(sum, 0);
    }
    y.size = y.rows * y.columns * channels;
    return y;
}

/* the layer after the convolutions of SMALL; more: what else enters it */
static void features(const bench *b, const char *net, const image *x, int padding, const double *more, int n_more,
                     double h[4])
{
    char name[MOCK_NAME];
    snprintf(name, sizeof(name), "%s.conv0", net);
    image y = convolve(b, name, x, 3, 3, 2, padding);
    snprintf(name, sizeof(name), "%s.conv1", net);
    y = convolve(b, name, &y, 2, 2, 1, padding);
    for (int i = 0; i < n_more; i++) {
        y.x[y.size + i] = more[i];
    }
    snprintf(name, sizeof(name), "%s.hidden", net);
    bench_linear(b, name, y.x, y.size + n_more, h, 4);
    for (int i = 0; i < 4; i++) {
        h[i] = fmax(h[i], 0);
    }
}

static void shake(const bench *b) /* some first values are 0 and would hide mistakes */
{
    for (int64_t i = 0; i < b->r.table.total; i++) {
        b->params[i] = (float)bench_value((int)i + 5) / 4;
    }
}

static void assert_near(float is, double want)
{
    assert_true(fabs((double)is - want) <= 1e-5 * (1 + fabs(want)));
}

/* place: where pixel [row, column, channel] of the image is in the port */
typedef int place(int row, int column, int channel);

static int last(int row, int column, int channel)
{
    return (row * COLUMNS + column) * 2 + channel;
}

static int first(int row, int column, int channel)
{
    return (channel * ROWS + row) * COLUMNS + column;
}

static int only(int row, int column, int channel)
{
    (void)channel;
    return row * COLUMNS + column;
}

static int frames(int row, int column, int channel) /* [2 frames, rows, columns, 3] */
{
    return ((channel / 3 * ROWS + row) * COLUMNS + column) * 3 + channel % 3;
}

static image image_of(const uint8_t *bytes, place *at, int channels)
{
    image x = {.rows = ROWS, .columns = COLUMNS, .channels = channels, .size = ROWS * COLUMNS * channels};
    for (int i = 0; i < x.size; i++) {
        x.x[i] = bytes[at(i / channels / COLUMNS, i / channels % COLUMNS, i % channels)] / 255.0;
    }
    return x;
}

static void check_controller(const char *const *set, const dt_dim *dims, uint32_t n, place *at, int channels,
                             const char *text, bool is_separate, int padding)
{
    static const int64_t live[] = {1, AGENTS};
    uint8_t bytes[AGENTS][MOST];
    float value[AGENTS], logits[AGENTS * CHOICES];
    bench b;
    bench_open(&b, "controller_conv", set, dims, n);
    assert_int_equal(b.n_in, 1);
    assert_string_equal(b.in[0].name, "obs");
    assert_string_equal(b.in[0].dims, text);
    assert_int_equal(b.in[0].dtype, DT_U8);
    shake(&b);
    const int size = ROWS * COLUMNS * channels;
    for (int i = 0; i < AGENTS * size; i++) {
        (&bytes[0][0])[i] = (uint8_t)(i * 89 % 256);
    }
    dt_plan *p = NULL;
    dt_exec *e = bench_execute(&b, live, (const void *const[]){bytes}, &p);
    take(e, "value", value, AGENTS);
    take(e, "logits", logits, AGENTS * CHOICES);
    for (int a = 0; a < AGENTS; a++) {
        const image x = image_of(&bytes[0][0] + a * size, at, channels);
        double h[4], y[CHOICES];
        features(&b, is_separate ? "policy" : "trunk", &x, padding, NULL, 0, h);
        bench_linear(&b, "head.logits", h, 4, y, CHOICES);
        for (int i = 0; i < CHOICES; i++) {
            assert_near(logits[a * CHOICES + i], y[i]);
        }
        if (is_separate) {
            features(&b, "critic", &x, padding, NULL, 0, h);
        }
        bench_linear(&b, "head.value", h, 4, y, 1);
        assert_near(value[a], y[0]);
    }
    dt_exec_destroy(e);
    dt_plan_destroy(p);
    bench_close(&b);
}

static void test_controllers_compute(void **state)
{
    static const dt_dim is_last[] = {{"choices", CHOICES}, IMAGE(ROWS, COLUMNS, 2)};
    static const dt_dim is_first[] = {{"choices", CHOICES}, IMAGE(2, ROWS, COLUMNS)};
    static const dt_dim is_grey[] = {
        {"choices", CHOICES}, {"D", 0}, {"obs_dim1", ROWS}, {"obs_dim2", COLUMNS}, {"obs_bytes", 1}};
    static const dt_dim is_frames[] = {{"choices", CHOICES}, IMAGE(2, ROWS, COLUMNS), {"obs_dim4", 3}};
    const char *const small[] = {SMALL, NULL};
    const char *const separate[] = {SMALL, "trunk=separate", "layout=channels_last", NULL};
    check_controller(small, is_last, 6, last, 2, "A 5 6 2", false, 0);
    check_controller(small, is_first, 6, first, 2, "A 2 5 6", false, 0);
    check_controller(small, is_grey, 5, only, 1, "A 5 6", false, 0);
    check_controller(small, is_frames, 7, frames, 6, "A 2 5 6 3", false, 0);
    check_controller(separate, is_last, 6, last, 2, "A 5 6 2", true, 0);
}

/* an image of f32 under its own name, the row, and the action */
static void test_critic_computes(void **state)
{
    enum { D = 2, P = 1, Q = 2 };
    static const int64_t live[] = {1, AGENTS};
    static const dt_dim dims[] = {{"D", D},        {"P", P},           {"Q", Q},
                                  {"map", 1},      {"map_dim1", ROWS}, {"map_dim2", COLUMNS},
                                  {"map_dim3", 1}, {"map_bytes", 4}};
    const char *const small[] = {SMALL, NULL};
    float map[AGENTS][ROWS * COLUMNS], obs[AGENTS][D], action[AGENTS][P], q[AGENTS][Q];
    bench b;
    bench_open(&b, "critic_conv", small, dims, 8);
    assert_int_equal(b.n_in, 3);
    assert_port(&b.in[0], "map", "A 5 6 1");
    assert_port(&b.in[1], "obs", "A 2");
    assert_port(&b.in[2], "action", "A 1");
    assert_port(&b.out[0], "q", "A 2");
    shake(&b);
    for (int i = 0; i < AGENTS * ROWS * COLUMNS; i++) {
        (&map[0][0])[i] = (float)bench_value(i);
    }
    for (int i = 0; i < AGENTS * D; i++) {
        (&obs[0][0])[i] = (float)bench_value(i + 3);
        action[i / D][0] = (float)bench_value(i + 9);
    }
    dt_plan *p = NULL;
    dt_exec *e = bench_execute(&b, live, (const void *const[]){map, obs, action}, &p);
    take(e, "q", &q[0][0], AGENTS * Q);
    for (int a = 0; a < AGENTS; a++) {
        image x = {.rows = ROWS, .columns = COLUMNS, .channels = 1, .size = ROWS * COLUMNS};
        const double more[] = {(double)obs[a][0], (double)obs[a][1], (double)action[a][0]};
        for (int i = 0; i < x.size; i++) {
            x.x[i] = (double)map[a][i];
        }
        for (int k = 0; k < Q; k++) {
            char name[MOCK_NAME];
            double h[4], want = 0;
            snprintf(name, sizeof(name), "q%d", k);
            features(&b, name, &x, 0, more, 3, h);
            snprintf(name, sizeof(name), "q%d.head", k);
            bench_linear(&b, name, h, 4, &want, 1);
            assert_near(q[a][k], want);
        }
    }
    dt_exec_destroy(e);
    dt_plan_destroy(p);
    bench_close(&b);
}

static void test_padding_and_defaults(void **state)
{
    static const dt_dim atari[] = {{"choices", 6}, IMAGE(4, 84, 84)};
    static const dt_dim small[] = {{"choices", 6}, IMAGE(4, 4, 1)};
    bench b;
    bench_open(&b, "controller_conv", NULL, atari, 6);
    assert_int_equal(b.r.table.trained_count, 32 * (8 * 8 * 4 + 1) + 64 * (4 * 4 * 32 + 1) + 64 * (3 * 3 * 64 + 1) +
                                                  512 * (7 * 7 * 64 + 1) + 6 * 513 + 513); /* Mnih et al. 2015 */
    bench_close(&b);
    bench_open(&b, "controller_conv",
               (const char *const[]){"channels=2", "kernels=3", "strides=1", "hidden=8", "padding=true", NULL}, small,
               6);
    assert_int_equal(b.r.table.trained_count, 2 * (9 + 1) + 8 * (4 * 4 * 2 + 1) + 6 * 9 + 9);
    bench_close(&b);
}

static void refuse(const char *id, const char *const *set, const dt_dim *dims, uint32_t n, dt_status want)
{
    bench b;
    assert_int_equal(bench_create(&b, id, set, dims, n), want);
    b.ops->destroy(b.self);
    free(b.self);
    free(b.config);
}

static void test_what_does_not_fit_is_rejected(void **state)
{
    static const dt_dim image8[] = {{"choices", 6}, IMAGE(8, 8, 1)};
    static const dt_dim row[] = {{"choices", 6}, {"D", 4}};
    static const dt_dim five[] = {{"choices", 6}, IMAGE(2, 8, 8), {"obs_dim4", 3}, {"obs_dim5", 2}};
    static const dt_dim no_action[] = {{"Q", 1}, IMAGE(8, 8, 1)};
    refuse("controller_conv", (const char *const[]){"kernels=8 4", NULL}, image8, 6, DT_ECONFIG);
    refuse("controller_conv", (const char *const[]){"kernels=8 x 4", NULL}, image8, 6, DT_ECONFIG);
    refuse("controller_conv", (const char *const[]){"channels=0 1 1", NULL}, image8, 6, DT_ECONFIG);
    refuse("controller_conv", NULL, image8, 6, DT_ESHAPE); /* the second kernel is larger than what enters it */
    refuse("controller_conv", NULL, row, 2, DT_ESHAPE);
    refuse("controller_conv", NULL, five, 8, DT_ESHAPE);
    refuse("critic_conv", NULL, no_action, 6, DT_ESHAPE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_controllers_compute),
        cmocka_unit_test(test_critic_computes),
        cmocka_unit_test(test_padding_and_defaults),
        cmocka_unit_test(test_what_does_not_fit_is_rejected),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
