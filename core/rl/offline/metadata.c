/* SPDX-License-Identifier: Apache-2.0
 *
 * Metadata of stored rollouts; see metadata.h. An option of the environment is the key option.NAME with its value
 * as the configuration writes it; of a path the last part, so that the same round is the same bytes wherever it was
 * played.
 */
#include <config.h>

#include "rl/offline/metadata.h"

#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "state/checkpoint/safetensors.h"
#include "config/mix.h"
#include "config/options.h"
#include "rl/offline/stored.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define OPTION "option."

enum { PLAIN = 3 }; /* format, version, environment */

static const struct {
    const char *name;
    size_t at;
    uint64_t least, most;
    const char *is;
} numbers[DT_STORED_NUMBERS] = {
    {"round", offsetof(dt_stored_head, round), 1, INT64_MAX, "the number of its round"},
    {"episodes", offsetof(dt_stored_head, episodes), 0, INT64_MAX, "how many episodes ended in it"},
    {"steps", offsetof(dt_stored_head, steps), 1, INT32_MAX, "how many steps the round has"},
    {"instances", offsetof(dt_stored_head, instances), 1, INT32_MAX, "how many instances played it"}};

/* ---- options ----------------------------------------------------------------------------------------------------- */

/* Row i of the environment's options; DT_ENOTFOUND past the last one. */
static dt_status read_option_row(const dt_rollout *r, uint32_t i, dt_option_view *v)
{
    const dt_stage_desc *s = &r->stage->d;
    return dt_config_option_at(s->config, s->index, dt_bind_env_id(r->env), i, v);
}

/* What makes code run, or may change while a run continues, does not describe what was played. */
static const char *comparable_value(const dt_option_view *v)
{
    if (v->value == NULL || (v->option->flags & (DT_OPT_CODE | DT_OPT_RUNTIME)) != 0) {
        return NULL;
    }
    const char *last = v->option->type == DT_OPT_PATH ? strrchr(v->value, '/') : NULL;
    return last != NULL ? last + 1 : v->value;
}

static dt_status append_mix(const dt_rollout *r, dt_str *out)
{
    const dt_stage_desc *s = &r->stage->d;
    const char *entry = dt_config_mix_entry(s->config, s->index, 0);
    for (uint32_t i = 1; entry != NULL; i++) {
        dt_str_add(out, entry);
        entry = dt_config_mix_entry(s->config, s->index, i);
        dt_str_add(out, entry != NULL ? ", " : "");
    }
    return dt_str_status(out);
}

/* ---- writing ----------------------------------------------------------------------------------------------------- */

static void add_key_and_value(dt_stored_metadata *m, const char *key, const char *value)
{
    m->pair[m->n_pairs][0] = key;
    m->pair[m->n_pairs++][1] = value;
}

static dt_status add_options(const dt_rollout *r, dt_stored_metadata *m)
{
    dt_option_view v;
    for (uint32_t i = 0; read_option_row(r, i, &v) == DT_OK; i++) {
        const char *value = comparable_value(&v);
        if (value != NULL) {
            dt_str *key = &m->text[m->n_texts++];
            dt_str_addf(key, OPTION "%s", v.option->name);
            DT_TRY(dt_str_status(key));
            add_key_and_value(m, dt_str_text(key), value);
        }
    }
    return DT_OK;
}

dt_status dt_stored_metadata_make(const dt_rollout *r, dt_stored_metadata *m)
{
    dt_option_view v;
    uint32_t n = 0;
    while (read_option_row(r, n, &v) == DT_OK) {
        n++;
    }
    m->text = dt_alloc_n((size_t)n + 1, sizeof(*m->text));
    m->pair = dt_alloc_n((size_t)n + DT_STORED_NUMBERS + PLAIN + 1, sizeof(*m->pair));
    if (m->text == NULL || m->pair == NULL) {
        return DT_FAIL(DT_ENOMEM, "out of memory for the metadata of stored rollouts");
    }
    for (uint32_t i = 0; i < DT_STORED_NUMBERS; i++) {
        add_key_and_value(m, numbers[i].name, m->number[i]);
    }
    add_key_and_value(m, "format", DT_STORED_FORMAT);
    add_key_and_value(m, "version", DT_STORED_VERSION);
    add_key_and_value(m, "environment", dt_bind_env_id(r->env));
    dt_str *mix = &m->text[m->n_texts++];
    DT_TRY(append_mix(r, mix));
    if (mix->bytes > 0) {
        add_key_and_value(m, "mix", dt_str_text(mix));
    }
    return add_options(r, m);
}

static uint64_t *head_number(dt_stored_head *h, uint32_t i)
{
    return (uint64_t *)(void *)((char *)h + numbers[i].at);
}

void dt_stored_metadata_number(dt_stored_metadata *m, const dt_stored_head *h)
{
    dt_stored_head of = *h;
    for (uint32_t i = 0; i < DT_STORED_NUMBERS; i++) {
        snprintf(m->number[i], sizeof(m->number[i]), "%" PRIu64, *head_number(&of, i));
    }
}

void dt_stored_metadata_fini(dt_stored_metadata *m)
{
    for (uint32_t i = 0; i < m->n_texts; i++) {
        dt_str_fini(&m->text[i]);
    }
    dt_free(m->text);
    dt_free(m->pair);
    *m = (dt_stored_metadata){0};
}

/* ---- reading ----------------------------------------------------------------------------------------------------- */

static dt_status check_text(const dt_safetensors *s, const char *path, const char *key, const char *wanted)
{
    const char *has = dt_safetensors_metadata(s, key);
    return has != NULL && strcmp(has, wanted) == 0
               ? DT_OK
               : DT_FAIL(DT_EDATA, "%s: its metadata have %s \"%s\"; expected \"%s\"", path, key,
                         has != NULL ? has : "", wanted);
}

static dt_status read_number(const dt_safetensors *s, const char *path, uint32_t i, uint64_t *out)
{
    const char *text = dt_safetensors_metadata(s, numbers[i].name);
    int64_t x = -1;
    if (text == NULL || !dt_parse_whole(text, &x) || x < 0 || (uint64_t)x < numbers[i].least ||
        (uint64_t)x > numbers[i].most) {
        return DT_FAIL(
            DT_EDATA, "%s: its metadata have %s \"%s\"; expected %s, a whole number from %" PRIu64 " to %" PRIu64, path,
            numbers[i].name, text != NULL ? text : "", numbers[i].is, numbers[i].least, numbers[i].most);
    }
    *out = (uint64_t)x;
    return DT_OK;
}

dt_status dt_stored_head_read(const dt_rollout *r, const dt_safetensors *s, const char *path, dt_stored_head *out)
{
    dt_stored_head h = {0};
    DT_TRY(check_text(s, path, "format", DT_STORED_FORMAT));
    const char *version = dt_safetensors_metadata(s, "version");
    h.is_sealed = version == NULL || strcmp(version, DT_STORED_UNSEALED) != 0;
    DT_TRY(h.is_sealed ? check_text(s, path, "version", DT_STORED_VERSION) : DT_OK);
    DT_TRY(check_text(s, path, "environment", dt_bind_env_id(r->env)));
    for (uint32_t i = 0; i < DT_STORED_NUMBERS; i++) {
        DT_TRY(read_number(s, path, i, head_number(&h, i)));
    }
    if (h.episodes > h.steps * h.instances) { /* both below 2^31 */
        return DT_FAIL(DT_EDATA,
                       "%s: by its metadata %" PRIu64 " episodes ended in %" PRIu64 " steps of %" PRIu64
                       " instances; expected at most one in each step of an instance",
                       path, h.episodes, h.steps, h.instances);
    }
    *out = h;
    return DT_OK;
}

static const char *stored_option_value(const dt_safetensors *s, const char *option)
{
    dt_str key = {0};
    dt_str_addf(&key, OPTION "%s", option);
    const char *value = dt_str_status(&key) == DT_OK ? dt_safetensors_metadata(s, dt_str_text(&key)) : NULL;
    dt_str_fini(&key);
    return value;
}

/* The options that are others, then those that the file does not have. */
static void list_differences(const dt_rollout *r, const dt_safetensors *s, dt_str *others, dt_str *unsaid)
{
    dt_option_view v;
    for (uint32_t i = 0; read_option_row(r, i, &v) == DT_OK; i++) {
        const char *value = comparable_value(&v), *has = stored_option_value(s, v.option->name);
        if (value == NULL) {
            continue;
        }
        if (has == NULL) {
            dt_str_addf(unsaid, "%s%s", unsaid->bytes > 0 ? ", " : "", v.option->name);
        } else if (!dt_is_same_value(has, value)) {
            dt_str_addf(others, "%s%s = \"%s\" (here \"%s\")", others->bytes > 0 ? ", " : "", v.option->name, has,
                        value);
        }
    }
}

bool dt_stored_warn_of_options(const dt_rollout *r, const dt_safetensors *s, const char *path)
{
    const bool is_root = dt_comm_rank(r->stage->d.comm) == 0;
    const char *id = dt_bind_env_id(r->env), *mix = dt_safetensors_metadata(s, "mix");
    dt_str others = {0}, unsaid = {0};
    list_differences(r, s, &others, &unsaid);
    const bool has_others = others.bytes > 0, has_unsaid = unsaid.bytes > 0;
    if (has_others && is_root) {
        dt_log(DT_LOG_WARN,
               "%s: its rollouts are of %s with %s; what actions earn and cost there need not hold in this run's "
               "environment: set the same options, or evaluate",
               path, id, dt_str_text(&others));
    }
    if (has_unsaid && is_root) {
        dt_log(DT_LOG_WARN, "%s: its metadata lack the %s of %s that it was played with", path, dt_str_text(&unsaid),
               id);
    }
    if (mix != NULL && is_root) {
        dt_log(DT_LOG_WARN, "%s: its rollouts are of env.mix = %s, and evaluations use only %s", path, mix, id);
    }
    dt_str_fini(&others);
    dt_str_fini(&unsaid);
    return has_others || has_unsaid || mix != NULL;
}
