/* SPDX-License-Identifier: Apache-2.0
 *
 * Files that env_gym needs at run time: a Python interpreter, and the script of its own that it runs.
 */
#ifndef _GNU_SOURCE
#    define _GNU_SOURCE /* dladdr */
#endif
#include "env_gym.h"

#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define SCRIPT "env_gym/env_gym_worker.py"

enum { MAX_PATH = 1024 };

static bool is_file(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISREG(st.st_mode);
}

static bool is_folder(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

static dt_status search_path(const dt_host *h, const char *name, char *out, size_t bytes)
{
    const char *path = getenv("PATH");
    for (const char *at = path != NULL ? path : "/usr/bin:/bin"; *at != '\0';) {
        const size_t n = strcspn(at, ":");
        const int is = snprintf(out, bytes, "%.*s/%s", (int)n, at, name);
        if (n > 0 && is > 0 && (size_t)is < bytes && is_file(out) && access(out, X_OK) == 0) {
            return DT_OK;
        }
        at += n + (at[n] == ':');
    }
    return DT_FAIL_H(h, DT_EUNSUPPORTED,
                     "there is no %s in PATH; install Python 3.8 or later (Debian: apt-get install python3), or set "
                     "env_gym.interpreter to the folder of a virtual environment",
                     name);
}

dt_status find_interpreter(const dt_host *h, const char *option, char *out, size_t bytes)
{
    const char *name = option[0] != '\0' ? option : "python3";
    if (strchr(name, '/') == NULL && !is_folder(name)) {
        return search_path(h, name, out, bytes);
    }
    const int n = snprintf(out, bytes, "%s%s", name, is_folder(name) ? "/bin/python" : "");
    if (n < 0 || (size_t)n >= bytes || !is_file(out)) {
        return DT_FAIL_H(h, DT_EUNSUPPORTED, "env_gym.interpreter: there is no file %s", out);
    }
    return access(out, X_OK) == 0 ? DT_OK
                                  : DT_FAIL_H(h, DT_EUNSUPPORTED, "env_gym.interpreter: %s is not executable", out);
}

static int read_machine(const char *path)
{
    Elf64_Ehdr e = {0};
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    const bool is_read = fd >= 0 && read(fd, &e, sizeof(e)) >= (ssize_t)offsetof(Elf64_Ehdr, e_version);
    if (fd >= 0) {
        close(fd);
    }
    return is_read && memcmp(e.e_ident, ELFMAG, SELFMAG) == 0 ? (int)e.e_machine : -1;
}

void describe_program(const char *path, char *out, size_t bytes)
{
    const int machine = read_machine(path), own = read_machine("/proc/self/exe");
    if (machine < 0) {
        snprintf(out, bytes, "it is neither an ELF program nor a script with an interpreter");
    } else if (machine != own) {
        snprintf(out, bytes, "it is built for another architecture (ELF machine %d, this is %d)", machine, own);
    } else {
        out[0] = '\0';
    }
}

/* Folder of the object that holds this code, or of the program, by its real path. */
static void own_folder(char *out, size_t bytes)
{
    Dl_info info;
    const char *name = dladdr((const void *)own_folder, &info) != 0 && info.dli_fname != NULL ? info.dli_fname : "";
    char *real = realpath(strchr(name, '/') != NULL ? name : "/proc/self/exe", NULL);
    const char *path = real != NULL ? real : "./";
    snprintf(out, bytes, "%.*s", (int)(strrchr(path, '/') - path), path);
    free(real);
}

/* As installed: below pkgdatadir, which moved together with the plugin's or the program's folder. */
static void installed_path(const char *folder, const char *configured, char *out, size_t bytes)
{
    size_t common = 0; /* bytes of the folders that both configured paths begin with */
    for (size_t i = 0; configured[i] == PKGDATADIR[i] && configured[i] != '\0'; i++) {
        common = configured[i] == '/' ? i : common;
    }
    const size_t n = strlen(folder), own = strlen(&configured[common]);
    out[0] = '\0';
    if (own > 0 && n >= own && strcmp(folder + n - own, &configured[common]) == 0) {
        snprintf(out, bytes, "%.*s%s/" SCRIPT, (int)(n - own), folder, &PKGDATADIR[common]);
    }
}

dt_status find_worker(const dt_host *h, char *out, size_t bytes)
{
    /* in a build folder: from the plugin's file, and from the program */
    static const char *const up[] = {"/../" SCRIPT, "/" SCRIPT, "/plugins/" SCRIPT, "/../plugins/" SCRIPT};
    char folder[MAX_PATH];
    own_folder(folder, sizeof(folder));
    for (size_t i = 0; i < sizeof(up) / sizeof(up[0]); i++) {
        snprintf(out, bytes, "%s%s", folder, up[i]);
        if (is_file(out)) {
            return DT_OK;
        }
    }
    const char *const configured[] = {PLUGINDIR, BINDIR};
    for (size_t i = 0; i < 2; i++) {
        installed_path(folder, configured[i], out, bytes);
        if (is_file(out)) {
            return DT_OK;
        }
    }
    snprintf(out, bytes, "%s/" SCRIPT, PKGDATADIR);
    return is_file(out) ? DT_OK : DT_FAIL_H(h, DT_EUNSUPPORTED, "the file %s is missing; install dtrain again", out);
}
