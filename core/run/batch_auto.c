/* SPDX-License-Identifier: Apache-2.0
 *
 * See batch_auto.h. Candidates are planned from the largest one down: phases differ in what they accept, and a plan
 * takes little.
 */
#include <config.h>

#include "run/batch_auto.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/mem.h"
#include "plan/forecast.h"
#include "plan/machine/limits.h"

#include <stdio.h>
#include <string.h>

enum { LEAST_STEPS = 8 };         /* of a pass over the data */
static const double share = 0.75; /* of what there is: below this the watch does not warn (memory.warn_fraction) */
static const char *const share_text = "three quarters";

/* ---- what there is ----------------------------------------------------------------------------------------------- */

typedef struct allowance { /* of one process */
    uint64_t bytes;
    char by[64];
} allowance;

typedef struct rooms {
    allowance target;  /* for all that is resident */
    allowance machine; /* the same, without pages of recordings */
    allowance address; /* for arenas */
    allowance device;
} rooms;

static uint64_t usable_bytes(double bytes)
{
    return (uint64_t)(share * bytes);
}

static dt_status measure_free_memory(const dt_session *s, int64_t phase, rooms *out)
{
    const double target_gb = s->opts[phase].memory.target_gb;
    dt_limits r;
    memset(out, 0, sizeof(*out)); /* it is sent */
    out->target.bytes = out->machine.bytes = out->address.bytes = out->device.bytes = UINT64_MAX;
    if (target_gb > 0) {
        out->target.bytes = usable_bytes(target_gb * 1e9);
        snprintf(out->target.by, sizeof(out->target.by), "memory.target_gb = %g", target_gb);
    }
    if (dt_limits_read("", &r)) {
        const uint64_t n = s->n_local > 1 ? s->n_local : 1;
        out->machine.bytes = dt_rss_bytes() + usable_bytes((double)r.memory / (double)n);
        if (n > 1) {
            snprintf(out->machine.by, sizeof(out->machine.by), "%.4g GB free (%s) for %u processes",
                     (double)r.memory / 1e9, r.by, s->n_local);
        } else {
            snprintf(out->machine.by, sizeof(out->machine.by), "%.4g GB free (%s)", (double)r.memory / 1e9, r.by);
        }
    }
    if (r.address != UINT64_MAX) {
        out->address.bytes = usable_bytes((double)r.address);
        snprintf(out->address.by, sizeof(out->address.by), "%.4g GB to map (%s)", (double)r.address / 1e9,
                 r.address_by);
    }
    if (s->device.handle != NULL) {
        uint64_t left = 0, total = 0;
        DT_TRY(s->device.ops->memory(s->device.handle, &left, &total));
        out->device.bytes = usable_bytes((double)left);
        snprintf(out->device.by, sizeof(out->device.by), "%.4g GB free on the device", (double)left / 1e9);
    }
    return DT_OK;
}

static void lower_allowance(allowance *a, const allowance *b)
{
    if (b->bytes < a->bytes) {
        *a = *b;
    }
}

/* The least of all ranks, the same on each of them. */
static dt_status reduce_free_memory(dt_comm *c, rooms *mine)
{
    const uint32_t n = dt_comm_size(c);
    rooms *all = dt_alloc_n(n, sizeof(*all));
    const dt_status allocated = all != NULL ? DT_OK : DT_FAIL(DT_ENOMEM, "out of memory for %u ranks", n);
    dt_status st = dt_comm_agree(c, allocated);
    if (st == DT_OK) {
        st = dt_comm_all_gather(c, mine, sizeof(*mine), all);
    }
    for (uint32_t i = 0; i < n && st == DT_OK; i++) {
        lower_allowance(&mine->target, &all[i].target);
        lower_allowance(&mine->machine, &all[i].machine);
        lower_allowance(&mine->address, &all[i].address);
        lower_allowance(&mine->device, &all[i].device);
    }
    dt_free(all);
    return st;
}

/* ---- one candidate ----------------------------------------------------------------------------------------------- */

enum { FITS, TOO_MUCH, TOO_FEW_STEPS, REFUSED };

typedef struct trial {
    int verdict;         /* of the above */
    uint64_t need;       /* bytes of what is short, or would be first; 0: unknown */
    const allowance *of; /* what it is held against */
    uint64_t most;       /* TOO_FEW_STEPS: samples of a batch that would do */
    bool is_on_device;   /* need */
    bool is_beyond;      /* more than there is, whatever else is wrong */
    bool is_cut;         /* beyond: the device would take it in parts */
    uint64_t why;        /* REFUSED: digest of what the phase said */
} trial;

typedef struct seeker {
    dt_session *s;
    int64_t phase;
    const char *run_dir;
    uint64_t max_steps;
    dt_comm *comm; /* ranks that are imagined */
    const rooms *room;
    dt_data_opts data;
    dt_training_opts training;
    dt_engine_opts engine;
} seeker;

/* Of a device all shards of a batch run at once, unless the configuration limits them. */
static bool is_split_on_device(const seeker *k, const dt_stage *stage)
{
    const dt_trainer *t = stage->trainer;
    return stage->d.device_ops != NULL && k->engine.micro_shards == 0 &&
           dt_trainer_concurrent_shards(t) < dt_trainer_shards(t, dt_comm_rank(stage->d.comm));
}

static void compare_with_free_memory(const seeker *k, const dt_stage *stage, const dt_forecast *f, trial *t)
{
    const uint64_t all = f->resident + f->processes;
    const struct {
        uint64_t need;
        const allowance *of;
    } test[] = {{f->device, &k->room->device},
                {all, &k->room->target},
                {all > f->recordings ? all - f->recordings : 0, &k->room->machine},
                {f->arenas, &k->room->address}};
    double fullest = -1;
    for (size_t i = 0; i < sizeof(test) / sizeof(test[0]); i++) {
        const double full = (double)test[i].need / (double)test[i].of->bytes;
        if (test[i].of->bytes != UINT64_MAX && full > fullest) {
            fullest = full;
            t->need = test[i].need;
            t->of = test[i].of;
        }
    }
    t->is_on_device = t->of == &k->room->device;
    t->is_cut = is_split_on_device(k, stage);
    t->is_beyond = fullest > 1 || t->is_cut;
    t->verdict = t->is_beyond ? TOO_MUCH : FITS;
}

/* A replay draws as many samples as its steps take, so what it holds counts. */
static void count_steps(const seeker *k, const dt_stage *stage, const dt_forecast *f, trial *t)
{
    const uint64_t step = (uint64_t)(k->data.batch * k->training.accumulation);
    const uint64_t all = f->replay.samples > 0 ? f->replay.samples : dt_trainer_samples(stage->trainer);
    if (all / LEAST_STEPS < step || dt_trainer_batch(stage->trainer) < step) {
        t->verdict = TOO_FEW_STEPS;
        t->most = all / LEAST_STEPS / (uint64_t)k->training.accumulation;
    }
}

static dt_status plan_with_batch(const seeker *k, dt_stage *stage, trial *t)
{
    dt_forecast f;
    DT_TRY(dt_stage_start(stage));
    if (stage->trainer == NULL) {
        return DT_FAIL(DT_EPLUGIN, "phase %s created no trainer when it was started", stage->d.phase->desc.id);
    }
    DT_TRY(dt_forecast_create(stage, k->max_steps, &f));
    compare_with_free_memory(k, stage, &f, t);
    count_steps(k, stage, &f, t);
    return DT_OK;
}

/* Errors: what another batch would not change. REFUSED leaves the reason. */
static dt_status try_batch(seeker *k, int64_t batch, trial *t)
{
    pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    dt_stage *stage = NULL;
    *t = (trial){.verdict = REFUSED};
    DT_TRY(dt_batch_set(k->s, k->phase, batch, "auto"));
    k->data.batch = batch;
    dt_stage_desc d = dt_session_describe_stage(k->s, k->phase, k->comm, &lock);
    d.run_dir = k->run_dir;
    dt_log_mute(true);
    dt_status st = dt_stage_create(&d, &stage);
    if (st == DT_OK) {
        st = plan_with_batch(k, stage, t);
    }
    dt_stage_destroy(stage);
    dt_log_mute(false);
    if (st == DT_ENOMEM) {
        t->verdict = TOO_MUCH;
    }
    if (st == DT_ECONFIG) {
        t->why = dt_hash64(dt_error_text(), strlen(dt_error_text()), 0);
    }
    return st == DT_ENOMEM || st == DT_ECONFIG ? DT_OK : st;
}

/* ---- the largest ------------------------------------------------------------------------------------------------- */

static int64_t largest_power_of_two(uint64_t most)
{
    int64_t n = 1;
    while ((uint64_t)n * 2 <= most) {
        n *= 2;
    }
    return n;
}

/* What is said of the largest batch and of the smallest in the same words is not of the batch. */
static dt_status fail_smallest(const seeker *k, int64_t least, const trial *t, uint64_t first_why, dt_status st)
{
    if (t->verdict == REFUSED && t->why == first_why && k->data.batch_max >= 2 * least) {
        return st;
    }
    if (t->verdict == REFUSED) {
        return DT_CONTEXT(st,
                          "data.batch = \"auto\", tried down to %lld samples, one for each of data.shards; lower "
                          "data.shards for a smaller batch",
                          (long long)least);
    }
    if (t->of == NULL) { /* it could not even be made */
        return DT_CONTEXT(st, "data.batch = \"auto\": no memory for %lld samples, the smallest batch (data.shards)",
                          (long long)least);
    }
    dt_error_clear();
    if (t->is_cut && t->need <= t->of->bytes) {
        return DT_FAIL(
            DT_ECONFIG,
            "data.batch = \"auto\": the device takes %lld samples, the smallest batch (data.shards), in parts "
            "only; raise memory.vram_gb, set engine.micro_shards, or set data.batch to a number",
            (long long)least);
    }
    return DT_FAIL(
        DT_ECONFIG,
        "data.batch = \"auto\": with %lld samples, the smallest batch (data.shards), the plan takes %.4g GB%s, "
        "and it may use %.4g GB: %s of %s; free memory, or set data.batch to a number",
        (long long)least, (double)t->need / 1e9, t->is_on_device ? " of the device" : "", (double)t->of->bytes / 1e9,
        share_text, t->of->by);
}

/* What a sample takes, on the way from the smallest batch to this one. 0: not known. */
static dt_status measure_sample(seeker *k, const trial *best, dt_batch_choice *out)
{
    trial small;
    const int64_t least = k->data.shards, more = out->batch - least;
    if (best->need == 0 || more == 0) {
        return DT_OK;
    }
    DT_TRY(try_batch(k, least, &small));
    dt_error_clear(); /* a phase may refuse it */
    if (small.need < best->need && small.of == best->of && small.of != NULL) {
        out->sample_bytes = (best->need - small.need) / (uint64_t)more;
    }
    return DT_OK;
}

/* Why a batch is too large. */
static const char *describe_limit(const trial *t)
{
    static const char *const why[] = {[FITS] = "data.batch_max",
                                      [TOO_MUCH] = "memory",
                                      [TOO_FEW_STEPS] = "at least 8 steps a pass over the data",
                                      [REFUSED] = "what the phase accepts"};
    const bool is_only_cut = t->is_cut && t->need <= t->of->bytes;
    return t->verdict == TOO_MUCH && is_only_cut ? "all shards simultaneously on the device" : why[t->verdict];
}

static dt_status record_choice(seeker *k, int64_t batch, const trial *best, const char *limit, dt_batch_choice *out)
{
    dt_error_clear(); /* of larger ones */
    *out = (dt_batch_choice){.batch = batch, .planned = best->need, .is_on_device = best->is_on_device};
    snprintf(out->limit, sizeof(out->limit), "%s", limit);
    if (best->of != NULL) {
        out->budget = best->of->bytes;
        snprintf(out->budget_by, sizeof(out->budget_by), "%s", best->of->by);
    }
    return measure_sample(k, best, out);
}

static dt_status find_largest_batch(seeker *k, dt_batch_choice *out)
{
    const int64_t least = k->data.shards;
    uint64_t first_why = 0;
    int64_t batch = largest_power_of_two((uint64_t)k->data.batch_max);
    const char *limit = describe_limit(&(trial){.verdict = FITS});
    if (batch < least) {
        return DT_FAIL(DT_ECONFIG,
                       "data.batch = \"auto\" takes at least a sample a shard: data.batch_max = %lld is less than "
                       "data.shards = %lld",
                       (long long)k->data.batch_max, (long long)k->data.shards);
    }
    for (;;) {
        trial t;
        DT_TRY(try_batch(k, batch, &t));
        first_why = first_why == 0 ? t.why : first_why;
        if (t.verdict == FITS || (t.verdict == TOO_FEW_STEPS && batch == least && !t.is_beyond)) {
            return record_choice(k, batch, &t, limit, out);
        }
        if (batch == least) {
            return fail_smallest(k, least, &t, first_why, DT_ECONFIG);
        }
        limit = describe_limit(&t);
        batch /= 2;
        if (t.verdict == TOO_FEW_STEPS && (uint64_t)batch > t.most) {
            batch = largest_power_of_two(t.most) > least ? largest_power_of_two(t.most) : least;
        }
    }
}

/* Of rank 0; the ranks that it plans for are those of the run. */
static dt_status choose_on_rank_0(dt_session *s, int64_t phase, const rooms *room, const char *run_dir,
                                  uint64_t max_steps, dt_batch_choice *out)
{
    seeker k = {.s = s,
                .phase = phase,
                .room = room,
                .run_dir = run_dir,
                .max_steps = max_steps,
                .data = s->opts[phase].data,
                .training = s->opts[phase].training,
                .engine = s->opts[phase].engine};
    const bool is_virtual = s->n_processes == 1;
    if ((s->phase[phase]->desc.flags & DT_COMP_OWN_BATCH) != 0) {
        return DT_FAIL(DT_ECONFIG,
                       "data.batch = \"auto\": options of %s set the batch size, and data.batch must follow from them; "
                       "set it to a number",
                       s->phase[phase]->desc.id);
    }
    DT_TRY(dt_comm_create_planned(is_virtual ? s->ranks : s->n_processes, is_virtual ? s->ranks : 1,
                                  is_virtual ? s->ranks : s->n_local, &k.comm));
    const dt_status st = find_largest_batch(&k, out);
    dt_comm_destroy(k.comm);
    return st < 0 ? DT_CONTEXT(st, "phase %lld (%s)", (long long)phase + 1, s->phase[phase]->desc.id) : DT_OK;
}

static dt_status enter_and_measure(dt_session *s, int64_t phase, rooms *out)
{
    DT_TRY(dt_session_enter_phase(s, phase));
    return measure_free_memory(s, phase, out);
}

static dt_status choose_batch_of_phase(dt_session *s, int64_t phase, dt_comm *c, const char *run_dir,
                                       uint64_t max_steps)
{
    rooms room;
    dt_batch_choice *out = &s->batch[phase];
    const bool is_first = c == NULL || dt_comm_rank(c) == 0;
    dt_status st = enter_and_measure(s, phase, &room);
    DT_TRY(c != NULL ? dt_comm_agree(c, st) : st);
    DT_TRY(c != NULL ? reduce_free_memory(c, &room) : DT_OK);
    st = is_first ? choose_on_rank_0(s, phase, &room, run_dir, max_steps, out) : DT_OK;
    DT_TRY(c != NULL ? dt_comm_agree(c, st) : st);
    DT_TRY(c != NULL ? dt_comm_broadcast(c, 0, out, sizeof(*out)) : DT_OK);
    st = dt_batch_set(s, phase, out->batch, "auto");
    return c != NULL ? dt_comm_agree(c, st) : st;
}

dt_status dt_batch_choose_all(dt_session *s, dt_comm *c, const char *run_dir, uint64_t max_steps)
{
    bool has_entered = false;
    for (int64_t i = s->first; i < s->last; i++) {
        const bool is_auto = s->opts[i].data.batch == DT_BATCH_AUTO;
        DT_TRY(is_auto ? choose_batch_of_phase(s, i, c, run_dir, max_steps) : DT_OK);
        has_entered = has_entered || is_auto;
    }
    const dt_status st = has_entered ? dt_session_enter_phase(s, s->first) : DT_OK;
    return c != NULL && has_entered ? dt_comm_agree(c, st) : st;
}

/* ---- text -------------------------------------------------------------------------------------------------------- */

void dt_batch_append_choice(const dt_session *s, int64_t phase, dt_str *out)
{
    const dt_batch_choice *b = &s->batch[phase];
    if (b->batch == 0) {
        return;
    }
    dt_str_addf(out, "data.batch = auto takes %lld samples (%s)", (long long)b->batch, b->limit);
    if (b->planned > 0) {
        dt_str_addf(out, ": the plan takes %.1f MB%s of a budget of %.1f MB, %s of %s", (double)b->planned / 1e6,
                    b->is_on_device ? " of the device" : "", (double)b->budget / 1e6, share_text, b->budget_by);
    }
    if (b->sample_bytes > 0) {
        dt_str_addf(out, "; a sample takes %.4g kB", (double)b->sample_bytes / 1e3);
    }
}

void dt_batch_write_choice(const dt_session *s, int64_t phase, dt_json_out *o)
{
    const dt_batch_choice *b = &s->batch[phase];
    if (b->batch == 0) {
        return;
    }
    dt_json_obj(o, "batch");
    dt_json_i64(o, "samples", b->batch);
    dt_json_str(o, "limit", b->limit);
    dt_json_i64(o, "planned", (int64_t)b->planned);
    dt_json_i64(o, "budget", (int64_t)b->budget);
    dt_json_str(o, "budget_by", b->budget_by);
    dt_json_i64(o, "sample_bytes", (int64_t)b->sample_bytes);
    dt_json_bool(o, "on_device", b->is_on_device);
    dt_json_end(o, '}');
}
