/* SPDX-License-Identifier: Apache-2.0
 *
 * A third party's plugin that adds to the host: the verb "count", a section, and a check of `dtrain doctor`. Its
 * component is a model that nobody uses.
 */
#include "dtrain/ext/doctor.h"
#include "dtrain/ext/panels.h"
#include "dtrain/ext/verbs.h"
#include "dtrain/helpers.h"
#include "dtrain/plugin.h"

#include <stdlib.h>

/* ---- a model ----------------------------------------------------------------------------------------------------- */

static dt_status create(void *self, const dt_host *h, const void *c, const dt_dim *dims, uint32_t n)
{
    return DT_OK;
}
static const dt_port *no_ports(const void *self, uint32_t *n_p)
{
    *n_p = 0;
    return NULL;
}
static dt_status no_params(void *self, dt_params *reg)
{
    return DT_OK;
}
static dt_status forward(void *self, dt_graph *g, dt_tensor *const *in, dt_tensor **out)
{
    return DT_OK;
}
static void destroy(void *self) {}

/* ---- verbs ------------------------------------------------------------------------------------------------------- */

typedef struct counting {
    int64_t step;
} counting;

static const dt_option counting_options[] = {
    DT_OPTION(counting, step, DT_OPT_I64, "1", "1", 1, 100, NULL, "what each word counts for"), DT_OPTION_END};

static const dt_verb_section sections[] = {{"counting", counting_options}, {NULL, NULL}};

static dt_status words(const dt_host *h, const dt_verb_call *c)
{
    counting o;
    DT_TRY_H(c->section(c, "counting", &o, sizeof(o)));
    const char *base = c->option(c, "from");
    char text[256];
    snprintf(text, sizeof(text), "%s%lld%s\n", c->option(c, "exact") != NULL ? "exactly " : "",
             (base != NULL ? atoll(base) : 0) + (long long)o.step * c->n_words, c->json ? " json" : "");
    c->print(c, text);
    for (uint32_t i = 0; i < c->n_words; i++) {
        snprintf(text, sizeof(text), "%s\n", c->word[i]);
        c->print(c, text);
    }
    return DT_OK;
}

static dt_status refuse(const dt_host *h, const dt_verb_call *c)
{
    return DT_FAIL_H(h, DT_EDATA, "%s cannot be counted", c->word[0]);
}

static const dt_verb_option words_options[] = {
    {"from", "N", "begin with N", 'f', 0, 0, 0}, {"exact", NULL, "say so", 0, 0, 0, 0}, {NULL, NULL, NULL, 0, 0, 0, 0}};
static const dt_verb_option refuse_options[] = {{"why", "TEXT", "reason", 0, DT_VERB_OPTION_REQUIRED, 0, 0},
                                                {NULL, NULL, NULL, 0, 0, 0, 0}};
static const dt_verb_form forms[] = {{"words", "WORD...", "how many words", words_options, 0, 0, 3, 0, words},
                                     {"refuse", "WORD", "nothing", refuse_options, DT_COMPLETE_FILE, 1, 1, 0, refuse},
                                     {NULL, NULL, NULL, NULL, 0, 0, 0, 0, NULL}};
static const dt_verb count = {.struct_size = sizeof(dt_verb),
                              .name = "count",
                              .summary = "count words",
                              .examples = "  dtrain count words a b c\n",
                              .forms = forms,
                              .sections = sections};
static const dt_verb run = {/* the host has one of this name */
                            .struct_size = sizeof(dt_verb),
                            .name = "runs",
                            .summary = "never called",
                            .forms = forms};
static const dt_verb nameless = {.struct_size = sizeof(dt_verb), .summary = "left out", .forms = forms};
static const dt_verb *const verbs[] = {&count, &run, &nameless, NULL};

/* ---- doctor ------------------------------------------------------------------------------------------------------ */

static void examine(const dt_host *h, const dt_doctor_report *r)
{
    r->add_finding(r, DT_DOCTOR_WARN, "counting", "fingers: ten", "grow some");
    r->add_finding(r, DT_DOCTOR_WARN, NULL, NULL, NULL);
}
static const dt_doctor_api doctor = {.struct_size = sizeof(dt_doctor_api), .check = examine};

/* ---- report ------------------------------------------------------------------------------------------------------ */

static dt_status draw(const dt_host *h, const dt_panel_view *p)
{
    for (uint32_t i = 0; i < p->n_runs; i++) {
        const double *value = NULL;
        const uint64_t *step = NULL;
        char text[256];
        const uint32_t n = p->series(p, i, "loss", &value, &step);
        snprintf(text, sizeof(text), "<p class=\"extra\">%u losses, the last at step %llu; return %g; ", n,
                 n > 0 ? (unsigned long long)step[n - 1] : 0, p->evaluated(p, i, "return/mean"));
        p->html(p, text);
        p->text(p, "<extra>");
        p->html(p, "</p>");
        p->html(p, NULL);
        p->text(p, NULL);
    }
    DT_TRY_H(p->chart(p, "no_such_metric"));
    return strcmp(p->phase, "phase2_ppo") == 0 ? DT_OK : DT_FAIL_H(h, DT_EDATA, "no phase of mine");
}
static const dt_panels_api panels = {.struct_size = sizeof(dt_panels_api), .draw = draw};

static const void *extension(const char *id)
{
    return strcmp(id, DT_EXT_VERBS) == 0    ? (const void *)verbs
           : strcmp(id, DT_EXT_DOCTOR) == 0 ? (const void *)&doctor
           : strcmp(id, DT_EXT_PANELS) == 0 ? &panels
                                            : NULL;
}

typedef struct none {
    int unused;
} none;

DT_MODEL_DEFINE(component, "extra", "adds a verb", "", none, none, NULL,
                DT_OPS(.create = create, .inputs = no_ports, .outputs = no_ports, .params = no_params,
                       .forward = forward, .destroy = destroy),
                .role = "extra", .extension = extension);
DT_PLUGIN_DEFINE_ONE(component, "extra", "1.0", "tests", "Apache-2.0");
