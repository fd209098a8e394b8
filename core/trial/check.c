/* SPDX-License-Identifier: Apache-2.0
 *
 * Does a plugin keep its promises? One line each. See check.h; verb_check.c is the command.
 *
 * The loader's own rules come first (a file that breaks them is refused). Then, per component: words for people,
 * options (the component's check at the default and at both ends of every range), and a life: a model is created twice,
 * its ports and parameters read, its graph recorded, run forward and backward on zeros in the reference lane with
 * poisoned memory, and destroyed; a data source reads samples of the configured store, else of the embedded recording,
 * twice into guarded buffers; an environment is played under random actions, and again in another instance; a phase
 * runs two iterations. Opening the plugin, and each of its components, is tried in a process of its own whose memory is
 * fenced: it may crash, exit, hang, or write where it should not, and check says what it was asked when it did. After
 * the first broken promise of a component the rest of it is left out.
 */
#include <config.h>

#include "trial/check.h"
#include "trial/probe_data.h"
#include "trial/probe_env.h"
#include "trial/trial.h"
#include "base/err.h"
#include "base/mem.h"
#include "config/schema.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

typedef struct checker {
    const dt_check_desc *desc;
    dt_str out; /* lines that are not told yet */
    uint32_t n_pass, n_skip, n_fail;
    dt_probe_host quiet; /* serves nothing, for check() of components */
    dt_trial *trial;     /* in the process where a component is on trial, else NULL */
} checker;

/* A component's config struct; its texts live in tree, or in the configuration given. */
typedef struct filled {
    void *config;
    dt_config *tree; /* owned, NULL when there is a given one */
} filled;

/* ---- lines ----------------------------------------------------------------------------------------------------- */

/* What has its line end by now. */
static void tell_lines(checker *k)
{
    char *line = k->out.text, *end = NULL;
    while (line != NULL && (end = strchr(line, '\n')) != NULL) {
        *end = '\0';
        k->desc->tell(k->desc->user, line);
        line = end + 1;
    }
    if (line != NULL) {
        k->out.bytes = strlen(line);
        memmove(k->out.text, line, k->out.bytes + 1);
    }
}

static void line(checker *k, const char *verdict, const dt_component *c, const char *fmt, va_list ap)
{
    dt_str_addf(&k->out, "%s %s %s: ", verdict, dt_kind_name(c->kind), c->id);
    dt_str_addv(&k->out, fmt, ap);
    dt_str_add(&k->out, "\n");
    if (k->trial == NULL) {
        tell_lines(k);
        return;
    }
    dt_trial_say(k->trial, dt_str_text(&k->out), k->out.bytes); /* at once: it may be the last */
    dt_str_clear(&k->out);
    const uint32_t count[] = {k->n_pass, k->n_skip, k->n_fail};
    memcpy(k->trial->count, count, sizeof(count));
}

static void pass(checker *k, const dt_component *c, const char *fmt, ...) DT_PRINTF(3, 4);
static void pass(checker *k, const dt_component *c, const char *fmt, ...)
{
    va_list ap;
    k->n_pass++;
    va_start(ap, fmt);
    line(k, "PASS", c, fmt, ap);
    va_end(ap);
}

static void skip(checker *k, const dt_component *c, const char *fmt, ...) DT_PRINTF(3, 4);
static void skip(checker *k, const dt_component *c, const char *fmt, ...)
{
    va_list ap;
    k->n_skip++;
    va_start(ap, fmt);
    line(k, "SKIP", c, fmt, ap);
    va_end(ap);
}

/* Returns false, for the caller to return. */
static bool fail(checker *k, const dt_component *c, const char *fmt, ...) DT_PRINTF(3, 4);
static bool fail(checker *k, const dt_component *c, const char *fmt, ...)
{
    va_list ap;
    k->n_fail++;
    va_start(ap, fmt);
    line(k, "FAIL", c, fmt, ap);
    va_end(ap);
    return false;
}

/* What the component is asked next: said if it never answers. */
static void next(const checker *k, const char *step)
{
    dt_trial_step(k->trial, step);
}

/* "shapes do not fit" of the step named, with the reason recorded */
static bool fail_status(checker *k, const dt_component *c, const char *step, dt_status st)
{
    return fail(k, c, "%s: %s", step, *dt_error_text() != '\0' ? dt_error_text() : dt_status_name(st));
}

/* ---- words and options ----------------------------------------------------------------------------------------- */

static bool has_text(const char *text)
{
    return text != NULL && *text != '\0';
}

static bool check_words(checker *k, const dt_component *c)
{
    if (!has_text(c->summary) || !has_text(c->reference)) {
        return fail(k, c, "summary or reference is empty; a reader wants one sentence and a source, or \"none\"");
    }
    uint32_t n = 0;
    for (const dt_option *o = c->options; o != NULL && o->name != NULL; o++, n++) {
        if (!has_text(o->help)) {
            return fail(k, c, "option %s has no help; write one sentence, then the source", o->name);
        }
    }
    pass(k, c, "%s; %u options, every default parses", c->summary, n);
    return true;
}

static bool has_option(const dt_component *c, const char *name)
{
    for (const dt_option *o = c->options; o != NULL && o->name != NULL; o++) {
        if (strcmp(o->name, name) == 0) {
            return true;
        }
    }
    return false;
}

static void filled_fini(filled *f)
{
    dt_free(f->config);
    dt_config_destroy(f->tree);
    *f = (filled){NULL, NULL};
}

/* All options as configured, else their defaults, and one set to a text when key is not NULL. DT_ECONFIG when a
 * required one has no value. */
static dt_status filled_init(filled *f, const checker *k, const dt_component *c, const char *key, const char *value)
{
    *f = (filled){dt_alloc(c->config_size), NULL};
    dt_status st = f->config != NULL ? DT_OK : DT_FAIL(DT_ENOMEM, "no memory for options");
    if (st == DT_OK && k->desc->config == NULL) {
        st = dt_config_create(&f->tree);
    }
    dt_config *tree = f->tree != NULL ? f->tree : k->desc->config;
    if (st == DT_OK) {
        st = dt_config_declare(tree, c->id, c->options, "check");
    }
    if (st == DT_OK) {
        const dt_setting one = {key, value};
        st = dt_config_section(tree, -1, c->id, &one, key != NULL, f->config, c->config_size);
    }
    if (st != DT_OK) {
        filled_fini(f);
    }
    return st;
}

/* A refusal must say why. */
static bool accepts_or_explains(checker *k, const dt_component *c, const dt_option *o, const char *value)
{
    filled f;
    if (filled_init(&f, k, c, o->name, value) != DT_OK) {
        return fail(k, c, "option %s: %s", o->name, dt_error_text());
    }
    dt_error_clear();
    next(k, "check");
    dt_status st = c->check != NULL ? c->check(&k->quiet.host, f.config) : DT_OK;
    filled_fini(&f);
    if (st < 0 && *dt_error_text() == '\0') {
        return fail(k, c, "check refuses %s = %s with %s and gives no reason; use DT_FAIL_H", o->name, value,
                    dt_status_name(st));
    }
    return true;
}

static bool try_bounds(checker *k, const dt_component *c)
{
    uint32_t n = 0;
    char value[40];
    for (const dt_option *o = c->options; o != NULL && o->name != NULL; o++) {
        const double bound[2] = {o->min, o->max};
        if (o->type == DT_OPT_I64 || o->type == DT_OPT_F64) {
            for (int side = 0; side < 2; side++) {
                if (!isfinite(bound[side])) {
                    continue;
                }
                snprintf(value, sizeof(value), o->type == DT_OPT_I64 ? "%.0f" : "%.17g", bound[side]);
                if (!accepts_or_explains(k, c, o, value)) {
                    return false;
                }
                n++;
            }
        }
        if (o->type == DT_OPT_ENUM) {
            for (const char *const *choice = o->choices; *choice != NULL; choice++, n++) {
                if (!accepts_or_explains(k, c, o, *choice)) {
                    return false;
                }
            }
        }
    }
    if (n > 0) {
        pass(k, c, "%u bounds and choices of its options are accepted, or refused with a reason", n);
    }
    return true;
}

static bool check_default(checker *k, const dt_component *c, const filled *f)
{
    dt_error_clear();
    next(k, "check");
    dt_status st = c->check != NULL ? c->check(&k->quiet.host, f->config) : DT_OK;
    return st >= 0 || fail_status(k, c, "check refuses the defaults", st);
}

/* ---- models ---------------------------------------------------------------------------------------------------- */

static bool probe_model(checker *k, const dt_loaded *m, dt_probe *p)
{
    const dt_component *c = &m->desc;
    next(k, "ports");
    dt_status st = dt_probe_ports(p);
    if (st != DT_OK) {
        return fail_status(k, c, "ports", st);
    }
    pass(k, c, "%u inputs and %u outputs, legal and fixed in size", p->n_in, p->n_out);
    next(k, "params");
    st = dt_probe_params(p);
    if (st != DT_OK) {
        return fail_status(k, c, "params", st);
    }
    pass(k, c, "%" PRId64 " parameters in %u tensors", p->params.count, p->params.n);
    next(k, "forward");
    st = dt_probe_record(p);
    if (st != DT_OK) {
        return fail_status(k, c, "forward", st);
    }
    pass(k, c, "its graph records, outputs have the shapes of their ports");
    next(k, "running on zeros");
    st = dt_probe_run(p);
    if (st != DT_OK) {
        return fail_status(k, c, "running on zeros", st);
    }
    pass(k, c, "runs forward and backward on zeros with finite results");
    return true;
}

static void check_model(checker *k, const dt_loaded *m, const filled *f)
{
    const dt_component *c = &m->desc;
    dt_probe first, second;
    next(k, "create");
    dt_status st = dt_probe_create(&first, m, f->config);
    if (st != DT_OK) {
        (void)fail_status(k, c, "create", st);
        dt_probe_destroy(&first);
        return;
    }
    pass(k, c, "created with H 16, T 3, F 4 and its options");
    next(k, "a second instance");
    st = dt_probe_create(&second, m, f->config); /* two at once, as in two phases */
    bool is_good = st == DT_OK ? probe_model(k, m, &first) : fail_status(k, c, "a second instance", st);
    next(k, "destroy");
    dt_probe_destroy(&second);
    dt_probe_destroy(&first);
    int64_t n_live = first.host.n_live + second.host.n_live;
    if (n_live != 0) {
        (void)fail(k, c, "destroy leaves %" PRId64 " blocks of host memory", n_live);
    } else if (is_good) {
        pass(k, c, "destroyed twice, nothing is left");
    }
}

/* Is it tried in the environment that the user names? */
static bool acts(const checker *k, const dt_component *c)
{
    return k->desc->run_model != NULL && c->kind == DT_KIND_MODEL &&
           (strcmp(c->role, "controller") == 0 || strcmp(c->role, "shield") == 0);
}

/* Ports against what the environment offers, then rounds of acting and learning. */
static void check_acting(checker *k, const dt_loaded *m)
{
    dt_str note = {0};
    dt_error_clear();
    next(k, "acting");
    const dt_status st = k->desc->run_model(k->desc->user, m, k->trial, &note);
    if (st >= 0) {
        pass(k, &m->desc, "%s", dt_str_text(&note));
    } else {
        (void)fail_status(k, &m->desc, "acting", st);
    }
    dt_str_fini(&note);
}

/* ---- data ------------------------------------------------------------------------------------------------------ */

static bool is_for_want(dt_status st)
{
    return st == DT_ENOTFOUND || st == DT_ECONFIG || st == DT_EUNSUPPORTED;
}

static bool probe_data(checker *k, dt_probe_data *p)
{
    const dt_component *c = &p->data->desc;
    next(k, "fields, symbols, count");
    dt_status st = dt_probe_data_describe(p);
    if (st < 0) {
        return fail_status(k, c, "fields, symbols, count", st);
    }
    pass(k, c, "%u fields, %" PRIu64 " samples", p->n_fields, p->count);
    if (p->count == 0) {
        skip(k, c, "read: no samples");
        return true;
    }
    next(k, "read");
    st = dt_probe_data_read(p);
    if (st < 0) {
        return fail_status(k, c, "read", st);
    }
    pass(k, c, "reads samples within their buffers, twice the same, augmented or not");
    return true;
}

static void check_data(checker *k, const dt_loaded *d, const filled *f)
{
    const dt_component *c = &d->desc;
    dt_probe_data p;
    bool is_good = false;
    uint32_t n_stores = 0;
    next(k, "create");
    dt_status st = dt_probe_data_create(&p, d, f->config);
    if (st >= 0) {
        is_good = probe_data(k, &p);
    } else if (is_for_want(st) && *dt_error_text() != '\0') {
        skip(k, c, "create: %s", dt_error_text());
    } else {
        (void)fail_status(k, c, "create", st);
    }
    next(k, "destroy");
    dt_probe_data_destroy(&p, &n_stores);
    if (is_good && (p.host.n_live != 0 || n_stores != 0)) {
        (void)fail(k, c, "destroy leaves %" PRId64 " blocks of host memory and %u open stores", p.host.n_live,
                   n_stores);
    } else if (is_good) {
        pass(k, c, "destroyed, nothing is left");
    }
}

/* ---- environments ---------------------------------------------------------------------------------------------- */

static void pass_spec(checker *k, const dt_component *c, const dt_env_spec *s)
{
    pass(k, c, "its spec is legal: %u place%s for agents, %u observation%s, %u discrete and %u continuous actions",
         s->n_agents, s->n_agents == 1 ? "" : "s", s->n_obs, s->n_obs == 1 ? "" : "s", s->n_heads, s->n_continuous);
}

/* The same game in a second instance, beside the first one where the process may hold two. */
static bool replay(checker *k, const dt_loaded *e, const filled *f, dt_probe_env *first, const dt_probe_trace *trace,
                   int64_t *n_live_p)
{
    const dt_component *c = &e->desc;
    dt_probe_env second;
    if ((c->flags & DT_COMP_PROCESS) != 0) {
        dt_probe_env_destroy(first);
    }
    const char *step = "a second instance";
    next(k, step);
    dt_status st = dt_probe_env_create(&second, e, f->config);
    if (st == DT_OK) {
        st = dt_probe_env_spec(&second);
    }
    if (st == DT_OK) {
        step = "playing again";
        next(k, step);
        second.beat = first->beat;
        st = dt_probe_env_replay(&second, trace);
    }
    dt_probe_env_destroy(&second);
    *n_live_p = second.host.n_live;
    if (st < 0) {
        return fail_status(k, c, step, st);
    }
    pass(k, c, "the same seeds and actions give the same bits in another instance");
    return true;
}

static bool probe_env(checker *k, const dt_loaded *e, const filled *f, dt_probe_env *p, int64_t *n_live_p)
{
    const dt_component *c = &e->desc;
    next(k, "spec");
    dt_status st = dt_probe_env_spec(p);
    if (st < 0) {
        return fail_status(k, c, "spec", st);
    }
    pass_spec(k, c, &p->layout.spec);
    dt_probe_trace *trace = dt_alloc(sizeof(*trace));
    next(k, "playing");
    st = trace != NULL ? dt_probe_env_play(p, trace) : DT_FAIL(DT_ENOMEM, "no memory for a trial");
    bool is_good = st >= 0 || fail_status(k, c, "playing", st);
    if (is_good) {
        pass(k, c, "%u steps under random actions, episodes: %u begun, %u over; sizes, numbers and ends are legal",
             trace->n_steps, trace->n_episodes, trace->n_ended);
        is_good = replay(k, e, f, p, trace, n_live_p);
    }
    dt_free(trace);
    return is_good;
}

static void check_env(checker *k, const dt_loaded *e, const filled *f)
{
    const dt_component *c = &e->desc;
    dt_probe_env p;
    bool is_good = false;
    int64_t n_live = 0;
    next(k, "create");
    dt_status st = dt_probe_env_create(&p, e, f->config);
    p.beat = &k->trial->beat;
    if (st >= 0) {
        is_good = probe_env(k, e, f, &p, &n_live);
    } else if (is_for_want(st) && *dt_error_text() != '\0') {
        skip(k, c, "create: %s", dt_error_text());
    } else {
        (void)fail_status(k, c, "create", st);
    }
    next(k, "destroy");
    dt_probe_env_destroy(&p);
    n_live += p.host.n_live;
    if (is_good && n_live != 0) {
        (void)fail(k, c, "destroy leaves %" PRId64 " blocks of host memory", n_live);
    } else if (is_good) {
        pass(k, c, "destroyed twice, nothing is left");
    }
}

/* ---- phases ---------------------------------------------------------------------------------------------------- */

static const char *const *known_ids(void *user)
{
    return dt_loader_ids(user);
}

static dt_status lookup(void *user, dt_config *c, const char *id, const char **role_p)
{
    const dt_loaded *comp = NULL;
    DT_TRY(dt_loader_find(user, 0, id, &comp));
    *role_p = comp->desc.role;
    return dt_config_declare(c, id, comp->desc.options, comp->plugin->desc.name);
}

/* Its defaults for host sections must be keys that exist, with values in range. */
static dt_status apply_defaults(const checker *k, const char *plugin, const char *const *defaults, dt_config **tree_p)
{
    const dt_config_lookup find = {lookup, known_ids, k->desc->loader};
    DT_TRY(dt_config_create(tree_p));
    DT_TRY(dt_config_use_plugin(*tree_p, plugin, "check"));
    DT_TRY(dt_config_add_defaults(*tree_p, 0, plugin, defaults));
    return dt_config_check(*tree_p, &find);
}

static bool check_defaults(checker *k, const dt_loaded *p)
{
    const dt_component *c = &p->desc;
    const char *const *defaults = c->extension != NULL ? c->extension("dtrain.defaults/1") : NULL;
    if (defaults == NULL) {
        return true;
    }
    dt_config *tree = NULL;
    const dt_status st = apply_defaults(k, p->plugin->desc.name, defaults, &tree);
    dt_config_destroy(tree);
    if (st != DT_OK) {
        return fail_status(k, c, "its defaults", st);
    }
    uint32_t n = 0;
    while (defaults[n] != NULL) {
        n++;
    }
    pass(k, c, "%u defaults for dtrain's own sections, legal and in range", n);
    return true;
}

static void check_phase(checker *k, const dt_loaded *p)
{
    const dt_component *c = &p->desc;
    if (!check_defaults(k, p)) {
        return;
    }
    if (k->desc->run_phase == NULL) {
        skip(k, c, "life cycle: this program does not run phases here");
        return;
    }
    dt_str note = {0};
    dt_error_clear();
    next(k, "life cycle");
    dt_status st = k->desc->run_phase(k->desc->user, p, k->trial, &note);
    if (st >= 0) {
        pass(k, c, "%s", dt_str_text(&note));
    } else if (is_for_want(st) && *dt_error_text() != '\0') {
        skip(k, c, "life cycle: %s", dt_error_text());
    } else {
        (void)fail_status(k, c, "life cycle", st);
    }
    dt_str_fini(&note);
}

/* ---- all of it ------------------------------------------------------------------------------------------------- */

static void check_component(checker *k, const dt_loaded *comp)
{
    const dt_component *c = &comp->desc;
    filled f;
    if (!check_words(k, c)) {
        return;
    }
    /* as in a run, data.store reaches a source as its option "store" */
    const bool has_store = c->kind == DT_KIND_DATA && k->desc->store != NULL && has_option(c, "store");
    dt_status st = filled_init(&f, k, c, has_store ? "store" : NULL, k->desc->store);
    if (st == DT_ECONFIG) {
        skip(k, c, "life cycle: %s", dt_error_text()); /* a required option */
        return;
    }
    if (st != DT_OK) {
        (void)fail_status(k, c, "options", st);
        return;
    }
    if (check_default(k, c, &f) && try_bounds(k, c)) {
        if (acts(k, c)) {
            check_acting(k, comp);
        } else if (c->kind == DT_KIND_MODEL) {
            check_model(k, comp, &f);
        } else if (c->kind == DT_KIND_DATA) {
            check_data(k, comp, &f);
        } else if (c->kind == DT_KIND_PHASE) {
            check_phase(k, comp);
        } else {
            check_env(k, comp, &f);
        }
    }
    filled_fini(&f);
}

/* ---- on trial -------------------------------------------------------------------------------------------------- */

typedef struct component_trial {
    checker *k;
    const dt_loaded *comp;
} component_trial;

static void try_component(void *user, dt_trial *t)
{
    const component_trial *c = user;
    checker k = {.desc = c->k->desc, .trial = t};
    dt_probe_host_init(&k.quiet);
    check_component(&k, c->comp);
    dt_str_fini(&k.out);
}

static void hear(void *user, const char *text, size_t bytes)
{
    const component_trial *c = user;
    dt_str_add_n(&c->k->out, text, bytes);
    tell_lines(c->k);
}

static double timeout_of(const checker *k)
{
    return k->desc->timeout_s > 0 ? k->desc->timeout_s : INFINITY;
}

static void check_apart(checker *k, const dt_loaded *comp)
{
    component_trial c = {k, comp};
    dt_trial_result r;
    const dt_status st = dt_trial_do(try_component, hear, &c, timeout_of(k), &r);
    k->n_pass += r.count[0];
    k->n_skip += r.count[1];
    k->n_fail += r.count[2];
    if (st < 0) {
        (void)fail(k, &comp->desc, "%s: %s%s", r.step[0] != '\0' ? r.step : "its trial", dt_error_text(),
                   r.is_late ? "; env.timeout_s is the time for an answer" : "");
    }
}

typedef struct open_trial {
    dt_loader *loader;
    const char *file;
} open_trial;

static void try_open(void *user, dt_trial *t)
{
    const open_trial *o = user;
    const dt_loaded_plugin *p = NULL;
    (void)!dt_loader_open(o->loader, o->file, &p); /* what it refuses is told when it is opened here */
}

/* Opening runs the plugin's constructors and its init: in a copy first, which may end. */
static dt_status open_plugin(const checker *k, const char *file, const dt_loaded_plugin **p_p)
{
    open_trial o = {k->desc->loader, file};
    dt_trial_result r;
    const dt_status st = dt_trial_do(try_open, NULL, &o, timeout_of(k), &r);
    if (st < 0) {
        return DT_CONTEXT(DT_EPLUGIN, "%s: opening it", file);
    }
    return dt_loader_open(k->desc->loader, file, p_p);
}

static dt_status check_plugin(checker *k, const char *file)
{
    const dt_loaded_plugin *p = NULL;
    dt_loader *loader = k->desc->loader;
    const dt_status st = open_plugin(k, file, &p);
    if (st != DT_OK) {
        dt_str_addf(&k->out, "FAIL %s\n", dt_error_text());
        tell_lines(k);
        return st;
    }
    dt_str_addf(&k->out, "PASS %s: %s %s by %s (%s), ABI %u.%u, %u component%s\n", p->path, p->desc.name,
                has_text(p->desc.version) ? p->desc.version : "?", has_text(p->desc.vendor) ? p->desc.vendor : "?",
                has_text(p->desc.license) ? p->desc.license : "no licence", p->desc.abi_major, p->desc.abi_minor,
                p->desc.n_components, p->desc.n_components == 1 ? "" : "s");
    tell_lines(k);
    k->n_pass++;
    /* looking for other components moves the list, so take ours first */
    const dt_loaded *ours[256];
    uint32_t n = 0;
    for (uint32_t i = 0; i < dt_loader_n(loader) && n < 256; i++) {
        const dt_loaded *comp = dt_loader_at(loader, i);
        if (comp->plugin == p) {
            ours[n++] = comp;
        }
    }
    uint32_t n_acting = 0;
    for (uint32_t i = 0; i < n; i++) {
        n_acting += acts(k, &ours[i]->desc);
        check_apart(k, ours[i]);
    }
    if (k->desc->run_model != NULL && n_acting == 0) {
        k->n_fail++;
        dt_str_addf(&k->out, "FAIL %s: there is no controller or shield in it to be tried in an environment\n",
                    p->desc.name);
        tell_lines(k);
    }
    dt_str_addf(&k->out, "%s %s: %u passed, %u failed, %u skipped\n", k->n_fail == 0 ? "PASS" : "FAIL", p->desc.name,
                k->n_pass, k->n_fail, k->n_skip);
    tell_lines(k);
    DT_TRY(dt_str_status(&k->out));
    return k->n_fail == 0 ? DT_OK : DT_FAIL(DT_EPLUGIN, "%s: %u of its promises are broken", p->path, k->n_fail);
}

dt_status dt_check_plugin(const dt_check_desc *d, const char *file)
{
    checker k = {.desc = d};
    const dt_status st = check_plugin(&k, file);
    dt_str_fini(&k.out);
    return st;
}
