/* SPDX-License-Identifier: Apache-2.0
 *
 * See processes.h.
 */
#include <config.h>

#include "run/rank_processes.h"

#include "engine/backend/kernel.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/exit.h"
#include "base/fault.h"
#include "base/fs.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "config/schema.h"
#include "comm/launch/launch.h"
#include "run/resume.h"
#include "run/run_meta.h"
#include "run/rundir.h"
#include "state/checkpoint/checkpoint.h"

#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/statvfs.h>
#include <unistd.h>

/* ---- the launcher ------------------------------------------------------------------------------------------------ */

/* Is argv[i] this option of ours, given once or again? How many words it takes, as cli.c reads them; 0: it is another
 * one. */
static int count_option_words(const dt_args *a, int i, const char *name, bool may_lack_value)
{
    const char *word = a->argv[i];
    const size_t bytes = strlen(name);
    if (strncmp(word, name, bytes) != 0 || (word[bytes] != '\0' && word[bytes] != '=')) {
        return 0;
    }
    const bool is_last = i + 1 >= a->argc, has_value = word[bytes] == '=';
    return has_value || is_last || (may_lack_value && a->argv[i + 1][0] == '-') ? 1 : 2;
}

/* What each process is passed: all but the launcher's own options, and --resume, which is added at each restart. */
static uint32_t list_common_words(const dt_args *a, const char **out)
{
    static const char *const ours[] = {"--nproc", "--nnodes", "--max-restarts", "--hostfile", "--resume"};
    uint32_t n = 0;
    for (int i = 1; i < a->argc;) {
        int skipped = 0;
        for (size_t k = 0; k < sizeof(ours) / sizeof(ours[0]) && skipped == 0; k++) {
            skipped = count_option_words(a, i, ours[k], strcmp(ours[k], "--resume") == 0);
        }
        if (skipped == 0) {
            out[n++] = a->argv[i++];
        }
        i += skipped;
    }
    return n;
}

static dt_status find_program(char path[PATH_MAX])
{
    const ssize_t n = readlink("/proc/self/exe", path, PATH_MAX - 1);
    if (n <= 0) {
        return DT_FAIL(DT_EIO, "cannot find this program again below /proc");
    }
    path[n] = '\0';
    return DT_OK;
}

static int64_t newest_step(const char *run)
{
    dt_ckpt_info info;
    const dt_status st = dt_ckpt_inspect(run, &info);
    dt_error_clear();
    return st == DT_OK ? (int64_t)info.step : -1;
}

static bool parse_number(const char *text, size_t bytes, uint32_t *out)
{
    char number[32] = "";
    int64_t v = 0;
    snprintf(number, sizeof(number), "%.*s", (int)(bytes < sizeof(number) ? bytes : 0), text);
    if (!dt_parse_whole(number, &v) || v < 1) {
        return false;
    }
    *out = v <= UINT32_MAX ? (uint32_t)v : UINT32_MAX;
    return true;
}

dt_status dt_processes_parse_range(const char *option, const char *text, dt_launch_range *out)
{
    *out = (dt_launch_range){0, 0};
    if (text == NULL) {
        return DT_OK;
    }
    const char *colon = strchr(text, ':');
    dt_launch_range r;
    if (!parse_number(text, colon != NULL ? (size_t)(colon - text) : strlen(text), &r.min) ||
        !parse_number(colon != NULL ? colon + 1 : text, strlen(colon != NULL ? colon + 1 : text), &r.max)) {
        return DT_FAIL(DT_ECONFIG, "%s %s: expected a whole number of at least 1, or MIN:MAX of two", option, text);
    }
    if (r.min > r.max) {
        return DT_FAIL(DT_ECONFIG, "%s %s: the minimum %u is larger than the maximum %u; use %s %u:%u", option, text,
                       r.min, r.max, option, r.max, r.min);
    }
    if (r.max > DT_LAUNCH_MAX_PROCESSES) {
        return DT_FAIL(DT_ECONFIG, "%s %s: at most %d processes", option, text, DT_LAUNCH_MAX_PROCESSES);
    }
    *out = r;
    return DT_OK;
}

bool dt_processes_may_vary(void)
{
    const char *words = getenv(DT_LAUNCH_WORDS);
    const char *colon = words != NULL ? strchr(words, ':') : NULL,
               *file = words != NULL ? strstr(words, " --hostfile ") : NULL;
    return words != NULL && (strstr(words, " --nnodes ") != NULL || (colon != NULL && (file == NULL || colon < file)));
}

/* MIN of MIN:MAX, or N, among the launcher's words; 0: the option is not given. */
static uint32_t parse_minimum(const char *words, const char *option)
{
    const char *at = strstr(words, option), *file = strstr(words, " --hostfile ");
    return at != NULL && (file == NULL || at < file) ? (uint32_t)strtoul(at + strlen(option), NULL, 10) : 0;
}

uint32_t dt_processes_minimum(void)
{
    if (!dt_processes_may_vary()) {
        return 0;
    }
    const char *words = getenv(DT_LAUNCH_WORDS);
    const uint32_t processes = parse_minimum(words, " --nproc "), machines = parse_minimum(words, " --nnodes ");
    return processes > machines ? processes : machines;
}

dt_status dt_processes_launch(const dt_args *a, dt_launch_range processes, dt_launch_range machines, int *code_p)
{
    char program[PATH_MAX];
    int64_t restarts = DT_LAUNCH_MAX_RESTARTS;
    if (machines.max > 0 && a->hostfile == NULL) {
        return DT_FAIL(DT_ECONFIG, "--nnodes %s needs --hostfile FILE with one line per machine: node1 slots=4",
                       a->nnodes);
    }
    if (a->max_restarts != NULL && (!dt_parse_whole(a->max_restarts, &restarts) || restarts < 0)) {
        return DT_FAIL(DT_ECONFIG, "--max-restarts %s: expected a whole number of at least 0", a->max_restarts);
    }
    if (restarts > DT_LAUNCH_MOST_RESTARTS) {
        return DT_FAIL(DT_ECONFIG, "--max-restarts %s: at most %d", a->max_restarts, DT_LAUNCH_MOST_RESTARTS);
    }
    DT_TRY(find_program(program));
    dt_resume r;
    if (dt_resume_read(a, &r) < 0) { /* the processes look again, and report it */
        dt_error_clear();
    }
    const char **word = dt_alloc_n((size_t)a->argc + 1, sizeof(*word));
    if (word == NULL) {
        dt_resume_fini(&r);
        return DT_FAIL(DT_ENOMEM, "out of memory for a command line");
    }
    const dt_launch_desc d = {.processes = processes,
                              .machines = machines,
                              .max_restarts = (uint64_t)restarts,
                              .hostfile = a->hostfile,
                              .program = program,
                              .arg = word,
                              .n_arg = list_common_words(a, word),
                              .run_dir = a->run_dir,
                              .resume = !a->has_resume      ? NULL
                                        : a->resume != NULL ? a->resume
                                                            : "",
                              .stands = r.from != NULL ? r.run : NULL,
                              .newest_step = newest_step};
    char *left = NULL;
    dt_status st = dt_launch_run(&d, code_p, &left);
    if (left != NULL) {
        st = dt_run_meta_clear_end(left);
    }
    dt_free(left);
    dt_free(word);
    dt_resume_fini(&r);
    return st;
}

dt_status dt_processes_reject_single(const dt_args *a)
{
    const char *name = a->hostfile != NULL       ? "--hostfile"
                       : a->nnodes != NULL       ? "--nnodes"
                       : a->max_restarts != NULL ? "--max-restarts"
                                                 : NULL;
    return name == NULL
               ? DT_OK
               : DT_FAIL(
                     DT_ECONFIG,
                     "%s requires a run that dtrain starts on several processes: use --nproc N with N of at least 2",
                     name);
}

/* ---- one of several ---------------------------------------------------------------------------------------------- */

/* Open MPI gives each process of a machine 4 MiB of /dev/shm; with less it is slow, or ends a process in the middle. */
static dt_status check_shared_memory(const dt_launch *l)
{
    const uint64_t each = (uint64_t)4300 << 10;
    const char *transports = getenv("OMPI_MCA_btl");
    struct statvfs fs;
    const bool is_used = transports == NULL || strstr(transports, "vader") != NULL || strstr(transports, "sm") != NULL;
    if (l->n_local < 2 || !is_used || statvfs("/dev/shm", &fs) != 0) {
        return DT_OK;
    }
    const uint64_t bytes = (uint64_t)fs.f_blocks * fs.f_frsize;
    if (bytes >= l->n_local * each && !dt_fault("processes.shm")) {
        return DT_OK;
    }
    return DT_FAIL(DT_EUNSUPPORTED,
                   "/dev/shm holds %.1f MB, %u processes of this machine need %.1f MB of it: make it larger (in a "
                   "container --shm-size=%uM), or start fewer",
                   (double)bytes / 1e6, l->n_local, (double)(l->n_local * each) / 1e6, l->n_local * 5 + 16);
}

/* Does what is sent arrive, whole and from the right rank? A known sum of all ranks' known words. */
static dt_status check_received_words(dt_comm *c, uint32_t *word)
{
    enum { WORDS = 1024 };
    const uint32_t size = dt_comm_size(c), rank = dt_comm_rank(c);
    uint32_t *mine = word + (size_t)size * WORDS;
    for (uint32_t i = 0; i < WORDS; i++) {
        mine[i] = rank * WORDS + i;
    }
    mine[7] += dt_fault("processes.word");
    DT_TRY(dt_comm_all_gather(c, mine, WORDS * sizeof(*mine), word));
    uint64_t sum = 0;
    for (uint32_t r = 0; r < size; r++) {
        for (uint32_t i = 0; i < WORDS; i++) {
            sum += word[r * WORDS + i];
            if (word[r * WORDS + i] != r * WORDS + i) {
                return DT_FAIL(DT_ECOMM,
                               "self-check: rank %u got %u from rank %u instead of %u: the network or the MPI library "
                               "corrupts messages",
                               rank, word[r * WORDS + i], r, r * WORDS + i);
            }
        }
    }
    const uint64_t n = (uint64_t)size * WORDS;
    return sum == n * (n - 1) / 2 ? DT_OK : DT_FAIL(DT_ECOMM, "self-check: a sum over all ranks is wrong");
}

static dt_status check_communication(dt_comm *c)
{
    enum { WORDS = 1024 };
    const double begin = dt_clock_s();
    uint32_t *word = dt_alloc_n(((size_t)dt_comm_size(c) + 1) * WORDS, sizeof(*word));
    dt_status st =
        word != NULL ? check_received_words(c, word) : DT_FAIL(DT_ENOMEM, "out of memory for a check of the network");
    dt_free(word);
    st = dt_comm_agree(c, st);
    if (st == DT_OK && dt_comm_rank(c) == 0) {
        dt_log(DT_LOG_INFO, "%u process%s on %u machine%s, %s; messages arrive intact (%.3f s)", dt_comm_size(c),
               dt_comm_size(c) == 1 ? "" : "es", dt_processes_n_hosts(c), dt_processes_n_hosts(c) == 1 ? "" : "s",
               dt_processes_library(c), dt_clock_s() - begin);
    }
    return st;
}

static bool is_single_process(const dt_launch *l)
{
    return l->size == 1 && !l->is_supervised;
}

dt_status dt_processes_begin(const dt_launch *l, dt_launch_range n, dt_comm **out_p)
{
    char prefix[32] = "";
    if (is_single_process(l)) {
        return DT_OK;
    }
    if (n.max > 1 && (l->size < n.min || l->size > n.max)) {
        return DT_FAIL(DT_ECONFIG, "--nproc %u:%u, but %s started %u processes: leave --nproc out", n.min, n.max, l->by,
                       l->size);
    }
    if (l->rank > 0) {
        dt_log_level_set(DT_LOG_ERROR);
    }
    prctl(PR_SET_PDEATHSIG, SIGTERM); /* no process is left when mpirun is killed */
    DT_TRY(check_shared_memory(l));
    DT_TRY(dt_processes_join(l, out_p));
    if (dt_comm_rank(*out_p) > 0) {
        snprintf(prefix, sizeof(prefix), "rank %u", dt_comm_rank(*out_p));
    }
    dt_log_prefix_set(prefix);
    return check_communication(*out_p);
}

enum { MOST_PLUGINS = 64 };

typedef struct rank_facts {
    char version[32], config[65];
    char device[64], cpu[32], bf16[32]; /* what it computes with; bf16: "none" where no phase has such products */
    char libraries[64], uuid[48];       /* of a GPU: what else its bits rest on, and which one it is; "" without one */
    uint32_t is_exact;                  /* the ranks' results are promised to have the same bits in some phase */
    uint32_t n_devices;                 /* that it sees */
    uint64_t max_steps, program;
    uint64_t words[5]; /* hashes, of word_name below */
    uint64_t weights;  /* hash of comm.shard_weights of all phases: the configuration's hash is without */
    uint32_t n_plugins;
    struct {
        char name[40];
        uint64_t hash;
    } plugin[MOST_PLUGINS]; /* in the order of their names */
} rank_facts;

static const char *const word_name[] = {"--run-dir", "--name", "--resume", "--phase", "--init-from"};

static int compare_names(const void *x, const void *y)
{
    return strcmp(x, y); /* the name comes first */
}

static void describe_plugins(const dt_loader *l, rank_facts *out)
{
    for (uint32_t i = 0; i < dt_loader_count_plugins(l) && out->n_plugins < MOST_PLUGINS; i++) {
        const dt_loaded_plugin *p = dt_loader_plugin_at(l, i);
        snprintf(out->plugin[out->n_plugins].name, sizeof(out->plugin[0].name), "%s", p->desc.name);
        out->plugin[out->n_plugins].hash = dt_hash64(p->sha256, sizeof(p->sha256), 0);
        out->n_plugins++;
    }
    qsort(out->plugin, out->n_plugins, sizeof(out->plugin[0]), compare_names);
}

static dt_status hash_program(uint64_t *out_p)
{
    char path[PATH_MAX];
    const void *text = NULL;
    size_t bytes = 0;
    DT_TRY(find_program(path));
    DT_TRY(dt_fs_map(path, &text, &bytes));
    *out_p = dt_hash64(text, bytes, 0);
    dt_fs_unmap(text, bytes);
    return DT_OK;
}

/* The first plugin that is not the same; NULL: all are. */
static const char *find_different_plugin(const rank_facts *x, const rank_facts *y)
{
    const uint32_t n = x->n_plugins > y->n_plugins ? x->n_plugins : y->n_plugins;
    for (uint32_t i = 0; i < n; i++) {
        const bool is_same = i < x->n_plugins && i < y->n_plugins && x->plugin[i].hash == y->plugin[i].hash &&
                             strcmp(x->plugin[i].name, y->plugin[i].name) == 0;
        if (!is_same) {
            return i < x->n_plugins ? x->plugin[i].name : y->plugin[i].name;
        }
    }
    return NULL;
}

/* Ranks that round differently would drift apart. */
static dt_status compare_arithmetic(const rank_facts *one, const rank_facts *other, uint32_t r)
{
    const bool is_gpu = one->uuid[0] != '\0' && other->uuid[0] != '\0', is_free = is_gpu && one->is_exact == 0;
    const struct {
        const char *what, *mine, *theirs, *remedy;
    } parts[] = {
        {"on", one->device, is_free ? one->device : other->device,
         "use one kind of device on all machines, or engine.device=cpu"},
        {"with", one->libraries, is_free ? one->libraries : other->libraries,
         "install the same driver and CUDA on all machines, or engine.device=cpu"},
        {"in the arithmetic class", one->cpu, other->cpu,
         "use processors with AVX2 and FMA on all machines (with AVX-512 or not, they are all of class fma), and the "
         "same DTRAIN_CPU_ISA or none"},
        {"products in bf16 with", one->bf16, other->bf16,
         "set amp.enabled=false, or DTRAIN_CPU_ISA=avx512_bf16 on all machines if all support it"}};
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        if (strcmp(parts[i].mine, parts[i].theirs) != 0) {
            return DT_FAIL(DT_ECONFIG, "rank %u computes %s %s, rank 0 %s: ranks that round differently diverge; %s", r,
                           parts[i].what, parts[i].theirs, parts[i].mine, parts[i].remedy);
        }
    }
    return DT_OK;
}

static dt_status compare_rank_facts(uint32_t r, const rank_facts *first, const rank_facts *other)
{
    const char *plugin = find_different_plugin(first, other);
    const char *what = strcmp(other->version, first->version) != 0 ? "version of dtrain"
                       : other->program != first->program          ? "program (the files of dtrain differ)"
                       : strcmp(other->config, first->config) != 0 ? "configuration (files, DTRAIN__ variables, --set)"
                       : other->max_steps != first->max_steps      ? "number of --max-steps"
                                                                   : NULL;
    for (size_t i = 0; i < sizeof(word_name) / sizeof(word_name[0]) && what == NULL; i++) {
        what = other->words[i] != first->words[i] ? word_name[i] : NULL;
    }
    if (what == NULL && other->weights != first->weights) { /* those of the phases that both train */
        what = "comm.shard_weights";
    }
    if (what != NULL) {
        return DT_FAIL(DT_ECONFIG,
                       "rank %u was started with a different %s than rank 0: start all with the same command", r, what);
    }
    if (plugin != NULL) {
        return DT_FAIL(DT_ECONFIG,
                       "rank %u has a different plugin %s than rank 0: install the same build on all machines", r,
                       plugin);
    }
    return DT_OK;
}

/* Two ranks on a GPU would take turns on it, and half of its memory each. */
static dt_status compare_device_places(const rank_facts *all, uint32_t r)
{
    for (uint32_t k = 0; k < r; k++) {
        if (all[r].uuid[0] != '\0' && strcmp(all[k].uuid, all[r].uuid) == 0) {
            return DT_FAIL(DT_ECONFIG,
                           "ranks %u and %u both compute on %s (%s), and each rank needs a GPU of its own; rank %u "
                           "sees %u: start at most as many processes on a machine as it has GPUs, with "
                           "engine.device=cuda, or set engine.device=cpu",
                           k, r, all[r].uuid, all[r].device, r, all[r].n_devices);
        }
    }
    return DT_OK;
}

static dt_status compare_all_ranks(dt_comm *c, const rank_facts *mine, rank_facts *all)
{
    DT_TRY(dt_comm_all_gather(c, mine, sizeof(*mine), all));
    for (uint32_t r = 1; r < dt_comm_size(c); r++) {
        DT_TRY(compare_rank_facts(r, &all[0], &all[r]));
        DT_TRY(compare_arithmetic(&all[0], &all[r], r));
        DT_TRY(compare_device_places(all, r));
    }
    return DT_OK;
}

static dt_status describe_device(const dt_session_device *d, rank_facts *out)
{
    dt_device_versions v;
    snprintf(out->device, sizeof(out->device), "%s", d->ops != NULL ? d->ops->info(d->handle)->name : "the processor");
    if (d->ops == NULL) {
        return DT_OK;
    }
    d->ops->versions(&v);
    snprintf(out->libraries, sizeof(out->libraries), "driver %u, CUDA %u, cuBLASLt %u", v.driver, v.runtime, v.blas);
    snprintf(out->uuid, sizeof(out->uuid), "%s", d->ops->info(d->handle)->uuid);
    return d->ops->count(&out->n_devices);
}

/* out must be zeroed: all its bytes are compared and sent. */
static dt_status describe_rank(const dt_session *s, const dt_args *a, uint64_t max_steps, rank_facts *out)
{
    const char *const word[] = {a->run_dir, a->name, a->resume, a->phase, a->init_from};
    const dt_session_device *d = &s->device;
    snprintf(out->version, sizeof(out->version), "%s", PACKAGE_VERSION);
    DT_TRY(describe_device(d, out));
    snprintf(out->cpu, sizeof(out->cpu), "%s", dt_cpu_arithmetic_class());
    snprintf(out->bf16, sizeof(out->bf16), "none");
    for (int64_t i = s->first; i < s->last && d->ops == NULL; i++) {
        if (s->opts[i].amp.enabled) {
            snprintf(out->bf16, sizeof(out->bf16), "%s", dt_cpu_bf16_isa());
        }
    }
    for (int64_t i = s->first; i < s->last; i++) {
        const dt_comm_opts *comm = &s->opts[i].comm;
        out->is_exact |= s->opts[i].engine.reduction == DT_REDUCTION_EXACT;
        for (uint32_t k = 0; k < comm->n_weights; k++) {
            const char *weight = comm->shard_weights[k];
            out->weights = dt_hash64(weight, strlen(weight) + 1, out->weights + (uint64_t)i);
        }
    }
    out->max_steps = max_steps;
    for (size_t i = 0; i < sizeof(word) / sizeof(word[0]); i++) {
        out->words[i] = word[i] != NULL ? dt_hash64(word[i], strlen(word[i]), 1) : 0;
    }
    describe_plugins(s->loader, out);
    DT_TRY(hash_program(&out->program));
    return dt_config_hash(s->config, out->config);
}

dt_status dt_processes_check_same_launch(dt_comm *c, const dt_session *s, const dt_args *a, uint64_t max_steps)
{
    rank_facts *all = dt_alloc_n(dt_comm_size(c) + (size_t)1, sizeof(*all));
    dt_status st = all != NULL ? describe_rank(s, a, max_steps, all + dt_comm_size(c))
                               : DT_FAIL(DT_ENOMEM, "out of memory for %u ranks", dt_comm_size(c));
    st = dt_comm_agree(c, st);
    if (st == DT_OK) {
        st = compare_all_ranks(c, all + dt_comm_size(c), all);
    }
    dt_free(all);
    return st == DT_ECONFIG ? dt_comm_agree(c, st) : st;
}

void dt_processes_list_command_words(const dt_comm *c, char *before, size_t n_before, char *after, size_t n_after)
{
    const char *words = getenv(DT_LAUNCH_WORDS);
    dt_launch l;
    before[0] = after[0] = '\0';
    if (c != NULL && words != NULL) {
        snprintf(after, n_after, "%s", words);
    } else if (c != NULL && dt_launch_detect(&l)) {
        snprintf(before, n_before, "%s -n %u ", l.by, l.size);
    }
}

int dt_processes_log_level(const dt_comm *c, dt_status st)
{
    return c == NULL || dt_comm_rank(c) == 0 || st == DT_ECOMM ? DT_LOG_ERROR : DT_LOG_WARN;
}

dt_status dt_processes_end(const dt_launch *l, dt_comm *c, dt_status st, int *code_p)
{
    if (is_single_process(l)) {
        return st;
    }
    if (st < 0) {
        *code_p = dt_exit_code(st);
        if (c != NULL || l->rank == 0 || l->local_rank == 0) { /* what keeps all from joining is said once a machine */
            dt_log_lines(dt_processes_log_level(c, st), dt_error_text());
        }
        dt_error_clear();
    }
    if (c != NULL) {
        const bool is_supervised = dt_processes_board(c) != NULL;
        dt_processes_finalize(c, *code_p);
        if (is_supervised && *code_p == DT_EXIT_INTERRUPTED) {
            *code_p = DT_EXIT_DONE; /* the launcher reads the other one on the board */
        }
    }
    return DT_OK;
}
