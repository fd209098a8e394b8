/* SPDX-License-Identifier: Apache-2.0
 *
 * What doctor checks of the machine. See doctor.h. Sources: proc(5), cgroups(7), getrlimit(2), statvfs(3).
 */
#include <config.h>

#include "plan/machine/doctor.h"

#include "engine/backend/cpu/isa.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/fs.h"
#include "base/mem.h"
#include "plan/machine/limits.h"

#include <errno.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <unistd.h>

enum { FILE_BYTES = 1 << 20, LINE_BYTES = 256, MIB = 1 << 20 };

/* Below these a run of the shipped presets does not fit (the larger takes 450 MB), or has little room. */
#define MEMORY_FAIL (512.0 * MIB)
#define MEMORY_WARN (2048.0 * MIB)
#define SHM_WARN    (64.0 * MIB)

/* ---- reading ----------------------------------------------------------------------------------------------------- */

/* A file below the root as text, "" when it cannot be read; free with dt_free. Files of /proc have no size. */
static char *read_text(const dt_doctor *d, const char *path)
{
    dt_str full = {0};
    dt_str_addf(&full, "%s%s", d->root, path);
    FILE *f = fopen(dt_str_text(&full), "r");
    dt_str_fini(&full);
    char *text = dt_alloc(FILE_BYTES);
    if (f != NULL && text != NULL) {
        text[fread(text, 1, FILE_BYTES - 1, f)] = '\0';
    }
    if (f != NULL) {
        fclose(f);
    }
    return text;
}

/* What follows "<key>:" or "<key> :" at the beginning of a line, cut at its end. */
static bool find_value_of_key(const char *text, const char *key, char value[LINE_BYTES])
{
    const size_t n = strlen(key);
    for (const char *p = text; p != NULL && *p != '\0';) {
        const char *after = p + n;
        if (strncmp(p, key, n) == 0 && after[strspn(after, " \t")] == ':') {
            after += strspn(after, " \t:");
            snprintf(value, LINE_BYTES, "%.*s", (int)strcspn(after, "\n"), after);
            return true;
        }
        p = strchr(p, '\n');
        p = p != NULL ? p + 1 : NULL;
    }
    return false;
}

/* Is word one of those after "<key>:"? */
static bool has_listed_word(const char *text, const char *key, const char *word)
{
    const size_t n = strlen(word);
    const char *line = strstr(text, key);
    const char *end = line != NULL ? line + strcspn(line, "\n") : NULL;
    for (const char *p = line; p != NULL && (p = strstr(p, word)) != NULL && p < end; p += n) {
        if (p[-1] == ' ' && (p[n] == ' ' || p[n] == '\n' || p[n] == '\0')) {
            return true;
        }
    }
    return false;
}

/* ---- processor --------------------------------------------------------------------------------------------------- */

static void check_cpu(dt_doctor *d)
{
    char name[LINE_BYTES] = "unknown processor";
    char *info = read_text(d, "/proc/cpuinfo");
    if (info == NULL) {
        return;
    }
    (void)find_value_of_key(info, "model name", name);
    const char *bf16 = has_listed_word(info, "flags", "amx_bf16")      ? "AMX"
                       : has_listed_word(info, "flags", "avx512_bf16") ? "AVX-512"
                                                                       : NULL;
    const bool has_avx2 = has_listed_word(info, "flags", "avx2");
    const dt_cpu_isa_id used = dt_cpu_isa_index(), best = dt_cpu_isa_best();
    dt_verdict v = DT_VERDICT_WARN;
    const char *remedy = "";
    if (used < best) {
        remedy = "unset DTRAIN_CPU_ISA, which restricts the kernels";
    } else if (used == DT_CPU_ISA_BASE && has_avx2) {
        remedy = "build dtrain with a compiler that supports -mavx2; its kernels lack it";
    } else if (used == DT_CPU_ISA_BASE) {
        remedy = "a processor with AVX2 or AVX-512 is several times faster";
    } else {
        v = DT_VERDICT_PASS;
    }
    dt_doctor_add_line(d, v, "processor", remedy, "%s; kernels for %s; %s%s", name, dt_cpu_isa(),
                       bf16 != NULL ? "bf16 by " : "no bf16", bf16 != NULL ? bf16 : " instructions");
    dt_free(info);
}

static void check_cores(dt_doctor *d)
{
    cpu_set_t set;
    const int n = sched_getaffinity(0, sizeof(set), &set) == 0 ? CPU_COUNT(&set) : 1;
    const double of_group = dt_limits_group_cores(d->root);
    double load = 0;
    if (of_group < n) {
        const int fit = of_group >= 1 ? (int)of_group : 1;
        char remedy[LINE_BYTES];
        snprintf(remedy, sizeof(remedy), "use --threads %d, or raise the limit of the container", fit);
        dt_doctor_add_line(d, DT_VERDICT_WARN, "cores", remedy,
                           "%d, but the control group limits them to the time of %.2f", n, of_group);
    } else {
        dt_doctor_add_line(d, DT_VERDICT_PASS, "cores", "", "%d", n);
    }
    char *text = read_text(d, "/proc/loadavg");
    if (text != NULL && sscanf(text, "%lf", &load) == 1) {
        const bool is_busy = load > n;
        dt_doctor_add_line(d, is_busy ? DT_VERDICT_WARN : DT_VERDICT_PASS, "load",
                           is_busy ? "wait for other work to end, or use fewer --threads; results do not depend on it"
                                   : "",
                           "%.2f in the last minute, on %d core%s", load, n, n == 1 ? "" : "s");
    }
    dt_free(text);
}

/* ---- memory and limits ------------------------------------------------------------------------------------------- */

static void check_memory(dt_doctor *d)
{
    dt_limits r;
    if (!dt_limits_read(d->root, &r)) {
        dt_doctor_add_line(d, DT_VERDICT_WARN, "memory", "mount /proc", "the system does not report free memory");
        return;
    }
    const bool is_mapped = r.address < r.memory;
    const double room = (double)(is_mapped ? r.address : r.memory);
    const dt_verdict v = room < MEMORY_FAIL ? DT_VERDICT_FAIL : room < MEMORY_WARN ? DT_VERDICT_WARN : DT_VERDICT_PASS;
    dt_doctor_add_line(
        d, v, "memory",
        v == DT_VERDICT_PASS ? "" : "free some, or take a smaller model (--profile memory); --dry-run prints the need",
        "%.1f GiB free, as %s allows", room / 0x1p30, is_mapped ? r.address_by : r.by);
}

static void check_limits(dt_doctor *d)
{
    enum { FEW_FILES = 256 };
    struct rlimit files;
    struct statvfs shm;
    dt_str path = {0};
    if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
        const bool is_few = files.rlim_cur != RLIM_INFINITY && files.rlim_cur < FEW_FILES;
        dt_doctor_add_line(d, is_few ? DT_VERDICT_WARN : DT_VERDICT_PASS, "open files", is_few ? "ulimit -n 1024" : "",
                           "%llu allowed", (unsigned long long)files.rlim_cur);
    }
    dt_str_addf(&path, "%s/dev/shm", d->root);
    const bool is_there = statvfs(dt_str_text(&path), &shm) == 0;
    const double room = is_there ? (double)shm.f_bavail * (double)shm.f_frsize : 0;
    dt_doctor_add_line(
        d, room < SHM_WARN ? DT_VERDICT_WARN : DT_VERDICT_PASS, "shared memory",
        room < SHM_WARN ? "mount a larger /dev/shm (docker run --shm-size=1g); processes communicate through it" : "",
        "%.0f MiB in /dev/shm", room / MIB);
    dt_str_fini(&path);
}

static void check_variables(dt_doctor *d)
{
    const char *faults = getenv("DTRAIN_FAULT"), *config = getenv("DTRAIN_CONFIG");
    if (faults != NULL && *faults != '\0') {
        dt_doctor_add_line(d, DT_VERDICT_WARN, "DTRAIN_FAULT", "unset DTRAIN_FAULT", "is \"%s\": faults are injected",
                           faults);
    }
    if (config != NULL && *config != '\0') {
        const bool is_there = dt_fs_is_file(config);
        dt_doctor_add_line(d, is_there ? DT_VERDICT_PASS : DT_VERDICT_FAIL, "DTRAIN_CONFIG",
                           is_there ? "" : "unset DTRAIN_CONFIG, or name a file", "%s%s", config,
                           is_there ? "" : " does not exist");
    }
}

void dt_doctor_check_machine(dt_doctor *d)
{
    check_cpu(d);
    check_cores(d);
    check_memory(d);
    check_limits(d);
    check_variables(d);
}

/* ---- programs ---------------------------------------------------------------------------------------------------- */

/* The first line that "<name> --version" prints; false when PATH has no such program. */
static bool read_program_version(const char *name, char line[LINE_BYTES])
{
    char command[64];
    snprintf(command, sizeof(command), "%s --version 2>/dev/null", name);
    FILE *p = popen(command, "r");
    line[0] = '\0';
    if (p == NULL) {
        return false;
    }
    if (fgets(line, LINE_BYTES, p) == NULL) {
        line[0] = '\0';
    }
    line[strcspn(line, "\n")] = '\0';
    char rest[LINE_BYTES];
    while (fgets(rest, sizeof(rest), p) != NULL) {
        /* so that the program is not cut off */
    }
    const int status = pclose(p);
    return status == 0 && line[0] != '\0';
}

void dt_doctor_check_tools(dt_doctor *d)
{
    char line[LINE_BYTES];
    if (!read_program_version("mpirun", line)) {
        dt_doctor_add_line(d, DT_VERDICT_WARN, "MPI", "apt-get install openmpi-bin, to train with several processes",
                           "no mpirun in PATH; one process trains without it");
    } else {
        dt_doctor_add_line(d, DT_VERDICT_PASS, "MPI", "", "%s", line);
    }
}

/* ---- a verdict, for people or for scripts ------------------------------------------------------------------------ */

static const char *const verdict_name[DT_VERDICT_END] = {
    [DT_VERDICT_PASS] = "PASS", [DT_VERDICT_WARN] = "WARN", [DT_VERDICT_FAIL] = "FAIL"};

void dt_doctor_add_line(dt_doctor *d, dt_verdict v, const char *check, const char *remedy, const char *fmt, ...)
{
    dt_str text = {0};
    va_list ap;
    va_start(ap, fmt);
    dt_str_addv(&text, fmt, ap);
    va_end(ap);
    if (text.text != NULL) {
        dt_mask_text(text.text, true);
    }
    d->n[v]++;
    if (d->json != NULL) {
        dt_json_obj(d->json, NULL);
        dt_json_str(d->json, "check", check);
        dt_json_str(d->json, "verdict", verdict_name[v]);
        dt_json_str(d->json, "text", dt_str_text(&text));
        dt_json_str(d->json, "remedy", remedy);
        dt_json_end(d->json, '}');
    } else if (v != DT_VERDICT_PASS || !d->is_quiet) {
        dt_str_addf(d->out, "%s  %-14s %s\n", verdict_name[v], check, dt_str_text(&text));
        if (*remedy != '\0') {
            dt_str_addf(d->out, "%21s-> %s\n", "", remedy);
        }
    }
    dt_str_fini(&text);
}
