/* SPDX-License-Identifier: Apache-2.0
 *
 * `dtrain new`: writes a third party's project. See tools.h and plugins/template.
 */
#include <config.h>

#include "cli/cli.h"
#include "cli/tools.h"
#include "run/session.h"
#include "cli/template_text.h"
#include "base/err.h"
#include "base/fs.h"
#include "base/print.h"
#include "config/schema.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { MAX_NAME = 48 };

typedef struct new_kind {
    const char *name, *source, *readme;
} new_kind;

/* Sources are C and C++ alike. */
static const new_kind kinds[] = {{"phase", dt_template_phase_c, dt_template_README_phase_md},
                                 {"policy", dt_template_policy_c, dt_template_README_policy_md},
                                 {"model", dt_template_model_c, dt_template_README_model_md},
                                 {"env", dt_template_env_c, dt_template_README_env_md},
                                 {"data", dt_template_data_c, dt_template_README_data_md}};
enum { N_KINDS = sizeof(kinds) / sizeof(kinds[0]) };

static dt_status check_name(const char *name)
{
    bool is_legal = *name >= 'a' && *name <= 'z' && strlen(name) <= MAX_NAME &&
                    strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_") == strlen(name);
    if (!is_legal) {
        return DT_FAIL(DT_ECONFIG,
                       "\"%s\" is not a valid name: expected 1 to %d of a-z, 0-9 and _, beginning with a letter", name,
                       MAX_NAME);
    }
    if (dt_config_is_host_section(name)) {
        return DT_FAIL(DT_ECONFIG, "\"%s\" is reserved in dtrain's configuration; choose another name", name);
    }
    return DT_OK;
}

/* text with name for every "template" */
static void fill_template(const char *text, const char *name, dt_str *out)
{
    static const char word[] = "template";
    for (const char *hit = strstr(text, word); hit != NULL; hit = strstr(text, word)) {
        dt_str_add_n(out, text, (size_t)(hit - text));
        dt_str_add(out, name);
        text = hit + strlen(word);
    }
    dt_str_add(out, text);
}

/* <dir>/<name><suffix>, from a text in which every "template" is `as`. */
static dt_status write_project_file(const char *dir, const char *name, const char *suffix, const char *from,
                                    const char *as)
{
    dt_str text = {0}, path = {0};
    fill_template(from, as, &text);
    dt_str_addf(&path, "%s/%s%s", dir, name, suffix);
    const dt_status st = dt_fs_write_text(&path, &text);
    dt_str_fini(&text);
    dt_str_fini(&path);
    return st;
}

static dt_status find_kind(const char *name, const new_kind **out_p)
{
    const char *names[N_KINDS + 1] = {NULL};
    for (size_t k = 0; k < N_KINDS; k++) {
        if (strcmp(kinds[k].name, name) == 0) {
            *out_p = &kinds[k];
            return DT_OK;
        }
        names[k] = kinds[k].name;
    }
    const char *near = dt_suggest_word(name, names);
    return DT_FAIL(DT_ECONFIG, "cannot make a new \"%s\": expected phase, policy, model, env or data%s%s%s", name,
                   near != NULL ? "; did you mean \"" : "", near != NULL ? near : "", near != NULL ? "\"?" : "");
}

static dt_status parse_language(const char *language, bool *out_p)
{
    const bool is_c = language == NULL || strcmp(language, "c") == 0;
    *out_p = !is_c;
    return is_c || strcmp(language, "c++") == 0
               ? DT_OK
               : DT_FAIL(DT_ECONFIG, "--language \"%s\": plugins are written in c or c++", language);
}

dt_status dt_tools_new(const char *kind, const char *name, const char *dir, const char *language, dt_str *out)
{
    const new_kind *k = NULL;
    bool cxx = false;
    DT_TRY(find_kind(kind, &k));
    DT_TRY(parse_language(language, &cxx));
    DT_TRY(check_name(name));
    if (*dir == '\0' || access(dir, F_OK) == 0) {
        return DT_FAIL(DT_ECONFIG, "%s exists; name a new folder, nothing was written", *dir != '\0' ? dir : "\"\"");
    }
    const char *suffix = cxx ? ".cpp" : ".c";
    DT_TRY(dt_fs_mkdirs(dir));
    DT_TRY(write_project_file(dir, name, suffix, k->source, name));
    DT_TRY(write_project_file(dir, "Makefile", "", cxx ? dt_template_project_cxx_mk : dt_template_project_mk, name));
    DT_TRY(write_project_file(dir, "README.md", "", k->readme, name));
    dt_str_addf(out, "%s/%s%s, Makefile, README.md\nNow: cd %s && make && dtrain check ./%s.so\n", dir, name, suffix,
                dir, name);
    return dt_str_status(out);
}

/* A plugin of this name that can be found already would be hidden by the new one, or hide it. */
static dt_status check_name_is_free(const char *name)
{
    dt_session s;
    const dt_loaded *found = NULL;
    dt_status st = dt_session_open_loader(&s);
    if (st == DT_OK && dt_loader_find(s.loader, 0, name, &found) == DT_OK) {
        st = DT_FAIL(DT_ECONFIG, "a %s %s exists already (%s); choose another name, nothing was written",
                     dt_kind_name(found->desc.kind), found->desc.id, found->plugin->path);
    } else {
        dt_error_clear(); /* whatever is wrong with other plugins: it is no plugin of that name */
    }
    dt_session_close(&s);
    return st;
}

dt_status dt_verb_new(const dt_args *a, int *code_p)
{
    dt_str out = {0};
    DT_TRY(check_name_is_free(a->word[1]));
    dt_status st = dt_tools_new(a->word[0], a->word[1], a->word[2], a->language, &out);
    dt_print_text(dt_str_text(&out));
    dt_str_fini(&out);
    return st;
}
