/* SPDX-License-Identifier: Apache-2.0
 *
 * Elements of a demand that are kept as written, and distributions of them; see plan_file.h.
 */
#include "plan_file.h"

#include <math.h>
#include <string.h>

static dt_status keep_string(planfile *r, const char *s)
{
    for (;; s++) {
        char *c;
        DT_TRY_H(list_add(r->h, &r->text, 1, &c));
        *c = *s;
        if (*s == '\0') {
            return DT_OK;
        }
    }
}

dt_status plan_keep(planfile *r, const xml *x, named *out)
{
    DT_TRY_H(names_add(r->h, &r->files, x->path, &out->file));
    out->line = x->line;
    out->text = r->text.n;
    out->n_attributes = 0;
    for (const char *const *a = x->attributes; *a != NULL; a++, out->n_attributes++) {
        DT_TRY_H(keep_string(r, *a));
    }
    return DT_OK;
}

dt_status plan_reopen(planfile *r, const named *k, const char *element, xml *out)
{
    const char *at = (const char *)r->text.items + k->text, **kept;
    r->attributes.n = 0;
    for (int32_t i = 0; i < k->n_attributes; i++, at += strlen(at) + 1) {
        DT_TRY_H(list_add(r->h, &r->attributes, sizeof(*kept), &kept));
        *kept = at;
    }
    DT_TRY_H(list_add(r->h, &r->attributes, sizeof(*kept), &kept));
    *kept = NULL;
    *out = (xml){.h = r->h,
                 .path = names_get(&r->files, k->file),
                 .line = k->line,
                 .element = element,
                 .attributes = r->attributes.items};
    return DT_OK;
}

dt_status plan_number_of(planfile *r, int which, const char *id, int32_t *number_p)
{
    DT_TRY_H(names_add(r->h, &r->names[which], id, number_p));
    if (*number_p == r->named[which].n) {
        named *k;
        DT_TRY_H(list_add(r->h, &r->named[which], sizeof(*k), &k));
        k->found = NET_NONE;
    }
    return DT_OK;
}

/* A probability as it is written; anything else is an error once it is drawn from. */
double plan_weight_of(const char *text)
{
    const char *rest;
    double w;
    return xml_parse_number(text, &rest, &w) && w >= 0 ? w : NAN;
}

dt_status plan_add_choice(planfile *r, int32_t number, double weight)
{
    named *d = NAMED(r, r->which_names, r->distribution);
    const named *k = NAMED(r, r->which_names, number);
    choice *c;
    d->is_car |= k->is_car || !k->is_there; /* an unknown one is an error once it is drawn */
    d->is_plain |= k->is_plain;
    d->n_choices++;
    DT_TRY_H(list_add(r->h, &r->choices, sizeof(*c), &c));
    *c = (choice){.number = number, .weight = weight};
    return DT_OK;
}

/* vTypes="a b" probabilities="1 2", and routes="a b" */
static dt_status add_choices(planfile *r, const xml *x)
{
    const char *at = xml_get(x, r->which_names == NAMES_TYPES ? "vTypes" : "routes"), *word;
    const char *p = xml_get(x, "probabilities"), *share;
    for (size_t n; at != NULL && (n = xml_word(&at, &word)) > 0;) {
        char id[512], text[64];
        int32_t number;
        double weight = -1;
        if (p != NULL) {
            const size_t n_share = xml_word(&p, &share);
            snprintf(text, sizeof(text), "%.*s", (int)(n_share < sizeof(text) ? n_share : sizeof(text) - 1), share);
            weight = n_share > 0 ? plan_weight_of(text) : -1;
        }
        snprintf(id, sizeof(id), "%.*s", (int)(n < sizeof(id) ? n : sizeof(id) - 1), word);
        DT_TRY_H(plan_number_of(r, r->which_names, id, &number));
        DT_TRY_H(plan_add_choice(r, number, weight));
    }
    return DT_OK;
}

dt_status plan_open_distribution(planfile *r, const xml *x, int which)
{
    const char *id;
    DT_TRY_H(xml_need(x, "id", &id));
    r->which_names = which;
    DT_TRY_H(plan_number_of(r, which, id, &r->distribution));
    int32_t file;
    DT_TRY_H(names_add(r->h, &r->files, x->path, &file));
    named *d = NAMED(r, which, r->distribution);
    *d = (named){
        .file = file, .line = x->line, .is_there = 1, .is_distribution = 1, .choice = r->choices.n, .found = NET_NONE};
    return add_choices(r, x);
}

double plan_own_weight(const planfile *r, const named *k)
{
    const char *at = (const char *)r->text.items + k->text;
    for (int32_t i = 0; i + 1 < k->n_attributes; i += 2) {
        const char *value = at + strlen(at) + 1;
        if (strcmp(at, "probability") == 0) {
            return plan_weight_of(value);
        }
        at = value + strlen(value) + 1;
    }
    return 1;
}

enum { OPTIONS_MOST = 4096 }; /* of one vehicle */

dt_status plan_add_option(planfile *r, const xml *x, list *options, int32_t at, int32_t n_edges, double weight)
{
    option *o;
    if (options->n == OPTIONS_MOST) {
        return DT_FAIL_H(r->h, DT_EDATA, XML_AT "draws from more than %d types or routes", XML_HERE(x), OPTIONS_MOST);
    }
    DT_TRY_H(list_add(r->h, options, sizeof(*o), &o));
    *o = (option){.at = at, .n_edges = n_edges, .weight = weight};
    return DT_OK;
}
