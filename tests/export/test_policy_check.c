/* SPDX-License-Identifier: Apache-2.0
 *
 * core/export/policy_check.c: a policy file with every kind of input, index and output, which acts; and the same file
 * with one thing changed that a step would later read or write by, each refused with its message. Under a sanitizer
 * this is what says that nothing is touched before.
 */
#include <config.h>

#include "export/policy_load.h"

#include "base/fs.h"
#include "base/mem.h"
#include "state/checkpoint/safetensors.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

enum { TEXT = 8192, PLACES = 4, NODES = 8, EDGES = 16, CHOICES = 3, STEPS = 3 };

/* inputs are values 0 to 9, tensors 10 to 13, then what nodes make */
static const char good[] =
    "{\"version\":1,\"window\":2,"
    "\"symbols\":[{\"name\":\"A\",\"most\":4},{\"name\":\"N\",\"most\":8},{\"name\":\"E\",\"most\":16},"
    "{\"name\":\"B\",\"most\":1}],"
    "\"inputs\":[{\"name\":\"obs\",\"dims\":\"A 2\",\"dtype\":\"f32\",\"kind\":\"given\",\"read\":true},"
    "{\"name\":\"next\",\"dims\":\"A 1\",\"dtype\":\"i32\",\"kind\":\"given\",\"counts\":\"A\"},"
    "{\"name\":\"obs_history\",\"dims\":\"2 A 2\",\"dtype\":\"f32\",\"kind\":\"history\",\"of\":\"obs\"},"
    "{\"name\":\"present\",\"dims\":\"2 A\",\"dtype\":\"f32\",\"kind\":\"present\"},"
    "{\"name\":\"mask\",\"dims\":\"A 3\",\"dtype\":\"f32\",\"kind\":\"mask\"},"
    "{\"name\":\"nodes\",\"dims\":\"N 2\",\"dtype\":\"f32\",\"kind\":\"given\"},"
    "{\"name\":\"rowptr\",\"dims\":\"N+1\",\"dtype\":\"i32\",\"kind\":\"given\",\"counts\":\"E\"},"
    "{\"name\":\"col\",\"dims\":\"E\",\"dtype\":\"i32\",\"kind\":\"given\",\"counts\":\"N\"},"
    "{\"name\":\"agent_node\",\"dims\":\"A\",\"dtype\":\"i32\",\"kind\":\"given\",\"counts\":\"N\"},"
    "{\"name\":\"past\",\"dims\":\"3 N 2\",\"dtype\":\"f32\",\"kind\":\"steps\"}],"
    "\"heads\":[1,2],\"continuous\":1,"
    "\"tensors\":[\"controller.w\",\"controller.b\",\"graph.to\",\"graph.from\"],"
    "\"nodes\":[{\"op\":\"gat\",\"in\":[5,12,13,-1,-1,6,7],\"i\":[1],\"f\":[0.2]},"
    "{\"op\":\"gather\",\"in\":[14,8]},{\"op\":\"gather\",\"in\":[0,1]},{\"op\":\"merge\",\"in\":[17]},"
    "{\"op\":\"binary\",\"in\":[16,18],\"i\":[1]},{\"op\":\"step\",\"in\":[2],\"i\":[0]},"
    "{\"op\":\"binary\",\"in\":[19,20],\"i\":[1]},{\"op\":\"step\",\"in\":[9],\"i\":[1]},"
    "{\"op\":\"gather\",\"in\":[22,8]},{\"op\":\"binary\",\"in\":[21,23],\"i\":[1]},"
    "{\"op\":\"linear\",\"in\":[24,10,11]},{\"op\":\"binary\",\"in\":[25,4],\"i\":[3]},"
    "{\"op\":\"slice\",\"in\":[24],\"i\":[0,1]},{\"op\":\"affine\",\"in\":[27],\"f\":[0]}],"
    "\"outputs\":[{\"name\":\"logits\",\"value\":26},{\"name\":\"mean\",\"value\":27},"
    "{\"name\":\"log_std\",\"value\":28}]}";

static char path[256];
static float w[] = {1, 0, 0, 1, 1, 1}, b[] = {0, 0, 0}, to[] = {1, 0}, from[] = {0, 1}, low[] = {-1}, high[] = {2};

static bool is_sealed = true;

/* The file in memory, as `dtrain export` would have written it; the caller frees it. */
static void *make_file(const char *text, size_t *n_p)
{
    const char *const pair[][2] = {{"dtrain.export", text}};
    const dt_st_tensor t[] = {{.name = "controller.w", .dtype = DT_ST_F32, .n_dims = 2, .dim = {CHOICES, 2}, .data = w},
                              {.name = "controller.b", .dtype = DT_ST_F32, .n_dims = 1, .dim = {CHOICES}, .data = b},
                              {.name = "graph.to", .dtype = DT_ST_F32, .n_dims = 1, .dim = {2}, .data = to},
                              {.name = "graph.from", .dtype = DT_ST_F32, .n_dims = 1, .dim = {2}, .data = from},
                              {.name = "actions.low", .dtype = DT_ST_F32, .n_dims = 1, .dim = {1}, .data = low},
                              {.name = "actions.high", .dtype = DT_ST_F32, .n_dims = 1, .dim = {1}, .data = high}};
    const void *map = NULL;
    assert_int_equal(
        (is_sealed ? dt_safetensors_write_sealed : dt_safetensors_write)(path, t, sizeof(t) / sizeof(t[0]), pair, 1),
        DT_OK);
    assert_int_equal(dt_fs_map(path, &map, n_p), DT_OK);
    void *bytes = dt_alloc(*n_p);
    assert_non_null(bytes);
    memcpy(bytes, map, *n_p);
    dt_fs_unmap(map, *n_p);
    return bytes;
}

static dt_status load(const char *text, dt_policy **out_p, char *why, size_t why_bytes)
{
    size_t n = 0;
    void *bytes = make_file(text, &n);
    const dt_status st = dt_policy_load_bytes(bytes, n, "a file", out_p, why, why_bytes);
    dt_free(bytes); /* nothing of it is read later */
    return st;
}

static void replace(const char *text, const char *old, const char *with, char out[TEXT])
{
    const char *at = strstr(text, old);
    if (at == NULL) {
        fail_msg("there is no %s", old);
        return;
    }
    snprintf(out, TEXT, "%.*s%s%s", (int)(at - text), text, with, at + strlen(old));
}

/* ---- what is good ------------------------------------------------------------------------------------------------ */

static void test_good(void **state)
{
    dt_policy *p = NULL;
    char why[512] = "";
    assert_int_equal(load(good, &p, why, sizeof(why)), DT_OK);
    assert_string_equal(why, "");
    const dt_policy_info *x = dt_policy_describe(p);
    assert_int_equal(x->n_obs, 7);
    assert_int_equal(x->n_choices, CHOICES);
    assert_string_equal(x->obs[6].dims, "N 3 2");
    const float obs[PLACES * 2] = {1, 2, 3, 4, 5, 6, 7, 8}, nodes[NODES * 2] = {1}, past[NODES * STEPS * 2] = {0};
    const int32_t next[PLACES] = {1, 2, 3, -1}, rowptr[NODES + 1] = {0, 2, 4, 6, 8, 10, 12, 14, EDGES};
    const int32_t col[EDGES] = {0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7, 0}, agent_node[PLACES] = {7, -1, 0, 3};
    const void *const all[] = {obs, next, nodes, rowptr, col, agent_node, past};
    const int64_t size[] = {NODES, EDGES};
    uint8_t alive[PLACES] = {1, 1, 0, 1}, mask[PLACES * CHOICES];
    int32_t act_i[PLACES * 2];
    float act_f[PLACES];
    memset(mask, 1, sizeof(mask));
    const dt_policy_io io = {.struct_size = sizeof(io),
                             .n_places = PLACES,
                             .obs = all,
                             .size = size,
                             .alive = alive,
                             .mask = mask,
                             .act_i = act_i,
                             .act_f = act_f};
    for (int i = 0; i < 4; i++) {
        assert_int_equal(dt_policy_act(p, &io, why, sizeof(why)), DT_OK);
    }
    assert_true(act_f[0] == 2 && act_f[2] == 0); /* within its bounds; place 2 does not act */
    dt_policy_free(p);
}

/* ---- what is refused --------------------------------------------------------------------------------------------- */

typedef struct change {
    const char *old, *with;
    dt_status status;
    const char *says;
} change;

static void refuse_all(const change *c, size_t n)
{
    static char text[TEXT];
    for (size_t i = 0; i < n; i++) {
        dt_policy *p = NULL;
        char why[512] = "";
        replace(good, c[i].old, c[i].with, text);
        const dt_status st = load(text, &p, why, sizeof(why));
        if (st != c[i].status || strstr(why, c[i].says) == NULL || strstr(why, "a file") == NULL) {
            fail_msg("%s: status %d, \"%s\"; expected %d, \"%s\"", c[i].with, st, why, c[i].status, c[i].says);
        }
        assert_null(p);
    }
}
#define REFUSE_ALL(c) refuse_all(c, sizeof(c) / sizeof((c)[0]))

static void test_symbols(void **state)
{
    static const change c[] = {
        {"\"name\":\"B\",\"most\":1", "\"name\":\"N\",\"most\":1", DT_EDATA, "symbol \"N\" is not a name of its own"},
        {"\"name\":\"A\",\"most\":4", "\"name\":\"A\",\"most\":0", DT_EDATA, "0 places, expected 1 to"},
        {"\"name\":\"A\",\"most\":4", "\"name\":\"A\",\"most\":2147483647", DT_EDATA, "2147483647 places, expected"},
        {"\"name\":\"A\",\"most\":4", "\"name\":\"A\",\"most\":4294967297", DT_EDATA, "not a whole number in"},
        {"\"name\":\"B\",\"most\":1", "\"name\":\"B\",\"most\":0", DT_EDATA, "room for 0 worlds"},
        {"\"name\":\"B\",\"most\":1", "\"name\":\"7\",\"most\":1", DT_EDATA, "symbol \"7\" is not a name"},
        {"\"name\":\"B\",\"most\":1", "\"name\":\"N+1\",\"most\":1", DT_EDATA, "symbol \"N+1\" is not a name"},
    };
    REFUSE_ALL(c);
}

/* Sums that wrap; more than a buffer holds. */
static void test_actions(void **state)
{
    static const change c[] = {
        {"\"heads\":[1,2]", "\"heads\":[2147483647,2147483647,5]", DT_EDATA, "more than 65536 choices together"},
        {"\"heads\":[1,2]", "\"heads\":[65535,2]", DT_EDATA, "more than 65536 choices together"},
        {"\"heads\":[1,2]", "\"heads\":[0,2]", DT_EDATA, "0 is not a whole number in [1"},
        {"\"heads\":[1,2]", "\"heads\":[-1,2]", DT_EDATA, "-1 is not a whole number in [1"},
        {"\"heads\":[1,2]", "\"heads\":[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1]", DT_EDATA, "more than 16 heads"},
        {"\"heads\":[1,2]", "\"heads\":[1,2,1]", DT_EDATA, "mask mask [A 3] is not [A 4]"},
        {"\"heads\":[1,2],\"continuous\":1", "\"heads\":[],\"continuous\":0", DT_EUNSUPPORTED, "without actions"},
        {"\"continuous\":1", "\"continuous\":2", DT_ESHAPE, "tensors of another model"},
        {"\"continuous\":1", "\"continuous\":1,\"squash\":1", DT_EDATA, "expected true or false"},
        {"\"continuous\":1", "\"continuous\":70000", DT_EDATA, "70000 is not a whole number in"},
        {"\"window\":2", "\"window\":3", DT_EDATA, "obs_history [2 A 2] has 2 steps, the window 3"},
        {"\"window\":2", "\"window\":4097", DT_EDATA, "4097 is not a whole number in"},
    };
    REFUSE_ALL(c);
}

static void test_bounds(void **state)
{
    static const float bad[][2] = {{2, 1}, {NAN, 1}, {0, NAN}};
    const float good_low = low[0], good_high = high[0];
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        dt_policy *p = NULL;
        char why[512] = "";
        low[0] = bad[i][0];
        high[0] = bad[i][1];
        assert_int_equal(load(good, &p, why, sizeof(why)), DT_EDATA);
        assert_non_null(strstr(why, "action 0 has the bounds"));
    }
    low[0] = good_low;
    high[0] = INFINITY; /* is fine where nothing is squashed into it */
    dt_policy *p = NULL;
    char why[512] = "";
    static char squashed[TEXT];
    replace(good, "\"continuous\":1", "\"continuous\":1,\"squash\":true", squashed);
    assert_int_equal(load(good, &p, why, sizeof(why)), DT_OK);
    dt_policy_free(p);
    assert_int_equal(load(squashed, &p, why, sizeof(why)), DT_EDATA);
    assert_non_null(strstr(why, "action 0"));
    low[0] = good_low;
    high[0] = good_high;
}

static void test_numbers(void **state)
{
    dt_policy *p = NULL;
    char why[512] = "";
    b[1] = INFINITY;
    assert_int_equal(load(good, &p, why, sizeof(why)), DT_EDATA);
    assert_non_null(strstr(why, "controller.b"));
    b[1] = 0;
}

/* A mask wider than its buffer, a history of what has other rows, rows that no environment shows. */
static void test_inputs(void **state)
{
    static const change c[] = {
        {"\"name\":\"present\"", "\"name\":\"obs_history\"", DT_EDATA, "two inputs are called \"obs_history\""},
        {"\"mask\",\"dims\":\"A 3\"", "\"mask\",\"dims\":\"A 2\"", DT_EDATA, "node 11: binary"},
        {"\"mask\",\"dims\":\"A 3\"", "\"mask\",\"dims\":\"A 1\"", DT_EDATA, "mask mask [A 1] is not [A 3]"},
        {"\"mask\",\"dims\":\"A 3\"", "\"mask\",\"dims\":\"N 3\"", DT_EDATA, "node 11: binary"},
        {"\"present\",\"dims\":\"2 A\"", "\"present\",\"dims\":\"2 A 1\"", DT_EDATA, "is not [2 A], a number per step"},
        {"\"present\",\"dims\":\"2 A\"", "\"present\",\"dims\":\"3 A\"", DT_EDATA, "has 3 steps, the window 2"},
        {"\"present\",\"dims\":\"2 A\"", "\"present\",\"dims\":\"2 N\"", DT_EUNSUPPORTED, "input present [2 N] is not"},
        {"\"of\":\"obs\"", "\"of\":\"nobody\"", DT_EDATA, "no input \"nobody\" before"},
        {"\"of\":\"obs\"", "\"of\":\"next\"", DT_EDATA, "is not a history of next [A 1]"},
        {"\"past\",\"dims\":\"3 N 2\"", "\"past\",\"dims\":\"N N 2\"", DT_EDATA, "node 7: step"},
        {"\"past\",\"dims\":\"3 N 2\"", "\"past\",\"dims\":\"3 B 2\"", DT_EUNSUPPORTED, "input past [3 B 2] is not"},
        {"\"past\",\"dims\":\"3 N 2\"", "\"past\",\"dims\":\"70000 N 2\"", DT_EUNSUPPORTED, "input past [70000 N 2]"},
        {"\"nodes\",\"dims\":\"N 2\"", "\"nodes\",\"dims\":\"8 2\"", DT_EDATA, "node 0: gat"},
        {"\"obs\",\"dims\":\"A 2\"", "\"obs\",\"dims\":\"A 4294967296 4294967296\"", DT_EDATA, "elements"},
        {"\"obs\",\"dims\":\"A 2\"", "\"obs\",\"dims\":\"A 0\"", DT_EDATA, "dimension 0 must be at least 1"},
        {"\"obs\",\"dims\":\"A 2\"", "\"obs\",\"dims\":\"A Z\"", DT_EDATA, "dimension \"Z\" is neither"},
        {"\"dims\":\"3 N 2\",\"dtype\":\"f32\"", "\"dims\":\"3 N 2\",\"dtype\":\"f33\"", DT_EDATA, "dtype \"f33\""},
    };
    REFUSE_ALL(c);
    static char text[TEXT], more[TEXT];
    dt_policy *p = NULL;
    char why[512] = "";
    replace(good, "\"name\":\"obs_history\",\"dims\":\"2 A 2\"", "\"name\":\"ragged\",\"dims\":\"A 2\"", text);
    replace(text, "\"kind\":\"history\",\"of\":\"obs\"", "\"kind\":\"given\"", more);
    replace(more, "{\"op\":\"step\",\"in\":[2],\"i\":[0]}", "{\"op\":\"affine\",\"in\":[2],\"f\":[1]}", text);
    replace(text, "\"past\",\"dims\":\"3 N 2\",\"dtype\":\"f32\",\"kind\":\"steps\"",
            "\"past\",\"dims\":\"2 A 2\",\"dtype\":\"f32\",\"kind\":\"history\",\"of\":\"nodes\"", more);
    replace(more, "{\"op\":\"gather\",\"in\":[22,8]}", "{\"op\":\"affine\",\"in\":[22],\"f\":[1]}", text);
    assert_int_equal(load(text, &p, why, sizeof(why)), DT_EDATA);
    assert_non_null(strstr(why, "past [2 A 2] is not a history of nodes [N 2]"));
}

/* Indices point into what they count, as pointers or as rows; the ones that say nobody only where that is known. */
static void test_indices(void **state)
{
    static const change c[] = {
        {"\"dims\":\"E\",\"dtype\":\"i32\",\"kind\":\"given\",\"counts\":\"N\"",
         "\"dims\":\"E\",\"dtype\":\"i32\",\"kind\":\"given\",\"counts\":\"E\"", DT_EDATA,
         "input col [E] counts rows of E, and points into [N 2 f32]"},
        {"\"counts\":\"E\"", "\"counts\":\"N\"", DT_EDATA,
         "input rowptr [N+1] counts rows of N, and points into [E i32]"},
        {"\"counts\":\"A\"", "\"counts\":\"E\"", DT_EDATA,
         "input next [A 1] counts rows of E, and points into [A 2 f32]"},
        {"\"counts\":\"A\"", "\"counts\":\"Q\"", DT_EDATA, "rows of \"Q\", which is not a symbol before it"},
        {",\"counts\":\"A\"", "", DT_EDATA, "does not define what it counts"},
        {"\"dims\":\"E\",\"dtype\":\"i32\",\"kind\":\"given\",\"counts\":\"N\"",
         "\"dims\":\"E\",\"dtype\":\"i32\",\"kind\":\"given\"", DT_EDATA, "does not define what it counts"},
        {"\"dims\":\"N+1\",\"dtype\":\"i32\",\"kind\":\"given\",\"counts\":\"E\"",
         "\"dims\":\"N+1\",\"dtype\":\"i32\",\"kind\":\"given\"", DT_EUNSUPPORTED, "input rowptr [N+1] is not"},
        {"\"counts\":\"E\"", "\"counts\":\"A\"", DT_EUNSUPPORTED, "input rowptr [N+1] is not"},
        {"\"agent_node\",\"dims\":\"A\"", "\"agent_node\",\"dims\":\"A+1\"", DT_EDATA, "node 4: binary"},
        {"{\"op\":\"gather\",\"in\":[14,8]}", "{\"op\":\"gather\",\"in\":[14,6]}", DT_EDATA, "node 4: binary"},
    };
    REFUSE_ALL(c);

    /* places among themselves: some are not there, and attention takes only rows that are */
    static char text[TEXT], more[TEXT];
    dt_policy *p = NULL;
    char why[512] = "";
    replace(good, "\"nodes\",\"dims\":\"N 2\"", "\"nodes\",\"dims\":\"A 2\"", text);
    replace(text, "\"dims\":\"E\",\"dtype\":\"i32\",\"kind\":\"given\",\"counts\":\"N\"",
            "\"dims\":\"E\",\"dtype\":\"i32\",\"kind\":\"given\",\"counts\":\"A\"", more);
    replace(more, "\"dims\":\"N+1\"", "\"dims\":\"A+1\"", text);
    replace(text, "{\"op\":\"gather\",\"in\":[14,8]}", "{\"op\":\"affine\",\"in\":[14],\"f\":[1]}", more);
    assert_int_equal(load(more, &p, why, sizeof(why)), DT_EUNSUPPORTED);
    assert_non_null(strstr(why, "input rowptr [A+1] is not"));

    /* row pointers are no rows: the last one points behind them */
    replace(good, "\"outputs\":[", "\"outputs\":[{\"name\":\"y\",\"value\":29},", text);
    replace(text, "{\"op\":\"affine\",\"in\":[27],\"f\":[0]}",
            "{\"op\":\"affine\",\"in\":[27],\"f\":[0]},{\"op\":\"gather\",\"in\":[15,6]}", more);
    assert_int_equal(load(more, &p, why, sizeof(why)), DT_EDATA);
    assert_non_null(strstr(why, "private to the node"));
    replace(text, "{\"op\":\"affine\",\"in\":[27],\"f\":[0]}",
            "{\"op\":\"affine\",\"in\":[27],\"f\":[0]},{\"op\":\"gather\",\"in\":[5,6]}", more);
    assert_int_equal(load(more, &p, why, sizeof(why)), DT_EDATA);
    assert_non_null(strstr(why, "node 14, gather"));

    /* what was drawn is no index of rows */
    replace(text, "{\"op\":\"affine\",\"in\":[27],\"f\":[0]}",
            "{\"op\":\"affine\",\"in\":[27],\"f\":[0]},{\"op\":\"categorical\",\"in\":[26,1]}", more);
    assert_int_equal(load(more, &p, why, sizeof(why)), DT_EDATA);
    assert_non_null(strstr(why, "node 14, categorical"));
}

static void test_outputs(void **state)
{
    static const change c[] = {
        {"\"name\":\"logits\",\"value\":26", "\"name\":\"logits\",\"value\":24", DT_EDATA,
         "output logits is of another"},
        {"\"name\":\"logits\",\"value\":26", "\"name\":\"lodgits\",\"value\":26", DT_EDATA, "output logits is missing"},
        {"\"name\":\"mean\",\"value\":27", "\"name\":\"mean\",\"value\":11", DT_EDATA,
         "output mean is of another shape"},
        {"\"name\":\"mean\",\"value\":27", "\"name\":\"mean\",\"value\":15", DT_EDATA, "private to the node"},
        {"\"name\":\"mean\",\"value\":27", "\"name\":\"logits\",\"value\":27", DT_EDATA,
         "output logits is named twice"},
        {"\"name\":\"mean\",\"value\":27", "\"name\":\"mean\",\"value\":-1", DT_EDATA, "-1 is not a whole number in"},
        {"\"name\":\"log_std\",\"value\":28", "\"name\":\"log_std\",\"value\":28},{\"name\":\"low\",\"value\":11",
         DT_EDATA, "output low is of another shape"},
        {"\"name\":\"log_std\",\"value\":28", "\"name\":\"log_std\",\"value\":28},{\"name\":\"allow\",\"value\":24",
         DT_EDATA, "output allow is of another shape"},
    };
    REFUSE_ALL(c);

    /* rows of nodes are no rows of places, however alike */
    static char text[TEXT], more[TEXT];
    dt_policy *p = NULL;
    char why[512] = "";
    replace(good, "{\"op\":\"affine\",\"in\":[27],\"f\":[0]}",
            "{\"op\":\"affine\",\"in\":[27],\"f\":[0]},{\"op\":\"slice\",\"in\":[5],\"i\":[0,1]}", text);
    replace(text, "\"name\":\"mean\",\"value\":27", "\"name\":\"mean\",\"value\":29", more);
    assert_int_equal(load(more, &p, why, sizeof(why)), DT_EDATA);
    assert_non_null(strstr(why, "[A 1] f32"));
}

static void test_attributes(void **state)
{
    static const change c[] = {
        {"\"i\":[0,1]}", "\"i\":[9223372036854775807,9223372036854775807]}", DT_EDATA, "slice: columns"},
        {"\"i\":[0,1]}", "\"i\":[-1,1]}", DT_EDATA, "slice: columns"},
        {"\"i\":[1],\"f\":[0.2]", "\"i\":[-1],\"f\":[0.2]", DT_EDATA, "heads -1 does not divide"},
        {"\"i\":[1],\"f\":[0.2]", "\"i\":[3],\"f\":[0.2]", DT_EDATA, "heads 3 does not divide"},
        {"\"in\":[9],\"i\":[1]", "\"in\":[9],\"i\":[3]", DT_EDATA, "step 3 is outside"},
        {"\"in\":[9],\"i\":[1]", "\"in\":[9],\"i\":[-9223372036854775808]", DT_EDATA, "is outside"},
        {"{\"op\":\"merge\",\"in\":[17]}", "{\"op\":\"merge\",\"in\":[17],\"i\":[1,2,3,4,5]}", DT_EDATA,
         "more than 4 attributes"},
        {"{\"op\":\"linear\",\"in\":[24,10,11]}", "{\"op\":\"linear\",\"in\":[24,10,11],\"i\":[3]}", DT_EDATA,
         "takes no function"},
        {"{\"op\":\"linear\",\"in\":[24,10,11]}", "{\"op\":\"linear\",\"in\":[24,10,11,0,0,0,0,0,0,0,0,0,0,0,0,0]}",
         DT_EDATA, "operands"},
        {"{\"op\":\"binary\",\"in\":[16,18],\"i\":[1]}", "{\"op\":\"binary\",\"in\":[16,18],\"i\":[99]}", DT_EDATA,
         "function 99 is not one of"},
    };
    REFUSE_ALL(c);
}

/* What would not fit is said before it is asked for. */
static void test_memory(void **state)
{
    static const change c[] = {
        {"\"name\":\"N\",\"most\":8", "\"name\":\"N\",\"most\":2147483647", DT_EUNSUPPORTED, "needs more than 1024 MB"},
        {"\"name\":\"N\",\"most\":8", "\"name\":\"N\",\"most\":50000000", DT_EUNSUPPORTED, "needs more than 1024 MB"},
        {"\"name\":\"N\",\"most\":8},{\"name\":\"E\",\"most\":16",
         "\"name\":\"N\",\"most\":20000000},{\"name\":\"E\",\"most\":100000000", DT_EUNSUPPORTED,
         "MB with the most rows that it names, at most 1024 are given"},
        {"\"name\":\"E\",\"most\":16", "\"name\":\"E\",\"most\":2147483647", DT_EUNSUPPORTED,
         "is too large with the most rows"},
    };
    REFUSE_ALL(c);
}

static void test_without_checksum(void **state)
{
    dt_policy *p = NULL;
    char why[512] = "";
    is_sealed = false;
    assert_int_equal(load(good, &p, why, sizeof(why)), DT_EDATA);
    is_sealed = true;
    assert_null(p);
    assert_non_null(strstr(why, DT_ST_SEAL));
}

/* Any prefix of the file, and any byte of its header turned around. */
static void test_damaged(void **state)
{
    size_t n = 0;
    uint8_t *bytes = make_file(good, &n);
    dt_policy *p = NULL;
    char why[512];
    for (size_t k = 0; k < n; k += k < 64 ? 1 : 13) {
        uint8_t *cut = dt_alloc(k + 1); /* exactly as long: a sanitizer sees one byte more */
        memcpy(cut, bytes, k);
        assert_true(dt_policy_load_bytes(cut, k, "cut", &p, why, sizeof(why)) < 0);
        dt_free(cut);
    }
    for (size_t k = 0; k < n; k++) {
        bytes[k] ^= (uint8_t)(1u << k % 8);
        if (dt_policy_load_bytes(bytes, n, "turned", &p, why, sizeof(why)) == DT_OK) {
            dt_policy_free(p);
        }
        bytes[k] ^= (uint8_t)(1u << k % 8);
    }
    dt_free(bytes);
}

static int set_up(void **state)
{
    snprintf(path, sizeof(path), "test-policy-check-%d.safetensors", (int)getpid());
    return 0;
}

static int tear_down(void **state)
{
    (void)unlink(path);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_good),    cmocka_unit_test(test_symbols), cmocka_unit_test(test_actions),
        cmocka_unit_test(test_bounds),  cmocka_unit_test(test_numbers), cmocka_unit_test(test_inputs),
        cmocka_unit_test(test_indices), cmocka_unit_test(test_outputs), cmocka_unit_test(test_attributes),
        cmocka_unit_test(test_memory),  cmocka_unit_test(test_damaged), cmocka_unit_test(test_without_checksum),
    };
    return cmocka_run_group_tests_name("policy_check", tests, set_up, tear_down);
}
