/* SPDX-License-Identifier: Apache-2.0
 *
 * See plan.h.
 */
#include "plan.h"
#include "follow.h"
#include "netfile.h"

#include <stdlib.h>
#include <string.h>

#define LENGTH_MOST 100 /* m */

/* What SUMO's manual gives as defaults of a vehicle class, as far as it is used here ("Vehicle Type Parameter
 * Defaults"); length 0: not simulated. */
typedef struct class_defaults {
    const char *name;
    double length, accel, decel, top_kmh, dev;
} class_defaults;

static const class_defaults classes[] = {{"passenger", 5, 2.6, 4.5, 200, 0.1},   {"private", 5, 2.6, 4.5, 200, 0.1},
                                         {"taxi", 5, 2.6, 4.5, 200, 0.1},        {"evehicle", 5, 2.6, 4.5, 200, 0.1},
                                         {"hov", 5, 2.6, 4.5, 200, 0.1},         {"emergency", 6.5, 2.6, 4.5, 200, 0.1},
                                         {"delivery", 6.5, 2.6, 4.5, 200, 0.05}, {"truck", 7.1, 1.3, 4, 130, 0.05},
                                         {"trailer", 16.5, 1, 4, 130, 0.05},     {"bus", 12, 1.2, 4, 85, 0.1},
                                         {"coach", 14, 2, 4, 100, 0.05},         {"motorcycle", 2.2, 6, 10, 200, 0.1},
                                         {"moped", 2.1, 1.1, 7, 45, 0.1},        {"authority", 5, 2.6, 4.5, 200, 0.1},
                                         {"army", 5, 2.6, 4.5, 200, 0.1},        {"vip", 5, 2.6, 4.5, 200, 0.1},
                                         {"custom1", 5, 2.6, 4.5, 200, 0.1},     {"custom2", 5, 2.6, 4.5, 200, 0.1}};

/* A vType or a route, or a distribution of them, as it is written: nothing is checked until a vehicle needs it. */
typedef struct named {
    int32_t line, text, n_attributes; /* planfile.text: name, value, ... */
    int32_t is_there, is_distribution;
    int32_t choice, n_choices; /* of a distribution, a range of planfile.choices */
    int32_t is_car, is_plain;  /* vTypes: simulated, a passenger car; distributions: one of them is */
    int32_t found, n_edges;    /* once it was needed: plan.types, or a range of plan.edges; else NET_NONE */
} named;

typedef struct choice { /* of a distribution */
    int32_t number;     /* of a name */
    double weight;      /* negative: its own probability */
} choice;

typedef struct option {  /* of the vehicle that is being read: a type, or a way */
    int32_t at, n_edges; /* plan.types or NET_NONE; a range of plan.edges */
    double weight;
} option;

enum { NAMES_TYPES, NAMES_ROUTES, N_NAMES };

typedef struct planfile {
    trip_plan *p;
    const dt_host *h;
    const netfile *f;
    const net *n;
    route_search *search;
    const char *path;
    file_time begin, end; /* of the episode */
    names names[N_NAMES], way_names;
    list named[N_NAMES]; /* numbered as their names are */
    list text, choices, attributes;
    list ways; /* option of every way that was looked for */
    list notes;
    list types, routes; /* option: what the vehicle that is being read may be, and where it may drive */
    plan_trip trip;     /* of it */
    plan_flow flow;
    int32_t *file_edge;                /* [n_edges] of the netfile */
    int32_t line, is_open;             /* of the vehicle */
    int32_t depart_edge, arrival_edge; /* of its way, counted from its start; NET_NONE: the first, the last */
    int32_t has_lane;                  /* departLane is a number, as its file counts them */
    int32_t is_skipped;                /* the vehicle */
    int32_t may_leave_out;             /* it is no passenger car: others may drive where passenger cars may not */
    int32_t distribution;              /* that is open, or NET_NONE; of which_names */
    int32_t which_names;
    int32_t skip_depth; /* of an element that is skipped with all that it holds, or NET_NONE */
} planfile;

#define NAMED(r, which, k) (&((named *)(r)->named[which].items)[k])

/* As DT_TRY_H, but returns for DT_DONE, too: the vehicle is left out. */
#define TRY_DRIVE(expr)                                                                                                \
    do {                                                                                                               \
        dt_status st_ = (expr);                                                                                        \
        if (st_ != DT_OK) {                                                                                            \
            return st_;                                                                                                \
        }                                                                                                              \
    } while (0)
/* Where cars cannot drive: an error of a passenger car's way, a reason to leave another vehicle out. */
#define NO_WAY(r, ...) ((r)->may_leave_out ? DT_DONE : DT_FAIL_H((r)->h, DT_EDATA, __VA_ARGS__))

/* ---- elements that are kept as written --------------------------------------------------------------------------- */

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

static dt_status keep_attributes(planfile *r, const xml *x, named *out)
{
    out->line = x->line;
    out->text = r->text.n;
    out->n_attributes = 0;
    for (const char *const *a = x->attributes; *a != NULL; a++, out->n_attributes++) {
        DT_TRY_H(keep_string(r, *a));
    }
    return DT_OK;
}

/* The element again; valid until another one is opened or kept. */
static dt_status reopen(planfile *r, const named *k, const char *element, xml *out)
{
    const char *at = (const char *)r->text.items + k->text, **kept;
    r->attributes.n = 0;
    for (int32_t i = 0; i < k->n_attributes; i++, at += strlen(at) + 1) {
        DT_TRY_H(list_add(r->h, &r->attributes, sizeof(*kept), &kept));
        *kept = at;
    }
    DT_TRY_H(list_add(r->h, &r->attributes, sizeof(*kept), &kept));
    *kept = NULL;
    *out = (xml){.h = r->h, .path = r->path, .line = k->line, .element = element, .attributes = r->attributes.items};
    return DT_OK;
}

/* The number of a name that may not be there yet. */
static dt_status number_of(planfile *r, int which, const char *id, int32_t *number_p)
{
    DT_TRY_H(names_add(r->h, &r->names[which], id, number_p));
    if (*number_p == r->named[which].n) {
        named *k;
        DT_TRY_H(list_add(r->h, &r->named[which], sizeof(*k), &k));
        k->found = NET_NONE;
    }
    return DT_OK;
}

/* A probability as it is written; what is none is an error once somebody draws from it. */
static double weight_of(const char *text)
{
    char *rest;
    const double w = strtod(text, &rest);
    return rest != text && w >= 0 && w < INFINITY ? w : NAN;
}

static dt_status add_choice(planfile *r, int32_t number, double weight)
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
            weight = n_share > 0 ? weight_of(text) : -1;
        }
        snprintf(id, sizeof(id), "%.*s", (int)(n < sizeof(id) ? n : sizeof(id) - 1), word);
        DT_TRY_H(number_of(r, r->which_names, id, &number));
        DT_TRY_H(add_choice(r, number, weight));
    }
    return DT_OK;
}

static dt_status open_distribution(planfile *r, const xml *x, int which)
{
    const char *id;
    DT_TRY_H(xml_need(x, "id", &id));
    r->which_names = which;
    DT_TRY_H(number_of(r, which, id, &r->distribution));
    named *d = NAMED(r, which, r->distribution);
    *d = (named){.line = x->line, .is_there = 1, .is_distribution = 1, .choice = r->choices.n, .found = NET_NONE};
    return add_choices(r, x);
}

/* The probability that a kept element names itself. */
static double own_weight(const planfile *r, const named *k)
{
    const char *at = (const char *)r->text.items + k->text;
    for (int32_t i = 0; i + 1 < k->n_attributes; i += 2) {
        const char *value = at + strlen(at) + 1;
        if (strcmp(at, "probability") == 0) {
            return weight_of(value);
        }
        at = value + strlen(value) + 1;
    }
    return 1;
}

enum { OPTIONS_MOST = 4096, NESTED_MOST = 8 }; /* of one vehicle; distributions within distributions */

static dt_status add_option(planfile *r, const xml *x, list *options, int32_t at, int32_t n_edges, double weight)
{
    option *o;
    if (options->n == OPTIONS_MOST) {
        return DT_FAIL_H(r->h, DT_EDATA, XML_AT "draws from more than %d types or routes", XML_HERE(x), OPTIONS_MOST);
    }
    DT_TRY_H(list_add(r->h, options, sizeof(*o), &o));
    *o = (option){.at = at, .n_edges = n_edges, .weight = weight};
    return DT_OK;
}

static dt_status use_type(planfile *r, named *k, int32_t *type_p);
static dt_status use_route(planfile *r, named *k);

/* What a vehicle may be, or where it may drive: the named one, or those of a distribution. */
static dt_status find_options(planfile *r, const xml *x, int which, int32_t number, double weight, int depth)
{
    named *k = NAMED(r, which, number);
    const char *kind = which == NAMES_TYPES ? "type" : "route", *id = names_get(&r->names[which], number);
    if (!k->is_there || depth == NESTED_MOST) {
        return DT_FAIL_H(r->h, DT_EDATA, XML_AT "%s \"%s\" is not known: its definition comes before its vehicles",
                         XML_HERE(x), kind, id);
    }
    if (!k->is_distribution && which == NAMES_TYPES) {
        int32_t type = NET_NONE;
        if (k->is_car) {
            DT_TRY_H(use_type(r, k, &type));
        }
        return add_option(r, x, &r->types, type, 0, weight);
    }
    if (!k->is_distribution) {
        TRY_DRIVE(use_route(r, k));
        return add_option(r, x, &r->routes, k->found, k->n_edges, weight);
    }
    double sum = 0;
    for (int32_t i = 0; i < k->n_choices; i++) {
        choice *c = &((choice *)r->choices.items)[k->choice + i];
        c->weight = c->weight < 0 ? own_weight(r, NAMED(r, which, c->number)) : c->weight;
        sum += c->weight;
    }
    if (!(sum > 0 && sum < INFINITY)) {
        return DT_FAIL_H(r->h, DT_EDATA,
                         "%s:%d: the distribution \"%s\" has no probability above 0, or one that is "
                         "no number from 0 on",
                         r->path, (int)k->line, id);
    }
    for (int32_t i = 0; i < k->n_choices; i++) {
        const choice c = ((choice *)r->choices.items)[k->choice + i];
        if (c.weight > 0) {
            TRY_DRIVE(find_options(r, x, which, c.number, weight * c.weight / sum, depth + 1));
        }
    }
    return DT_OK;
}

/* ---- types ------------------------------------------------------------------------------------------------------- */

/* "1.1", "norm(1,0.1)", "normc(1,0.1,0.2,2)": mean and deviation */
static dt_status read_factor(const xml *x, plan_type *t)
{
    const char *text = xml_get(x, "speedFactor");
    if (text == NULL) {
        return xml_number(x, "speedDev", t->dev, 0, 1, &t->dev);
    }
    const char *open = strchr(text, '('), *at = open != NULL ? open + 1 : text;
    char *rest;
    t->factor = strtod(at, &rest);
    if (open != NULL && *rest == ',') {
        t->dev = strtod(rest + 1, &rest);
    } else if (open == NULL) {
        t->dev = 0;
    }
    if (rest == at || !(t->factor > 0) || !(t->factor < 10) || !(t->dev >= 0 && t->dev <= 1) ||
        (open != NULL && strncmp(text, "norm", 4) != 0)) {
        return DT_FAIL_H(x->h, DT_EDATA, XML_AT "speedFactor \"%s\" is neither a number nor norm(mean,deviation)",
                         XML_HERE(x), text);
    }
    return xml_number(x, "speedDev", t->dev, 0, 1, &t->dev);
}

static plan_type type_of_class(const char *name)
{
    const class_defaults *c = NULL;
    for (size_t k = 0; c == NULL && k < sizeof(classes) / sizeof(classes[0]); k++) {
        c = strcmp(classes[k].name, name) == 0 ? &classes[k] : NULL;
    }
    const int is_car = c != NULL;
    c = is_car ? c : &classes[0];
    return (plan_type){.length = c->length,
                       .top = c->top_kmh / 3.6,
                       .factor = 1,
                       .dev = c->dev,
                       .accel = c->accel,
                       .decel = c->decel,
                       .gap = 2.5,
                       .tau = 1,
                       .sigma = 0.5,
                       .model = MODEL_KRAUSS,
                       .is_plain = strcmp(name, "passenger") == 0,
                       .is_car = is_car};
}

/* What drivers do that is not simulated. */
static int has_more(const xml *x)
{
    static const char *const skipped[] = {
        "laneChangeModel", "minGapLat",      "actionStepLength", "startupDelay", "collisionMinGapFactor", "impatience",
        "scale",           "timeToTeleport", "desiredMaxSpeed",  "maxSpeedLat",  "latAlignment",          "stepping"};
    for (const char *const *a = x->attributes; *a != NULL; a += 2) {
        if (strncmp(*a, "lc", 2) == 0 || strncmp(*a, "jm", 2) == 0 || strncmp(*a, "cc", 2) == 0) {
            return 1;
        }
        for (size_t k = 0; k < sizeof(skipped) / sizeof(skipped[0]); k++) {
            if (strcmp(*a, skipped[k]) == 0) {
                return 1;
            }
        }
    }
    return 0;
}

static dt_status read_type(planfile *r, xml *x, plan_type *out)
{
    const char *vclass = xml_get(x, "vClass"), *model = xml_get(x, "carFollowModel");
    plan_type t = type_of_class(vclass != NULL ? vclass : "passenger");
    DT_TRY_H(xml_number(x, "length", t.length, 0.5, LENGTH_MOST, &t.length));
    DT_TRY_H(xml_number(x, "maxSpeed", t.top, 0.1, 1000, &t.top));
    DT_TRY_H(xml_number(x, "accel", t.accel, 0.1, 20, &t.accel));
    DT_TRY_H(xml_number(x, "decel", t.decel, 0.1, 20, &t.decel));
    DT_TRY_H(xml_number(x, "minGap", t.gap, 0, 50, &t.gap));
    DT_TRY_H(xml_number(x, "tau", t.tau, 0, 20, &t.tau));
    DT_TRY_H(xml_number(x, "sigma", t.sigma, 0, 1, &t.sigma));
    DT_TRY_H(read_factor(x, &t));
    if (model != NULL && strcmp(model, "IDM") == 0) {
        t.model = MODEL_IDM;
    } else if (model != NULL && strcmp(model, "Krauss") != 0) {
        DT_TRY_H(file_leave_out(&r->notes, x, "has a car-following model that is not Krauss or IDM: Krauss drives"));
    }
    *out = t;
    return has_more(x) ? file_leave_out(&r->notes, x,
                                        "has attributes of drivers that are not simulated (lc..., jm... "
                                        "and others): they are skipped")
                       : DT_OK;
}

static dt_status use_type(planfile *r, named *k, int32_t *type_p)
{
    if (k->found == NET_NONE) {
        xml x;
        plan_type t, *kept;
        DT_TRY_H(reopen(r, k, "vType", &x));
        DT_TRY_H(read_type(r, &x, &t));
        DT_TRY_H(list_add(r->h, &r->p->types, sizeof(*kept), &kept));
        *kept = t;
        k->found = r->p->types.n - 1;
    }
    *type_p = k->found;
    return DT_OK;
}

static dt_status open_type(planfile *r, xml *x)
{
    const char *id, *vclass = xml_get(x, "vClass"), *p = xml_get(x, "probability");
    const int in_distribution = r->distribution != NET_NONE;
    int32_t number;
    if (in_distribution && xml_get(x, "refId") != NULL) {
        DT_TRY_H(number_of(r, NAMES_TYPES, xml_get(x, "refId"), &number));
        return add_choice(r, number, p != NULL ? weight_of(p) : -1);
    }
    DT_TRY_H(xml_need(x, "id", &id));
    DT_TRY_H(number_of(r, NAMES_TYPES, id, &number));
    named k = {.is_there = 1, .found = NET_NONE};
    DT_TRY_H(keep_attributes(r, x, &k));
    k.is_car = vclass == NULL || type_of_class(vclass).is_car;
    k.is_plain = vclass == NULL || strcmp(vclass, "passenger") == 0;
    *NAMED(r, NAMES_TYPES, number) = k;
    if (!k.is_car) {
        DT_TRY_H(file_leave_out(&r->notes, x, "is no car: its vehicles are left out"));
    }
    return in_distribution ? add_choice(r, number, -1) : DT_OK;
}

/* ---- routes ------------------------------------------------------------------------------------------------------ */

static dt_status find_edge(planfile *r, const xml *x, const char *name, size_t n, int32_t *edge_p)
{
    char id[512];
    snprintf(id, sizeof(id), "%.*s", (int)n, name);
    const int32_t e = names_find(&r->f->edge_names, id);
    if (e < 0) {
        return DT_FAIL_H(r->h, DT_EDATA, XML_AT "edge \"%s\" is not in %s", XML_HERE(x), id, r->f->path);
    }
    *edge_p = FILE_ITEM(r->f, edge, e)->edge;
    return *edge_p != NET_NONE
               ? DT_OK
               : NO_WAY(r, XML_AT "edge \"%s\" of %s has no lane for cars", XML_HERE(x), id, r->f->path);
}

static int leads_to(const net *n, int32_t from, int32_t to)
{
    const net_edge *e = &n->edge[from];
    for (int32_t lane = e->lane; lane < e->lane + e->n_lanes; lane++) {
        const net_lane *l = &n->lane[lane];
        for (int32_t k = l->link; k < l->link + l->n_links; k++) {
            if (n->link[k].edge == to) {
                return 1;
            }
        }
    }
    return 0;
}

static dt_status add_edge(planfile *r, int32_t edge)
{
    int32_t *kept;
    DT_TRY_H(list_add(r->h, &r->p->edges, sizeof(*kept), &kept));
    *kept = edge;
    return DT_OK;
}

/* edges="a b c", each leading to the next */
static dt_status read_edges(planfile *r, const xml *x, int32_t *edge_p, int32_t *n_p)
{
    const char *text;
    DT_TRY_H(xml_need(x, "edges", &text));
    *edge_p = r->p->edges.n;
    *n_p = 0;
    const char *at = text, *word, *before = "";
    size_t n_before = 0;
    for (size_t n; (n = xml_word(&at, &word)) > 0; ++*n_p) {
        int32_t edge;
        TRY_DRIVE(find_edge(r, x, word, n, &edge));
        if (*n_p > 0 && !leads_to(r->n, PLAN_EDGE(r->p, r->p->edges.n - 1), edge)) {
            return NO_WAY(r, XML_AT "edge \"%.*s\" does not lead to \"%.*s\"", XML_HERE(x), (int)n_before, before,
                          (int)n, word);
        }
        before = word;
        n_before = n;
        DT_TRY_H(add_edge(r, edge));
    }
    if (xml_get(x, "repeat") != NULL) {
        DT_TRY_H(file_leave_out(&r->notes, x, "has a repeat: it is driven once"));
    }
    return *n_p > 0 ? DT_OK : DT_FAIL_H(r->h, DT_EDATA, XML_AT "has no edges", XML_HERE(x));
}

static dt_status use_route(planfile *r, named *k)
{
    if (k->found != NET_NONE) {
        return DT_OK;
    }
    xml x;
    int32_t edge;
    DT_TRY_H(reopen(r, k, "route", &x));
    const int32_t before = r->p->edges.n;
    const dt_status st = read_edges(r, &x, &edge, &k->n_edges);
    r->p->edges.n = st == DT_OK ? r->p->edges.n : before;
    k->found = st == DT_OK ? edge : NET_NONE;
    return st;
}

/* Goes on from the last edge of a way to this one. */
static dt_status go_to(planfile *r, const xml *x, int32_t *n_p, const char *name, size_t n)
{
    int32_t to, at = PLAN_EDGE(r->p, r->p->edges.n - 1);
    TRY_DRIVE(find_edge(r, x, name, n, &to));
    route_find(r->search, r->n, to);
    if (r->search->n_steps > PLAN_SEEK_MOST) {
        return DT_FAIL_H(r->h, DT_EDATA,
                         XML_AT "more than %lld edges and links are looked at to find the ways of trips up to this "
                                "one: give them routes (duarouter)",
                         XML_HERE(x), PLAN_SEEK_MOST);
    }
    while (at != to) {
        at = r->search->after[at];
        if (at == NET_NONE) {
            return NO_WAY(r, XML_AT "there is no way for cars from \"%s\" to \"%.*s\"", XML_HERE(x), xml_get(x, "from"),
                          (int)n, name);
        }
        DT_TRY_H(add_edge(r, at));
        ++*n_p;
    }
    return DT_OK;
}

static dt_status look_for_way(planfile *r, const xml *x, option *out)
{
    const char *from = xml_get(x, "from"), *to = xml_get(x, "to"), *via = xml_get(x, "via");
    int32_t first;
    TRY_DRIVE(find_edge(r, x, from, strlen(from), &first));
    *out = (option){.at = r->p->edges.n, .n_edges = 1, .weight = 1};
    DT_TRY_H(add_edge(r, first));
    const char *at = via != NULL ? via : "", *word;
    for (size_t n; (n = xml_word(&at, &word)) > 0;) {
        TRY_DRIVE(go_to(r, x, &out->n_edges, word, n));
    }
    return go_to(r, x, &out->n_edges, to, strlen(to));
}

/* from, via and to: the quickest way, looked for once for all that go there. */
static dt_status find_way(planfile *r, const xml *x)
{
    const char *from = xml_get(x, "from"), *to = xml_get(x, "to"), *via = xml_get(x, "via");
    if (from == NULL || to == NULL) {
        return DT_FAIL_H(r->h, DT_EDATA,
                         XML_AT "has neither a route nor edges to drive from and to (zones and junctions are not "
                                "looked up: duarouter makes routes of them)",
                         XML_HERE(x));
    }
    char key[2048];
    const int n = snprintf(key, sizeof(key), "%s\n%s\n%s", from, via != NULL ? via : "", to);
    option way, *kept;
    const int32_t known = n < (int)sizeof(key) ? names_find(&r->way_names, key) : -1;
    if (known >= 0) {
        way = ((const option *)r->ways.items)[known];
        return add_option(r, x, &r->routes, way.at, way.n_edges, 1);
    }
    const int32_t before = r->p->edges.n;
    const dt_status st = look_for_way(r, x, &way);
    if (st != DT_OK) {
        r->p->edges.n = before;
        return st;
    }
    if (n < (int)sizeof(key)) {
        int32_t number;
        DT_TRY_H(names_add(r->h, &r->way_names, key, &number));
        DT_TRY_H(list_add(r->h, &r->ways, sizeof(*kept), &kept));
        *kept = way;
    }
    return add_option(r, x, &r->routes, way.at, way.n_edges, 1);
}

/* A route of the vehicle that is open. */
static dt_status open_own_route(planfile *r, xml *x)
{
    const char *p = xml_get(x, "probability"), *other = xml_get(x, "refId");
    const double weight = p != NULL ? weight_of(p) : 1;
    int32_t edge, n_edges, number;
    if (!(weight >= 0)) {
        return DT_FAIL_H(r->h, DT_EDATA, XML_AT "probability \"%s\" is no number from 0 on", XML_HERE(x), p);
    }
    if (other != NULL) {
        DT_TRY_H(number_of(r, NAMES_ROUTES, other, &number));
        return find_options(r, x, NAMES_ROUTES, number, weight, 0);
    }
    TRY_DRIVE(read_edges(r, x, &edge, &n_edges));
    return add_option(r, x, &r->routes, edge, n_edges, weight);
}

static dt_status open_route(planfile *r, xml *x)
{
    const char *id = xml_get(x, "id"), *other = xml_get(x, "refId"), *p = xml_get(x, "probability");
    const int in_distribution = r->distribution != NET_NONE;
    int32_t number;
    if (in_distribution && other != NULL) {
        DT_TRY_H(number_of(r, NAMES_ROUTES, other, &number));
        return add_choice(r, number, p != NULL ? weight_of(p) : -1);
    }
    char own[64]; /* a route of a distribution needs no id */
    if (in_distribution && id == NULL) {
        snprintf(own, sizeof(own), "%d\n%d", (int)r->distribution, (int)r->choices.n);
        id = own;
    }
    if (id == NULL) {
        DT_TRY_H(xml_need(x, "id", &id));
    }
    DT_TRY_H(number_of(r, NAMES_ROUTES, id, &number));
    if (NAMED(r, NAMES_ROUTES, number)->is_there) {
        return DT_FAIL_H(r->h, DT_EDATA, XML_AT "\"%s\" is there twice", XML_HERE(x), id);
    }
    named k = {.is_there = 1, .found = NET_NONE, .is_car = 1, .is_plain = 1};
    DT_TRY_H(keep_attributes(r, x, &k));
    *NAMED(r, NAMES_ROUTES, number) = k;
    return in_distribution ? add_choice(r, number, -1) : DT_OK;
}

/* ---- vehicles ---------------------------------------------------------------------------------------------------- */

typedef struct word_code {
    const char *word;
    int32_t code;
} word_code;

/* The code of a word; -100 where it is none of them. */
enum { NO_CODE = -100 };
static int32_t code_of(const word_code *all, size_t n, const char *word)
{
    for (size_t k = 0; k < n; k++) {
        if (strcmp(all[k].word, word) == 0) {
            return all[k].code;
        }
    }
    return NO_CODE;
}
#define CODE_OF(all, word) code_of(all, sizeof(all) / sizeof((all)[0]), word)

static dt_status read_lane(planfile *r, const xml *x)
{
    static const word_code words[] = {{"first", 0},
                                      {"free", PLAN_LANE_WIDEST},
                                      {"allowed", PLAN_LANE_WIDEST},
                                      {"random", PLAN_LANE_RANDOM},
                                      {"best", PLAN_LANE_BEST},
                                      {"best_prob", PLAN_LANE_BEST}};
    const char *text = xml_get(x, "departLane");
    r->trip.lane = text != NULL ? CODE_OF(words, text) : 0;
    r->has_lane = r->trip.lane == NO_CODE;
    return r->has_lane ? xml_count(x, "departLane", 0, 0, 64, &r->trip.lane) : DT_OK;
}

static dt_status read_pos(planfile *r, xml *x)
{
    static const word_code words[] = {{"base", PLAN_POS_BASE},      {"random", PLAN_POS_RANDOM},
                                      {"free", PLAN_POS_FREE},      {"random_free", PLAN_POS_FREE},
                                      {"last", PLAN_POS_LAST},      {"stop", PLAN_POS_BASE},
                                      {"splitFront", PLAN_POS_BASE}};
    const char *text = xml_get(x, "departPos");
    r->trip.pos_kind = text != NULL ? CODE_OF(words, text) : PLAN_POS_BASE;
    if (text != NULL && (strcmp(text, "stop") == 0 || strcmp(text, "splitFront") == 0)) {
        return file_leave_out(&r->notes, x, "has a departPos of a stop or a train: it begins at the start of its edge");
    }
    if (r->trip.pos_kind != NO_CODE) {
        return DT_OK;
    }
    r->trip.pos_kind = PLAN_POS_GIVEN;
    return xml_number(x, "departPos", 0, -1e6, 1e6, &r->trip.pos);
}

static dt_status read_speed(planfile *r, const xml *x)
{
    static const word_code words[] = {{"max", PLAN_SPEED_MOST},         {"desired", PLAN_SPEED_WANTED},
                                      {"speedLimit", PLAN_SPEED_LIMIT}, {"random", PLAN_SPEED_RANDOM},
                                      {"last", PLAN_SPEED_LAST},        {"avg", PLAN_SPEED_MEAN}};
    const char *text = xml_get(x, "departSpeed");
    r->trip.speed_kind = text != NULL ? CODE_OF(words, text) : PLAN_SPEED_GIVEN;
    if (r->trip.speed_kind != NO_CODE) {
        return DT_OK;
    }
    r->trip.speed_kind = PLAN_SPEED_GIVEN;
    return xml_number(x, "departSpeed", 0, 0, 200, &r->trip.speed);
}

/* departEdge and arrivalEdge: places in the way. */
static dt_status read_part(planfile *r, xml *x, const char *attribute, int32_t *at_p)
{
    const char *text = xml_get(x, attribute);
    *at_p = NET_NONE;
    if (text != NULL && strcmp(text, "random") == 0) {
        return file_leave_out(&r->notes, x, "has a random departEdge or arrivalEdge: all of its route is driven");
    }
    return text != NULL ? xml_count(x, attribute, 0, 0, INT32_MAX, at_p) : DT_OK;
}

/* How it begins and ends. SUMO's defaults: the rightmost lane, standing. */
static dt_status read_begin(planfile *r, xml *x)
{
    static const char *const more[] = {"arrivalLane", "arrivalPos", "arrivalSpeed", "speedFactor", "departPosLat"};
    DT_TRY_H(read_lane(r, x));
    DT_TRY_H(read_pos(r, x));
    DT_TRY_H(read_speed(r, x));
    DT_TRY_H(read_part(r, x, "departEdge", &r->depart_edge));
    DT_TRY_H(read_part(r, x, "arrivalEdge", &r->arrival_edge));
    for (size_t k = 0; k < sizeof(more) / sizeof(more[0]); k++) {
        if (xml_get(x, more[k]) != NULL) {
            return file_leave_out(&r->notes, x,
                                  "has arrivalLane, arrivalPos, arrivalSpeed, speedFactor or "
                                  "departPosLat, which are skipped");
        }
    }
    return DT_OK;
}

/* Does it depart when something happens that is not simulated? */
static int is_event(const char *text)
{
    return strcmp(text, "triggered") == 0 || strcmp(text, "containerTriggered") == 0 || strcmp(text, "split") == 0 ||
           strcmp(text, "now") == 0;
}

static dt_status skip_vehicle(planfile *r, const xml *x, const char *what)
{
    r->is_skipped = 1;
    return what != NULL ? file_leave_out(&r->notes, x, what) : DT_OK;
}

/* period="exp(rate)" or a time */
static dt_status read_period(planfile *r, const xml *x, const char *text)
{
    plan_flow *w = &r->flow;
    if (strncmp(text, "exp(", 4) != 0) {
        return xml_time(x, "period", 0, PLAN_PERIOD_LEAST, PLAN_PERIOD_MOST, &w->period_s);
    }
    char *rest;
    const double rate = strtod(text + 4, &rest);
    if (!(rate >= 1 / PLAN_PERIOD_MOST) || !(rate < 1 / PLAN_PERIOD_LEAST) || strcmp(rest, ")") != 0) {
        return DT_FAIL_H(r->h, DT_EDATA, XML_AT "period \"%s\" is neither a time nor exp(rate), rate in %g ... %g",
                         XML_HERE(x), text, 1 / PLAN_PERIOD_MOST, 1 / PLAN_PERIOD_LEAST);
    }
    w->kind = PLAN_POISSON;
    w->period_s = 1 / rate;
    return DT_OK;
}

/* How often; *has_rate_p: it says so, not only how many. */
static dt_status read_rate(planfile *r, const xml *x, int *has_rate_p)
{
    static const char *const rates[] = {"period",         "vehsPerHour",       "perHour",
                                        "personsPerHour", "containersPerHour", "probability"};
    plan_flow *w = &r->flow;
    const char *rate = NULL;
    w->kind = PLAN_REGULAR;
    for (size_t k = 0; k < sizeof(rates) / sizeof(rates[0]); k++) {
        if (xml_get(x, rates[k]) == NULL) {
            continue;
        }
        if (rate != NULL) {
            return DT_FAIL_H(r->h, DT_EDATA, XML_AT "has both %s and %s: give one of them", XML_HERE(x), rate,
                             rates[k]);
        }
        rate = rates[k];
    }
    *has_rate_p = rate != NULL;
    if (rate == NULL) {
        return DT_OK;
    }
    if (strcmp(rate, "period") == 0) {
        return read_period(r, x, xml_get(x, "period"));
    }
    double value;
    const int is_chance = strcmp(rate, "probability") == 0;
    DT_TRY_H(xml_number(x, rate, 0, 0, is_chance ? 1 : 1e6, &value));
    if (value <= 0) {
        return DT_FAIL_H(r->h, DT_EDATA, XML_AT "%s %g is not above 0", XML_HERE(x), rate, value);
    }
    w->kind = is_chance ? PLAN_CHANCE : PLAN_REGULAR;
    w->period_s = is_chance ? 1 / value : 3600 / value;
    return DT_OK;
}

/* What SUMO reads out of begin, end, number and a rate: a rate goes with an end or with a number; a number without a
 * rate is spread evenly up to the end; without an end a flow goes on to the end of the simulation. */
static dt_status read_flow(planfile *r, xml *x)
{
    plan_flow *w = &r->flow;
    const char *number = xml_get(x, "number"), *begin = xml_get(x, "begin"), *end = xml_get(x, "end");
    file_time from = r->begin, to = r->end;
    int has_rate = 0;
    if (begin != NULL && is_event(begin)) {
        return skip_vehicle(r, x, "is left out: it has no time of departure");
    }
    DT_TRY_H(xml_time(x, "begin", from.s, 0, XML_TIME_MOST, &from.s));
    DT_TRY_H(xml_time(x, "end", to.s, -XML_TIME_MOST, XML_TIME_MOST, &to.s));
    DT_TRY_H(read_rate(r, x, &has_rate));
    w->number = INT32_MAX;
    DT_TRY_H(xml_count(x, "number", INT32_MAX, 0, INT32_MAX, &w->number));
    if (!has_rate && number == NULL) {
        return DT_FAIL_H(r->h, DT_EDATA, XML_AT "has no period, vehsPerHour, probability or number", XML_HERE(x));
    }
    if (has_rate && number != NULL && end != NULL) {
        return DT_FAIL_H(r->h, DT_EDATA,
                         XML_AT
                         "has a period, vehsPerHour or probability with both end and number: leave one of the two out",
                         XML_HERE(x));
    }
    if (end != NULL && to.s < from.s) {
        return DT_FAIL_H(r->h, DT_EDATA, XML_AT "ends at %g s, before it begins at %g s", XML_HERE(x), to.s, from.s);
    }
    w->begin_s = from.s - r->begin.s;
    w->end_s = to.s - r->begin.s;
    const double last = r->end.s - r->begin.s;
    if (!has_rate && from.s == to.s) {
        w->kind = PLAN_AT_ONCE;
    }
    if (w->number == 0 || w->begin_s >= last || w->end_s < 0 || (w->end_s == 0 && w->kind != PLAN_AT_ONCE)) {
        return skip_vehicle(r, x, NULL);
    }
    if (!has_rate && w->kind != PLAN_AT_ONCE) {
        w->period_s = (to.s - from.s) / w->number;
    }
    if (w->kind == PLAN_AT_ONCE) {
        w->period_s = PLAN_PERIOD_MOST;
    }
    if (!(w->period_s >= PLAN_PERIOD_LEAST && w->period_s <= PLAN_PERIOD_MOST)) {
        return DT_FAIL_H(r->h, DT_EDATA, XML_AT "makes a vehicle every %g s; %g to %g s can be", XML_HERE(x),
                         w->period_s, PLAN_PERIOD_LEAST, PLAN_PERIOD_MOST);
    }
    return w->begin_s == w->end_s && w->kind != PLAN_AT_ONCE ? skip_vehicle(r, x, NULL) : DT_OK;
}

static dt_status read_depart(planfile *r, const xml *x)
{
    const char *depart;
    file_time at;
    DT_TRY_H(xml_need(x, "depart", &depart));
    if (is_event(depart)) {
        return skip_vehicle(r, x, "is left out: it has no time of departure");
    }
    at = r->begin;
    if (strcmp(depart, "begin") != 0) {
        DT_TRY_H(xml_time_of(x, "depart", depart, 0, XML_TIME_MOST, &at.s));
    }
    r->flow = (plan_flow){.kind = PLAN_ONCE, .number = 1, .begin_s = at.s - r->begin.s, .end_s = at.s - r->begin.s};
    return at.s < r->begin.s || at.s >= r->end.s ? skip_vehicle(r, x, NULL) : DT_OK;
}

static int is_plain(const planfile *r)
{
    const option *o = r->types.items;
    int plain = 0;
    for (int32_t k = 0; k < r->types.n; k++) {
        plain |= o[k].at != NET_NONE && PLAN_TYPE(r->p, o[k].at)->is_plain;
    }
    return plain;
}

/* Where it drives, as far as the element itself says that. */
static dt_status find_routes(planfile *r, xml *x)
{
    const char *route = xml_get(x, "route");
    int32_t number;
    if (route != NULL) {
        DT_TRY_H(number_of(r, NAMES_ROUTES, route, &number));
        return find_options(r, x, NAMES_ROUTES, number, 1, 0);
    }
    return xml_get(x, "from") != NULL || xml_is(x, "trip") ? find_way(r, x) : DT_OK;
}

static dt_status leave_out_done(planfile *r, const xml *x, dt_status st)
{
    return st == DT_DONE ? skip_vehicle(r, x, "is left out: no passenger car, and drives where cars may not") : st;
}

static dt_status open_vehicle(planfile *r, xml *x)
{
    const char *id = xml_get(x, "type");
    const int32_t type = names_find(&r->names[NAMES_TYPES], id != NULL ? id : "DEFAULT_VEHTYPE");
    r->trip = (plan_trip){0};
    r->flow = (plan_flow){0};
    r->is_open = 1;
    r->is_skipped = 0;
    r->line = x->line;
    r->types.n = r->routes.n = 0;
    const named *k = type >= 0 ? NAMED(r, NAMES_TYPES, type) : NULL;
    if (k != NULL && k->is_there && !k->is_car && (!k->is_distribution || k->n_choices > 0)) {
        return skip_vehicle(r, x, "is left out: its vType is no car");
    }
    DT_TRY_H(xml_is(x, "flow") ? read_flow(r, x) : read_depart(r, x));
    if (r->is_skipped) {
        return DT_OK;
    }
    if (type < 0) {
        return DT_FAIL_H(r->h, DT_EDATA, XML_AT "type \"%s\" is not known: its definition comes before its vehicles",
                         XML_HERE(x), id);
    }
    DT_TRY_H(find_options(r, x, NAMES_TYPES, type, 1, 0));
    r->may_leave_out = !is_plain(r);
    DT_TRY_H(read_begin(r, x));
    return leave_out_done(r, x, find_routes(r, x));
}

/* A lane of an edge as its file counts them, as the network does: those for cars. */
static int32_t lane_given(const planfile *r, int32_t edge, int32_t index)
{
    const file_edge *e = FILE_ITEM(r->f, edge, r->file_edge[edge]);
    if (index >= e->n_lanes) {
        return NET_NONE;
    }
    const int32_t lane = FILE_ITEM(r->f, lane, e->lane + index)->lane;
    return lane == NET_NONE ? NET_NONE : lane - r->n->edge[edge].lane;
}

/* One trip of the vehicle: of its types and routes one each. */
static dt_status add_trip(planfile *r, const xml *x, const option *type, const option *way, double share)
{
    plan_trip t = r->trip, *kept;
    const int32_t first = r->depart_edge == NET_NONE ? 0 : r->depart_edge;
    const int32_t last = r->arrival_edge == NET_NONE ? way->n_edges - 1 : r->arrival_edge;
    if (first > last || last >= way->n_edges) {
        return DT_FAIL_H(r->h, DT_EDATA, "%s:%d: <%s> departEdge %d and arrivalEdge %d are no part of its %d edges",
                         x->path, (int)r->line, x->element, (int)first, (int)last, (int)way->n_edges);
    }
    t.edge = way->at + first;
    t.n_edges = last - first + 1;
    t.type = type->at;
    t.share = share;
    t.lane = r->has_lane ? lane_given(r, PLAN_EDGE(r->p, t.edge), r->trip.lane) : r->trip.lane;
    if (r->has_lane && t.lane == NET_NONE) {
        return NO_WAY(r, "%s:%d: <%s> departLane %d is none of its edge that is for cars", x->path, (int)r->line,
                      x->element, (int)r->trip.lane);
    }
    DT_TRY_H(list_add(r->h, &r->p->trips, sizeof(*kept), &kept));
    *kept = t;
    return DT_OK;
}

static double sum_of(const list *options)
{
    double sum = 0;
    for (int32_t k = 0; k < options->n; k++) {
        sum += ((const option *)options->items)[k].weight;
    }
    return sum;
}

/* All pairs of its types and routes become trips, with their shares. */
static dt_status add_trips(planfile *r, const xml *x, double n_vehicles)
{
    const option *type = r->types.items, *route = r->routes.items;
    const double all = sum_of(&r->types) * sum_of(&r->routes);
    double share = 0;
    if (!(all > 0 && all < INFINITY)) {
        return DT_FAIL_H(r->h, DT_EDATA, "%s:%d: <%s> its routes have no probability above 0", x->path, (int)r->line,
                         x->element);
    }
    if ((double)r->p->trips.n + (double)r->types.n * r->routes.n > PLAN_MOST) {
        return DT_FAIL_H(r->h, DT_EDATA, "%s:%d: <%s> brings the pairs of types and routes to more than %.0f", x->path,
                         (int)r->line, x->element, PLAN_MOST);
    }
    for (int32_t i = 0; i < r->types.n; i++) {
        for (int32_t k = 0; k < r->routes.n; k++) {
            const double own = type[i].weight * route[k].weight / all;
            const int is_last = i == r->types.n - 1 && k == r->routes.n - 1;
            share = is_last ? 1 : share + own;
            TRY_DRIVE(add_trip(r, x, &type[i], &route[k], share));
            if (type[i].at != NET_NONE) {
                ((plan_type *)r->p->types.items)[type[i].at].n_vehicles += (int64_t)ceil(own * n_vehicles);
            }
        }
    }
    return DT_OK;
}

/* Steps that drawing a flow takes; *n_vehicles_p: how many of them are vehicles, about. */
static double steps_of(const plan_flow *w, double last, double *n_vehicles_p)
{
    const double from = w->begin_s > 0 ? w->begin_s : 0, to = w->end_s < last ? w->end_s : last;
    const double every_s = w->kind == PLAN_CHANCE ? 1 : w->period_s;
    if (w->kind == PLAN_ONCE || w->kind == PLAN_AT_ONCE) {
        return *n_vehicles_p = w->number;
    }
    const double due = 1 + floor((to - from) / w->period_s);
    *n_vehicles_p = due < w->number ? due : w->number;
    return w->kind == PLAN_REGULAR ? *n_vehicles_p : 1 + (to - (w->kind == PLAN_POISSON ? w->begin_s : from)) / every_s;
}

/* The whole vehicle has been read: it drives. */
static dt_status close_vehicle(planfile *r, const xml *x)
{
    r->is_open = 0;
    if (r->is_skipped) {
        return DT_OK;
    }
    if (r->routes.n == 0) {
        return DT_FAIL_H(r->h, DT_EDATA, "%s:%d: <%s> has no route", x->path, (int)r->line, x->element);
    }
    plan_flow w = r->flow, *flow;
    double n_vehicles;
    r->p->n_steps += steps_of(&w, r->end.s - r->begin.s, &n_vehicles);
    if (!(r->p->n_steps <= PLAN_MOST)) {
        return DT_FAIL_H(
            r->h, DT_EDATA,
            "%s:%d: <%s> brings the vehicles that are due until %g s to %.0f; at most %.0f are simulated: a "
            "shorter episode_s, or a longer period, makes less",
            x->path, (int)r->line, x->element, r->end.s, r->p->n_steps, PLAN_MOST);
    }
    w.trip = r->p->trips.n;
    const dt_status st = add_trips(r, x, n_vehicles);
    if (st != DT_OK) {
        r->p->trips.n = w.trip;
        const xml here = {.h = r->h, .path = x->path, .line = r->line, .element = x->element};
        return leave_out_done(r, &here, st);
    }
    w.n_trips = r->p->trips.n - w.trip;
    DT_TRY_H(list_add(r->h, &r->p->flows, sizeof(*flow), &flow));
    *flow = w;
    return DT_OK;
}

/* ---- the file ---------------------------------------------------------------------------------------------------- */

static int is_vehicle(const xml *x)
{
    return xml_is(x, "vehicle") || xml_is(x, "trip") || xml_is(x, "flow");
}

/* It holds nothing that is read. */
static dt_status skip_element(planfile *r, const xml *x)
{
    r->skip_depth = x->depth;
    return xml_is(x, "param") ? DT_OK : file_leave_out(&r->notes, x, "is left out: not simulated");
}

static dt_status begin_root(const planfile *r, const xml *x)
{
    static const char *const others[] = {"net", "configuration", "sumoConfiguration", "fcd-export", "meandata"};
    for (size_t k = 0; k < sizeof(others) / sizeof(others[0]); k++) {
        if (xml_is(x, others[k])) {
            return DT_FAIL_H(r->h, DT_EDATA, XML_AT "is not the <routes> of SUMO", XML_HERE(x));
        }
    }
    return DT_OK;
}

/* Within a vehicle, or a distribution of one. */
static dt_status begin_inside(planfile *r, xml *x)
{
    if (r->is_skipped) {
        r->skip_depth = x->depth;
        return DT_OK;
    }
    if (xml_is(x, "route")) {
        return leave_out_done(r, x, open_own_route(r, x));
    }
    return xml_is(x, "routeDistribution") ? DT_OK : skip_element(r, x);
}

static dt_status begin(xml *x)
{
    planfile *r = x->user;
    if (x->depth == 0) {
        return begin_root(r, x);
    }
    if (r->skip_depth != NET_NONE) {
        return DT_OK;
    }
    if (r->is_open) {
        return begin_inside(r, x);
    }
    const int which = xml_is(x, "vType") || xml_is(x, "vTypeDistribution") ? NAMES_TYPES : NAMES_ROUTES;
    if (r->distribution != NET_NONE && (which != r->which_names || x->depth != 2)) {
        return skip_element(r, x);
    }
    if (xml_is(x, "include")) {
        return DT_FAIL_H(r->h, DT_EDATA, XML_AT "is not read: put the demand into one file", XML_HERE(x));
    }
    if (xml_is(x, "vType")) {
        return open_type(r, x);
    }
    if (xml_is(x, "route")) {
        return open_route(r, x);
    }
    if (x->depth == 1 && (xml_is(x, "vTypeDistribution") || xml_is(x, "routeDistribution"))) {
        return open_distribution(r, x, which);
    }
    if (x->depth == 1 && is_vehicle(x)) {
        return open_vehicle(r, x);
    }
    return skip_element(r, x);
}

static dt_status end(xml *x)
{
    planfile *r = x->user;
    if (r->skip_depth != NET_NONE) {
        r->skip_depth = r->skip_depth == x->depth ? NET_NONE : r->skip_depth;
        return DT_OK;
    }
    if (x->depth == 1 && (xml_is(x, "vTypeDistribution") || xml_is(x, "routeDistribution"))) {
        r->distribution = NET_NONE;
    }
    return is_vehicle(x) && r->is_open ? close_vehicle(r, x) : DT_OK;
}

/* What SUMO knows without a definition. */
static dt_status add_own_types(planfile *r)
{
    static const char *const own[][2] = {{"DEFAULT_VEHTYPE", "passenger"}, {"DEFAULT_TAXITYPE", "taxi"},
                                         {"DEFAULT_BIKETYPE", "bicycle"},  {"DEFAULT_PEDTYPE", "pedestrian"},
                                         {"DEFAULT_RAILTYPE", "rail"},     {"DEFAULT_CONTAINERTYPE", "container"},
                                         {"DEFAULT_SHIPTYPE", "ship"}};
    for (size_t k = 0; k < sizeof(own) / sizeof(own[0]); k++) {
        const char *const attributes[] = {"vClass", own[k][1], NULL};
        const xml x = {.h = r->h, .path = r->path, .element = "vType", .attributes = attributes};
        const plan_type t = type_of_class(own[k][1]);
        int32_t number;
        named kept = {.is_there = 1, .found = NET_NONE, .is_car = t.is_car, .is_plain = k == 0};
        DT_TRY_H(number_of(r, NAMES_TYPES, own[k][0], &number));
        DT_TRY_H(keep_attributes(r, &x, &kept));
        *NAMED(r, NAMES_TYPES, number) = kept;
    }
    return DT_OK;
}

static dt_status read_all(planfile *r, const xml_text *text)
{
    static const xml_calls calls = {.begin = begin, .end = end};
    r->file_edge = r->h->alloc(r->h, ((uint64_t)r->n->n_edges + 1) * sizeof(*r->file_edge));
    if (r->file_edge == NULL) {
        return DT_FAIL_H(r->h, DT_ENOMEM, "no memory for %d edges", (int)r->n->n_edges);
    }
    for (int32_t e = 0; e < r->f->edges.n; e++) {
        if (FILE_ITEM(r->f, edge, e)->edge != NET_NONE) {
            r->file_edge[FILE_ITEM(r->f, edge, e)->edge] = e;
        }
    }
    DT_TRY_H(add_own_types(r));
    DT_TRY_H(xml_read(r->h, text, &calls, r));
    file_say_notes(r->h, text->path, &r->notes);
    if (r->p->flows.n == 0) {
        return DT_FAIL_H(r->h, DT_ECONFIG,
                         "%s: no vehicle is due from %g s (begin_s) to %g s (begin_s + episode_s): nobody would drive",
                         text->path, r->begin.s, r->end.s);
    }
    return DT_OK;
}

dt_status plan_read(trip_plan *p, const dt_host *h, const xml_text *text, const netfile *f, const net *n,
                    route_search *search, file_time begin, file_time end)
{
    planfile r = {.p = p,
                  .h = h,
                  .f = f,
                  .n = n,
                  .search = search,
                  .begin = begin,
                  .end = end,
                  .path = text->path,
                  .distribution = NET_NONE,
                  .skip_depth = NET_NONE};
    const dt_status st = read_all(&r, text);
    h->release(h, r.file_edge);
    names_fini(h, &r.way_names);
    for (int k = 0; k < N_NAMES; k++) {
        names_fini(h, &r.names[k]);
        list_fini(h, &r.named[k]);
    }
    list *const lists[] = {&r.text, &r.choices, &r.attributes, &r.ways, &r.notes, &r.types, &r.routes};
    for (size_t k = 0; k < sizeof(lists) / sizeof(lists[0]); k++) {
        list_fini(h, lists[k]);
    }
    return st;
}

void plan_fini(trip_plan *p, const dt_host *h)
{
    list_fini(h, &p->types);
    list_fini(h, &p->trips);
    list_fini(h, &p->flows);
    list_fini(h, &p->edges);
}

const plan_type *plan_common_type(const trip_plan *p)
{
    const plan_type *common = PLAN_TYPE(p, 0);
    for (int32_t k = 1; k < p->types.n; k++) {
        common = PLAN_TYPE(p, k)->n_vehicles > common->n_vehicles ? PLAN_TYPE(p, k) : common;
    }
    return common;
}
