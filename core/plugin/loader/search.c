/* SPDX-License-Identifier: Apache-2.0
 *
 * Where plugins lie: folders of the environment, the build tree, the installed folder. See loader.h.
 *
 * Paths are resolved here and nowhere else: libltdl, given a bare name, continues with the system's library folders.
 */
#include <config.h>

#include "plugin/loader/inner.h"
#include "base/err.h"
#include "base/fs.h"
#include "base/mem.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { PATH_BYTES = 4096 };

static dt_status add_dir(dt_search *s, const char *dir, size_t bytes)
{
    char **grown = dt_realloc(s->dirs, (s->n_dirs + 1) * sizeof(*grown));
    if (grown == NULL) {
        return DT_FAIL(DT_ENOMEM, "out of memory for the search path of plugins");
    }
    s->dirs = grown;
    char *copy = dt_alloc(bytes + 1);
    if (copy == NULL) {
        return DT_FAIL(DT_ENOMEM, "out of memory for the search path of plugins");
    }
    memcpy(copy, dir, bytes);
    s->dirs[s->n_dirs++] = copy;
    return DT_OK;
}

/* Below a build tree modules lie in phases/.libs, models/.libs and plugins/.libs, where libtool puts them. */
static dt_status add_build_tree(dt_search *s, const char *program_dir)
{
    static const char *const folders[] = {"phases", "models", "plugins"};
    char dir[PATH_BYTES];
    for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++) {
        int n = snprintf(dir, sizeof(dir), "%s/%s/.libs", program_dir, folders[i]);
        if (n > 0 && (size_t)n < sizeof(dir) && dt_fs_is_dir(dir)) {
            DT_TRY(add_dir(s, dir, (size_t)n));
        }
    }
    return DT_OK;
}

static dt_status add_installed(dt_search *s)
{
    dt_str dir = {0};
    dt_status st = dt_fs_installed_dir(DTRAIN_PLUGINDIR, &dir);
    if (st == DT_OK) {
        st = add_dir(s, dt_str_text(&dir), dir.bytes);
    }
    dt_str_fini(&dir);
    return st;
}

dt_status dt_search_init(dt_search *s, const dt_loader_desc *desc)
{
    for (const char *p = desc->plugin_path; p != NULL && *p != '\0';) {
        size_t bytes = strcspn(p, ":");
        if (bytes > 0) {
            DT_TRY(add_dir(s, p, bytes));
        }
        p += bytes + (p[bytes] == ':');
    }
    dt_str program = {0};
    dt_status st = DT_OK;
    if (desc->program_dir == NULL) {
        st = dt_fs_program_dir(&program);
    }
    if (st == DT_OK) {
        st = add_build_tree(s, desc->program_dir != NULL ? desc->program_dir : dt_str_text(&program));
    }
    dt_str_fini(&program);
    if (st == DT_ENOMEM) {
        return st; /* without /proc there is no build tree */
    }
    return desc->plugin_dir != NULL ? add_dir(s, desc->plugin_dir, strlen(desc->plugin_dir)) : add_installed(s);
}

void dt_search_fini(dt_search *s)
{
    for (size_t i = 0; i < s->n_dirs; i++) {
        dt_free(s->dirs[i]);
    }
    dt_free(s->dirs);
    *s = (dt_search){0};
}

void dt_search_list(const dt_search *s, dt_str *out)
{
    for (size_t i = 0; i < s->n_dirs; i++) {
        dt_str_addf(out, "%s%s", i == 0 ? "" : i + 1 == s->n_dirs ? " and " : ", ", s->dirs[i]);
    }
}

dt_status dt_plugin_name_of(const char *file, char *name, size_t bytes)
{
    const char *slash = strrchr(file, '/'), *base = slash != NULL ? slash + 1 : file;
    size_t n = strlen(base);
    if (n > 3 && (strcmp(base + n - 3, ".so") == 0 || strcmp(base + n - 3, ".la") == 0)) {
        n -= 3;
    }
    if (n == 0 || n >= bytes) {
        return DT_FAIL(DT_EINVAL, "\"%s\" is not a plugin name: expected 1 to %zu characters", file, bytes - 1);
    }
    memcpy(name, base, n);
    name[n] = '\0';
    return DT_OK;
}

static dt_status fail_not_found(const char *file, const dt_str *tried, const char *hint)
{
    dt_status st = dt_str_status(tried);
    return st != DT_OK ? st : DT_FAIL(DT_ENOTFOUND, "no plugin %s; tried%s%s", file, dt_str_text(tried), hint);
}

/* One path; it is remembered when nothing is there. */
static bool check_path_exists(const char *path, dt_str *tried, dt_str *path_p)
{
    if (access(path, F_OK) == 0 && !dt_fs_is_dir(path)) {
        dt_str_add(path_p, path);
        return true;
    }
    dt_str_addf(tried, "%s %s", tried->bytes > 0 ? "," : "", path);
    return false;
}

dt_status dt_search_resolve(const dt_search *s, const char *file, dt_str *path_p)
{
    char name[256], path[PATH_BYTES];
    dt_str tried = {0};
    DT_TRY(dt_plugin_name_of(file, name, sizeof(name)));
    const char *slash = strrchr(file, '/');
    bool is_found = false;
    if (slash != NULL) {
        /* as given; else what libtool made of it */
        size_t bytes = strlen(file);
        bool is_la = bytes > 3 && strcmp(file + bytes - 3, ".la") == 0;
        is_found = !is_la && check_path_exists(file, &tried, path_p);
        snprintf(path, sizeof(path), "%.*s/%s.so", (int)(slash - file), file, name);
        is_found = is_found || (!is_la && strcmp(path, file) != 0 && check_path_exists(path, &tried, path_p));
        snprintf(path, sizeof(path), "%.*s/.libs/%s.so", (int)(slash - file), file, name);
        is_found = is_found || check_path_exists(path, &tried, path_p);
    }
    if (slash == NULL) {
        for (size_t i = 0; i < s->n_dirs && !is_found; i++) {
            snprintf(path, sizeof(path), "%s/%s.so", s->dirs[i], name);
            is_found = check_path_exists(path, &tried, path_p);
        }
    }
    dt_status st = is_found ? dt_str_status(path_p) : DT_OK;
    if (!is_found) {
        snprintf(path, sizeof(path), "%s.so", name);
        bool is_here = slash == NULL && access(path, F_OK) == 0;
        char hint[320];
        snprintf(hint, sizeof(hint), "; there is one in the current folder: use ./%s.so", name);
        st = fail_not_found(file, &tried, is_here ? hint : "");
    }
    dt_str_fini(&tried);
    return st;
}
