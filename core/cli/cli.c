/* SPDX-License-Identifier: Apache-2.0
 *
 * See cli.h.
 */
#include <config.h>

#include "cli/cli.h"
#include "cli/cli_table.h"

#include "base/err.h"
#include "base/print.h"
#include "base/str.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

/* ---- help -------------------------------------------------------------------------------------------------------- */

static void option_help(const option *o)
{
    char left[64];
    snprintf(left, sizeof(left), "%c%c --%s%s%s", o->letter ? '-' : ' ', o->letter ? o->letter : ' ', o->name,
             o->value != NULL ? " " : "", o->value != NULL ? o->value : "");
    dt_print("  %-30s %s\n", left, o->help);
}

static const verb *find_verb(const char *name)
{
    for (int i = 0; i < N_VERBS; i++) {
        if (strcmp(verbs[i].name, name) == 0) {
            return &verbs[i];
        }
    }
    return NULL;
}

void dt_cli_help(const char *name)
{
    const verb *v = name != NULL ? find_verb(name) : NULL;
    if (v == NULL) {
        dt_print("dtrain %s: trains in phases, loaded as plugins\n\n"
                 "  dtrain --plugin FILE_OR_ID [options]     train one phase\n"
                 "  dtrain --config FILE [options]           train the phases of a configuration\n"
                 "  dtrain VERB ...                          one of these (dtrain VERB --help):\n\n",
                 PACKAGE_VERSION);
        for (int i = 0; i < N_VERBS; i++) {
            dt_print("  %-8s %s\n", verbs[i].name, verbs[i].summary);
        }
        dt_print("\noptions of run, the default verb:\n");
        v = &verbs[0];
    } else {
        dt_print("dtrain %s%s%s [options]\n%s\n\noptions:\n", v->name, v->words[0] != '\0' ? " " : "", v->words,
                 v->summary);
    }
    for (int i = 0; i < N_OPTIONS; i++) {
        if ((options[i].verbs & v->bit) != 0) {
            option_help(&options[i]);
        }
    }
    dt_print("\nexamples:\n%s", v->examples);
    if (name == NULL) {
        dt_print(
            "  dtrain show phase1_world_model           every key a phase knows, with its default\n"
            "\nexit codes: 0 done, 1 failed, 2 usage or configuration, 3 plugin, 4 data, 5 environment or device,\n"
            "            6 a peer lost, 7 diverged, 75 interrupted with state saved (run again with --resume)\n");
    }
}

const char *dt_cli_later(const char *name)
{
    for (size_t i = 0; i < sizeof(later_verbs) / sizeof(later_verbs[0]); i++) {
        if (strcmp(later_verbs[i].verb, name) == 0) {
            return later_verbs[i].text;
        }
    }
    return NULL;
}

bool dt_cli_is_verb(const char *word)
{
    return find_verb(word) != NULL || dt_cli_later(word) != NULL;
}

/* ---- parsing ----------------------------------------------------------------------------------------------------- */

static const option *find_option(const char *name, size_t bytes, uint32_t bit)
{
    const option *elsewhere = NULL;
    for (int i = 0; i < N_OPTIONS; i++) {
        const bool match = bytes == 1 ? options[i].letter == name[0]
                                      : strlen(options[i].name) == bytes && memcmp(options[i].name, name, bytes) == 0;
        if (match && (options[i].verbs & bit) != 0) {
            return &options[i];
        }
        elsewhere = match ? &options[i] : elsewhere;
    }
    return elsewhere;
}

static dt_status unknown_option(const char *word, const verb *v)
{
    const char *names[N_OPTIONS + 1];
    char bare[64];
    int n = 0;
    for (int i = 0; i < N_OPTIONS; i++) {
        if ((options[i].verbs & v->bit) != 0) {
            names[n++] = options[i].name;
        }
    }
    names[n] = NULL;
    snprintf(bare, sizeof(bare), "%.*s", (int)strcspn(word + 2, "="), word[1] == '-' ? word + 2 : word + 1);
    const char *near = dt_did_you_mean(bare, names);
    return DT_FAIL(DT_ECONFIG, "dtrain %s has no option %s%s%s%s; see dtrain %s --help", v->name, word,
                   near != NULL ? "; did you mean --" : "", near != NULL ? near : "", near != NULL ? "?" : "", v->name);
}

static dt_status store_option(dt_args *a, const option *o, const char *value)
{
    char *base = (char *)a;
    if (o->kind == A_FLAG) {
        *(bool *)(base + o->member) = true;
    } else if (o->kind == A_REPEAT) {
        uint32_t *n = (uint32_t *)(void *)(base + o->count);
        if (*n == DT_CLI_MAX_REPEAT) {
            return DT_FAIL(DT_ECONFIG, "--%s is given more than %d times", o->name, DT_CLI_MAX_REPEAT);
        }
        ((const char **)(void *)(base + o->member))[(*n)++] = value;
    } else {
        *(const char **)(void *)(base + o->member) = value;
        if (o->kind == A_OPTIONAL) {
            *(bool *)(base + o->count) = true;
        }
    }
    return DT_OK;
}

static dt_status parse_option(int argc, char *const *argv, int *i, const verb *v, dt_args *a)
{
    const char *word = argv[*i];
    const char *name = word + (word[1] == '-' ? 2 : 1);
    const char *equals = strchr(name, '=');
    const size_t bytes = equals != NULL ? (size_t)(equals - name) : strlen(name);
    if (word[1] != '-' && bytes != 1) {
        return unknown_option(word, v);
    }
    const option *o = find_option(name, bytes, v->bit);
    if (o == NULL) {
        return unknown_option(word, v);
    }
    if ((o->verbs & v->bit) == 0) {
        return DT_FAIL(DT_ECONFIG, "--%s is not an option of dtrain %s; see dtrain %s --help", o->name, v->name,
                       v->name);
    }
    const char *value = equals != NULL ? equals + 1 : NULL;
    if (o->kind == A_FLAG && value != NULL) {
        return DT_FAIL(DT_ECONFIG, "--%s takes no value, got \"%s\"", o->name, value);
    }
    if (o->kind == A_OPTIONAL && value == NULL && *i + 1 < argc && argv[*i + 1][0] != '-') {
        value = argv[++*i];
    }
    if ((o->kind == A_VALUE || o->kind == A_REPEAT) && value == NULL) {
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
static const char *meant_verb(const char *word)
{
    static const char *const verbs_of_others[][2] = {{"train", "run"},
                                                     {"fit", "run"},
                                                     {"start", "run"},
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
                                                     {"version", "--version"},
                                                     {"help", "--help"}};
    for (size_t i = 0; i < sizeof(verbs_of_others) / sizeof(verbs_of_others[0]); i++) {
        if (strcmp(verbs_of_others[i][0], word) == 0) {
            return verbs_of_others[i][1];
        }
    }
    return NULL;
}

dt_status dt_cli_parse(int argc, char *const *argv, dt_args *out)
{
    memset(out, 0, sizeof(*out));
    out->argc = argc;
    out->argv = argv;
    out->verb = "run";
    int i = 1;
    if (argc > 1 && argv[1][0] != '-') {
        out->verb = argv[1];
        i = 2;
    }
    const verb *v = find_verb(out->verb);
    if (v == NULL) {
        const char *names[N_VERBS + 1];
        for (int k = 0; k < N_VERBS; k++) {
            names[k] = verbs[k].name;
        }
        names[N_VERBS] = NULL;
        const char *later_text = dt_cli_later(out->verb);
        if (later_text != NULL) {
            return DT_FAIL(DT_ECONFIG, "dtrain %s: %s", out->verb, later_text);
        }
        const char *near = meant_verb(out->verb);
        near = near != NULL ? near : dt_did_you_mean(out->verb, names);
        return DT_FAIL(DT_ECONFIG, "dtrain has no verb \"%s\"%s%s%s; see dtrain --help", out->verb,
                       near != NULL ? "; did you mean " : "", near != NULL ? near : "", near != NULL ? "?" : "");
    }
    for (; i < argc; i++) {
        if (argv[i][0] == '-' && argv[i][1] != '\0') {
            DT_TRY(parse_option(argc, argv, &i, v, out));
        } else if (out->n_words == DT_CLI_MAX_WORDS) {
            return DT_FAIL(DT_ECONFIG, "more than %d words", DT_CLI_MAX_WORDS);
        } else {
            out->word[out->n_words++] = argv[i];
        }
    }
    if (v->words[0] == '\0' && out->n_words > 0) {
        return DT_FAIL(DT_ECONFIG, "dtrain %s takes no word such as \"%s\"; options begin with --", v->name,
                       out->word[0]);
    }
    return DT_OK;
}
