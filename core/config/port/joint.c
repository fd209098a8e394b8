/* SPDX-License-Identifier: Apache-2.0
 *
 * Values that follow from several keys: the batch, the number of environments, and a round of them. Where these keys
 * contradict each other, which they do in the files that are meant, one of them holds and a remark reports it.
 */
#include <config.h>

#include "config/port/settings.h"

#include "base/err.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

enum { LARGEST = 1000000000, OF_THEIRS = 200 /* rollout_fragment_length where a file does not set it */ };

static dt_status parse_whole_number(const dt_porting *p, const dt_leaf *l, int64_t least, int64_t *out_p)
{
    int64_t n = 0;
    if (l->node->kind != DT_YAML_VALUE || !dt_parse_whole(l->node->text, &n) || n < least || n > LARGEST) {
        const char *shown = dt_leaf_text(p, l);
        return dt_yaml_fail(p->d, l->node, "%s = %s: expected a whole number in [%" PRId64 ", %d]", l->key,
                            shown != NULL ? shown : "?", least, LARGEST);
    }
    *out_p = n;
    return DT_OK;
}

/* 0 where a key is not there. leaf_p: NULL then. */
static dt_status read_number(const dt_porting *p, const char *key, int64_t least, const dt_leaf **leaf_p,
                             int64_t *out_p)
{
    *leaf_p = dt_leaf_find(p, key);
    *out_p = 0;
    return *leaf_p != NULL ? parse_whole_number(p, *leaf_p, least, out_p) : DT_OK;
}

/* false where a key is not there. leaf_p: NULL then. */
static dt_status read_bool(const dt_porting *p, const char *key, const dt_leaf **leaf_p, bool *out_p)
{
    const dt_leaf *l = *leaf_p = dt_leaf_find(p, key);
    *out_p = false;
    if (l == NULL) {
        return DT_OK;
    }
    const char *text = l->node->kind == DT_YAML_VALUE ? l->node->text : "";
    *out_p = strcasecmp(text, "true") == 0;
    if (!*out_p && strcasecmp(text, "false") != 0) {
        const char *shown = dt_leaf_text(p, l);
        return dt_yaml_fail(p->d, l->node, "%s = %s: expected true or false", l->key, shown != NULL ? shown : "?");
    }
    return DT_OK;
}

static const char *format_kept_text(dt_porting *p, const char *fmt, int64_t a, int64_t b, int64_t c)
{
    char text[256];
    snprintf(text, sizeof(text), fmt, (long long)a, (long long)b, (long long)c);
    return dt_yaml_keep(p->d, text);
}

static dt_status set_number(dt_porting *p, const char *target, int64_t n, const dt_leaf *from, const char *note)
{
    char text[32];
    snprintf(text, sizeof(text), "%" PRId64, n);
    return note != NULL ? dt_porting_set(p, target, text, from, note)
                        : DT_FAIL(DT_ENOMEM, "out of memory for what is imported");
}

/* ---- the batch ------------------------------------------------------------------------------------------------- */

typedef struct batch {
    const dt_leaf *automatic, *per, *all, *steps, *loader, *world;
    bool is_auto;
    int64_t n_per, n_all, n_steps, n_loader, n_world;
} batch;

static dt_status read_batch(const dt_porting *p, batch *b)
{
    static const char *const worlds[] = {"distributed.world_size", "distributed.nproc_per_node",
                                         "distributed_sampler.num_replicas"};
    DT_TRY(read_bool(p, "batch_size.auto", &b->automatic, &b->is_auto));
    DT_TRY(read_number(p, "batch_size.per_gpu", 1, &b->per, &b->n_per));
    DT_TRY(read_number(p, "batch_size.effective", 1, &b->all, &b->n_all));
    DT_TRY(read_number(p, "batch_size.accumulation_steps", 1, &b->steps, &b->n_steps));
    DT_TRY(read_number(p, "dataloader.batch_size", 1, &b->loader, &b->n_loader));
    for (size_t i = 0; i < sizeof(worlds) / sizeof(worlds[0]) && b->world == NULL; i++) {
        DT_TRY(read_number(p, worlds[i], 1, &b->world, &b->n_world));
    }
    b->n_steps = b->n_steps > 0 ? b->n_steps : 1;
    b->n_world = b->n_world > 0 ? b->n_world : 1;
    return DT_OK;
}

/* What a device has, times what else is said, is not what all together have. */
static dt_status check_batch(dt_porting *p, const batch *b)
{
    const int64_t each = b->n_per * b->n_steps; /* below 2^60 */
    const bool fits = b->n_per == 0 ||
                      (b->world == NULL ? b->n_all % each == 0 : b->n_all % each == 0 && b->n_all / each == b->n_world);
    if (b->all != NULL && !fits) {
        const char *note =
            format_kept_text(p,
                             "it does not follow from %lld of batch_size.per_gpu, %lld accumulation_steps and %lld "
                             "processes; batch_size.effective is used",
                             b->n_per, b->n_steps, b->n_world);
        DT_TRY(dt_porting_remark(p, DT_REMARK_WRONG, b->per, note));
    }
    if (b->loader != NULL && b->n_per > 0 && b->n_loader != b->n_per) {
        DT_TRY(dt_porting_remark(p, DT_REMARK_WRONG, b->loader, "batch_size.per_gpu differs and is used"));
    }
    return DT_OK;
}

/* Theirs began with a size and changed it while it trained, which no run could repeat: a size is no bound. */
static dt_status set_batch_automatic(dt_porting *p, const batch *b)
{
    const dt_leaf *const sizes[] = {b->per, b->all, b->loader};
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        if (sizes[i] != NULL) {
            DT_TRY(dt_porting_remark(p, DT_REMARK_WRONG, sizes[i], "batch_size.auto chooses the batch"));
        }
    }
    return dt_porting_set(p, "data.batch", "auto", b->automatic,
                          "chosen once, at the start of a run, from the available memory; data.batch_max bounds it");
}

static dt_status set_batch(dt_porting *p)
{
    batch b = {0};
    DT_TRY(read_batch(p, &b));
    if (b.is_auto) {
        return set_batch_automatic(p, &b);
    }
    if (b.automatic != NULL) {
        DT_TRY(dt_porting_remark(p, DT_REMARK_SAME, b.automatic, "data.batch is a number"));
    }
    if (b.all != NULL && b.n_all % b.n_steps != 0) {
        return dt_yaml_fail(p->d, b.all->node,
                            "batch_size.effective = %" PRId64
                            " is not a multiple of batch_size.accumulation_steps = %" PRId64,
                            b.n_all, b.n_steps);
    }
    DT_TRY(check_batch(p, &b));
    if (b.all != NULL) {
        return set_number(p, "data.batch", b.n_all / b.n_steps, b.all,
                          format_kept_text(p, "%lld over %lld accumulation_steps", b.n_all, b.n_steps, 0));
    }
    const dt_leaf *each = b.per != NULL ? b.per : b.loader;
    const int64_t n = b.per != NULL ? b.n_per : b.n_loader;
    return each == NULL ? DT_OK
                        : set_number(p, "data.batch", n * b.n_world, each,
                                     format_kept_text(p, "%lld for each of %lld processes", n, b.n_world, 0));
}

/* ---- environments ---------------------------------------------------------------------------------------------- */

/* instances_p: 0 where nothing is said. */
static dt_status set_instances(dt_porting *p, int64_t *instances_p)
{
    const dt_leaf *workers = NULL, *each = NULL, *unused = NULL;
    int64_t n_workers = 0, n_each = 0;
    DT_TRY(read_number(p, "rllib.num_workers", 0, &workers, &n_workers));
    DT_TRY(read_number(p, "rllib.num_envs_per_worker", 1, &each, &n_each));
    if (workers == NULL && each == NULL) {
        return DT_OK;
    }
    n_workers = n_workers > 0 ? n_workers : 1; /* RLlib's 0: the learner steps them */
    n_each = n_each > 0 ? n_each : 1;
    *instances_p = n_workers * n_each;
    const dt_leaf *from = workers != NULL ? workers : each;
    for (const dt_key_row *g = p->keys->rows; g->key != NULL; g++) {
        int64_t limit = 0;
        DT_TRY(g->act == DT_KEYS_ENVS_LIMIT ? read_number(p, g->key, 1, &unused, &limit) : DT_OK);
        if (limit > 0 && *instances_p > limit) {
            DT_TRY(dt_porting_remark(
                p, DT_REMARK_WRONG, from,
                format_kept_text(p, "%lld workers of %lld environments are more than the %lld there may be", n_workers,
                                 n_each, limit)));
            *instances_p = limit;
        }
    }
    return set_number(p, "env.instances", *instances_p, from,
                      format_kept_text(p, "%lld workers of %lld environments", n_workers, n_each, 0));
}

static bool is_set(const dt_porting *p, const char *target)
{
    char key[128];
    for (const dt_setting_in *s = p->settings; s != NULL; s = s->next) {
        snprintf(key, sizeof(key), "%s.%s=", s->section, s->name);
        if (s->phase == p->phase && strncmp(target, key, strlen(key)) == 0) {
            return true;
        }
    }
    return false;
}

/* Rows that imply settings by their presence, such as the environment that a file of its own belongs to. */
static dt_status set_implied_settings(dt_porting *p)
{
    for (const dt_key_row *g = p->keys->rows; g->key != NULL; g++) {
        const dt_leaf *l = g->act == DT_KEYS_IMPLY ? dt_leaf_find(p, g->key) : NULL;
        if (l == NULL || strchr(g->phases, '0' + p->phase) == NULL || is_set(p, g->target)) {
            continue;
        }
        const char *note = g->note;
        for (const char *at = g->target; *at != '\0'; at += strspn(at, " "), note = "") {
            char target[128];
            const size_t bytes = strcspn(at, " ");
            snprintf(target, sizeof(target), "%.*s", (int)bytes, at);
            char *value = strchr(target, '=');
            *value++ = '\0';
            DT_TRY(dt_porting_set(p, target, value, l, note));
            at += bytes;
        }
    }
    return DT_OK;
}

/* A round is made of whole fragments of all instances: they become shorter, so that it has the samples that are meant
 * instead of up to twice as many. */
static dt_status set_round_size(dt_porting *p, int64_t instances)
{
    const dt_leaf *samples = NULL, *steps = NULL;
    int64_t n = 0, fragment = 0;
    DT_TRY(read_number(p, "rllib.train_batch_size", 1, &samples, &n));
    DT_TRY(read_number(p, "rllib.rollout_fragment_length", 1, &steps, &fragment));
    if (samples != NULL) {
        DT_TRY(set_number(p, "@.train_batch", n, samples, ""));
    }
    if (samples == NULL || instances == 0) {
        return steps != NULL ? set_number(p, "@.fragment", fragment, steps, "") : DT_OK;
    }
    const int64_t said = fragment > 0 ? fragment : OF_THEIRS;
    const int64_t a_row = said * instances; /* below 2^60 */
    const int64_t rows = (n + a_row - 1) / a_row;
    const int64_t fitting = (n + rows * instances - 1) / (rows * instances);
    if (n % a_row == 0) {
        return set_number(p, "@.fragment", said, steps != NULL ? steps : samples, "");
    }
    if (steps != NULL) {
        DT_TRY(dt_porting_remark(
            p, DT_REMARK_WRONG, steps,
            format_kept_text(p, "%lld steps of %lld environments do not divide a round of %lld samples", said,
                             instances, n)));
    }
    return set_number(p, "@.fragment", fitting, steps != NULL ? steps : samples,
                      format_kept_text(p,
                                       "so that %lld environments collect %lld samples; %lld steps would collect more",
                                       instances, rows * instances * fitting, said));
}

dt_status dt_porting_joint(dt_porting *p)
{
    int64_t instances = 0;
    if (p->phase == 0) {
        return DT_OK;
    }
    if (p->phase == 1) {
        return set_batch(p);
    }
    DT_TRY(set_implied_settings(p));
    DT_TRY(set_instances(p, &instances));
    DT_TRY(set_round_size(p, instances));
    return p->phase == 3 ? set_batch(p) : DT_OK;
}
