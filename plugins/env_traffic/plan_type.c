/* SPDX-License-Identifier: Apache-2.0
 *
 * Vehicle types of a demand; see plan_file.h.
 */
#include "plan_file.h"
#include "follow.h"

#include <string.h>

#define LENGTH_MOST  100  /* m */
#define SCALE_MOST   1000 /* vehicles of one */
#define DESIRED_MOST 1e4  /* m/s: no bound */

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

/* "1.1", "norm(1,0.1)", "normc(1,0.1,0.2,2)": mean and deviation */
static dt_status read_factor(const xml *x, plan_type *t)
{
    const char *text = xml_get(x, "speedFactor");
    if (text == NULL) {
        return xml_number(x, "speedDev", t->dev, 0, 1, &t->dev);
    }
    const char *open = strchr(text, '('), *at = open != NULL ? open + 1 : text;
    const char *rest = at;
    int is_number = xml_parse_number(at, &rest, &t->factor);
    if (is_number && open != NULL && *rest == ',') {
        is_number = xml_parse_number(rest + 1 + strspn(rest + 1, " "), &rest, &t->dev);
    } else if (open == NULL) {
        t->dev = 0;
    }
    if (!is_number || !(t->factor > 0) || !(t->factor < 10) || !(t->dev >= 0 && t->dev <= 1) ||
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
                       .desired = DESIRED_MOST,
                       .scale = 1,
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
    static const char *const skipped[] = {"laneChangeModel",       "minGapLat",  "actionStepLength", "startupDelay",
                                          "collisionMinGapFactor", "impatience", "timeToTeleport",   "maxSpeedLat",
                                          "latAlignment",          "stepping"};
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
    DT_TRY_H(xml_number(x, "desiredMaxSpeed", t.desired, 0.1, DESIRED_MOST, &t.desired));
    DT_TRY_H(xml_number(x, "scale", t.scale, 0, SCALE_MOST, &t.scale));
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

dt_status plan_use_type(planfile *r, named *k, int32_t *type_p)
{
    if (k->found == NET_NONE) {
        xml x;
        plan_type t, *kept;
        DT_TRY_H(plan_reopen(r, k, "vType", &x));
        DT_TRY_H(read_type(r, &x, &t));
        DT_TRY_H(list_add(r->h, &r->p->types, sizeof(*kept), &kept));
        *kept = t;
        k->found = r->p->types.n - 1;
    }
    *type_p = k->found;
    return DT_OK;
}

dt_status plan_open_type(planfile *r, xml *x)
{
    const char *id, *vclass = xml_get(x, "vClass"), *p = xml_get(x, "probability");
    const int in_distribution = r->distribution != NET_NONE;
    int32_t number;
    if (in_distribution && xml_get(x, "refId") != NULL) {
        DT_TRY_H(plan_number_of(r, NAMES_TYPES, xml_get(x, "refId"), &number));
        return plan_add_choice(r, number, p != NULL ? plan_weight_of(p) : -1);
    }
    DT_TRY_H(xml_need(x, "id", &id));
    DT_TRY_H(plan_number_of(r, NAMES_TYPES, id, &number));
    named k = {.is_there = 1, .found = NET_NONE};
    DT_TRY_H(plan_keep(r, x, &k));
    k.is_car = vclass == NULL || type_of_class(vclass).is_car;
    k.is_plain = vclass == NULL || strcmp(vclass, "passenger") == 0;
    *NAMED(r, NAMES_TYPES, number) = k;
    if (!k.is_car) {
        DT_TRY_H(file_leave_out(&r->notes, x, "is not a car: its vehicles are left out"));
    }
    return in_distribution ? plan_add_choice(r, number, -1) : DT_OK;
}

dt_status plan_add_own_types(planfile *r)
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
        DT_TRY_H(plan_number_of(r, NAMES_TYPES, own[k][0], &number));
        DT_TRY_H(plan_keep(r, &x, &kept));
        *NAMED(r, NAMES_TYPES, number) = kept;
    }
    return DT_OK;
}
