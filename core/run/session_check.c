/* SPDX-License-Identifier: Apache-2.0
 *
 * What a session's configuration requires that this machine, or this start, does not have; see session_parts.h.
 */
#include <config.h>

#include "run/rank_processes.h"
#include "run/session_parts.h"

#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "comm/tree.h"
#include "config/mix.h"
#include "plan/machine/limits.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* What the configuration requires, and how the processes were started. needs_several: one process may not do for what
 * was written down for several. */
static dt_status check_backend(const dt_session *s, int64_t phase, uint32_t backend, bool needs_several)
{
    const bool is_several = s->is_job;
    if (is_several && (backend == DT_COMM_NULL || backend == DT_COMM_SIM)) {
        return DT_FAIL(DT_ECONFIG,
                       "%u processes were started to train together, but comm.backend = \"%s\" of phase %lld means one "
                       "process; use --set comm.backend=auto --set comm.ranks=1",
                       s->n_processes, backend == DT_COMM_NULL ? "null" : "sim", (long long)phase + 1);
    }
    if (needs_several && !is_several && (backend == DT_COMM_MPI || backend == DT_COMM_NCCL)) {
        return DT_FAIL(DT_ECONFIG,
                       "comm.backend = \"%s\" of phase %lld, but this process was started alone; start several with "
                       "--nproc N, mpirun or srun, or leave comm.backend at \"auto\"",
                       backend == DT_COMM_MPI ? "mpi" : "nccl", (long long)phase + 1);
    }
    return DT_OK;
}

/* Processes that have to take part; of MIN:MAX a phase without work for all of them continues on fewer. */
static uint32_t count_required_ranks(const dt_session *s)
{
    const uint32_t least = s->is_job ? dt_processes_minimum() : 0;
    return least > 0 ? least : s->n_processes > s->ranks ? s->n_processes : s->ranks;
}

uint32_t dt_session_most_ranks(const dt_session *s, int64_t phase, bool collects)
{
    const int64_t shards = s->opts[phase].data.shards, instances = s->opts[phase].env.instances;
    return (uint32_t)(collects && instances < shards ? instances : shards);
}

uint32_t dt_session_count_ranks(const dt_session *s, int64_t phase, bool collects)
{
    const uint32_t all = s->n_processes > s->ranks ? s->n_processes : s->ranks;
    const uint32_t least = s->is_job ? dt_processes_minimum() : 0; /* 0: their number is fixed */
    const uint32_t most = dt_session_most_ranks(s, phase, collects);
    return least > 0 && most >= least && most < all ? most : all;
}

dt_status dt_session_check_instances(const dt_session *s, int64_t phase)
{
    const uint32_t ranks = count_required_ranks(s);
    const int64_t instances = s->opts[phase].env.instances;
    return instances >= ranks ? DT_OK
                              : DT_FAIL(DT_ECONFIG,
                                        "env.instances = %lld is less than the %u ranks; every rank needs at least "
                                        "one: raise env.instances, or use fewer ranks",
                                        (long long)instances, ranks);
}

/* A rank with nothing to compute could only wait. */
static dt_status check_shards(const dt_session *s, int64_t phase, uint32_t ranks)
{
    const int64_t shards = s->opts[phase].data.shards;
    if (ranks <= (uint64_t)shards) {
        return DT_OK;
    }
    return DT_FAIL(DT_ECONFIG,
                   "%u ranks share data.shards = %lld shards of a batch in phase %lld; every rank needs at least one: "
                   "start at most %lld, or raise data.shards, which changes results as data.batch does",
                   ranks, (long long)shards, (long long)phase + 1, (long long)shards);
}

static dt_status check_half_sums(int64_t phase, const dt_comm_opts *comm, const dt_engine_opts *engine)
{
    if (comm->wire == DT_HALF_NONE || engine->reduction == DT_REDUCTION_EXACT) {
        return DT_OK;
    }
    return DT_FAIL(DT_ECONFIG,
                   "comm.wire = \"%s\" with engine.reduction = \"fast\" in phase %lld: the ranks' library sums fp32; "
                   "set comm.wire = \"fp32\", or engine.reduction = \"exact\"",
                   comm->wire == DT_HALF_BF16 ? "bf16" : "fp16", (long long)phase + 1);
}

/* More threads than cores take turns: the same result, later. Far more of them are a slip of the hand, or the
 * configuration of another machine. */
static dt_status check_thread_count(const dt_session *s, int64_t phase, const char *key, int64_t n, bool *has_warned)
{
    enum { A_CORE = 8, ALWAYS = 32 };
    const int64_t cores = dt_limits_count_cores(""), most = A_CORE * cores > ALWAYS ? A_CORE * cores : ALWAYS;
    const char *plural = cores == 1 ? "" : "s";
    if (n > most) {
        return DT_FAIL(DT_ECONFIG,
                       "phase %lld (%s): %s = %lld, but this process may use %lld core%s; at most %lld are taken "
                       "there, and 0 adapts to the machine",
                       (long long)phase + 1, s->phase[phase]->desc.id, key, (long long)n, (long long)cores, plural,
                       (long long)most);
    }
    if (n > cores && !*has_warned) {
        *has_warned = true;
        dt_log(DT_LOG_WARN,
               "%s = %lld, but this process may use %lld core%s: threads take turns, which is slower than %lld of them "
               "and changes no result",
               key, (long long)n, (long long)cores, plural, (long long)cores);
    }
    return DT_OK;
}

dt_status dt_session_check(const dt_session *s, bool needs_several)
{
    bool has_warned = false;
    for (int64_t i = s->first; i < s->last; i++) {
        const dt_sections *o = &s->opts[i];
        DT_TRY(check_backend(s, i, o->comm.backend, needs_several));
        DT_TRY(check_shards(s, i, count_required_ranks(s)));
        DT_TRY(check_half_sums(i, &o->comm, &o->engine));
        DT_TRY(check_thread_count(s, i, "engine.threads", o->engine.threads, &has_warned));
        if (o->env.isolation != DT_ISOLATION_PROCESS) { /* each process may have an instance that computes for long */
            DT_TRY(check_thread_count(s, i, "env.workers", o->env.workers, &has_warned));
        }
    }
    return DT_OK;
}

static dt_status check_weights(const dt_session *s, int64_t phase, uint32_t ranks)
{
    const dt_comm_opts *comm = &s->opts[phase].comm;
    if (comm->n_weights == 0) {
        return DT_OK;
    }
    if (dt_processes_may_vary()) {
        return DT_FAIL(
            DT_ECONFIG,
            "comm.shard_weights of phase %lld gives each rank its part, and with MIN:MAX the number of ranks "
            "changes: use --set comm.shard_weights=, or a fixed --nproc",
            (long long)phase + 1);
    }
    if (comm->n_weights != ranks) {
        return DT_FAIL(DT_ECONFIG,
                       "comm.shard_weights of phase %lld has %u number%s, and %u rank%s train%s: give one per rank, or "
                       "use --set comm.shard_weights= to distribute shards evenly",
                       (long long)phase + 1, comm->n_weights, comm->n_weights == 1 ? "" : "s", ranks,
                       ranks == 1 ? "" : "s", ranks == 1 ? "s" : "");
    }
    if (s->opts[phase].engine.reduction == DT_REDUCTION_FAST) {
        return DT_FAIL(DT_ECONFIG,
                       "comm.shard_weights with engine.reduction = \"fast\" in phase %lld: there weights would change "
                       "results; set engine.reduction = \"exact\", or no weights",
                       (long long)phase + 1);
    }
    uint32_t *weight = dt_alloc_n(2 * (size_t)ranks + 1, sizeof(*weight));
    if (weight == NULL) {
        return DT_FAIL(DT_ENOMEM, "out of memory for the weights of %u ranks", ranks);
    }
    dt_comm_list_weights(comm, weight);
    const dt_status st = dt_tree_partition((uint32_t)s->opts[phase].data.shards, ranks, weight, weight + ranks);
    dt_free(weight);
    return st < 0 ? DT_FAIL(DT_ECONFIG, "comm.shard_weights of phase %lld: %s", (long long)phase + 1, dt_error_text())
                  : DT_OK;
}

dt_status dt_session_check_shard_weights(const dt_session *s)
{
    for (int64_t i = s->first; i < s->last; i++) {
        DT_TRY(check_weights(s, i, s->n_processes > s->ranks ? s->n_processes : s->ranks));
    }
    return DT_OK;
}

/* A component that the user named, not a default of a plugin. */
static dt_status check_component_name(const dt_session *s, int64_t phase, uint32_t kind, const char *key,
                                      const char *role)
{
    const char *id = NULL;
    const dt_loaded *found = NULL;
    dt_origin o;
    dt_str where = {0};
    if (dt_config_get(s->config, phase, key, &id, &o) != DT_OK || id[0] == '\0' || o.layer <= DT_FROM_PLUGIN) {
        dt_error_clear();
        return DT_OK;
    }
    dt_origin_text(&o, &where);
    dt_status st = dt_loader_find(s->loader, kind, id, &found);
    if (st == DT_OK && role != NULL && (found->desc.role == NULL || strcmp(found->desc.role, role) != 0)) {
        st = DT_FAIL(DT_ECONFIG, "it is \"%s\", but %s is a model for the role %s", id, id,
                     found->desc.role != NULL ? found->desc.role : "(none)");
    }
    if (st < 0) {
        st = DT_CONTEXT(st, "phase %lld (%s): %s from %s", (long long)phase + 1, s->phase[phase]->desc.id, key,
                        dt_str_text(&where));
    }
    dt_str_fini(&where);
    return st;
}

static dt_status check_mix(const dt_session *s, int64_t phase)
{
    const char *id = NULL;
    const dt_loaded *unused = NULL;
    for (uint32_t k = 0; (id = dt_config_mix_id(s->config, phase, k)) != NULL; k++) {
        const dt_status st = dt_loader_find(s->loader, DT_KIND_ENV, id, &unused);
        if (st < 0) {
            return DT_CONTEXT(st, "phase %lld (%s): env.mix, entry %u, \"%s\"", (long long)phase + 1,
                              s->phase[phase]->desc.id, k + 1, dt_config_mix_entry(s->config, phase, k));
        }
    }
    return DT_OK;
}

/* Only what is evaluated can reach a target. */
static dt_status check_target(const dt_session *s, int64_t phase, const char *metric)
{
    const bool has_evaluation = s->phase[phase]->ops.phase.evaluate != NULL;
    if (metric[0] == '\0' || (has_evaluation && s->opts[phase].training.eval_interval > 0)) {
        return DT_OK;
    }
    return DT_FAIL(
        DT_ECONFIG, "phase %lld (%s): stop.metric = \"%s\": %s", (long long)phase + 1, s->phase[phase]->desc.id, metric,
        has_evaluation ? "training.eval_interval = 0 disables evaluation; set training.eval_interval to at least 1"
                       : "the phase has no evaluation");
}

/* Is "checkpoint.best_by=name" a default of the phase? A run's config.cfg, used as a configuration, has it, too. */
static bool is_default_best(const dt_component *phase, const char *name)
{
    static const char key[] = "checkpoint.best_by=";
    const char *const *one = phase->extension != NULL ? phase->extension(DT_EXT_DEFAULTS) : NULL;
    for (; one != NULL && *one != NULL; one++) {
        if (strncmp(*one, key, sizeof(key) - 1) == 0 && strcmp(*one + sizeof(key) - 1, name) == 0) {
            return true;
        }
    }
    return false;
}

bool dt_session_has_best_by(const dt_session *s, int64_t phase)
{
    const char *name = NULL;
    dt_origin origin;
    if (dt_config_get(s->config, phase, "checkpoint.best_by", &name, &origin) != DT_OK) {
        dt_error_clear();
        return false;
    }
    return name[0] != '\0' && origin.layer > DT_FROM_RUN &&
           (origin.layer != DT_FROM_FILE || !is_default_best(&s->phase[phase]->desc, name));
}

/* What the user names is looked for in evaluations: there has to be one. */
static dt_status check_best_by(const dt_session *s, int64_t phase)
{
    const char *name = NULL;
    dt_origin origin;
    DT_TRY(dt_config_get(s->config, phase, "checkpoint.best_by", &name, &origin));
    if (!dt_session_has_best_by(s, phase)) {
        return DT_OK;
    }
    for (int64_t i = 0; i < s->n_phases; i++) {
        if (s->phase[i]->ops.phase.evaluate != NULL && s->opts[i].training.eval_interval > 0) {
            return DT_OK;
        }
    }
    return DT_FAIL(DT_ECONFIG,
                   "checkpoint.best_by = \"%s\": no phase is evaluated, so that no checkpoint is the best; set "
                   "training.eval_interval to at least 1, or checkpoint.best_by = \"\"",
                   name);
}

dt_status dt_session_check_names(const dt_session *s, bool is_fresh)
{
    for (int64_t i = s->first; i < s->last; i++) {
        const char *init = s->opts[i].phase.init;
        char key[128];
        const char *role[DT_CONFIG_MAX_ROLES];
        const uint32_t n_roles = dt_config_roles(s->config, role);
        for (uint32_t r = 0; r < n_roles; r++) {
            snprintf(key, sizeof(key), "models.%s", role[r]);
            DT_TRY(check_component_name(s, i, DT_KIND_MODEL, key, role[r]));
        }
        DT_TRY(check_component_name(s, i, DT_KIND_DATA, "data.source", NULL));
        DT_TRY(check_component_name(s, i, DT_KIND_ENV, "env.id", NULL));
        DT_TRY(check_mix(s, i));
        DT_TRY(check_target(s, i, s->opts[i].stop.metric));
        DT_TRY(is_fresh ? check_best_by(s, i) : DT_OK);
        const bool is_word = init[0] == '\0' || strcmp(init, "random") == 0 || strcmp(init, "previous") == 0;
        if (is_fresh && !is_word && access(init, F_OK) != 0) {
            return DT_FAIL(DT_ECONFIG,
                           "phase %lld (%s): init = \"%s\": no such file or folder; expected \"random\", "
                           "\"previous\", a run, a checkpoint or a .safetensors file",
                           (long long)i + 1, s->phase[i]->desc.id, init);
        }
    }
    return DT_OK;
}

/* Bounds of what a run's configuration may ask for when it is only evaluated; more is for the user to ask for. */
static const struct {
    const char *key;
    int64_t most;
} counts[] = {
    {"evaluation.episodes", 1000}, {"evaluation.max_steps", 1000000}, {"env.instances", 1024}, {"env.workers", 64}};

static dt_status limit_option(const dt_session *s, int64_t phase, const char *key, int64_t most)
{
    const char *text = NULL;
    dt_origin origin;
    int64_t value = 0;
    char path[96], number[24];
    if (dt_config_get(s->config, phase, key, &text, &origin) != DT_OK || origin.layer != DT_FROM_RUN ||
        !dt_parse_whole(text, &value) || value <= most) {
        dt_error_clear();
        return DT_OK;
    }
    dt_log(DT_LOG_WARN,
           "the run's configuration has %s = %lld, but at most %lld is accepted from there: it is %lld here; "
           "set another number yourself (--set %s=...)",
           key, (long long)value, (long long)most, (long long)most, key);
    snprintf(path, sizeof(path), "phases.%lld.%s", (long long)phase, key);
    snprintf(number, sizeof(number), "%lld", (long long)most);
    DT_TRY(dt_config_set_option(s->config, path, number, "the bound of values from a run"));
    return dt_config_sections(s->config, phase, &s->opts[phase]);
}

dt_status dt_session_limit_counts(const dt_session *s)
{
    for (int64_t i = s->first; i < s->last; i++) {
        for (size_t k = 0; k < sizeof(counts) / sizeof(counts[0]); k++) {
            DT_TRY(limit_option(s, i, counts[k].key, counts[k].most));
        }
    }
    return DT_OK;
}
