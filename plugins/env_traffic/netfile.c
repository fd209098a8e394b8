/* SPDX-License-Identifier: Apache-2.0 */
#include "netfile.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define LENGTH_MOST 1e6 /* m */
#define SPEED_LEAST 0.1 /* m/s; 0: closed */
#define SPEED_MOST  200 /* m/s */
#define PLACE_MOST  1e8 /* m, of a point; earth measures less */
#define LANES_MOST  64  /* of an edge */
#define NOTES_MOST  64  /* kinds of elements left out that are distinguished; every one is compared with all of them */

/* ---- what is left out -------------------------------------------------------------------------------------------- */

dt_status file_leave_out(list *notes, const xml *x, const char *what)
{
    file_note *all = notes->items;
    for (int32_t k = 0; k < notes->n; k++) {
        if (strcmp(all[k].what, what) == 0 && strncmp(all[k].element, x->element, sizeof(all[k].element) - 1) == 0) {
            all[k].n++;
            return DT_OK;
        }
    }
    if (notes->n == NOTES_MOST) {
        all[NOTES_MOST - 1].n++;
        return DT_OK;
    }
    file_note *note;
    const int is_last = notes->n == NOTES_MOST - 1;
    DT_TRY_H(list_add(x->h, notes, sizeof(*note), &note));
    *note =
        (file_note){.what = is_last ? "is left out, as are further kinds of elements" : what, .line = x->line, .n = 1};
    snprintf(note->element, sizeof(note->element), "%s", x->element);
    snprintf(note->path, sizeof(note->path), "%s", x->path);
    return DT_OK;
}

void file_report_notes(const dt_host *h, const list *notes)
{
    const file_note *all = notes->items;
    for (int32_t k = 0; k < notes->n; k++) {
        char more[32] = "";
        if (all[k].n > 1) {
            snprintf(more, sizeof(more), " (and %d more)", (int)all[k].n - 1);
        }
        dt_logf(h, 1, XML_AT "%s%s", all[k].path, (int)all[k].line, all[k].element, all[k].what, more);
    }
}

static int has_word(const char *text, const char *word)
{
    const char *at = text, *w;
    for (size_t n; (n = xml_word(&at, &w)) > 0;) {
        if (n == strlen(word) && strncmp(w, word, n) == 0) {
            return 1;
        }
    }
    return 0;
}

/* May cars go where these attributes are? */
static int file_is_for_cars(const xml *x)
{
    const char *allow = xml_get(x, "allow"), *disallow = xml_get(x, "disallow");
    if (allow != NULL && allow[0] != '\0') {
        return has_word(allow, "passenger") || has_word(allow, "all");
    }
    return disallow == NULL || !(has_word(disallow, "passenger") || has_word(disallow, "all"));
}

/* ---- elements ---------------------------------------------------------------------------------------------------- */

static dt_status keep_text(netfile *f, const char *text, int32_t *at_p)
{
    *at_p = f->text.n;
    for (;; text++) {
        char *c;
        DT_TRY_H(list_add(f->h, &f->text, 1, &c));
        *c = *text;
        if (*text == '\0') {
            return DT_OK;
        }
    }
}

/* The number of a junction that may come later in the file. */
static dt_status junction_number(netfile *f, const char *name, int32_t *number_p)
{
    DT_TRY_H(names_add(f->h, &f->junction_names, name, number_p));
    while (f->junctions.n <= *number_p) {
        file_junction *j;
        DT_TRY_H(list_add(f->h, &f->junctions, sizeof(*j), &j));
        j->group = j->signal = NET_NONE;
    }
    return DT_OK;
}

static dt_status open_edge(netfile *f, xml *x)
{
    const char *id, *from = NULL, *to = NULL, *function = xml_get(x, "function");
    DT_TRY_H(xml_need(x, "id", &id));
    int32_t number;
    if (names_find(&f->edge_names, id) >= 0) {
        return DT_FAIL_H(f->h, DT_EDATA, XML_AT "\"%s\" is defined twice", XML_HERE(x), id);
    }
    DT_TRY_H(names_add(f->h, &f->edge_names, id, &number));
    file_edge *e;
    DT_TRY_H(list_add(f->h, &f->edges, sizeof(*e), &e));
    *e = (file_edge){.line = x->line, .lane = f->lanes.n, .edge = NET_NONE, .from = NET_NONE, .to = NET_NONE};
    e->is_inside = function != NULL && strcmp(function, "normal") != 0 && strcmp(function, "connector") != 0;
    e->is_walked = function != NULL && (strcmp(function, "crossing") == 0 || strcmp(function, "walkingarea") == 0);
    if (e->is_walked) {
        return file_leave_out(&f->notes, x, "is left out: no pedestrians are simulated");
    }
    if (e->is_inside) {
        return DT_OK;
    }
    DT_TRY_H(xml_need(x, "from", &from));
    DT_TRY_H(xml_need(x, "to", &to));
    int32_t a, b;
    DT_TRY_H(junction_number(f, from, &a));
    DT_TRY_H(junction_number(f, to, &b));
    e->from = a;
    e->to = b;
    return DT_OK;
}

/* "x,y x,y ..." or with a height, which is dropped. */
static dt_status read_shape(netfile *f, xml *x, file_lane *l)
{
    const char *shape;
    DT_TRY_H(xml_need(x, "shape", &shape));
    l->point = f->points.n / 2;
    const char *at = shape;
    for (const char *word; xml_word(&at, &word) > 0; l->n_points++) {
        const char *rest = word;
        double px = NAN, py = NAN;
        const int is_point =
            xml_parse_number(word, &rest, &px) && *rest == ',' && xml_parse_number(rest + 1, &rest, &py);
        if (!is_point || !(fabs(px) <= PLACE_MOST && fabs(py) <= PLACE_MOST) || strchr(", \t\r\n", *rest) == NULL) {
            return DT_FAIL_H(f->h, DT_EDATA, XML_AT "its shape has no point x,y at \"%.20s\", within %g m", XML_HERE(x),
                             word, PLACE_MOST);
        }
        double *p;
        DT_TRY_H(list_add(f->h, &f->points, sizeof(*p), &p));
        *p = px;
        DT_TRY_H(list_add(f->h, &f->points, sizeof(*p), &p));
        *p = py;
    }
    return l->n_points >= 2 ? DT_OK : DT_FAIL_H(f->h, DT_EDATA, XML_AT "its shape has less than 2 points", XML_HERE(x));
}

/* What drivers need of a lane. */
static dt_status read_lane(netfile *f, xml *x, const file_edge *e, file_lane *l)
{
    const char *text;
    DT_TRY_H(xml_need(x, "length", &text));
    DT_TRY_H(xml_need(x, "speed", &text));
    DT_TRY_H(xml_number(x, "length", 0, 0, LENGTH_MOST, &l->length));
    DT_TRY_H(xml_number(x, "speed", 0, 0, SPEED_MOST, &l->speed));
    if (l->speed > 0 && l->speed < SPEED_LEAST) {
        return DT_FAIL_H(f->h, DT_EDATA, XML_AT "speed %g is neither 0 (closed) nor at least %g", XML_HERE(x), l->speed,
                         SPEED_LEAST);
    }
    l->is_open = file_is_for_cars(x) && l->speed > 0;
    return read_shape(f, x, l);
}

static dt_status open_lane(netfile *f, xml *x)
{
    const char *id;
    DT_TRY_H(xml_need(x, "id", &id));
    if (f->edges.n == 0) {
        return DT_FAIL_H(f->h, DT_EDATA, XML_AT "\"%s\" is in no edge", XML_HERE(x), id);
    }
    file_edge *e = FILE_ITEM(f, edge, f->edges.n - 1);
    int32_t number, index;
    if (names_find(&f->lane_names, id) >= 0) {
        return DT_FAIL_H(f->h, DT_EDATA, XML_AT "\"%s\" is defined twice", XML_HERE(x), id);
    }
    index = e->n_lanes;
    if (!e->is_inside) { /* inside junctions the id counts, as in SUMO; some editors write wrong numbers there */
        DT_TRY_H(xml_count(x, "index", e->n_lanes, 0, LANES_MOST - 1, &index));
    }
    if (index != e->n_lanes) {
        return DT_FAIL_H(f->h, DT_EDATA, XML_AT "index %d, where %d is the next one of its edge", XML_HERE(x),
                         (int)index, (int)e->n_lanes);
    }
    DT_TRY_H(names_add(f->h, &f->lane_names, id, &number));
    file_lane l = {.line = x->line, .edge = f->edges.n - 1, .after = NET_NONE, .lane = NET_NONE, .inside_of = NET_NONE};
    if (!e->is_walked && (e->is_inside || file_is_for_cars(x))) { /* what no car drives on is not checked */
        DT_TRY_H(read_lane(f, x, e, &l));
    }
    e->n_lanes++;
    file_lane *kept;
    DT_TRY_H(list_add(f->h, &f->lanes, sizeof(*kept), &kept));
    *kept = l;
    return l.is_open || e->is_inside ? DT_OK : file_leave_out(&f->notes, x, "is left out: not for cars");
}

/* intLanes of the open junction: one lane for every link. */
static dt_status read_inside(netfile *f, const xml *x, const char *lanes)
{
    const char *at = lanes, *word;
    int32_t k = 0;
    for (size_t n; (n = xml_word(&at, &word)) > 0; k++) {
        char name[512];
        snprintf(name, sizeof(name), "%.*s", (int)(n < sizeof(name) ? n : sizeof(name) - 1), word);
        const int32_t number = names_find(&f->lane_names, name);
        file_lane *l = number >= 0 ? FILE_ITEM(f, lane, number) : NULL;
        if (l != NULL && l->inside_of == NET_NONE) {
            l->inside_of = f->junction;
            l->inside_at = k;
        } else if (l != NULL && l->inside_of != f->junction) {
            return DT_FAIL_H(f->h, DT_EDATA, XML_AT "lane \"%s\" is in the intLanes of \"%s\" already", XML_HERE(x),
                             name, names_get(&f->junction_names, l->inside_of));
        }
    }
    return DT_OK;
}

static dt_status open_junction(netfile *f, xml *x)
{
    const char *id, *type = xml_get(x, "type"), *inside = xml_get(x, "intLanes");
    DT_TRY_H(xml_need(x, "id", &id));
    f->junction = NET_NONE;
    if (type != NULL && strcmp(type, "internal") == 0) {
        return DT_OK;
    }
    const int is_rail = type != NULL && strncmp(type, "rail", 4) == 0;
    if (is_rail) {
        DT_TRY_H(file_leave_out(&f->notes, x, "is for trains, which are not simulated: cars ignore it"));
    }
    DT_TRY_H(junction_number(f, id, &f->junction));
    file_junction *j = FILE_ITEM(f, junction, f->junction);
    if (j->is_there) {
        return DT_FAIL_H(f->h, DT_EDATA, XML_AT "\"%s\" is defined twice", XML_HERE(x), id);
    }
    j->is_there = 1;
    j->is_rail = is_rail;
    j->line = x->line;
    j->request = f->requests.n;
    DT_TRY_H(read_inside(f, x, inside != NULL ? inside : ""));
    j->is_unregulated =
        type != NULL && (strcmp(type, "unregulated") == 0 || strcmp(type, "traffic_light_unregulated") == 0);
    j->is_equal = type != NULL && (strcmp(type, "right_before_left") == 0 || strcmp(type, "left_before_right") == 0 ||
                                   strcmp(type, "allway_stop") == 0);
    if (j->is_unregulated) {
        return file_leave_out(&f->notes, x, "has no right of way: vehicles cross it without yielding");
    }
    if (type != NULL && (strcmp(type, "zipper") == 0 || strcmp(type, "left_before_right") == 0)) {
        return file_leave_out(&f->notes, x, "is kept only for its right of way");
    }
    return DT_OK;
}

/* Bits of a request: the rightmost letter is link 0. */
static dt_status read_bits(netfile *f, xml *x, const char *attribute, net_links *bits_p)
{
    const char *text;
    DT_TRY_H(xml_need(x, attribute, &text));
    const size_t n = strlen(text);
    if (n > NET_MAX_LINKS) {
        return DT_FAIL_H(f->h, DT_EDATA, XML_AT "its junction \"%s\" has %zu links; SUMO takes at most %d", XML_HERE(x),
                         names_get(&f->junction_names, f->junction), n, NET_MAX_LINKS);
    }
    *bits_p = (net_links){0};
    for (size_t k = 0; k < n; k++) {
        if (text[k] != '0' && text[k] != '1') {
            return DT_FAIL_H(f->h, DT_EDATA, XML_AT "%s \"%s\" is not made of 0 and 1", XML_HERE(x), attribute, text);
        }
        if (text[k] == '1') {
            net_include(bits_p, (int32_t)(n - 1 - k));
        }
    }
    return DT_OK;
}

static dt_status open_request(netfile *f, xml *x)
{
    if (f->junction == NET_NONE) {
        return DT_OK;
    }
    file_junction *j = FILE_ITEM(f, junction, f->junction);
    int32_t index;
    file_request request, *kept;
    DT_TRY_H(xml_count(x, "index", j->n_requests, 0, INT32_MAX, &index));
    if (index != j->n_requests) {
        return DT_FAIL_H(f->h, DT_EDATA, XML_AT "index %d, where %d is the next one", XML_HERE(x), (int)index,
                         (int)j->n_requests);
    }
    DT_TRY_H(read_bits(f, x, "response", &request.yields));
    DT_TRY_H(read_bits(f, x, "foes", &request.meets));
    DT_TRY_H(list_add(f->h, &f->requests, sizeof(*kept), &kept));
    *kept = request;
    j->n_requests++;
    return DT_OK;
}

static dt_status open_signal(netfile *f, xml *x)
{
    const char *id, *type = xml_get(x, "type"), *offset = xml_get(x, "offset");
    int32_t number;
    DT_TRY_H(xml_need(x, "id", &id));
    DT_TRY_H(names_add(f->h, &f->signal_names, id, &number));
    file_signal *g;
    if (number == f->signals.n) {
        DT_TRY_H(list_add(f->h, &f->signals, sizeof(*g), &g));
    } else { /* several programs: the last one counts */
        DT_TRY_H(file_leave_out(&f->notes, x, "is another program of its signal: the last one in the file is used"));
    }
    g = FILE_ITEM(f, signal, number);
    *g = (file_signal){.line = x->line, .step = f->steps.n, .junction = NET_NONE};
    g->starts_with_episode = offset != NULL && strcmp(offset, "begin") == 0;
    if (!g->starts_with_episode) {
        DT_TRY_H(xml_time(x, "offset", 0, -XML_TIME_MOST, XML_TIME_MOST, &g->start.s));
    }
    f->program = number;
    if (type != NULL && strncmp(type, "rail", 4) == 0) {
        g->is_rail = 1;
        return file_leave_out(&f->notes, x, "is for trains, which are not simulated: cars ignore it");
    }
    return type == NULL || strcmp(type, "static") == 0
               ? DT_OK
               : file_leave_out(&f->notes, x, "is run as a fixed program: detectors are not simulated");
}

static dt_status open_phase(netfile *f, xml *x)
{
    if (f->program == NET_NONE) {
        return DT_FAIL_H(f->h, DT_EDATA, XML_AT "is in no tlLogic", XML_HERE(x));
    }
    if (FILE_ITEM(f, signal, f->program)->is_rail) {
        return DT_OK;
    }
    const char *state, *duration;
    file_step step, *kept;
    DT_TRY_H(xml_need(x, "state", &state));
    DT_TRY_H(xml_need(x, "duration", &duration));
    DT_TRY_H(xml_time(x, "duration", 0, 0, XML_TIME_MOST, &step.duration_s));
    const size_t good = strspn(state, "GgyYrRsuoO");
    if (state[good] != '\0' || good == 0) {
        return DT_FAIL_H(f->h, DT_EDATA, XML_AT "state \"%s\" has the letter '%c'", XML_HERE(x), state, state[good]);
    }
    DT_TRY_H(keep_text(f, state, &step.state));
    DT_TRY_H(list_add(f->h, &f->steps, sizeof(*kept), &kept));
    *kept = step;
    FILE_ITEM(f, signal, f->program)->n_steps++;
    return xml_get(x, "next") == NULL ? DT_OK : file_leave_out(&f->notes, x, "is followed by the one after it");
}

/* The lane `index` of an edge that was there before. */
static dt_status find_edge_lane(netfile *f, xml *x, const char *edge, const char *index, int32_t *lane_p)
{
    const char *id;
    int32_t k;
    DT_TRY_H(xml_need(x, edge, &id));
    DT_TRY_H(xml_count(x, index, 0, 0, LANES_MOST, &k));
    const int32_t e = names_find(&f->edge_names, id);
    if (e < 0) {
        return DT_FAIL_H(f->h, DT_EDATA, XML_AT "%s=\"%s\" is not an edge of this net", XML_HERE(x), edge, id);
    }
    if (k >= FILE_ITEM(f, edge, e)->n_lanes) {
        return DT_FAIL_H(f->h, DT_EDATA, XML_AT "%s=\"%s\" has %d lanes, and no lane %d", XML_HERE(x), edge, id,
                         (int)FILE_ITEM(f, edge, e)->n_lanes, (int)k);
    }
    *lane_p = FILE_ITEM(f, edge, e)->lane + k;
    return DT_OK;
}

/* The signal of a connection and its place in the states; none where it is for trains: netconvert names one there, and
 * SUMO makes its program. */
static dt_status signal_of(netfile *f, xml *x, const char *id, const file_edge *from, file_connection *c)
{
    c->signal = names_find(&f->signal_names, id);
    if (c->signal < 0 && FILE_ITEM(f, junction, from->to)->is_rail) {
        c->signal = NET_NONE;
        return DT_OK;
    }
    if (c->signal < 0) {
        return DT_FAIL_H(f->h, DT_EDATA, XML_AT "tl=\"%s\" has no tlLogic in this net", XML_HERE(x), id);
    }
    DT_TRY_H(xml_count(x, "linkIndex", 0, 0, INT32_MAX, &c->index));
    c->signal = FILE_ITEM(f, signal, c->signal)->is_rail ? NET_NONE : c->signal;
    return DT_OK;
}

/* The lane inside a junction by which a connection leads, NET_NONE where it names none. */
static dt_status find_via_lane(netfile *f, xml *x, int32_t *via_p)
{
    const char *via = xml_get(x, "via");
    *via_p = NET_NONE;
    if (via != NULL && (*via_p = names_find(&f->lane_names, via)) < 0) {
        return DT_FAIL_H(f->h, DT_EDATA, XML_AT "via=\"%s\" is not a lane of this net", XML_HERE(x), via);
    }
    if (via != NULL && !FILE_ITEM(f, edge, FILE_ITEM(f, lane, *via_p)->edge)->is_inside) {
        return DT_FAIL_H(f->h, DT_EDATA, XML_AT "via=\"%s\" is not a lane inside a junction", XML_HERE(x), via);
    }
    return DT_OK;
}

static dt_status open_connection(netfile *f, xml *x)
{
    file_connection c = {.line = x->line, .via = NET_NONE, .signal = NET_NONE, .group = NET_NONE};
    DT_TRY_H(find_edge_lane(f, x, "from", "fromLane", &c.from));
    DT_TRY_H(find_edge_lane(f, x, "to", "toLane", &c.to));
    const char *signal = xml_get(x, "tl"), *state = xml_get(x, "state");
    file_lane *from = FILE_ITEM(f, lane, c.from);
    const file_edge *edge = FILE_ITEM(f, edge, from->edge);
    if (edge->is_walked || (!edge->is_inside && (!from->is_open || !file_is_for_cars(x)))) {
        return DT_OK; /* not for cars: nothing of it is needed */
    }
    if (edge->is_inside) { /* it continues inside the junction */
        DT_TRY_H(find_via_lane(f, x, &c.via));
        from->after = c.via;
        return DT_OK;
    }
    if (FILE_ITEM(f, edge, FILE_ITEM(f, lane, c.to)->edge)->is_walked) {
        return DT_OK;
    }
    DT_TRY_H(find_via_lane(f, x, &c.via));
    if (!FILE_ITEM(f, lane, c.to)->is_open) {
        return DT_OK;
    }
    if (FILE_ITEM(f, edge, FILE_ITEM(f, lane, c.to)->edge)->is_inside) {
        return DT_FAIL_H(f->h, DT_EDATA, XML_AT "leads from a road to \"%s\", which is inside a junction", XML_HERE(x),
                         xml_get(x, "to"));
    }
    if (c.via == NET_NONE) {
        return DT_FAIL_H(f->h, DT_EDATA,
                         XML_AT "has no via: the net has no lanes inside junctions; make it without "
                                "--no-internal-links",
                         XML_HERE(x));
    }
    DT_TRY_H(signal != NULL ? signal_of(f, x, signal, edge, &c) : DT_OK);
    c.is_first = xml_flag(x, "pass");
    c.is_stop = state != NULL && (strcmp(state, "s") == 0 || strcmp(state, "w") == 0);
    DT_TRY_H(xml_number(x, "visibility", NET_VISIBLE_M, -LENGTH_MOST, LENGTH_MOST, &c.visible));
    c.visible = c.visible < 0 ? NET_VISIBLE_M : c.visible; /* SUMO's -1: not given */
    file_connection *kept;
    DT_TRY_H(list_add(f->h, &f->connections, sizeof(*kept), &kept));
    *kept = c;
    return DT_OK;
}

typedef dt_status (*element_reader)(netfile *f, xml *x);

static dt_status skip_element(netfile *f, xml *x)
{
    return DT_OK;
}

static dt_status begin_element(xml *x)
{
    static const struct {
        const char *element;
        element_reader read;
    } known[] = {{"edge", open_edge},
                 {"lane", open_lane},
                 {"junction", open_junction},
                 {"request", open_request},
                 {"phase", open_phase},
                 {"tlLogic", open_signal},
                 {"connection", open_connection},
                 {"location", skip_element},
                 {"type", skip_element},
                 {"param", skip_element},
                 {"roundabout", skip_element},
                 {"restriction", skip_element}};
    netfile *f = x->user;
    if (x->depth == 0) {
        if (!xml_is(x, "net")) {
            return DT_FAIL_H(f->h, DT_EDATA, XML_AT "is not the <net> of a SUMO network", XML_HERE(x));
        }
        return DT_OK;
    }
    for (size_t k = 0; k < sizeof(known) / sizeof(known[0]); k++) {
        if (xml_is(x, known[k].element)) {
            return known[k].read(f, x);
        }
    }
    return file_leave_out(&f->notes, x, "is left out: not simulated");
}

static dt_status end_element(xml *x)
{
    netfile *f = x->user;
    if (xml_is(x, "tlLogic")) {
        f->program = NET_NONE;
    } else if (xml_is(x, "junction")) {
        f->junction = NET_NONE;
    }
    return DT_OK;
}

dt_status netfile_read(netfile *f, const dt_host *h, const xml_text *text)
{
    static const xml_calls calls = {.begin = begin_element, .end = end_element};
    *f = (netfile){.h = h, .path = text->path, .program = NET_NONE, .junction = NET_NONE};
    DT_TRY_H(xml_read(h, text, &calls, f));
    file_report_notes(h, &f->notes);
    return DT_OK;
}

void netfile_fini(netfile *f)
{
    const dt_host *h = f->h;
    if (h == NULL) {
        return;
    }
    names *const all[] = {&f->edge_names, &f->lane_names, &f->junction_names, &f->signal_names};
    for (size_t k = 0; k < sizeof(all) / sizeof(all[0]); k++) {
        names_fini(h, all[k]);
    }
    list *const lists[] = {&f->edges,    &f->lanes, &f->junctions,   &f->signals, &f->points,
                           &f->requests, &f->steps, &f->connections, &f->notes,   &f->text};
    for (size_t k = 0; k < sizeof(lists) / sizeof(lists[0]); k++) {
        list_fini(h, lists[k]);
    }
}
