/* SPDX-License-Identifier: Apache-2.0
 *
 * The golden file of the plugin ABI: sizes and offsets of every public struct, and the numbers of the public constants.
 *
 * abi-<major>.<minor>.txt must equal what this build has. Within a major version nothing of an older golden file may
 * move or vanish: structs only grow at their end. After a deliberate change: raise DT_ABI_MINOR (a member was
 * appended) or DT_ABI_MAJOR (anything else), add a line to include/dtrain/abi_log.h, and run
 *     tests/abi/test_abi --print >tests/abi/abi-<major>.<minor>.txt
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/fs.h"
#include "base/mem.h"
#include "base/str.h"
#include "dtrain/ext/dataset.h"
#include "dtrain/ext/doctor.h"
#include "dtrain/ext/foresight.h"
#include "dtrain/ext/keys.h"
#include "dtrain/ext/ops.h"
#include "dtrain/ext/panels.h"
#include "dtrain/ext/scene.h"
#include "dtrain/ext/verbs.h"
#include "dtrain/traffic/normalise.h"
#include "dtrain/plugin.h"
#include "dtrain/svc/bind.h"
#include "dtrain/svc/comm.h"
#include "dtrain/svc/datasets.h"
#include "dtrain/traffic/features.h"
#include "dtrain/svc/graph.h"
#include "dtrain/svc/metrics.h"
#include "dtrain/svc/rng.h"
#include "dtrain/svc/replay.h"
#include "dtrain/svc/rollout.h"
#include "dtrain/svc/rounds.h"
#include "dtrain/traffic/store.h"
#include "dtrain/svc/train.h"
#include "dtrain/svc/wiring.h"

/* clang-format off */
static void list(dt_str *out)
{
    dt_str_addf(out, "abi %d.%d\n", DT_ABI_MAJOR, DT_ABI_MINOR);
#define S(T) dt_str_addf(out, "\n%s size %zu\n", #T, sizeof(T));
#define M(T, member) \
    dt_str_addf(out, "%s.%s at %zu size %zu\n", #T, #member, offsetof(T, member), sizeof(((T *)0)->member));
#include "structs.def"
#undef S
#undef M
    dt_str_add(out, "\n");
#define C(name) dt_str_addf(out, "%s = %lld\n", #name, (long long)(name));
    C(DT_PLUGIN_MAGIC) C(DT_MAX_DIMS)
    C(DT_OK) C(DT_DONE) C(DT_AGAIN) C(DT_EINVAL) C(DT_ECONFIG) C(DT_ESHAPE) C(DT_ENOTFOUND) C(DT_EABI) C(DT_EDATA)
    C(DT_ENOMEM) C(DT_EIO) C(DT_ECUDA) C(DT_EUNSUPPORTED) C(DT_EPLUGIN) C(DT_EINTERRUPTED)
    C(DT_EBROKEN) C(DT_ECOMM) C(DT_EPEER)
    C(DT_EDIVERGED)
    C(DT_F32) C(DT_F64) C(DT_I32) C(DT_I64) C(DT_U8) C(DT_F16) C(DT_BF16) C(DT_PORT_OPTIONAL)
    C(DT_OPT_BOOL) C(DT_OPT_I64) C(DT_OPT_F64) C(DT_OPT_STR) C(DT_OPT_ENUM) C(DT_OPT_PATH)
    C(DT_OPT_REQUIRED) C(DT_OPT_PER_RANK) C(DT_OPT_RUNTIME) C(DT_OPT_CODE)
    C(DT_OPT_TRAINING) C(DT_OPT_STORE) C(DT_OPT_FOLDS) C(DT_OPT_SPLIT) C(DT_OPT_WEIGHTS)
    C(DT_OPT_ROLLOUTS)
    C(DT_INIT_ZERO) C(DT_INIT_CONST) C(DT_INIT_UNIFORM) C(DT_INIT_NORMAL) C(DT_INIT_XAVIER) C(DT_INIT_FAN_IN)
    C(DT_INIT_EYE) C(DT_INIT_ORTHO) C(DT_INIT_CONSTANT) C(DT_INIT_STATISTIC)
    C(DT_KIND_PHASE) C(DT_KIND_MODEL) C(DT_KIND_ENV) C(DT_KIND_DATA)
    C(DT_COMP_NEEDS_CUDA) C(DT_COMP_DETERMINISTIC) C(DT_COMP_PROCESS) C(DT_COMP_OWN_BATCH)
    C(DT_ENV_MAX_OBS) C(DT_ENV_MAX_SYMBOLS) C(DT_ENV_MAX_HEADS) C(DT_ENV_MAX_COSTS) C(DT_ENV_MAX_METRICS)
    C(DT_PORT_INDEX(0)) C(DT_PORT_INDEX(1)) C(DT_PORT_PLAIN)
    C(DT_FN_RELU) C(DT_FN_LEAKY) C(DT_FN_ELU) C(DT_FN_GELU) C(DT_FN_TANH) C(DT_FN_SIGMOID) C(DT_FN_SOFTPLUS)
    C(DT_FN_EXP) C(DT_FN_LOG) C(DT_FN_SQRT) C(DT_FN_ABS) C(DT_FN_SIN) C(DT_FN_COS)
    C(DT_BIN_ADD) C(DT_BIN_SUB) C(DT_BIN_MUL) C(DT_BIN_MIN) C(DT_BIN_MAX)
    C(DT_BIN_DIV) C(DT_BIN_LESS) C(DT_BIN_LESS_EQUAL) C(DT_BIN_GREATER) C(DT_BIN_GREATER_EQUAL) C(DT_BIN_EQUAL)
    C(DT_REDUCE_SUM) C(DT_REDUCE_MEAN) C(DT_REDUCE_MAX) C(DT_REDUCE_MIN) C(DT_NOISE_NORMAL) C(DT_NOISE_UNIFORM)
    C(DT_VALUE_PLAIN) C(DT_VALUE_CLIP_STEP) C(DT_VALUE_CLIP_ERROR) C(DT_FOR_TRAINING) C(DT_FOR_ACTING)
    C(DT_FOR_EVALUATION)
    C(DT_PANEL_LAST) C(DT_PANEL_FIRST) C(DT_DOCTOR_PASS) C(DT_DOCTOR_WARN) C(DT_DOCTOR_FAIL) C(DT_VERB_OPTION_REQUIRED)
    C(DT_COMPLETE_NONE) C(DT_COMPLETE_FILE) C(DT_COMPLETE_FOLDER) C(DT_COMPLETE_CHOICE)
    C(DT_SCENE_RED) C(DT_SCENE_YELLOW) C(DT_SCENE_GREEN) C(DT_SCENE_YIELD)
    C(DT_NODE_FEATURES) C(DT_EDGE_FEATURES) C(DT_NEIGHBOURS) C(DT_STEP_MAX_LOSSES)
    C(DT_FEATURE_AS_IS) C(DT_FEATURE_POSITION) C(DT_FEATURE_MEASURE) C(DT_FEATURE_ACCELERATION)
    C(DT_USER_OP_MAX_IN) C(DT_USER_OP_MAX_OUT) C(DT_KEYS_PHASES) C(DT_KEYS_TAKE) C(DT_KEYS_WRONG)
    C(DT_TRAIN_MAX_GROUPS) C(DT_TRAIN_MAX_TARGETS)
    C(DT_WIRING_MAX_MODELS) C(DT_WIRING_NO_VALUE) C(DT_WIRING_OBS_ONLY) C(DT_WIRING_STATE_LOG_STD)
    C(DT_WIRING_NO_LOG_STD) C(DT_WIRING_SQUASHED) C(DT_WIRING_NO_OUTPUTS) C(DT_WIRING_AGENT_ROWS)
#undef C
#define DT_OP(ID, number, name) dt_str_addf(out, "DT_OP_%s = %d\n", #ID, (number));
#include "dtrain/ops.def"
#define T(name) dt_str_addf(out, "%s = \"%s\"\n", #name, name);
    T(DT_LAYOUT)
    T(DT_SVC_BIND) T(DT_SVC_COMM) T(DT_SVC_FEATURES) T(DT_SVC_GRAPH) T(DT_SVC_METRICS) T(DT_SVC_RNG) T(DT_SVC_REPLAY)
    T(DT_SVC_ROLLOUT)
    T(DT_SVC_ROUNDS) T(DT_SVC_STORE) T(DT_SVC_TRAIN) T(DT_SVC_WIRING) T(DT_EXT_SCENE)
    T(DT_EXT_VERBS) T(DT_EXT_DOCTOR) T(DT_EXT_PANELS) T(DT_EXT_OPS)
#undef T
}
/* clang-format on */

static char *golden(int minor)
{
    const char *source = getenv("DT_SRCDIR");
    char path[1024], *text = NULL;
    size_t bytes = 0;
    snprintf(path, sizeof(path), "%s/tests/abi/abi-%d.%d.txt", source != NULL ? source : ".", DT_ABI_MAJOR, minor);
    if (dt_fs_read_all(path, 1 << 20, &text, &bytes) != DT_OK) {
        print_error("%s\n", dt_error_text());
    }
    return text;
}

/* does text hold this very line? */
static bool has_line(const char *text, const char *line, size_t bytes)
{
    for (const char *p = text; *p != '\0'; p += strcspn(p, "\n"), p += *p == '\n') {
        if (strcspn(p, "\n") == bytes && memcmp(p, line, bytes) == 0) {
            return true;
        }
    }
    return false;
}

/* lines of a that b lacks, printed */
static int n_missing(const char *a, const char *b, const char *sign, bool but_sizes)
{
    int n = 0;
    for (const char *p = a; *p != '\0'; p += strcspn(p, "\n"), p += *p == '\n') {
        size_t bytes = strcspn(p, "\n");
        bool is_total = memmem(p, bytes, " size ", 6) != NULL && memmem(p, bytes, " at ", 4) == NULL;
        if (bytes == 0 || (but_sizes && (is_total || strncmp(p, "abi ", 4) == 0)) || has_line(b, p, bytes)) {
            continue;
        }
        print_error("%s %.*s\n", sign, (int)bytes, p);
        n++;
    }
    return n;
}

static void test_golden(void **state)
{
    dt_str now = {0};
    list(&now);
    assert_int_equal(dt_str_status(&now), DT_OK);
    char *then = golden(DT_ABI_MINOR);
    assert_non_null(then);
    int n = n_missing(then, dt_str_text(&now), "gone:", false) + n_missing(dt_str_text(&now), then, "new: ", false);
    if (n > 0) {
        print_error("the ABI changed without a version step; the head of tests/abi/test_abi.c says what to do\n");
    }
    assert_int_equal(n, 0);
    dt_free(then);
    dt_str_fini(&now);
}

static void test_only_appended(void **state)
{
    dt_str now = {0};
    list(&now);
    for (int minor = 0; minor < DT_ABI_MINOR; minor++) {
        char *then = golden(minor);
        assert_non_null(then);
        assert_int_equal(n_missing(then, dt_str_text(&now), "a plugin of an older minor relies on:", true), 0);
        dt_free(then);
    }
    dt_str_fini(&now);
}

/* the comparison itself sees what it must see */
static void test_comparison(void **state)
{
    static const char before[] = "abi 1.0\n\ns size 8\ns.a at 0 size 8\nX = 1\n";
    static const char grown[] = "abi 1.1\n\ns size 16\ns.a at 0 size 8\ns.b at 8 size 8\nX = 1\n";
    static const char moved[] = "abi 1.1\n\ns size 16\ns.b at 0 size 8\ns.a at 8 size 8\nX = 2\n";
    assert_int_equal(n_missing(before, before, "", false), 0);
    assert_int_equal(n_missing(before, grown, "expected:", false), 2); /* version and total size */
    assert_int_equal(n_missing(before, grown, "", true), 0);
    assert_int_equal(n_missing(before, moved, "expected:", true), 2);
}

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "--print") == 0) {
        dt_str now = {0};
        list(&now);
        fputs(dt_str_text(&now), stdout);
        dt_str_fini(&now);
        return 0;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_golden),
        cmocka_unit_test(test_only_appended),
        cmocka_unit_test(test_comparison),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
