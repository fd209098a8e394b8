/* SPDX-License-Identifier: Apache-2.0
 *
 * See porting.h: from a tree of YAML to settings and remarks, by the rows of dtrain/ext/keys.h. Every leaf of the file
 * ends in one of them.
 */
#include <config.h>

#include "config/port/settings.h"

#include "base/err.h"
#include "base/mem.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { KEY_BYTES = 256, MAX_WORDS = 64 };

static dt_status fail_out_of_memory(void)
{
    return DT_FAIL(DT_ENOMEM, "out of memory for what is imported");
}

/* ---- leaves of a phase ----------------------------------------------------------------------------------------- */

static dt_status add_scalar(dt_porting *p, const char *key, const dt_yaml *n)
{
    if (p->n_leaves == p->cap_leaves) {
        const int cap = p->cap_leaves > 0 ? 2 * p->cap_leaves : 128;
        dt_leaf *grown = dt_realloc(p->leaf, (size_t)cap * sizeof(*grown));
        if (grown == NULL) {
            return fail_out_of_memory();
        }
        p->leaf = grown;
        p->cap_leaves = cap;
    }
    const char *kept = dt_yaml_keep(p->d, key);
    p->leaf[p->n_leaves++] = (dt_leaf){.key = kept, .node = n};
    return kept != NULL ? DT_OK : fail_out_of_memory();
}

/* Values below a mapping, whose key is path ("" for the phase itself). */
static dt_status collect_scalars(dt_porting *p, const dt_yaml *map, const char *path)
{
    for (const dt_yaml *n = map->first; n != NULL; n = n->next) {
        char key[KEY_BYTES];
        const int bytes = snprintf(key, sizeof(key), "%s%s%s", path, *path != '\0' ? "." : "", n->key);
        if (bytes >= KEY_BYTES) {
            return dt_yaml_fail(p->d, n, "the keys down to here have more than %d bytes", KEY_BYTES - 1);
        }
        if (n->kind == DT_YAML_MAP) {
            if (dt_guide_find(p->keys, key, -1) != NULL && !dt_guide_is_group(p->keys, key)) {
                return dt_yaml_fail(p->d, n, "%s is one value, but the file has a mapping", key);
            }
            DT_TRY(collect_scalars(p, n, key));
            continue;
        }
        if (dt_guide_is_group(p->keys, key) && dt_guide_find(p->keys, key, -1) == NULL) {
            return dt_yaml_fail(p->d, n, "%s is a group of keys, but the file has a %s", key,
                                n->kind == DT_YAML_LIST ? "list" : "value");
        }
        if (*path == '\0' && dt_guide_find(p->keys, key, p->phase) == NULL) { /* phase1: { num_epochs: 50 } */
            char own[KEY_BYTES + 8];
            snprintf(own, sizeof(own), "phase.%s", key);
            DT_TRY(add_scalar(p, dt_guide_find(p->keys, own, p->phase) != NULL ? own : key, n));
            continue;
        }
        DT_TRY(add_scalar(p, key, n));
    }
    return DT_OK;
}

/* ---- values ---------------------------------------------------------------------------------------------------- */

/* The elements of [0.9, 0.999], of a list below its key, and of a tuple of Python. */
static dt_status split_elements(const dt_porting *p, const dt_leaf *l, const char *word[MAX_WORDS], int *n_p)
{
    *n_p = 0;
    for (const dt_yaml *n = l->node->first; n != NULL; n = n->next) {
        if (n->kind != DT_YAML_VALUE || *n_p == MAX_WORDS) {
            return dt_yaml_fail(p->d, n, "%s: expected a list of at most %d plain values", l->key, MAX_WORDS);
        }
        word[(*n_p)++] = n->text;
    }
    if (l->node->kind == DT_YAML_LIST) {
        return DT_OK;
    }
    char *text = dt_yaml_keep(p->d, l->node->text);
    if (text == NULL) {
        return fail_out_of_memory();
    }
    for (char *rest = text; rest != NULL;) {
        char *one = strsep(&rest, ",");
        one += strspn(one, " ([");
        one[strcspn(one, ")]")] = '\0';
        for (size_t bytes = strlen(one); bytes > 0 && one[bytes - 1] == ' ';) {
            one[--bytes] = '\0';
        }
        if (*one != '\0' && *n_p == MAX_WORDS) {
            return dt_yaml_fail(p->d, l->node, "%s: expected a list of at most %d plain values", l->key, MAX_WORDS);
        }
        if (*one != '\0') {
            word[(*n_p)++] = one;
        }
    }
    return DT_OK;
}

static dt_status plain_text_of(const dt_porting *p, const dt_leaf *l, const char **out_p)
{
    static const char *const yes[] = {"True", "TRUE", "Yes", "YES", "yes", "On", "ON", "on"};
    static const char *const no[] = {"False", "FALSE", "No", "NO", "no", "Off", "OFF", "off"};
    if (l->node->kind != DT_YAML_VALUE) {
        return dt_yaml_fail(p->d, l->node, "%s is one value, but the file has a list", l->key);
    }
    *out_p = l->node->text;
    for (size_t i = 0; i < sizeof(yes) / sizeof(yes[0]); i++) {
        *out_p = strcmp(l->node->text, yes[i]) == 0 ? "true" : *out_p;
        *out_p = strcmp(l->node->text, no[i]) == 0 ? "false" : *out_p;
    }
    return DT_OK;
}

/* theirs in "theirs=ours theirs=ours", copied; NULL in *out_p: it is not there. list_p: those that are. */
static dt_status translate_word(const dt_porting *p, const char *words, const char *theirs, const char **out_p,
                                dt_str *list)
{
    *out_p = NULL;
    for (const char *at = words; *at != '\0';) {
        const size_t key = strcspn(at, "="), all = strcspn(at, " ");
        if (strlen(theirs) == key && memcmp(at, theirs, key) == 0) {
            char *ours = dt_yaml_keep(p->d, at + key + 1);
            if (ours == NULL) {
                return fail_out_of_memory();
            }
            ours[strcspn(ours, " ")] = '\0';
            *out_p = ours;
        }
        dt_str_addf(list, "%s%.*s", at == words ? "" : ", ", (int)key, at);
        at += all + strspn(at + all, " ");
    }
    return dt_str_status(list);
}

/* A word of theirs for one of ours. is_known_p: false and a remark where any text is allowed and this one means
 * nothing here. */
static dt_status translate_value(dt_porting *p, const dt_key_row *g, const dt_leaf *l, const char **text_p,
                                 bool *is_known_p)
{
    const char *ours = NULL;
    dt_str list = {0};
    dt_status st = translate_word(p, g->words, *text_p, &ours, &list);
    *is_known_p = ours != NULL;
    const dt_option *o = dt_porting_option(p, g->target);
    if (st == DT_OK && ours == NULL && o != NULL && o->type == DT_OPT_STR) {
        st = dt_porting_remark(p, DT_REMARK_NONE, l, "it has no counterpart; dtrain eval --json lists the metrics");
    } else if (st == DT_OK && ours == NULL) {
        const char *shown = dt_leaf_text(p, l);
        st = dt_yaml_fail(p->d, l->node, "%s = %s: expected one of %s", l->key, shown != NULL ? shown : "?",
                          dt_str_text(&list));
    }
    dt_str_fini(&list);
    *text_p = ours != NULL ? ours : *text_p;
    return st;
}

/* "a b=1 c": set a and c to the value, b to 1. */
static dt_status set_targets(dt_porting *p, const dt_key_row *g, const dt_leaf *l, const char *const *text, int step)
{
    for (const char *at = g->target; *at != '\0'; text += step) {
        char target[KEY_BYTES];
        const size_t bytes = strcspn(at, " ");
        snprintf(target, sizeof(target), "%.*s", (int)bytes, at);
        char *equals = strchr(target, '=');
        if (equals != NULL) {
            *equals = '\0';
        }
        DT_TRY(dt_porting_set(p, target, equals != NULL ? equals + 1 : *text, l, at == g->target ? g->note : ""));
        at += bytes + strspn(at + bytes, " ");
    }
    return DT_OK;
}

static dt_status import_value(dt_porting *p, const dt_key_row *g, const dt_leaf *l)
{
    const char *text = NULL;
    bool is_known = true;
    DT_TRY(plain_text_of(p, l, &text));
    if (g->words != NULL) {
        DT_TRY(translate_value(p, g, l, &text, &is_known));
    }
    return is_known ? set_targets(p, g, l, &text, 0) : DT_OK;
}

static dt_status import_list(dt_porting *p, const dt_key_row *g, const dt_leaf *l)
{
    const char *word[MAX_WORDS] = {NULL};
    int n = 0, n_targets = 1;
    for (const char *at = g->target; *at != '\0'; at++) {
        n_targets += *at == ' ';
    }
    DT_TRY(split_elements(p, l, word, &n));
    return n == n_targets ? set_targets(p, g, l, word, 1)
                          : dt_yaml_fail(p->d, l->node, "%s: expected %d values, found %d", l->key, n_targets, n);
}

static dt_status import_layers(dt_porting *p, const dt_key_row *g, const dt_leaf *l)
{
    const char *word[MAX_WORDS] = {NULL}, *both[2] = {NULL, NULL};
    char count[16];
    int n = 0;
    DT_TRY(split_elements(p, l, word, &n));
    for (int i = 1; i < n; i++) {
        if (strcmp(word[i], word[0]) != 0) {
            return dt_porting_remark(p, DT_REMARK_NONE, l,
                                     "layers of different widths: here all hidden layers have the same");
        }
    }
    snprintf(count, sizeof(count), "%d", n);
    both[0] = word[0];
    both[1] = count;
    return n > 0 ? set_targets(p, g, l, both, 1) : dt_porting_remark(p, DT_REMARK_NONE, l, "a list without a layer");
}

static dt_status import_roles(dt_porting *p, const dt_key_row *g, const dt_leaf *l)
{
    const char *word[MAX_WORDS] = {NULL};
    int n = 0;
    dt_str roles = {0};
    DT_TRY(split_elements(p, l, word, &n));
    dt_status st = DT_OK;
    for (int i = 0; i < n && st == DT_OK; i++) {
        const char *role = NULL;
        dt_str known = {0};
        st = translate_word(p, p->keys->roles, word[i], &role, &known);
        if (st == DT_OK && role == NULL) {
            const char *shown = dt_leaf_text(p, l);
            st = dt_yaml_fail(p->d, l->node, "%s = %s: expected names of models: %s", l->key,
                              shown != NULL ? shown : "?", dt_str_text(&known));
        }
        dt_str_addf(&roles, "%s%s", i > 0 ? ", " : "", role != NULL ? role : "");
        dt_str_fini(&known);
    }
    const char *text = dt_str_text(&roles);
    if (st == DT_OK) {
        st = set_targets(p, g, l, &text, 0);
    }
    dt_str_fini(&roles);
    return st;
}

/* Rounds have several passes over their samples, and rates of learning follow passes. */
static dt_status import_passes(dt_porting *p, const dt_key_row *g, const dt_leaf *l)
{
    const dt_leaf *of_file = dt_leaf_find(p, "rllib.num_sgd_iter");
    const dt_option *o = dt_porting_option(p, "@.sgd_epochs");
    int64_t passes = 10, n = 0;
    const char *text = NULL;
    char product[32], note[128];
    DT_TRY(plain_text_of(p, l, &text));
    if (p->phase == 1) {
        return set_targets(p, g, l, &text, 0);
    }
    (void)(o != NULL && o->dfl != NULL && dt_parse_whole(o->dfl, &passes));
    if (of_file != NULL && of_file->node->kind == DT_YAML_VALUE) {
        (void)dt_parse_whole(of_file->node->text, &passes); /* checked by its own row */
    }
    if (!dt_parse_whole(text, &n) || n < 0 || n > 1000000 || passes < 0 || passes > 1000000) {
        return dt_yaml_fail(p->d, l->node, "%s: expected a whole number in [0, 1000000]", l->key);
    }
    snprintf(product, sizeof(product), "%" PRId64, n * passes);
    snprintf(note, sizeof(note), "in passes: %" PRId64 " rounds of %" PRId64, n, passes);
    const dt_key_row noted = {.key = g->key, .target = g->target, .note = dt_yaml_keep(p->d, note)};
    const char *value = product;
    return noted.note != NULL ? set_targets(p, &noted, l, &value, 0) : fail_out_of_memory();
}

static dt_status import_assignment(dt_porting *p, const dt_key_row *g, const dt_leaf *l)
{
    const char *text = NULL;
    DT_TRY(plain_text_of(p, l, &text));
    return strcmp(text, g->words) == 0 ? set_targets(p, g, l, &text, 0)
                                       : dt_porting_remark(p, DT_REMARK_NONE, l, g->note);
}

/* ---- rows ------------------------------------------------------------------------------------------------------ */

static dt_status apply_row(dt_porting *p, const dt_key_row *g, const dt_leaf *l)
{
    if (dt_leaf_is_none(l)) {
        return dt_porting_remark(p, DT_REMARK_NONE, l, "it has no value: the default applies");
    }
    switch (g->act) {
    case DT_KEYS_TAKE:
        return import_value(p, g, l);
    case DT_KEYS_EACH:
        return import_list(p, g, l);
    case DT_KEYS_LAYERS:
        return import_layers(p, g, l);
    case DT_KEYS_ROLES:
        return import_roles(p, g, l);
    case DT_KEYS_PASSES:
        return import_passes(p, g, l);
    case DT_KEYS_SET:
        return import_assignment(p, g, l);
    case DT_KEYS_IMPLY:
        return DT_OK;   /* set before the other rows */
    case DT_KEYS_BATCH: /* those that became values, or contradict them, are reported already */
    case DT_KEYS_ENVS:
    case DT_KEYS_ENVS_LIMIT:
    case DT_KEYS_ROUND:
    case DT_KEYS_ABOUT:
    case DT_KEYS_SAME:
        return dt_porting_remark(p, DT_REMARK_SAME, l, g->note);
    case DT_KEYS_NONE:
        return dt_porting_remark(p, DT_REMARK_NONE, l, g->note);
    case DT_KEYS_WRONG:
        return dt_porting_remark(p, DT_REMARK_WRONG, l, g->note);
    }
    return DT_OK;
}

/* Did a value or a remark come of it? */
static bool has_outcome(const dt_porting *p, const dt_leaf *l)
{
    for (const dt_setting_in *s = p->settings; s != NULL; s = s->next) {
        if (s->from == l->key) {
            return true;
        }
    }
    for (const dt_remark *r = p->remarks; r != NULL; r = r->next) {
        if (r->phase == p->phase && r->line == l->node->line && strcmp(r->key, l->key) == 0) {
            return true;
        }
    }
    return false;
}

static dt_status remark_unknown_key(dt_porting *p, const dt_leaf *l)
{
    enum { SUGGESTED = 20 }; /* looking for what is near takes its time */
    const char *note = "the guides have no such key";
    const char *near[512];
    size_t n = 0;
    if (dt_guide_find(p->keys, l->key, -1) != NULL) {
        return dt_porting_remark(p, DT_REMARK_NONE, l,
                                 p->phase > 0 ? "this phase has no counterpart"
                                              : "in a file of several phases it belongs in one of them");
    }
    p->ported.unknown++;
    for (const dt_key_row *g = p->keys->rows; g->key != NULL && n + 1 < sizeof(near) / sizeof(near[0]); g++) {
        near[n++] = g->key;
    }
    near[n] = NULL;
    const char *like = p->n_unknown++ < SUGGESTED ? dt_suggest_word(l->key, near) : NULL;
    if (like != NULL) {
        dt_str text = {0};
        dt_str_addf(&text, "did you mean %s?", like);
        note = text.failed ? NULL : dt_yaml_keep(p->d, dt_str_text(&text));
        dt_str_fini(&text);
    }
    return note != NULL ? dt_porting_remark(p, DT_REMARK_UNKNOWN, l, note) : fail_out_of_memory();
}

static dt_status import_phase(dt_porting *p, int phase, const dt_yaml *map)
{
    p->phase = phase;
    p->n_leaves = 0;
    DT_TRY(collect_scalars(p, map, ""));
    DT_TRY(dt_porting_joint(p));
    for (const dt_key_row *g = p->keys->rows; g->key != NULL; g++) {
        for (int i = 0; i < p->n_leaves && strchr(g->phases, '0' + phase) != NULL; i++) {
            if (strcmp(p->leaf[i].key, g->key) == 0) {
                const bool is_joint = g->act == DT_KEYS_BATCH || g->act == DT_KEYS_ENVS ||
                                      g->act == DT_KEYS_ENVS_LIMIT || g->act == DT_KEYS_ROUND;
                p->leaf[i].is_done = true;
                DT_TRY(is_joint && has_outcome(p, &p->leaf[i]) ? DT_OK : apply_row(p, g, &p->leaf[i]));
            }
        }
    }
    for (int i = 0; i < p->n_leaves; i++) {
        DT_TRY(p->leaf[i].is_done ? DT_OK : remark_unknown_key(p, &p->leaf[i]));
    }
    return DT_OK;
}

/* ---- phases ---------------------------------------------------------------------------------------------------- */

static const dt_yaml *find_child(const dt_yaml *map, const char *key)
{
    for (const dt_yaml *n = map != NULL && map->kind == DT_YAML_MAP ? map->first : NULL; n != NULL; n = n->next) {
        if (strcmp(n->key, key) == 0) {
            return n;
        }
    }
    return NULL;
}

/* 1, 2 or 3: as the file states, or as its keys imply; a file of the guides for DDP alone is of phase 1. */
static dt_status find_phase(dt_porting *p, const dt_yaml *root, int *phase_p)
{
    const dt_yaml *said = find_child(find_child(root, "data"), "phase");
    if (*phase_p != 0) {
        return DT_OK;
    }
    if (said != NULL) {
        const bool is_one =
            said->kind == DT_YAML_VALUE && strlen(said->text) == 1 && strchr("123", said->text[0]) != NULL;
        *phase_p = is_one ? said->text[0] - '0' : 0;
        return is_one ? DT_OK : dt_yaml_fail(p->d, said, "data.phase: expected 1, 2 or 3");
    }
    *phase_p = 1;
    p->is_guessed = true;
    for (const char *at = p->keys->groups; *at != '\0' && p->is_guessed; at += strspn(at, " ")) {
        char group[KEY_BYTES];
        const size_t bytes = strcspn(at, "=");
        snprintf(group, sizeof(group), "%.*s", (int)bytes, at);
        if (find_child(root, group) != NULL) {
            *phase_p = at[bytes + 1] - '0';
            p->is_guessed = false;
        }
        at += strcspn(at, " ");
    }
    return DT_OK;
}

static bool is_enabled(const dt_yaml *phase)
{
    const dt_yaml *n = find_child(phase, "enabled");
    return n == NULL || n->kind != DT_YAML_VALUE || strcasecmp(n->text, "false") != 0;
}

/* A file of several phases. */
static dt_status import_phases(dt_porting *p, const dt_yaml *root, int only)
{
    static const char *const names[DT_KEYS_PHASES] = {"phase1", "phase2", "phase3"};
    dt_yaml common = {.kind = DT_YAML_MAP, .line = 1, .column = 1};
    const dt_yaml *of[DT_KEYS_PHASES] = {NULL, NULL, NULL};
    for (const dt_yaml *n = root->first; n != NULL; n = n->next) {
        int i = 0;
        while (i < DT_KEYS_PHASES && strcmp(n->key, names[i]) != 0) {
            i++;
        }
        if (i == DT_KEYS_PHASES) {
            dt_yaml *copy = dt_yaml_alloc(p->d, sizeof(*copy));
            if (copy == NULL) {
                return fail_out_of_memory();
            }
            *copy = *n;
            copy->next = NULL;
            if (common.last != NULL) {
                common.last->next = copy;
            } else {
                common.first = copy;
            }
            common.last = copy;
        } else if (n->kind != DT_YAML_MAP) {
            return dt_yaml_fail(p->d, n, "%s is a group of keys, but the file has a %s", n->key,
                                n->kind == DT_YAML_LIST ? "list" : "value");
        } else {
            of[i] = n;
        }
    }
    DT_TRY(import_phase(p, 0, &common));
    for (int i = 0; i < DT_KEYS_PHASES; i++) {
        if (of[i] != NULL && (only == 0 || only == i + 1)) {
            DT_TRY(import_phase(p, i + 1, of[i]));
            p->listed[p->n_listed] = i + 1;
            p->n_listed += is_enabled(of[i]);
        }
    }
    return p->n_listed > 0 ? DT_OK : dt_yaml_fail(p->d, root, "no phase is enabled: there is nothing to train");
}

static dt_status import_root_keys(dt_porting *p, int phase)
{
    const dt_yaml *root = dt_yaml_root(p->d);
    if (find_child(root, "phase1") != NULL || find_child(root, "phase2") != NULL ||
        find_child(root, "phase3") != NULL) {
        return import_phases(p, root, phase);
    }
    DT_TRY(find_phase(p, root, &phase));
    if (!is_enabled(root)) {
        return dt_yaml_fail(p->d, find_child(root, "enabled"),
                            "enabled: false, and no other phase is there: there is nothing "
                            "to train");
    }
    p->listed[p->n_listed++] = phase;
    return import_phase(p, phase, root);
}

static void count_imported(dt_porting *p)
{
    for (const dt_setting_in *s = p->settings, *before = NULL; s != NULL; before = s, s = s->next) {
        p->ported.taken += before == NULL || before->from != s->from;
    }
    for (const dt_remark *r = p->remarks; r != NULL; r = r->next) {
        p->ported.same += r->kind == DT_REMARK_SAME;
        p->ported.none += r->kind == DT_REMARK_NONE;
        p->ported.wrong += r->kind == DT_REMARK_WRONG;
    }
}

dt_status dt_porting_import(const char *path, int phase, const dt_keys_ext *keys, const dt_config *known, dt_str *out,
                            dt_ported *ported_p)
{
    dt_porting p = {.keys = keys, .known = known};
    DT_TRY(dt_yaml_read(path, &p.d));
    p.settings_end = &p.settings;
    p.remarks_end = &p.remarks;
    dt_status st = import_root_keys(&p, phase);
    if (st == DT_OK) {
        count_imported(&p);
        st = dt_porting_write(&p, path, out);
    }
    if (st == DT_OK) {
        *ported_p = p.ported;
    }
    dt_free(p.leaf);
    dt_yaml_close(p.d);
    return st;
}
