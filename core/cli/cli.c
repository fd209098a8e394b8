/* SPDX-License-Identifier: Apache-2.0 */
#include <config.h>

#include "cli/cli.h"
#include "cli/cli_table.h"
#include "cli/plugin_verbs.h"

#include "base/err.h"
#include "base/exit.h"
#include "base/print.h"
#include "base/str.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

/* ---- tables ------------------------------------------------------------------------------------------------------ */

static int find_verb(const char *name)
{
    for (int i = 0; i < dt_cli_n_verbs; i++) {
        if (strcmp(dt_cli_verbs[i].name, name) == 0) {
            return i;
        }
    }
    return -1;
}

static void add_verb(void *unused, const dt_verb *v)
{
    dt_cli_add_verb(v);
}

/* with_plugins: the rows of plugins are wanted, which opens them. */
static void load_verb_tables(bool with_plugins)
{
    static bool has_plugins;
    if (with_plugins && !has_plugins) {
        has_plugins = true;
        dt_plugin_verbs_each(add_verb, NULL);
    }
}

void dt_cli_visit_words(const char *of, void (*fn)(void *user, const char *word), void *user)
{
    load_verb_tables(true);
    const int v = of != NULL ? find_verb(of) : -1;
    for (int i = 0; i < dt_cli_n_verbs && of == NULL; i++) {
        fn(user, dt_cli_verbs[i].name);
    }
    for (int f = 0; f < dt_cli_n_forms && v >= 0; f++) {
        if (dt_cli_forms[f].verb == v && dt_cli_forms[f].name[0] != '\0') {
            fn(user, dt_cli_forms[f].name);
        }
    }
    for (int k = 0; dt_cli_options[k].name != NULL && v >= 0; k++) {
        char name[64];
        snprintf(name, sizeof(name), "--%s", dt_cli_options[k].name);
        if ((dt_cli_options[k].forms & dt_cli_forms_of(v)) != 0) {
            fn(user, name);
        }
    }
}

/* ---- help -------------------------------------------------------------------------------------------------------- */

enum { HELP_COLUMNS = 100, HELP_LEFT = 30 };

/* Text from a column on, in lines of at most HELP_COLUMNS; the cursor is at column `at`. */
static void print_wrapped(const char *text, int at, int left)
{
    dt_print("%*s", at < left ? left - at : 0, "");
    at = at < left ? left : at;
    for (bool begins = true; *text != '\0'; begins = false) {
        const int bytes = (int)strcspn(text, " ");
        if (!begins && at + 1 + bytes > HELP_COLUMNS) {
            dt_print("\n%*s", left, "");
            at = left;
        } else if (!begins) {
            dt_print(" ");
            at++;
        }
        dt_print("%.*s", bytes, text);
        at += bytes;
        text += bytes;
        text += strspn(text, " ");
    }
    dt_print("\n");
}

static void print_help_entry(const char *left, const char *text)
{
    dt_print("  %s", left);
    const int at = 2 + (int)strlen(left);
    if (at >= HELP_LEFT) {
        dt_print("\n");
    }
    print_wrapped(text, at >= HELP_LEFT ? 0 : at, HELP_LEFT);
}

static bool is_common_option(const dt_cli_option *o)
{
    return o->forms == DT_CLI_ALL_FORMS;
}

/* The forms of the verb that an option is for, where it is not for all of them: "import, merge: " */
static void append_form_names(const dt_cli_option *o, int v, char *out, size_t bytes)
{
    const uint64_t all = dt_cli_forms_of(v);
    size_t n = 0;
    out[0] = '\0';
    for (int f = 0; f < dt_cli_n_forms && (o->forms & all) != all && dt_cli_has_forms(v); f++) {
        if ((o->forms & all & (UINT64_C(1) << f)) != 0 && n < bytes) {
            n += (size_t)snprintf(out + n, bytes - n, "%s%s", n > 0 ? ", " : "", dt_cli_forms[f].name);
        }
    }
    if (n > 0 && n < bytes) {
        snprintf(out + n, bytes - n, ": ");
    }
}

static void print_option_help(const dt_cli_option *o, int v)
{
    char left[64], of[96];
    dt_str text = {0};
    snprintf(left, sizeof(left), "%c%c --%s%s%s", o->letter ? '-' : ' ', o->letter ? o->letter : ' ', o->name,
             o->value != NULL ? " " : "", o->value != NULL ? o->value : "");
    append_form_names(o, v, of, sizeof(of));
    dt_str_addf(&text, "%s%s", of, o->help);
    print_help_entry(left, dt_str_text(&text));
    dt_str_fini(&text);
}

static void print_options_help(int v, bool are_common)
{
    for (int i = 0; dt_cli_options[i].name != NULL; i++) {
        if ((dt_cli_options[i].forms & dt_cli_forms_of(v)) != 0 && is_common_option(&dt_cli_options[i]) == are_common) {
            print_option_help(&dt_cli_options[i], v);
        }
    }
}

static void append_usage(const dt_cli_form *f, dt_str *out)
{
    dt_str_addf(out, "dtrain %s%s%s%s%s", dt_cli_verbs[f->verb].name, f->name[0] != '\0' ? " " : "", f->name,
                f->words[0] != '\0' ? " " : "", f->words);
}

static void print_help_of_verb(int v)
{
    bool has_words = false;
    for (int f = 0; f < dt_cli_n_forms; f++) {
        if (dt_cli_forms[f].verb == v) {
            dt_str line = {0};
            append_usage(&dt_cli_forms[f], &line);
            dt_print("%s [options]%s\n", dt_str_text(&line), dt_cli_verbs[v].has_rest ? " -- ARGS" : "");
            dt_str_fini(&line);
            has_words = has_words || dt_cli_forms[f].help[0] != '\0';
        }
    }
    dt_print("\n");
    print_wrapped(dt_cli_verbs[v].summary, 0, 0);
    if (has_words) {
        dt_print("\narguments:\n");
    }
    for (int f = 0; f < dt_cli_n_forms && has_words; f++) {
        char left[64];
        snprintf(left, sizeof(left), "%s%s%s", dt_cli_forms[f].name,
                 *dt_cli_forms[f].name && *dt_cli_forms[f].words ? " " : "", dt_cli_forms[f].words);
        if (dt_cli_forms[f].verb == v) {
            print_help_entry(left, dt_cli_forms[f].help);
        }
    }
}

void dt_cli_help(const char *name)
{
    load_verb_tables(name == NULL || find_verb(name) < 0);
    const int found = name != NULL ? find_verb(name) : -1, v = found >= 0 ? found : DT_CLI_RUN;
    if (found < 0) {
        dt_print("dtrain %s: trains in phases, loaded as plugins\n\n"
                 "  dtrain --plugin FILE_OR_ID [options]     train one phase\n"
                 "  dtrain --config FILE [options]           train the phases of a configuration\n"
                 "  dtrain VERB ...                          one of these (dtrain VERB --help):\n\n",
                 PACKAGE_VERSION);
        for (int i = 0; i < dt_cli_n_verbs; i++) {
            dt_print("  %-8s", dt_cli_verbs[i].name);
            print_wrapped(dt_cli_verbs[i].summary, 10, 11);
        }
        dt_print("\noptions of run, the default verb:\n");
    } else {
        print_help_of_verb(v);
        dt_print("\noptions:\n");
    }
    print_options_help(v, false);
    print_options_help(v, true);
    dt_print("\nexamples:\n%s", dt_cli_verbs[v].examples);
    if (found < 0) {
        dt_print("  dtrain show phase1_world_model           every key of a phase, with its default\n"
                 "\nexit codes:\n");
        for (int i = 0; i < DT_EXIT_ROWS; i++) {
            dt_print("  %-7d %s\n", dt_exit_rows[i].code, dt_exit_rows[i].meaning);
        }
    }
}

bool dt_cli_is_verb(const char *word)
{
    load_verb_tables(find_verb(word) < 0);
    return find_verb(word) >= 0;
}

/* ---- parsing ----------------------------------------------------------------------------------------------------- */

/* The row for a form, else one of the verb, else one of the same name. */
static const dt_cli_option *find_option(const char *name, size_t bytes, uint64_t first, uint64_t second)
{
    const dt_cli_option *found[3] = {NULL, NULL, NULL};
    for (int i = 0; dt_cli_options[i].name != NULL; i++) {
        const bool match =
            bytes == 1 ? dt_cli_options[i].letter == name[0]
                       : strlen(dt_cli_options[i].name) == bytes && memcmp(dt_cli_options[i].name, name, bytes) == 0;
        const int k = (dt_cli_options[i].forms & first) != 0 ? 0 : (dt_cli_options[i].forms & second) != 0 ? 1 : 2;
        if (match && found[k] == NULL) {
            found[k] = &dt_cli_options[i];
        }
    }
    return found[0] != NULL ? found[0] : found[1] != NULL ? found[1] : found[2];
}

/* What other programs call an option, and options of other verbs, as dtrain run takes them. */
static const char *find_meant_option(const char *bare)
{
    static const char *const options_of_others[][2] = {{"steps", "--max-steps N"},
                                                       {"total-timesteps", "--max-steps N"},
                                                       {"timesteps", "--max-steps N"},
                                                       {"max-steps", "--max-steps N"},
                                                       {"time", "--max-time S"},
                                                       {"epochs", "--set training.epochs=N"},
                                                       {"max-epochs", "--set training.epochs=N"},
                                                       {"lr", "--set training.learning_rate=X"},
                                                       {"learning-rate", "--set training.learning_rate=X"},
                                                       {"batch-size", "--set data.batch=N"},
                                                       {"batch", "--set data.batch=N"},
                                                       {"num-envs", "--set env.instances=N"},
                                                       {"n-envs", "--set env.instances=N"},
                                                       {"workers", "--set env.instances=N"},
                                                       {"num-workers", "--set env.instances=N"},
                                                       {"env", "--set env.id=ID"},
                                                       {"env-id", "--set env.id=ID"},
                                                       {"model", "--set models.ROLE=ID"},
                                                       {"policy", "--set models.controller=ID"},
                                                       {"data", "--set data.store=STORE"},
                                                       {"store", "--set data.store=STORE"},
                                                       {"algo", "--plugin ID"},
                                                       {"alg", "--plugin ID"},
                                                       {"run", "--plugin ID"},
                                                       {"out", "--run-dir DIR"},
                                                       {"output", "--run-dir DIR"},
                                                       {"output-dir", "--run-dir DIR"},
                                                       {"log-dir", "--run-dir DIR"},
                                                       {"logdir", "--run-dir DIR"},
                                                       {"save-dir", "--run-dir DIR"},
                                                       {"restore", "--resume RUN"},
                                                       {"resume-from", "--resume RUN"},
                                                       {"checkpoint", "--init-from RUN"},
                                                       {"ckpt", "--init-from RUN"},
                                                       {"load", "--init-from RUN"},
                                                       {"gpu", "--device cuda"},
                                                       {"gpus", "--device cuda"},
                                                       {"num-gpus", "--device cuda"},
                                                       {"cuda", "--device cuda"},
                                                       {"nprocs", "--nproc N"},
                                                       {"seeds", "--seed N"},
                                                       {"episodes", "--set evaluation.episodes=N"},
                                                       {"num-threads", "--threads N"},
                                                       {"cfg", "--config FILE"}};
    char plain[64];
    snprintf(plain, sizeof(plain), "%s", bare);
    for (char *c = plain; *c != '\0'; c++) {
        *c = *c == '_' ? '-' : *c;
    }
    for (size_t i = 0; i < sizeof(options_of_others) / sizeof(options_of_others[0]); i++) {
        if (strcmp(options_of_others[i][0], plain) == 0) {
            return options_of_others[i][1];
        }
    }
    return NULL;
}

static dt_status fail_unknown_option(const char *word, int v, const dt_args *a)
{
    const char *names[DT_CLI_MAX_OPTIONS + 1];
    char bare[64];
    int n = 0;
    for (int i = 0; dt_cli_options[i].name != NULL; i++) {
        if ((dt_cli_options[i].forms & dt_cli_forms_of(v)) != 0) {
            names[n++] = dt_cli_options[i].name;
        }
    }
    names[n] = NULL;
    snprintf(bare, sizeof(bare), "%.*s", (int)strcspn(word + 2, "="), word[1] == '-' ? word + 2 : word + 1);
    const char *meant = v == DT_CLI_RUN ? find_meant_option(bare) : NULL;
    const char *near = meant != NULL ? meant + 2 : dt_suggest_word(bare, names);
    return DT_FAIL(DT_ECONFIG, "dtrain %s has no option %s%s%s%s; see dtrain %s --help", a->verb, word,
                   near != NULL ? "; did you mean --" : "", near != NULL ? near : "", near != NULL ? "?" : "", a->verb);
}

static dt_status store_option(dt_args *a, const dt_cli_option *o, const char *value)
{
    char *base = (char *)a;
    if (o->member == DT_CLI_OF_PLUGIN) {
        if (a->n_extra == DT_CLI_MAX_EXTRA) {
            return DT_FAIL(DT_ECONFIG, "more than %d options", DT_CLI_MAX_EXTRA);
        }
        a->extra[a->n_extra++] = (dt_extra_option){o->name, value != NULL ? value : ""};
    } else if (o->kind == DT_CLI_FLAG) {
        *(bool *)(base + o->member) = true;
    } else if (o->kind == DT_CLI_REPEAT) {
        uint32_t *n = (uint32_t *)(void *)(base + o->count);
        if (*n == DT_CLI_MAX_REPEAT) {
            return DT_FAIL(DT_ECONFIG, "--%s is given more than %d times", o->name, DT_CLI_MAX_REPEAT);
        }
        ((const char **)(void *)(base + o->member))[(*n)++] = value;
    } else {
        *(const char **)(void *)(base + o->member) = value;
        if (o->kind == DT_CLI_OPTIONAL) {
            *(bool *)(base + o->count) = true;
        }
    }
    return DT_OK;
}

static dt_status parse_option(int argc, char *const *argv, int *i, int v, uint64_t *used_p, dt_args *a)
{
    const char *word = argv[*i];
    const char *name = word + (word[1] == '-' ? 2 : 1);
    const char *equals = strchr(name, '=');
    const size_t bytes = equals != NULL ? (size_t)(equals - name) : strlen(name);
    if (word[1] != '-' && bytes != 1) {
        return fail_unknown_option(word, v, a);
    }
    const char *value = equals != NULL ? equals + 1 : NULL;
    const dt_cli_option *o = find_option(name, bytes, dt_cli_forms_of(v), 0);
    if (o == NULL) {
        return fail_unknown_option(word, v, a);
    }
    if ((o->forms & dt_cli_forms_of(v)) == 0) {
        const char *meant = v == DT_CLI_RUN ? find_meant_option(o->name) : NULL;
        return DT_FAIL(DT_ECONFIG, "--%s is not an option of dtrain %s%s%s%s; see dtrain %s --help", o->name, a->verb,
                       meant != NULL ? "; did you mean " : "", meant != NULL ? meant : "", meant != NULL ? "?" : "",
                       a->verb);
    }
    *used_p |= UINT64_C(1) << (o - dt_cli_options);
    if (o->kind == DT_CLI_FLAG && value != NULL) {
        return DT_FAIL(DT_ECONFIG, "--%s takes no value, got \"%s\"", o->name, value);
    }
    if (o->kind == DT_CLI_OPTIONAL && value == NULL && *i + 1 < argc && argv[*i + 1][0] != '-') {
        value = argv[++*i];
    }
    if ((o->kind == DT_CLI_VALUE || o->kind == DT_CLI_REPEAT) && value == NULL) {
        if (*i + 1 >= argc) {
            return DT_FAIL(DT_ECONFIG, "--%s needs a value: --%s %s", o->name, o->name, o->value);
        }
        value = argv[++*i];
    }
    if (o->member == offsetof(dt_args, out) && strcmp(value, "-") == 0) {
        return DT_FAIL(
            DT_ECONFIG,
            "--out -: results are files and folders, none is written to standard output; give a path (./- is a "
            "file of that name)");
    }
    return store_option(a, o, value);
}

/* What other programs call a verb; NULL: none of these. */
static const char *find_meant_verb(const char *word)
{
    static const char *const verbs_of_others[][2] = {{"train", "run"},
                                                     {"fit", "run"},
                                                     {"start", "run"},
                                                     {"launch", "run --nproc"},
                                                     {"resume", "run --resume"},
                                                     {"test", "eval"},
                                                     {"validate", "eval"},
                                                     {"evaluate", "eval"},
                                                     {"predict", "eval"},
                                                     {"play", "render"},
                                                     {"enjoy", "render"},
                                                     {"video", "render"},
                                                     {"plot", "report"},
                                                     {"ls", "list"},
                                                     {"plugins", "list"},
                                                     {"info", "show"},
                                                     {"options", "show"},
                                                     {"import", "data import"},
                                                     {"convert", "export"},
                                                     {"benchmark", "bench"},
                                                     {"status", "runs"},
                                                     {"tensorboard", "watch"},
                                                     {"top", "watch"},
                                                     {"multirun", "sweep"},
                                                     {"tune", "sweep"},
                                                     {"optimize", "sweep"},
                                                     {"hpo", "sweep"},
                                                     {"repeat", "seeds"},
                                                     {"wandb", "report"},
                                                     {"init", "config template"},
                                                     {"template", "config template"},
                                                     {"checkpoints", "ckpt list"},
                                                     {"preprocess", "data import"},
                                                     {"rollout", "eval"},
                                                     {"simulate", "eval"},
                                                     {"version", "--version"},
                                                     {"help", "--help"}};
    for (size_t i = 0; i < sizeof(verbs_of_others) / sizeof(verbs_of_others[0]); i++) {
        if (strcmp(verbs_of_others[i][0], word) == 0) {
            return verbs_of_others[i][1];
        }
    }
    return NULL;
}

/* The first word is the form of a verb that has several. */
static dt_status find_verb_form(int v, dt_args *a)
{
    const char *names[DT_CLI_MAX_FORMS + 1];
    dt_str usage = {0};
    int n = 0;
    const char *first = a->n_words > 0 ? a->word[0] : "";
    for (int f = 0; f < dt_cli_n_forms; f++) {
        if (dt_cli_forms[f].verb == v && (!dt_cli_has_forms(v) || strcmp(dt_cli_forms[f].name, first) == 0)) {
            a->form = f;
            dt_str_fini(&usage);
            return DT_OK;
        }
        if (dt_cli_forms[f].verb == v) {
            dt_str_addf(&usage, "%s%s", n > 0 ? ", " : "", dt_cli_forms[f].name);
            names[n++] = dt_cli_forms[f].name;
        }
    }
    names[n] = NULL;
    const char *near = first[0] != '\0' ? dt_suggest_word(first, names) : NULL;
    const dt_status st =
        DT_FAIL(DT_ECONFIG, "dtrain %s%s%s: expected one of %s%s%s%s; see dtrain %s --help", dt_cli_verbs[v].name,
                first[0] != '\0' ? " " : "", first, dt_str_text(&usage), near != NULL ? "; did you mean " : "",
                near != NULL ? near : "", near != NULL ? "?" : "", dt_cli_verbs[v].name);
    dt_str_fini(&usage);
    return st;
}

static dt_status check_word_count(const dt_args *a)
{
    const dt_cli_form *f = &dt_cli_forms[a->form];
    const uint32_t name = f->name[0] != '\0', n = a->n_words - name;
    dt_str usage = {0};
    if (n >= f->least && n <= f->most) {
        return DT_OK;
    }
    append_usage(f, &usage);
    const dt_status st =
        f->most == 0 && name == 0
            ? DT_FAIL(DT_ECONFIG, "dtrain %s takes no argument such as \"%s\"; options begin with --", a->verb,
                      a->word[0])
            : DT_FAIL(DT_ECONFIG, "usage: %s [options]%s; got %u argument%s after %s; see dtrain %s --help",
                      dt_str_text(&usage), dt_cli_verbs[f->verb].has_rest ? " -- ARGS" : "", n, n == 1 ? "" : "s",
                      name ? f->name : a->verb, a->verb);
    dt_str_fini(&usage);
    return st;
}

/* Options of other forms of the verb have no effect in this one. */
static dt_status check_used_options(const dt_args *a, uint64_t used)
{
    const uint64_t mine = UINT64_C(1) << a->form;
    for (int i = 0; dt_cli_options[i].name != NULL; i++) {
        const dt_cli_option *o = &dt_cli_options[i];
        if ((used & (UINT64_C(1) << i)) != 0 &&
            (find_option(o->name, strlen(o->name), mine, dt_cli_forms_of(dt_cli_forms[a->form].verb))->forms & mine) ==
                0) {
            char of[96];
            append_form_names(o, dt_cli_forms[a->form].verb, of, sizeof(of));
            return DT_FAIL(DT_ECONFIG,
                           "--%s is not an option of dtrain %s %s; it belongs to %.*s; see dtrain %s --help", o->name,
                           a->verb, dt_cli_forms[a->form].name, (int)strcspn(of, ":"), of, a->verb);
        }
    }
    return DT_OK;
}

static dt_status fail_unknown_verb(const char *word)
{
    const char *names[DT_CLI_MAX_VERBS + 1];
    for (int k = 0; k < dt_cli_n_verbs; k++) {
        names[k] = dt_cli_verbs[k].name;
    }
    names[dt_cli_n_verbs] = NULL;
    const char *near = find_meant_verb(word);
    near = near != NULL ? near : dt_suggest_word(word, names);
    return DT_FAIL(DT_ECONFIG, "dtrain has no verb \"%s\"%s%s%s; see dtrain --help", word,
                   near != NULL ? "; did you mean " : "", near != NULL ? near : "", near != NULL ? "?" : "");
}

dt_status dt_cli_parse(int argc, char *const *argv, dt_args *out)
{
    uint64_t used = 0;
    memset(out, 0, sizeof(*out));
    out->argc = argc;
    out->argv = argv;
    out->verb = dt_cli_verbs[DT_CLI_RUN].name;
    int i = 1;
    if (argc > 1 && argv[1][0] != '-') {
        out->verb = argv[1];
        i = 2;
    }
    load_verb_tables(find_verb(out->verb) < 0);
    const int v = find_verb(out->verb);
    if (v < 0) {
        return fail_unknown_verb(out->verb);
    }
    out->is_run = v == DT_CLI_RUN;

    for (; i < argc; i++) {
        if (strcmp(argv[i], "--") == 0 && dt_cli_verbs[v].has_rest) {
            out->rest = argv + i + 1;
            out->n_rest = (uint32_t)(argc - i - 1);
            break;
        }
        if (argv[i][0] == '-' && argv[i][1] != '\0') {
            DT_TRY(parse_option(argc, argv, &i, v, &used, out));
        } else if (out->n_words == DT_CLI_MAX_WORDS) {
            return DT_FAIL(DT_ECONFIG, "more than %d arguments", DT_CLI_MAX_WORDS);
        } else {
            out->word[out->n_words++] = argv[i];
        }
    }
    if (out->help) {
        return DT_OK;
    }
    DT_TRY(find_verb_form(v, out));
    DT_TRY(check_word_count(out));
    return check_used_options(out, used);
}

/* ---- calling ----------------------------------------------------------------------------------------------------- */

dt_status dt_cli_call(const dt_args *a, int *code_p)
{
    const dt_cli_form *f = &dt_cli_forms[a->form];
    return f->run != NULL ? f->run(a, code_p) : dt_plugin_verb_call(a, f->of_plugin, code_p);
}

bool dt_cli_is_for_all(const dt_args *a)
{
    return dt_cli_verbs[dt_cli_forms[a->form].verb].is_all;
}

bool dt_cli_is_free(const dt_args *a)
{
    return dt_cli_verbs[dt_cli_forms[a->form].verb].is_free;
}
