/* SPDX-License-Identifier: Apache-2.0
 *
 * See guide.h.
 */
#include <config.h>

#include "config/guide.h"

#include <stddef.h>
#include <string.h>

const dt_guide dt_guide_table[] = {
#define GUIDE(key, phases, act, target, words, note) {key, phases, DT_GUIDE_##act, target, words, note},
#include "config/guide.def"
#undef GUIDE
    {NULL, NULL, DT_GUIDE_NONE, NULL, NULL, NULL}};

const dt_guide *dt_guide_find(const char *key, int phase)
{
    for (const dt_guide *g = dt_guide_table; g->key != NULL; g++) {
        if (strcmp(g->key, key) == 0 && (phase < 0 || strchr(g->phases, '0' + phase) != NULL)) {
            return g;
        }
    }
    return NULL;
}

bool dt_guide_is_group(const char *key)
{
    const size_t bytes = strlen(key);
    for (const dt_guide *g = dt_guide_table; g->key != NULL; g++) {
        if (strncmp(g->key, key, bytes) == 0 && g->key[bytes] == '.') {
            return true;
        }
    }
    return false;
}

/* What a target is called: "@" is the section of a phase's plugin. */
static void add_target(const dt_guide *g, const char *target, dt_str *out)
{
    const int bytes = (int)strcspn(target, " =");
    const char *plugin = strcmp(g->phases, "3") == 0 ? "phase3_constrained" : "phase2_ppo";
    if (target[0] == '@') {
        dt_str_addf(out, "%s%.*s", plugin, bytes - 1, target + 1);
    } else {
        dt_str_addf(out, "%.*s", bytes, target);
    }
}

/* Every target of a row that is not in the list yet. */
static void add_targets(const dt_guide *g, dt_str *list)
{
    for (const char *at = g->target; *at != '\0'; at += strspn(at, " ")) {
        dt_str one = {0};
        add_target(g, at, &one);
        dt_str_add(&one, ", ");
        if (strstr(dt_str_text(list), dt_str_text(&one)) == NULL) {
            dt_str_add(list, dt_str_text(&one));
        }
        list->failed = list->failed || one.failed;
        dt_str_fini(&one);
        at += strcspn(at, " ");
    }
}

static void tell_group(const char *group, dt_str *out)
{
    const size_t bytes = strlen(group);
    dt_str list = {0};
    for (const dt_guide *g = dt_guide_table; g->key != NULL; g++) {
        if (strncmp(g->key, group, bytes) == 0 && g->key[bytes] == '.') {
            add_targets(g, &list);
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

bool dt_guide_tell(const char *key, dt_str *out)
{
    const dt_guide *g = dt_guide_find(key, -1);
    if (g == NULL && !dt_guide_is_group(key)) {
        return false;
    }
    if (g == NULL) {
        tell_group(key, out);
    } else if (g->target[0] != '\0') {
        dt_str_add(out, "a key of the guides; here it is ");
        add_target(g, g->target, out);
    } else {
        dt_str_addf(out, "a key of the guides without a counterpart here%s%s", g->note[0] != '\0' ? ": " : "", g->note);
    }
    return true;
}
