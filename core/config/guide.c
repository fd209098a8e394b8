/* SPDX-License-Identifier: Apache-2.0 */
#include <config.h>

#include "config/guide.h"

#include <stddef.h>
#include <string.h>

static const dt_key_row *first_key_row(const dt_keys_ext *keys)
{
    static const dt_key_row none = {0};
    return keys != NULL ? keys->rows : &none;
}

const dt_key_row *dt_guide_find(const dt_keys_ext *keys, const char *key, int phase)
{
    for (const dt_key_row *g = first_key_row(keys); g->key != NULL; g++) {
        if (strcmp(g->key, key) == 0 && (phase < 0 || strchr(g->phases, '0' + phase) != NULL)) {
            return g;
        }
    }
    return NULL;
}

bool dt_guide_is_group(const dt_keys_ext *keys, const char *key)
{
    const size_t bytes = strlen(key);
    for (const dt_key_row *g = first_key_row(keys); g->key != NULL; g++) {
        if (strncmp(g->key, key, bytes) == 0 && g->key[bytes] == '.') {
            return true;
        }
    }
    return false;
}

/* What a target is called: "@" is the section of a phase's plugin. */
static void add_target(const dt_keys_ext *keys, const dt_key_row *g, const char *target, dt_str *out)
{
    const int bytes = (int)strcspn(target, " =");
    if (target[0] == '@') {
        dt_str_addf(out, "%s%.*s", dt_guide_plugin(keys, g), bytes - 1, target + 1);
    } else {
        dt_str_addf(out, "%.*s", bytes, target);
    }
}

/* Every target of a row that is not in the list yet. */
static void add_targets(const dt_keys_ext *keys, const dt_key_row *g, dt_str *list)
{
    for (const char *at = g->target; *at != '\0'; at += strspn(at, " ")) {
        dt_str one = {0};
        add_target(keys, g, at, &one);
        dt_str_add(&one, ", ");
        if (strstr(dt_str_text(list), dt_str_text(&one)) == NULL) {
            dt_str_add(list, dt_str_text(&one));
        }
        list->failed = list->failed || one.failed;
        dt_str_fini(&one);
        at += strcspn(at, " ");
    }
}

static void explain_group(const dt_keys_ext *keys, const char *group, dt_str *out)
{
    const size_t bytes = strlen(group);
    dt_str list = {0};
    for (const dt_key_row *g = first_key_row(keys); g->key != NULL; g++) {
        if (strncmp(g->key, group, bytes) == 0 && g->key[bytes] == '.') {
            add_targets(keys, g, &list);
        }
    }
    if (list.bytes == 0) {
        dt_str_add(out, "a key of the guides without a counterpart here");
    } else {
        dt_str_addf(out, "a key of the guides; see %.*s", (int)list.bytes - 2, dt_str_text(&list));
    }
    out->failed = out->failed || list.failed;
    dt_str_fini(&list);
}

bool dt_guide_explain(const dt_keys_ext *keys, const char *key, dt_str *out)
{
    const dt_key_row *g = dt_guide_find(keys, key, -1);
    if (g == NULL && !dt_guide_is_group(keys, key)) {
        return false;
    }
    if (g == NULL) {
        explain_group(keys, key, out);
    } else if (g->target[0] != '\0') {
        dt_str_add(out, "a key of the guides; here it is ");
        add_target(keys, g, g->target, out);
    } else {
        dt_str_addf(out, "a key of the guides without a counterpart here%s%s", g->note[0] != '\0' ? ": " : "", g->note);
    }
    return true;
}
