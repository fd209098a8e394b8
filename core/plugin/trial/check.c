/* SPDX-License-Identifier: Apache-2.0
 *
 * Does a plugin keep its promises? One line each. See check.h; verb_check.c is the command.
 *
 * The loader's own rules come first (a file that breaks them is refused). Then, per component: words for people,
 * options (the component's check at the default and at both ends of every range), and a lifecycle (lifecycle.c).
 * Opening the plugin, and each of its components, is tried in a process of its own whose memory is fenced: it may
 * crash, exit, hang, or write where it should not, and check reports the call during which it did. Then another process
 * tries what is left, as far as that can be without what never returned.
 */
#include <config.h>

#include "plugin/trial/check.h"
#include "plugin/trial/checker.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/mem.h"
#include "config/schema.h"

#include <dirent.h>
#include <math.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

/* A component's config struct; its texts live in tree, or in the configuration given. */
typedef struct filled {
    void *config;
    dt_config *tree; /* owned, NULL when there is a given one */
} filled;

/* ---- words and options ----------------------------------------------------------------------------------------- */

static bool is_nonempty(const char *text)
{
    return text != NULL && *text != '\0';
}

static void check_texts(dt_checker *k, const dt_component *c)
{
    if (!is_nonempty(c->summary) || !is_nonempty(c->reference)) {
        (void)dt_check_fail(k, c,
                            "summary or reference is empty; a reader needs one sentence and a source, or \"none\"");
        return;
    }
    uint32_t n = 0;
    for (const dt_option *o = c->options; o != NULL && o->name != NULL; o++, n++) {
        if (!is_nonempty(o->help)) {
            (void)dt_check_fail(k, c, "option %s has no help; write one sentence, then the source", o->name);
            return;
        }
    }
    dt_check_pass(k, c, "%s; %u options, every default parses", c->summary, n);
}

static void filled_fini(filled *f)
{
    dt_free(f->config);
    dt_config_destroy(f->tree);
    *f = (filled){NULL, NULL};
}

/* All options as configured, else their defaults, and one set to a text when key is not NULL. DT_ECONFIG when a
 * required one has no value. */
static dt_status filled_init(filled *f, const dt_checker *k, const dt_component *c, const char *key, const char *value)
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

/* check() of one option at a value, or of all as they are; not where it never answered before. */
static dt_status call_option_check(dt_checker *k, const dt_component *c, const void *config, const char *key,
                                   const char *value)
{
    dt_error_clear();
    if (c->check == NULL || !dt_trial_begin_step(k->trial, "check")) {
        return DT_OK;
    }
    if (key != NULL) {
        dt_trial_report_call(k->trial, "check of %s = %s", key, value);
    }
    return c->check(&k->quiet.host, config);
}

/* A refusal must give a reason. */
static bool accepts_or_explains(dt_checker *k, const dt_component *c, const dt_option *o, const char *value)
{
    filled f;
    if (filled_init(&f, k, c, o->name, value) != DT_OK) {
        return dt_check_fail(k, c, "option %s: %s", o->name, dt_error_text());
    }
    const dt_status st = call_option_check(k, c, f.config, o->name, value);
    filled_fini(&f);
    if (st < 0 && *dt_error_text() == '\0') {
        return dt_check_fail(k, c, "check rejects %s = %s with %s and gives no reason; use DT_FAIL_H", o->name, value,
                             dt_status_name(st));
    }
    return true;
}

static void check_bounds(dt_checker *k, const dt_component *c)
{
    enum { MOST_S = 10 };
    const double until_s = dt_clock_s() + MOST_S;
    uint32_t n = 0, n_tried = 0;
    char value[40];
    for (const dt_option *o = c->options; o != NULL && o->name != NULL && dt_clock_s() < until_s; o++, n_tried++) {
        dt_trial_report_call(k->trial, "option %s", o->name);
        const double bound[2] = {o->min, o->max};
        if (o->type == DT_OPT_I64 || o->type == DT_OPT_F64) {
            for (int side = 0; side < 2; side++) {
                if (!isfinite(bound[side])) {
                    continue;
                }
                snprintf(value, sizeof(value), o->type == DT_OPT_I64 ? "%.0f" : "%.17g", bound[side]);
                if (!accepts_or_explains(k, c, o, value)) {
                    return;
                }
                n++;
            }
        }
        if (o->type == DT_OPT_ENUM) {
            for (const char *const *choice = o->choices; *choice != NULL; choice++, n++) {
                if (!accepts_or_explains(k, c, o, *choice)) {
                    return;
                }
            }
        }
    }
    if (n > 0) {
        const bool is_cut = c->options[n_tried].name != NULL;
        dt_check_pass(k, c, "%u bounds and choices of its %s%soptions are accepted, or rejected with a reason", n,
                      is_cut ? "first " : "", is_cut ? "tried " : "");
    }
}

static bool check_default(dt_checker *k, const dt_component *c, const filled *f)
{
    const dt_status st = call_option_check(k, c, f->config, NULL, NULL);
    return st >= 0 || dt_check_fail_status(k, c, "check rejects the defaults", st);
}

/* ---- one component --------------------------------------------------------------------------------------------- */

static void check_component_life(dt_checker *k, const dt_loaded *comp, const void *config)
{
    const dt_component *c = &comp->desc;
    if (dt_check_is_acting(k, c)) {
        dt_check_acting(k, comp);
    } else if (c->kind == DT_KIND_MODEL) {
        dt_check_model(k, comp, config);
    } else if (c->kind == DT_KIND_DATA) {
        dt_check_data(k, comp, config);
    } else if (c->kind == DT_KIND_PHASE) {
        dt_check_phase(k, comp);
    } else {
        dt_check_env(k, comp, config);
    }
}

/* Of this process; 0 where unknown. */
static uint32_t count_threads(void)
{
    uint32_t n = 0;
    DIR *tasks = opendir("/proc/self/task");
    for (const struct dirent *e; tasks != NULL && (e = readdir(tasks)) != NULL;) {
        n += e->d_name[0] != '.';
    }
    if (tasks != NULL) {
        closedir(tasks);
    }
    return n;
}

/* What create and its like began continues in memory that was released. A thread that was joined is listed for a
 * moment more. Where a step is left out the result is unknown; of what has a process of its own nothing
 * is left. */
static void check_threads(dt_checker *k, const dt_component *c, uint32_t before)
{
    enum { TIMES = 50, EACH_MS = 10 };
    const bool is_whole = k->trial == NULL || k->trial->broken == NULL || k->trial->broken[0] == '\0';
    uint32_t after = count_threads();
    if (!is_whole || (c->flags & DT_COMP_PROCESS) != 0) {
        return;
    }
    for (int i = 0; i < TIMES && after > before; i++) {
        (void)poll(NULL, 0, EACH_MS);
        after = count_threads();
    }
    if (after > before) {
        (void)dt_check_fail(k, c, "destroy leaves %u thread%s running; stop and join them in destroy", after - before,
                            after - before == 1 ? "" : "s");
    }
}

static void check_component(dt_checker *k, const dt_loaded *comp)
{
    const dt_component *c = &comp->desc;
    const uint32_t before = count_threads();
    filled f;
    check_texts(k, c);
    const dt_option *store = k->desc->store != NULL ? dt_option_find_flag(c->options, DT_OPT_STORE) : NULL;
    dt_status st = filled_init(&f, k, c, store != NULL ? store->name : NULL, k->desc->store);
    if (st == DT_ECONFIG) {
        dt_check_skip(k, c, "life cycle: %s", dt_error_text()); /* a required option */
        return;
    }
    if (st != DT_OK) {
        (void)dt_check_fail_status(k, c, "options", st);
        return;
    }
    k->tree = f.tree != NULL ? f.tree : k->desc->config;
    if (check_default(k, c, &f)) {
        check_bounds(k, c);
        check_component_life(k, comp, f.config);
        check_threads(k, c, before);
    }
    filled_fini(&f);
}

/* ---- on trial -------------------------------------------------------------------------------------------------- */

typedef struct component_trial {
    dt_checker *k;
    const dt_loaded *comp;
    dt_str broken; /* steps that never returned, a line each */
} component_trial;

static void try_component(void *user, dt_trial *t)
{
    const component_trial *c = user;
    dt_checker k = {.desc = c->k->desc, .trial = t};
    t->broken = dt_str_text(&c->broken);
    dt_probe_host_init(&k.quiet);
    check_component(&k, c->comp);
    dt_str_fini(&k.out);
}

static void receive_report(void *user, const char *text, size_t bytes)
{
    const component_trial *c = user;
    dt_str_add_n(&c->k->out, text, bytes);
    dt_check_print_complete_lines(c->k);
}

static double timeout_of_trial(const dt_checker *k)
{
    return k->desc->timeout_s > 0 ? k->desc->timeout_s : INFINITY;
}

/* "playing: it was killed by signal 11, Segmentation fault (in step)" */
static void report_trial_end(dt_checker *k, const dt_loaded *comp, const dt_trial_result *r)
{
    const bool has_call = r->call[0] != '\0' && strcmp(r->call, r->step) != 0;
    (void)dt_check_fail(k, &comp->desc, "%s: %s%s%s%s%s", r->step[0] != '\0' ? r->step : "its trial", dt_error_text(),
                        r->is_late ? "; env.timeout_s is the time for an answer" : "", has_call ? " (in " : "",
                        has_call ? r->call : "", has_call ? ")" : "");
}

/* In a process, and in another one without the step that ended it, until one lives to the end. */
static void check_manual_loss(dt_checker *k, const dt_loaded *comp)
{
    enum { MOST = 32 }; /* far more than there are steps */
    component_trial c = {.k = k, .comp = comp};
    dt_str reported = {0};
    dt_trial_result r;
    k->reported = &reported;
    for (int n = 0; n < MOST; n++) {
        const dt_status st = dt_trial_execute(try_component, receive_report, &c, timeout_of_trial(k), &r);
        if (st >= 0) {
            break;
        }
        report_trial_end(k, comp, &r);
        if (st != DT_EIO || r.step[0] == '\0' || dt_str_status(&c.broken) != DT_OK) {
            break;
        }
        dt_str_addf(&c.broken, "%s\n", r.step);
    }
    k->reported = NULL;
    dt_str_fini(&reported);
    dt_str_fini(&c.broken);
}

typedef struct open_trial {
    dt_loader *loader;
    const char *file;
    dt_trial *trial;
} open_trial;

static void note_next_call(void *user, const char *what)
{
    const open_trial *o = user;
    dt_trial_report_call(o->trial, "%s", what);
}

static void try_open(void *user, dt_trial *t)
{
    open_trial *o = user;
    const dt_loaded_plugin *p = NULL;
    o->trial = t;
    dt_loader_set_observer(o->loader, note_next_call, o);
    (void)!dt_loader_open(o->loader, o->file, &p); /* what it refuses is reported when it is opened here */
}

/* Opening runs the plugin's constructors and its init: in a copy first, which may end. */
static dt_status open_plugin(const dt_checker *k, const char *file, const dt_loaded_plugin **p_p)
{
    open_trial o = {k->desc->loader, file, NULL};
    dt_trial_result r;
    const dt_status st = dt_trial_execute(try_open, NULL, &o, timeout_of_trial(k), &r);
    if (st < 0 && r.call[0] != '\0') {
        return DT_CONTEXT(DT_EPLUGIN, "%s: opening it, in %s", file, r.call);
    }
    if (st < 0) {
        return DT_CONTEXT(DT_EPLUGIN, "%s: opening it", file);
    }
    const dt_status opened = dt_loader_open(k->desc->loader, file, p_p);
    if (opened != DT_ENOTFOUND || strchr(file, '/') != NULL) {
        return opened;
    }
    dt_error reason;
    const dt_loaded *comp = NULL;
    dt_error_save(&reason, opened);
    if (dt_loader_find(k->desc->loader, 0, file, &comp) != DT_OK) {
        return dt_error_restore(&reason);
    }
    *p_p = comp->plugin; /* of another name than its component */
    return DT_OK;
}

static void try_fini(void *user, dt_trial *t)
{
    const dt_loaded_plugin *p = user;
    (void)dt_trial_begin_step(t, "fini");
    p->desc.fini();
}

/* As at the end of a run. */
static void check_fini(dt_checker *k, const dt_loaded_plugin *p)
{
    dt_trial_result r;
    if (p->desc.fini == NULL) {
        return;
    }
    const dt_status st = dt_trial_execute(try_fini, NULL, (void *)p, timeout_of_trial(k), &r);
    if (st < 0) {
        dt_loader_skip_fini(k->desc->loader, p);
    }
    dt_str_addf(&k->out, "%s %s: fini%s%s\n", st >= 0 ? "PASS" : "FAIL", p->desc.name, st >= 0 ? " returns" : ": ",
                st >= 0 ? "" : dt_error_text());
    dt_check_print_complete_lines(k);
}

/* ---- all of it ------------------------------------------------------------------------------------------------- */

static void report_plugin(dt_checker *k, const dt_loaded_plugin *p)
{
    dt_str_addf(&k->out, "PASS %s: %s %s by %s (%s), ABI %u.%u, %u component%s\n", p->path, p->desc.name,
                is_nonempty(p->desc.version) ? p->desc.version : "?",
                is_nonempty(p->desc.vendor) ? p->desc.vendor : "?",
                is_nonempty(p->desc.license) ? p->desc.license : "no licence", p->desc.abi_major, p->desc.abi_minor,
                p->desc.n_components, p->desc.n_components == 1 ? "" : "s");
    dt_check_print_complete_lines(k);
}

static dt_status check_plugin(dt_checker *k, const char *file)
{
    enum { MOST = 256 };
    const dt_loaded_plugin *p = NULL;
    dt_loader *loader = k->desc->loader;
    const dt_status st = open_plugin(k, file, &p);
    if (st != DT_OK) {
        dt_str_addf(&k->out, "FAIL %s\n", dt_error_text());
        dt_check_print_complete_lines(k);
        return st;
    }
    report_plugin(k, p);
    DT_TRY(k->desc->check_config != NULL ? k->desc->check_config(k->desc->user, p) : DT_OK);
    /* looking for other components moves the list, so take ours first */
    const dt_loaded *ours[MOST];
    uint32_t n = 0, n_acting = 0;
    for (uint32_t i = 0; i < dt_loader_count(loader) && n < MOST; i++) {
        const dt_loaded *comp = dt_loader_at(loader, i);
        if (comp->plugin == p) {
            ours[n++] = comp;
        }
    }
    dt_check_extensions(k, p);
    dt_check_ops(k, p);
    for (uint32_t i = 0; i < n; i++) {
        n_acting += dt_check_is_acting(k, &ours[i]->desc);
        check_manual_loss(k, ours[i]);
    }
    check_fini(k, p);
    if (k->desc->run_model != NULL && n_acting == 0) {
        dt_str_addf(&k->out, "FAIL %s: it has no controller or shield to try in an environment\n", p->desc.name);
        dt_check_print_complete_lines(k);
    }
    const uint32_t n_fail = k->n_fail;
    dt_str_addf(&k->out, "%s %s: %u passed, %u failed, %u skipped\n", n_fail == 0 ? "PASS" : "FAIL", p->desc.name,
                k->n_pass, n_fail, k->n_skip);
    dt_check_print_complete_lines(k);
    DT_TRY(dt_str_status(&k->out));
    return n_fail == 0 ? DT_OK : DT_FAIL(DT_EPLUGIN, "%s: breaks its contract in %u cases", p->path, n_fail);
}

dt_status dt_check_plugin(const dt_check_desc *d, const char *file)
{
    dt_checker k = {.desc = d};
    const dt_status st = check_plugin(&k, file);
    dt_str_fini(&k.out);
    return st;
}
