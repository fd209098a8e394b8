/* SPDX-License-Identifier: Apache-2.0
 *
 * Vehicles, trips and flows of a demand; see plan_file.h.
 */
#include "plan_file.h"
#include "follow.h"

#include <math.h>
#include <string.h>

enum { NESTED_MOST = 8 };  /* distributions within distributions */
#define SPEED_EPSILON 1e-3 /* m/s: a departSpeed that is above the limit by less is the limit */

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
            DT_TRY_H(plan_use_type(r, k, &type));
        }
        return plan_add_option(r, x, &r->types, type, 0, weight);
    }
    if (!k->is_distribution) {
        TRY_DRIVE(plan_use_route(r, k));
        return plan_add_option(r, x, &r->routes, k->found, k->n_edges, weight);
    }
    double sum = 0;
    for (int32_t i = 0; i < k->n_choices; i++) {
        choice *c = &((choice *)r->choices.items)[k->choice + i];
        c->weight = c->weight < 0 ? plan_own_weight(r, NAMED(r, which, c->number)) : c->weight;
        sum += c->weight;
    }
    if (!(sum > 0 && sum < INFINITY)) {
        return DT_FAIL_H(
            r->h, DT_EDATA,
            "%s:%d: the distribution \"%s\" has no probability above 0, or one that is not a number of at least 0",
            names_get(&r->files, k->file), (int)k->line, id);
    }
    for (int32_t i = 0; i < k->n_choices; i++) {
        const choice c = ((choice *)r->choices.items)[k->choice + i];
        if (c.weight > 0) {
            TRY_DRIVE(find_options(r, x, which, c.number, weight * c.weight / sum, depth + 1));
        }
    }
    return DT_OK;
}

typedef struct word_code {
    const char *word;
    int32_t code;
} word_code;

/* The code of a word; -100 where it is none of them. */
enum { NO_CODE = -100 };
static int32_t find_code(const word_code *all, size_t n, const char *word)
{
    for (size_t k = 0; k < n; k++) {
        if (strcmp(all[k].word, word) == 0) {
            return all[k].code;
        }
    }
    return NO_CODE;
}
#define CODE_OF(all, word) find_code(all, sizeof(all) / sizeof((all)[0]), word)

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
    static const char *const more[] = {"arrivalLane", "arrivalPos", "arrivalSpeed", "departPosLat"};
    DT_TRY_H(read_lane(r, x));
    DT_TRY_H(read_pos(r, x));
    DT_TRY_H(read_speed(r, x));
    DT_TRY_H(xml_number(x, "speedFactor", 0, 0.01, 10, &r->trip.factor));
    DT_TRY_H(read_part(r, x, "departEdge", &r->depart_edge));
    DT_TRY_H(read_part(r, x, "arrivalEdge", &r->arrival_edge));
    for (size_t k = 0; k < sizeof(more) / sizeof(more[0]); k++) {
        if (xml_get(x, more[k]) != NULL) {
            return file_leave_out(&r->notes, x,
                                  "has arrivalLane, arrivalPos, arrivalSpeed or departPosLat, which are skipped");
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
    const char *rest = text;
    double rate = NAN;
    if (!xml_parse_number(text + 4, &rest, &rate) || !(rate >= 1 / PLAN_PERIOD_MOST) ||
        !(rate < 1 / PLAN_PERIOD_LEAST) || strcmp(rest, ")") != 0) {
        return DT_FAIL_H(r->h, DT_EDATA, XML_AT "period \"%s\" is neither a time nor exp(rate), rate in %g ... %g",
                         XML_HERE(x), text, 1 / PLAN_PERIOD_MOST, 1 / PLAN_PERIOD_LEAST);
    }
    w->kind = PLAN_POISSON;
    w->period_s = 1 / rate;
    return DT_OK;
}

/* How often; *has_rate_p: it has a rate, not only how many. */
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
 * rate is spread evenly up to the end; without an end a flow continues to the end of the simulation. */
static dt_status read_flow(planfile *r, xml *x)
{
    plan_flow *w = &r->flow;
    const char *number = xml_get(x, "number"), *begin = xml_get(x, "begin"), *end = xml_get(x, "end");
    const int has_end = end != NULL || r->has_to;
    file_time from = r->from, to = r->to;
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
    if (has_end && to.s < from.s) {
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

/* Where it drives, as far as the element itself states that. A way is looked for when it ends without a route: those
 * that duarouter makes record from which zone they come, too. */
static dt_status find_routes(planfile *r, xml *x)
{
    const char *route = xml_get(x, "route");
    int32_t number;
    if (route != NULL) {
        DT_TRY_H(plan_number_of(r, NAMES_ROUTES, route, &number));
        return find_options(r, x, NAMES_ROUTES, number, 1, 0);
    }
    r->may_seek = plan_has_way(x) || xml_is(x, "trip");
    return r->may_seek ? plan_keep(r, x, &r->seeker) : DT_OK;
}

static dt_status find_way_at_end(planfile *r, const xml *end)
{
    xml x;
    DT_TRY_H(plan_reopen(r, &r->seeker, end->element, &x));
    return plan_find_way(r, &x);
}

static dt_status skip_if_done(planfile *r, const xml *x, dt_status st)
{
    return st == DT_DONE ? skip_vehicle(r, x, "is left out: not a passenger car, and drives where cars may not") : st;
}

static dt_status read_own_route(planfile *r, xml *x)
{
    const char *p = xml_get(x, "probability"), *other = xml_get(x, "refId");
    const double weight = p != NULL ? plan_weight_of(p) : 1;
    int32_t edge, n_edges, number;
    if (!(weight >= 0)) {
        return DT_FAIL_H(r->h, DT_EDATA, XML_AT "probability \"%s\" is not a number of at least 0", XML_HERE(x), p);
    }
    if (other != NULL) {
        DT_TRY_H(plan_number_of(r, NAMES_ROUTES, other, &number));
        return find_options(r, x, NAMES_ROUTES, number, weight, 0);
    }
    TRY_DRIVE(plan_read_edges(r, x, &edge, &n_edges));
    return plan_add_option(r, x, &r->routes, edge, n_edges, weight);
}

dt_status plan_open_own_route(planfile *r, xml *x)
{
    return skip_if_done(r, x, read_own_route(r, x));
}

dt_status plan_open_vehicle(planfile *r, xml *x)
{
    const char *id = xml_get(x, "type");
    const int32_t type = names_find(&r->names[NAMES_TYPES], id != NULL ? id : "DEFAULT_VEHTYPE");
    r->trip = (plan_trip){0};
    r->flow = (plan_flow){0};
    r->is_open = 1;
    r->is_skipped = 0;
    r->line = x->line;
    r->types.n = r->routes.n = 0;
    r->may_seek = 0;
    const named *k = type >= 0 ? NAMED(r, NAMES_TYPES, type) : NULL;
    if (k != NULL && k->is_there && !k->is_car && (!k->is_distribution || k->n_choices > 0)) {
        return skip_vehicle(r, x, "is left out: its vType is not a car");
    }
    DT_TRY_H(xml_is(x, "flow") ? read_flow(r, x) : read_depart(r, x));
    if (r->is_skipped) {
        return DT_OK;
    }
    if (r->flow.begin_s < r->last_s) {
        DT_TRY_H(file_leave_out(&r->notes, x,
                                "begins before an earlier one of the file: it is simulated, but SUMO ignores it unless "
                                "the file is an additional file"));
    }
    r->last_s = most(r->last_s, r->flow.begin_s);
    if (type < 0) {
        return DT_FAIL_H(r->h, DT_EDATA, XML_AT "type \"%s\" is not known: its definition comes before its vehicles",
                         XML_HERE(x), id);
    }
    DT_TRY_H(find_options(r, x, NAMES_TYPES, type, 1, 0));
    r->may_leave_out = !is_plain(r);
    DT_TRY_H(read_begin(r, x));
    return skip_if_done(r, x, find_routes(r, x));
}

/* A lane of an edge as its file counts them, as the network does: those for cars. */
static int32_t usable_lane(const planfile *r, int32_t edge, int32_t index)
{
    const file_edge *e = FILE_ITEM(r->f, edge, r->file_edge[edge]);
    if (index >= e->n_lanes) {
        return NET_NONE;
    }
    const int32_t lane = FILE_ITEM(r->f, lane, e->lane + index)->lane;
    return lane == NET_NONE ? NET_NONE : lane - r->n->edge[edge].lane;
}

/* SUMO's rule: no vehicle departs faster than its type's maxSpeed; one that departs above the limit keeps that speed
 * where speed factors are drawn (speedDev above 0), and else it is an error. */
static dt_status check_speed(const planfile *r, const xml *x, const plan_trip *t)
{
    if (t->speed_kind != PLAN_SPEED_GIVEN || t->type == NET_NONE) {
        return DT_OK;
    }
    const plan_type *type = PLAN_TYPE(r->p, t->type);
    const net_edge *e = &r->n->edge[PLAN_EDGE(r->p, t->edge)];
    double limit = 0;
    for (int32_t lane = e->lane; lane < e->lane + e->n_lanes; lane++) {
        limit = most(limit, r->n->lane[lane].limit);
    }
    if (t->speed > type->top) {
        return DT_FAIL_H(r->h, DT_EDATA, "%s:%d: <%s> departSpeed %g m/s is above the maxSpeed %g m/s of its vType",
                         x->path, (int)r->line, x->element, t->speed, type->top);
    }
    const double factor = t->factor > 0 ? t->factor : type->factor;
    if (type->dev == 0 && t->speed > limit * factor + SPEED_EPSILON) {
        return DT_FAIL_H(r->h, DT_EDATA,
                         "%s:%d: <%s> departSpeed %g m/s is above %g m/s, the limit of its edge times its speedFactor, "
                         "and speedDev is 0: SUMO rejects it too; use departSpeed=\"max\", or a speedFactor of %.3g",
                         x->path, (int)r->line, x->element, t->speed, limit * factor,
                         ceil(1e2 * t->speed / limit) / 1e2);
    }
    return DT_OK;
}

/* One trip of the vehicle: of its types and routes one each. */
static dt_status add_trip(planfile *r, const xml *x, const option *type, const option *way, double share)
{
    plan_trip t = r->trip, *kept;
    const int32_t first = r->depart_edge == NET_NONE ? 0 : r->depart_edge;
    const int32_t last = r->arrival_edge == NET_NONE ? way->n_edges - 1 : r->arrival_edge;
    if (first > last || last >= way->n_edges) {
        return DT_FAIL_H(r->h, DT_EDATA, "%s:%d: <%s> departEdge %d and arrivalEdge %d are not among its %d edges",
                         x->path, (int)r->line, x->element, (int)first, (int)last, (int)way->n_edges);
    }
    t.edge = way->at + first;
    t.n_edges = last - first + 1;
    t.type = type->at;
    t.share = share;
    t.lane = r->has_lane ? usable_lane(r, PLAN_EDGE(r->p, t.edge), r->trip.lane) : r->trip.lane;
    if (r->has_lane && t.lane == NET_NONE) {
        return NO_WAY(r, "%s:%d: <%s> departLane %d is none of its edge that is for cars", x->path, (int)r->line,
                      x->element, (int)r->trip.lane);
    }
    DT_TRY_H(check_speed(r, x, &t));
    DT_TRY_H(list_add(r->h, &r->p->trips, sizeof(*kept), &kept));
    *kept = t;
    return DT_OK;
}

static double sum_weights(const list *options)
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
    const double all = sum_weights(&r->types) * sum_weights(&r->routes);
    double share = 0;
    if (!(all > 0 && all < INFINITY)) {
        return DT_FAIL_H(r->h, DT_EDATA, "%s:%d: <%s> its routes have no probability above 0", x->path, (int)r->line,
                         x->element);
    }
    if ((double)r->p->trips.n + (double)r->types.n * r->routes.n > PLAN_MOST) {
        return DT_FAIL_H(r->h, DT_EDATA, "%s:%d: <%s> raises the pairs of types and routes to more than %.0f", x->path,
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
static double count_flow_steps(const plan_flow *w, double last, double *n_vehicles_p)
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

/* Vehicles that one of the flow becomes, at most; 1 at least. */
static double largest_scale(const planfile *r)
{
    const option *type = r->types.items;
    double scale = 1;
    for (int32_t i = 0; i < r->types.n; i++) {
        scale = type[i].at != NET_NONE ? most(scale, PLAN_TYPE(r->p, type[i].at)->scale) : scale;
    }
    return ceil(scale);
}

/* The whole vehicle has been read: it drives. */
dt_status plan_close_vehicle(planfile *r, const xml *x)
{
    r->is_open = 0;
    if (!r->is_skipped && r->routes.n == 0 && r->may_seek) {
        DT_TRY_H(skip_if_done(r, x, find_way_at_end(r, x)));
    }
    if (r->may_seek) {
        r->text.n = r->seeker.text; /* nothing was kept since */
    }
    if (r->is_skipped) {
        return DT_OK;
    }
    if (r->routes.n == 0) {
        return DT_FAIL_H(r->h, DT_EDATA, "%s:%d: <%s> has no route", x->path, (int)r->line, x->element);
    }
    plan_flow w = r->flow, *flow;
    double n_vehicles;
    r->p->n_steps += count_flow_steps(&w, r->end.s - r->begin.s, &n_vehicles) * largest_scale(r);
    if (!(r->p->n_steps <= PLAN_MOST)) {
        return DT_FAIL_H(r->h, DT_EDATA,
                         "%s:%d: <%s> raises the vehicles that are due until %g s to %.0f; at most %.0f are simulated: "
                         "use a shorter episode_s, or a longer period",
                         x->path, (int)r->line, x->element, r->end.s, r->p->n_steps, PLAN_MOST);
    }
    w.trip = r->p->trips.n;
    const dt_status st = add_trips(r, x, n_vehicles);
    if (st != DT_OK) {
        r->p->trips.n = w.trip;
        const xml here = {.h = r->h, .path = x->path, .line = r->line, .element = x->element};
        return skip_if_done(r, &here, st);
    }
    w.n_trips = r->p->trips.n - w.trip;
    DT_TRY_H(list_add(r->h, &r->p->flows, sizeof(*flow), &flow));
    *flow = w;
    return DT_OK;
}
