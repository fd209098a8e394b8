/* SPDX-License-Identifier: Apache-2.0
 *
 * `dtrain new`: writes a third party's project. See tools.h and plugins/template.
 */
#include <config.h>

#include "cli/cli.h"
#include "cli/tools.h"
#include "cli/template_text.h"
#include "base/err.h"
#include "base/fs.h"
#include "base/print.h"
#include "config/schema.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { MAX_NAME = 48 };

typedef struct new_file {
    const char *suffix, *name; /* called <NAME><suffix>, or name */
    const char *text;
} new_file;

static dt_status check_name(const char *name)
{
    bool is_legal = *name >= 'a' && *name <= 'z' && strlen(name) <= MAX_NAME &&
                    strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_") == strlen(name);
    if (!is_legal) {
        return DT_FAIL(DT_ECONFIG,
                       "\"%s\" is no legal name: expected 1 to %d of a-z, 0-9 and _, beginning with a letter", name,
                       MAX_NAME);
    }
    if (dt_config_is_host_section(name)) {
        return DT_FAIL(DT_ECONFIG, "\"%s\" is a word of dtrain's own configuration; choose another name", name);
    }
    return DT_OK;
}

/* text with name for every "template" */
static void fill(const char *text, const char *name, dt_str *out)
{
    static const char word[] = "template";
    for (const char *hit = strstr(text, word); hit != NULL; hit = strstr(text, word)) {
        dt_str_add_n(out, text, (size_t)(hit - text));
        dt_str_add(out, name);
        text = hit + strlen(word);
    }
    dt_str_add(out, text);
}

static dt_status write_file(const new_file *f, const char *name, const char *dir)
{
    dt_str text = {0}, path = {0};
    fill(f->text, name, &text);
    dt_str_addf(&path, "%s/%s%s", dir, f->name != NULL ? f->name : name, f->name != NULL ? "" : f->suffix);
    const dt_status st = dt_fs_write_text(&path, &text);
    dt_str_fini(&text);
    dt_str_fini(&path);
    return st;
}

dt_status dt_tools_new(const char *kind, const char *name, const char *dir, dt_str *out)
{
    static const char *const kinds[] = {"phase", "model", "env", NULL};
    const new_file files[][3] = {
        {{".c", NULL, dt_template_phase_c},
         {NULL, "Makefile", dt_template_project_mk},
         {NULL, "README.md", dt_template_README_phase_md}},
        {{".c", NULL, dt_template_model_c},
         {NULL, "Makefile", dt_template_project_mk},
         {NULL, "README.md", dt_template_README_model_md}},
        {{".c", NULL, dt_template_env_c},
         {NULL, "Makefile", dt_template_project_mk},
         {NULL, "README.md", dt_template_README_env_md}},
    };
    size_t k = 0;
    while (kinds[k] != NULL && strcmp(kinds[k], kind) != 0) {
        k++;
    }
    if (kinds[k] == NULL) {
        const char *near = dt_did_you_mean(kind, kinds);
        return DT_FAIL(DT_ECONFIG, "cannot make a new \"%s\": expected phase, model or env%s%s%s", kind,
                       near != NULL ? "; did you mean \"" : "", near != NULL ? near : "", near != NULL ? "\"?" : "");
    }
    DT_TRY(check_name(name));
    if (*dir == '\0' || access(dir, F_OK) == 0) {
        return DT_FAIL(DT_ECONFIG, "%s exists; name a new folder, nothing was written", *dir != '\0' ? dir : "\"\"");
    }
    DT_TRY(dt_fs_mkdirs(dir));
    for (size_t i = 0; i < sizeof(files[k]) / sizeof(files[k][0]); i++) {
        DT_TRY(write_file(&files[k][i], name, dir));
    }
    dt_str_addf(out, "%s/%s.c, Makefile, README.md\nNow: cd %s && make && dtrain check ./%s.so\n", dir, name, dir,
                name);
    return dt_str_status(out);
}

dt_status dt_verb_new(const dt_args *a)
{
    if (a->n_words != 3) {
        return DT_FAIL(DT_ECONFIG, "expected dtrain new phase|model|env NAME DIR, got %u words behind new", a->n_words);
    }
    dt_str out = {0};
    dt_status st = dt_tools_new(a->word[0], a->word[1], a->word[2], &out);
    dt_print_text(dt_str_text(&out));
    dt_str_fini(&out);
    return st;
}
