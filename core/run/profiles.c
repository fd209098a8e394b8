/* SPDX-License-Identifier: Apache-2.0 */
#include <config.h>

#include "run/profiles.h"

#include "base/err.h"
#include "base/fs.h"

#include <stdlib.h>
#include <string.h>

/* What ships with dtrain is below the program in a build tree, else where it was installed. */
dt_status dt_find_shipped(const char *in_build, const char *installed, dt_str *out)
{
    dt_status st = dt_fs_program_dir(out);
    dt_str_addf(out, "/%s", in_build);
    if (st != DT_OK || !dt_fs_is_dir(dt_str_text(out))) {
        dt_str_clear(out);
        DT_TRY(dt_fs_installed_dir(DTRAIN_PKGDATADIR, out));
        dt_str_addf(out, "/%s", installed);
    }
    return dt_str_status(out);
}

/* Calls fn with every folder of profiles, best first, until it returns true: those that ship with dtrain, then the
 * folder "profiles" in each folder of plugins. */
typedef bool folder_fn(void *user, const char *dir);
static dt_status each_profile_folder(folder_fn *fn, void *user)
{
    dt_str dir = {0};
    dt_status st = dt_find_shipped("profiles", "profiles", &dir);
    bool is_done = st == DT_OK && fn(user, dt_str_text(&dir));
    const char *path = getenv("DTRAIN_PLUGIN_PATH");
    for (const char *at = path != NULL ? path : ""; st == DT_OK && !is_done && *at != '\0';) {
        const size_t bytes = strcspn(at, ":");
        dt_str_clear(&dir);
        dt_str_addf(&dir, "%.*s/profiles", (int)bytes, at);
        st = dt_str_status(&dir);
        is_done = bytes > 0 && st == DT_OK && fn(user, dt_str_text(&dir));
        at += bytes + (at[bytes] == ':');
    }
    if (st == DT_OK && !is_done) {
        dt_str_clear(&dir);
        st = dt_fs_installed_dir(DTRAIN_PLUGINDIR, &dir);
        dt_str_add(&dir, "/profiles");
        if (st == DT_OK) {
            fn(user, dt_str_text(&dir));
        }
    }
    dt_str_fini(&dir);
    return st;
}

typedef struct listing {
    const char *separator;
    dt_str *out;
    size_t n;
    dt_status st;
} listing;

static bool add_profiles_of(void *user, const char *dir)
{
    listing *l = user;
    char **files = NULL;
    size_t n = 0;
    if (dt_fs_is_dir(dir)) {
        l->st = dt_fs_list(dir, &files, &n);
    }
    for (size_t i = 0; i < n && l->st == DT_OK; i++) {
        const size_t bytes = strlen(files[i]);
        if (bytes > 4 && strcmp(files[i] + bytes - 4, ".cfg") == 0) {
            dt_str_addf(l->out, "%s%.*s", l->n++ > 0 ? l->separator : "", (int)bytes - 4, files[i]);
        }
    }
    dt_fs_list_free(files, n);
    return l->st != DT_OK;
}

dt_status dt_profiles_list(const char *separator, dt_str *out)
{
    listing l = {.separator = separator, .out = out};
    const dt_status st = each_profile_folder(add_profiles_of, &l);
    return st != DT_OK ? st : l.st;
}

/* "no such profile", and those that there are. */
static dt_status fail_unknown_profile(const char *name)
{
    dt_str known = {0};
    if (dt_profiles_list(", ", &known) != DT_OK || known.bytes == 0) {
        dt_str_fini(&known);
        return DT_CONTEXT(DT_ECONFIG, "--profile %s: no such file, and no profiles are installed", name);
    }
    const dt_status st =
        DT_FAIL(DT_ECONFIG, "--profile %s: no such profile; expected %s, or a file", name, dt_str_text(&known));
    dt_str_fini(&known);
    return st;
}

typedef struct profile_search {
    const char *name;
    dt_str *out;
    bool is_found;
} profile_search;

static bool match_profile(void *user, const char *dir)
{
    profile_search *w = user;
    dt_str_clear(w->out);
    dt_str_addf(w->out, "%s/%s.cfg", dir, w->name);
    w->is_found = dt_fs_is_file(dt_str_text(w->out));
    return w->is_found;
}

/* A name means what ships or what plugins bring, before a file of the current folder; anything with a slash is a
 * file. */
dt_status dt_profile_find(const char *name, dt_str *out)
{
    if (strchr(name, '/') != NULL) {
        dt_str_add(out, name);
        return dt_str_status(out);
    }
    profile_search w = {.name = name, .out = out};
    DT_TRY(each_profile_folder(match_profile, &w));
    if (!w.is_found) {
        dt_str_clear(out);
        dt_str_add(out, name);
        DT_TRY(dt_fs_is_file(name) ? DT_OK : fail_unknown_profile(name));
    }
    return dt_str_status(out);
}
