/* SPDX-License-Identifier: Apache-2.0 */
#include <config.h>

#include "config/mix.h"

#include "base/err.h"
#include "config/tree.h"

#include <string.h>

static const char key_path[] = "env.mix";

/* The list as one, from whatever it was written as; NULL where it is none. */
static const dt_node *mix_list_of(dt_config *c, int64_t phase)
{
    dt_node *list = dt_config_effective(c, phase, "env", "mix");
    if (list != NULL && dt_section_normalise_one(c, dt_section_find(c, "env"), list, "env") < 0) {
        dt_error_clear();
        return NULL;
    }
    return list;
}

const char *dt_config_mix_entry(dt_config *c, int64_t phase, uint32_t i)
{
    const dt_node *list = mix_list_of(c, phase);
    const dt_node *word = list != NULL ? dt_node_at(list, i) : NULL;
    return word != NULL ? word->text : NULL;
}

const char *dt_config_mix_id(dt_config *c, int64_t phase, uint32_t i)
{
    const char *entry = dt_config_mix_entry(c, phase, i);
    return entry != NULL ? dt_pool_dup(c, entry, strcspn(entry, ": ")) : NULL;
}

/* text [bytes]: one option=value, as the value that it would be in the section. */
static dt_status read_mix_option(dt_config *c, const dt_section *s, const dt_node *list, const char *text, size_t bytes,
                                 dt_node **out_p)
{
    const char *equals = memchr(text, '=', bytes);
    if (equals == NULL || equals == text) {
        return dt_node_fail(list, key_path,
                            "\"%.*s\" is not option=value; an entry is id or id:option=value;option=value", (int)bytes,
                            text);
    }
    const char *key = dt_pool_dup(c, text, strcspn(text, " ="));
    const char *from = equals + 1 + strspn(equals + 1, " ");
    const char *value = dt_pool_dup(c, from, (size_t)(text + bytes - from));
    if (key == NULL || value == NULL) {
        return DT_FAIL(DT_ENOMEM, "out of memory for %s", key_path);
    }
    DT_TRY(dt_node_new(c, DT_NODE_PLAIN, key, value, &list->origin, out_p));
    (*out_p)->key = key;
    return dt_section_normalise_one(c, s, *out_p, key_path);
}

dt_status dt_config_mix_options(dt_config *c, int64_t phase, uint32_t i, const char *section,
                                dt_setting out[DT_MIX_OPTIONS], uint32_t *n_p)
{
    static const dt_option none[] = {DT_OPTION_END};
    const dt_section bare = {.name = section, .table = none};
    const dt_section *s = dt_section_find(c, section);
    const dt_node *list = mix_list_of(c, phase);
    const char *entry = dt_config_mix_entry(c, phase, i);
    const char *at = entry != NULL ? strchr(entry, ':') : NULL;
    *n_p = 0;
    while (at != NULL && *at != '\0') {
        at += 1 + strspn(at + 1, " ");
        const size_t bytes = strcspn(at, ";");
        dt_node *value = NULL;
        DT_TRY(read_mix_option(c, s != NULL && s->table != NULL ? s : &bare, list, at, bytes, &value));
        for (uint32_t k = 0; k < *n_p; k++) {
            if (strcmp(out[k].key, value->key) == 0) {
                return dt_node_fail(list, key_path, "\"%s\" sets %s twice", entry, value->key);
            }
        }
        if (*n_p == DT_MIX_OPTIONS) {
            return dt_node_fail(list, key_path, "\"%s\" has more than %d options", entry, DT_MIX_OPTIONS);
        }
        if (value->text == NULL) {
            return dt_node_fail(list, key_path, "\"%s\": %s is a list, which only the section %s can set", entry,
                                value->key, section);
        }
        out[(*n_p)++] = (dt_setting){value->key, value->text};
        at += bytes;
    }
    return DT_OK;
}
