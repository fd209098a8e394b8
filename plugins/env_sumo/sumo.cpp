/* SPDX-License-Identifier: Apache-2.0
 *
 * libsumo behind the C face of sumo.h. SUMO's tables are copied once per open; a step touches few of them. Files that
 * SUMO can only write (trip information, the saved state) go to memory and not to a disk. SUMO and the readers of a
 * scenario's files work under a guard (guard.hpp). Source of calls and meanings:
 * the headers of libsumo and SUMO's manual, TraCI.
 */
#include "config.hpp"
#include "guard.hpp"
#include "requests.hpp"
#include "sumo.h"

#include <libsumo/libsumo.h>

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <fstream>
#include <iostream>
#include <set>
#include <sstream>
#include <stdexcept>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace
{

using libsumo::Simulation;
using std::string;
using std::vector;

constexpr double pi = 3.141592653589793;
constexpr double line_gap = 1;        /* m that SUMO's drivers keep from a line */
constexpr size_t max_warnings = 2000; /* letters kept between two calls of events */
constexpr size_t max_links = 1024;    /* of a signal that can be controlled; each is compared with each */

/* A file without a name. */
struct memory_file {
    int fd = -1;
    string path;

    void open(const char *name)
    {
        if (fd < 0) {
            fd = memfd_create(name, MFD_CLOEXEC);
            if (fd < 0) {
                throw std::runtime_error(string("no memory file: ") + strerror(errno));
            }
            path = "/proc/self/fd/" + std::to_string(fd);
        }
    }

    void write(const string &all) const
    {
        if (ftruncate(fd, 0) != 0 || pwrite(fd, all.data(), all.size(), 0) != static_cast<ssize_t>(all.size())) {
            throw std::runtime_error(string("a memory file cannot be written: ") + strerror(errno));
        }
    }

    string text() const
    {
        struct stat st = {};
        if (fstat(fd, &st) != 0) {
            throw std::runtime_error(string("a memory file cannot be read: ") + strerror(errno));
        }
        string all(static_cast<size_t>(st.st_size), '\0');
        size_t done = 0;
        while (done < all.size()) {
            const ssize_t n = pread(fd, &all[done], all.size() - done, static_cast<off_t>(done));
            if (n <= 0) {
                throw std::runtime_error("a memory file ended early");
            }
            done += static_cast<size_t>(n);
        }
        return all;
    }
};

struct signal_table { /* what a sumo_signal points at */
    string id;
    vector<string> state;
    vector<const char *> state_text;
    vector<double> duration_s;
    vector<uint32_t> from, to;
    vector<uint8_t> foe, responds;
};

struct vehicle_table { /* what does not change while a vehicle drives */
    int64_t number;
    double length, width;
    string type, route;
};

/* Unordered containers are only searched by key: the order of their elements, which differs between standard libraries,
 * must not reach a result. What is iterated is a vector, in SUMO's order. */
struct simulation {
    string error, warnings, version;
    string scenario; /* path of its file */
    memory_file config_file, tripinfo_file, state_file;
    bool is_taken = false, is_open = false;
    vector<string> args; /* that the net was read with, and the configuration */
    string left_out;     /* of the scenario, for shim_left_out */

    sumo_net net = {};
    vector<signal_table> tables;
    vector<sumo_signal> signals;
    vector<sumo_lane> lanes;
    std::deque<string> lane_ids; /* does not move what it holds */
    std::unordered_map<string, uint32_t> signal_of_id, lane_of_id;
    std::unordered_map<string, uint32_t> place;      /* lane, also of a junction: the signal it belongs to */
    std::unordered_map<string, uint32_t> next_of;    /* lane: the first signal from there on */
    std::unordered_map<string, double> length_of;    /* lane */
    std::unordered_map<string, uint32_t> first_of;   /* edge: the first signal from there on */
    std::unordered_map<string, vehicle_table> known; /* vehicles on the road */
    std::unordered_map<int64_t, string> id_of;       /* the same by number */
    int64_t n_departed = 0;

    vector<sumo_vehicle> frame;
    vector<uint32_t> collision, braking;
    vector<int64_t> collided;
    sumo_events events = {};
    string events_warnings;

    bool has_roads = false;
    vector<sumo_point> road_points;
    vector<sumo_line> road_lines;

    string route_files; /* what vehicle_elements was read from */
    std::unordered_set<string> vehicle_elements;
    string tripinfo;
    vector<sumo_late> late;
};

simulation &sim()
{
    static simulation s;
    return s;
}

/* Catches what SUMO prints while it lives. */
class quiet
{
  public:
    quiet() : cerr_(std::cerr.rdbuf(&words())), cout_(std::cout.rdbuf(&nothing())) {}
    ~quiet()
    {
        std::cerr.rdbuf(cerr_);
        std::cout.rdbuf(cout_);
        words().clear();
    }
    quiet(const quiet &) = delete;
    quiet &operator=(const quiet &) = delete;
    static const string &text()
    {
        return words().text;
    }

  private:
    struct buffer : std::streambuf {
        string text;
        bool is_kept = true;
        void clear()
        {
            text.clear();
        }

      protected:
        int overflow(int c) override
        {
            if (is_kept && c != EOF) {
                text.push_back(static_cast<char>(c));
            }
            return c == EOF ? 0 : c;
        }
        std::streamsize xsputn(const char *p, std::streamsize n) override
        {
            if (is_kept) {
                text.append(p, static_cast<size_t>(n));
            }
            return n;
        }
    };
    static buffer &words()
    {
        static buffer b;
        return b;
    }
    static buffer &nothing()
    {
        static buffer b;
        b.is_kept = false;
        return b;
    }
    std::streambuf *cerr_, *cout_;
};

/* Lines of SUMO's, joined, without what they begin with in vain. */
string join_lines(const string &text)
{
    string out;
    std::istringstream lines(text);
    for (string line; std::getline(lines, line);) {
        while (!line.empty() && std::isspace(static_cast<unsigned char>(line.back())) != 0) {
            line.pop_back();
        }
        if (!line.empty() && line != "Quitting (on error).") {
            out += (out.empty() ? "" : "; ") + line;
        }
    }
    return out;
}

void note_warnings(simulation &s, const string &text)
{
    static const string braking = "performs emergency braking on lane '";
    std::istringstream lines(text);
    for (string line; std::getline(lines, line);) {
        const size_t at = line.find(braking);
        if (at != string::npos && !s.braking.empty()) {
            const size_t from = at + braking.size();
            const auto p = s.place.find(line.substr(from, line.find('\'', from) - from));
            s.braking[p != s.place.end() ? p->second : s.signals.size()]++;
        }
    }
    if (s.warnings.size() < max_warnings) {
        s.warnings += text.substr(0, max_warnings - s.warnings.size());
    }
}

/* SUMO's text with the names of files in place of those without a name. */
string with_names(const simulation &s, string text)
{
    const std::pair<const memory_file &, string> all[] = {
        {s.config_file, s.scenario}, {s.tripinfo_file, "trip information"}, {s.state_file, "saved state"}};
    for (const auto &[file, name] : all) {
        for (size_t at = 0; file.fd >= 0 && (at = text.find(file.path, at)) != string::npos;) {
            const size_t end = at + file.path.size();
            if (end < text.size() && std::isdigit(static_cast<unsigned char>(text[end])) != 0) {
                at = end; /* another number */
                continue;
            }
            text.replace(at, file.path.size(), name);
            at += name.size();
        }
    }
    return text;
}

/* Runs f; what it throws becomes error(), together with what SUMO printed. */
template <typename F> int caught(F f)
{
    simulation &s = sim();
    const quiet hush;
    try {
        f(s);
        if (!quiet::text().empty()) {
            note_warnings(s, with_names(s, quiet::text()));
        }
        return 0;
    } catch (const std::exception &e) {
        const string printed = with_names(s, join_lines(quiet::text())), thrown = with_names(s, join_lines(e.what()));
        s.error = thrown;
        if (!printed.empty() && printed.find(thrown) == string::npos) {
            s.error = thrown.empty() || thrown == "Process Error" ? printed : thrown + "; " + printed;
        } else if (!printed.empty()) {
            s.error = printed;
        }
    } catch (...) {
        s.error = "SUMO failed and gave no reason";
    }
    return -1;
}

/* The same under the guard: for everything that calls SUMO or reads files of the scenario. */
template <typename F> int guarded(F f)
{
    int is = -1;
    try {
        guard::run([&] { is = caught(f); });
    } catch (const std::exception &e) {
        sim().error = e.what();
    }
    return is;
}

/* ---- the net ----------------------------------------------------------------------------------------------------- */

uint32_t lane_number(simulation &s, const string &id)
{
    const auto found = s.lane_of_id.find(id);
    if (found != s.lane_of_id.end()) {
        return found->second;
    }
    const auto number = static_cast<uint32_t>(s.lanes.size());
    s.lane_ids.push_back(id);
    s.lanes.push_back({s.lane_ids.back().c_str(), libsumo::Lane::getLength(id), SUMO_NONE, SUMO_NONE});
    s.lane_of_id[id] = number;
    return number;
}

/* The first signal that traffic on a lane meets, by the fewest lanes. */
uint32_t next_signal(simulation &s, const string &lane)
{
    const auto known = s.next_of.find(lane);
    if (known != s.next_of.end()) {
        return known->second;
    }
    uint32_t found = SUMO_NONE;
    std::deque<string> open = {lane};
    std::set<string> seen = {lane};
    while (!open.empty() && found == SUMO_NONE) {
        const string here = open.front();
        open.pop_front();
        const auto at = s.lane_of_id.find(here);
        if (at != s.lane_of_id.end() && s.lanes[at->second].signal != SUMO_NONE) {
            found = s.lanes[at->second].signal;
        }
        for (const auto &link : libsumo::Lane::getLinks(here)) {
            if (seen.insert(link.approachedLane).second) {
                open.push_back(link.approachedLane);
            }
        }
    }
    s.next_of[lane] = found;
    return found;
}

/* the lanes of a junction that a link goes over */
vector<string> way_across(const string &via)
{
    vector<string> way;
    for (string here = via; !here.empty() && way.size() < 8;) {
        way.push_back(here);
        const auto links = libsumo::Lane::getLinks(here);
        here = links.empty() ? "" : links[0].approachedInternal;
    }
    return way;
}

void read_links(simulation &s, uint32_t number, const net_requests &requests)
{
    signal_table &t = s.tables[number];
    const auto links = libsumo::TrafficLight::getControlledLinks(t.id);
    const size_t n = links.size();
    t.from.assign(n, SUMO_NONE);
    t.to.assign(n, SUMO_NONE);
    t.foe.assign(n <= max_links ? n * n : 0, 0);
    t.responds.assign(t.foe.size(), 0);
    for (size_t i = 0; i < n; i++) {
        for (const auto &link : links[i]) {
            const uint32_t from = lane_number(s, link.fromLane), to = lane_number(s, link.toLane);
            t.from[i] = t.from[i] == SUMO_NONE ? from : t.from[i];
            t.to[i] = t.to[i] == SUMO_NONE ? to : t.to[i];
            s.lanes[from].signal = number;
            s.place[link.fromLane] = number;
            for (const string &lane : way_across(link.viaLane)) {
                s.place[lane] = number;
            }
        }
    }
    if (n > max_links || !requests.fill(t.id, n, t.foe, t.responds)) {
        t.foe.clear();
    }
}

void read_program(simulation &s, uint32_t number, sumo_signal &out)
{
    signal_table &t = s.tables[number];
    const string program = libsumo::TrafficLight::getProgram(t.id);
    for (const auto &logic : libsumo::TrafficLight::getAllProgramLogics(t.id)) {
        if (logic.programID == program) {
            for (const auto &phase : logic.phases) {
                t.state.push_back(phase->state.substr(0, t.from.size())); /* SUMO warns of more, and uses none of it */
                t.duration_s.push_back(phase->duration);
            }
        }
    }
    for (const string &state : t.state) {
        t.state_text.push_back(state.c_str());
    }
    const auto first = static_cast<uint32_t>(std::max(0, libsumo::TrafficLight::getPhase(t.id)));
    out.first_state = first < t.state.size() ? first : 0;
    out.first_s = libsumo::TrafficLight::getNextSwitch(t.id) - Simulation::getTime();
}

void find_middle(const simulation &s, const signal_table &t, sumo_signal &out)
{
    double x = 0, y = 0, n = 0;
    for (const uint32_t lane : t.from) {
        if (lane != SUMO_NONE) {
            const auto end = libsumo::Lane::getShape(s.lanes[lane].id).value.back();
            x += end.x;
            y += end.y;
            n += 1;
        }
    }
    out.x = n > 0 ? x / n : 0;
    out.y = n > 0 ? y / n : 0;
}

void read_net(simulation &s)
{
    const auto ids = libsumo::TrafficLight::getIDList();
    const size_t n = ids.size();
    const net_requests requests(Simulation::getOption("net-file"));
    s.tables.assign(n, {});
    s.signals.assign(n, {});
    s.lanes.clear();
    s.lane_ids.clear();
    s.signal_of_id.clear();
    s.lane_of_id.clear();
    s.place.clear();
    s.next_of.clear();
    s.first_of.clear();
    s.length_of.clear();
    s.has_roads = false;
    for (uint32_t i = 0; i < n; i++) {
        s.tables[i].id = ids[i];
        s.signal_of_id[ids[i]] = i;
        read_links(s, i, requests);
        read_program(s, i, s.signals[i]);
    }
    for (uint32_t i = 0; i < n; i++) {
        signal_table &t = s.tables[i];
        sumo_signal &out = s.signals[i];
        find_middle(s, t, out);
        out.id = t.id.c_str();
        out.n_links = static_cast<uint32_t>(t.from.size());
        out.n_states = static_cast<uint32_t>(t.state.size());
        out.state = t.state_text.data();
        out.duration_s = t.duration_s.data();
        out.from = t.from.data();
        out.to = t.to.data();
        out.foe = t.foe.empty() && !t.from.empty() ? nullptr : t.foe.data();
        out.responds = t.responds.data();
    }
    for (sumo_lane &lane : s.lanes) {
        lane.next = next_signal(s, lane.id);
    }
    const auto corners = Simulation::getNetBoundary().value;
    s.net.signal = s.signals.data();
    s.net.lane = s.lanes.data();
    s.net.n_signals = static_cast<uint32_t>(n);
    s.net.n_lanes = static_cast<uint32_t>(s.lanes.size());
    s.net.begin_s = Simulation::getTime();
    s.net.end_s = Simulation::getEndTime();
    s.net.step_s = Simulation::getDeltaT();
    s.net.is_ballistic = Simulation::getOption("step-method.ballistic") == "true" ? 1 : 0;
    s.net.x = (corners.front().x + corners.back().x) / 2;
    s.net.y = (corners.front().y + corners.back().y) / 2;
}

/* ---- how it looks ------------------------------------------------------------------------------------------------ */

bool is_for_vehicles(const string &lane)
{
    const auto allowed = libsumo::Lane::getAllowed(lane); /* empty: everybody */
    return allowed.empty() || std::any_of(allowed.begin(), allowed.end(),
                                          [](const string &who) { return who != "pedestrian" && who != "bicycle"; });
}

sumo_line line_of(const string &lane)
{
    const auto shape = libsumo::Lane::getShape(lane).value;
    const auto &end = shape.back(), &before = shape[shape.size() - 2];
    return {end.x, end.y, std::atan2(end.y - before.y, end.x - before.x),
            is_for_vehicles(lane) ? libsumo::Lane::getWidth(lane) : 0};
}

void read_roads(simulation &s)
{
    uint32_t n = 0;
    s.road_points.clear();
    s.road_lines.clear();
    for (const string &lane : libsumo::Lane::getIDList()) {
        if (is_for_vehicles(lane)) {
            const double width = libsumo::Lane::getWidth(lane);
            for (const auto &p : libsumo::Lane::getShape(lane).value) {
                s.road_points.push_back({p.x, p.y, width, n, 0});
            }
            n++;
        }
    }
    for (const sumo_lane &lane : s.lanes) {
        s.road_lines.push_back(line_of(lane.id));
    }
    s.has_roads = true;
}

/* ---- the demand -------------------------------------------------------------------------------------------------- */

/* The value of an attribute within an XML element, "" where it has none. */
string attribute(const string &element, const char *name)
{
    const string key = string(" ") + name + "=\"";
    const size_t at = element.find(key);
    if (at == string::npos) {
        return "";
    }
    const size_t from = at + key.size();
    return element.substr(from, element.find('"', from) - from);
}

/* f(element) for every <name ...> in text */
template <typename F> void for_each_element(const string &text, const string &name, F f)
{
    const string open = "<" + name + " ";
    for (size_t at = text.find(open); at != string::npos; at = text.find(open, at + 1)) {
        f(text.substr(at, text.find('>', at) - at));
    }
}

/* Which vehicles of the demand stand in the route files as <vehicle>. */
void read_route_files(simulation &s)
{
    const string files = Simulation::getOption("route-files");
    if (files == s.route_files) {
        return;
    }
    s.vehicle_elements.clear();
    std::istringstream list(files);
    for (string name; std::getline(list, name, ',');) {
        std::ifstream in(name, std::ios::binary);
        std::ostringstream text;
        text << in.rdbuf();
        for_each_element(text.str(), "vehicle",
                         [&](const string &e) { s.vehicle_elements.insert(attribute(e, "id")); });
    }
    s.route_files = files;
}

/* All of a text as a number; false where it is none, such as "triggered". */
bool read_number(const string &text, double &out)
{
    char *end = nullptr;
    out = strtod(text.c_str(), &end);
    return !text.empty() && *end == '\0';
}

/* Those of a flow that were due while the last step went on: SUMO makes a vehicle of a flow in the step after. */
void list_late_of_flow(simulation &s, const string &flow, double step_began, double now)
{
    double begin = 0, next = 0, end = 0, period = 0, number = 0, done = 0;
    if (!read_number(attribute(flow, "begin"), begin) || !read_number(attribute(flow, "next"), next)) {
        return; /* by chance: nothing is due before it is there */
    }
    const bool repeats = read_number(attribute(flow, "period"), period) && period > 0;
    const bool ends = read_number(attribute(flow, "end"), end) && end >= 0;
    const bool is_counted = read_number(attribute(flow, "number"), number);
    read_number(attribute(flow, "done"), done);
    for (double due = begin + next; due > step_began && due < now; due += period) { /* next counts from begin */
        if ((ends && due >= end) || (is_counted && done++ >= number)) {
            return;
        }
        s.late.push_back({due, 0, 0});
        if (!repeats) {
            return;
        }
    }
}

void list_late(simulation &s)
{
    const auto pending = Simulation::getPendingVehicles();
    const double now = Simulation::getTime(), step_began = now - Simulation::getDeltaT();
    const std::unordered_set<string> wanted(pending.begin(), pending.end());
    size_t found = 0;
    s.late.clear();
    read_route_files(s);
    Simulation::saveState(s.state_file.path); /* libsumo does not report when a vehicle is due; its saved state does */
    const string state = s.state_file.text();
    for_each_element(state, "vehicle", [&](const string &e) {
        const string id = attribute(e, "id");
        double due = 0;
        const bool is_known = read_number(attribute(e, "depart"), due);
        const bool is_wanted = wanted.count(id) != 0; /* by now; SUMO asks who is due in a step at the next one */
        if (is_wanted || (is_known && due > step_began && due < now)) {
            s.late.push_back({due, static_cast<uint32_t>(s.vehicle_elements.count(id)), 0});
        }
        if (is_wanted) {
            found++;
        }
    });
    for_each_element(state, "flowState", [&](const string &e) { list_late_of_flow(s, e, step_began, now); });
    if (found != wanted.size()) {
        throw std::runtime_error("of " + std::to_string(wanted.size()) + " vehicles that wait outside, " +
                                 std::to_string(found) + " are in SUMO's saved state");
    }
}

uint32_t first_signal_of(simulation &s, const string &vehicle)
{
    const auto route = libsumo::Vehicle::getRoute(vehicle);
    if (route.empty()) {
        return SUMO_NONE;
    }
    const auto known = s.first_of.find(route[0]);
    if (known != s.first_of.end()) {
        return known->second;
    }
    uint32_t found = SUMO_NONE;
    for (int i = 0; i < libsumo::Edge::getLaneNumber(route[0]) && found == SUMO_NONE; i++) {
        found = next_signal(s, route[0] + "_" + std::to_string(i));
    }
    s.first_of[route[0]] = found;
    return found;
}

/* ---- vehicles ---------------------------------------------------------------------------------------------------- */

double lane_length(simulation &s, const string &lane)
{
    const auto found = s.length_of.find(lane);
    if (found != s.length_of.end()) {
        return found->second;
    }
    return s.length_of[lane] = libsumo::Lane::getLength(lane);
}

/* false for one that is not on the road now, as while it is teleported */
bool read_vehicle(simulation &s, const string &id, sumo_vehicle &v)
{
    using libsumo::Vehicle;
    const auto at = Vehicle::getPosition(id);
    const auto known = s.known.find(id);
    if (at.x == libsumo::INVALID_DOUBLE_VALUE || known == s.known.end()) {
        return false;
    }
    v.number = known->second.number;
    v.type = known->second.type.c_str();
    v.route = known->second.route.c_str();
    v.length = known->second.length;
    v.width = known->second.width;
    v.x = at.x;
    v.y = at.y;
    v.heading = std::remainder((90.0 - Vehicle::getAngle(id)) * pi / 180.0, 2 * pi);
    v.speed = Vehicle::getSpeed(id);
    v.wanted = Vehicle::getAllowedSpeed(id);
    v.accel = Vehicle::getAcceleration(id);
    v.time_loss_s = Vehicle::getTimeLoss(id);
    v.waiting_s = Vehicle::getWaitingTime(id);
    v.signal = v.link = SUMO_NONE;
    const auto next = Vehicle::getNextTLS(id);
    if (!next.empty()) {
        const auto signal = s.signal_of_id.find(next[0].id);
        v.signal = signal != s.signal_of_id.end() ? signal->second : SUMO_NONE;
        v.link = static_cast<uint32_t>(next[0].tlIndex);
        v.stop_distance = next[0].dist;
    } else {
        v.stop_distance = lane_length(s, Vehicle::getLaneID(id)) - Vehicle::getLanePosition(id);
    }
    return true;
}

/* Gaps of libsumo end min_gap before the vehicle ahead; ours at its bumper. */
sumo_near near_of(const simulation &s, const string &id, double gap, double min_gap)
{
    if (id.empty()) {
        return {INFINITY, 0, 0, -1};
    }
    const auto known = s.known.find(id);
    return {gap + min_gap, libsumo::Vehicle::getSpeed(id), libsumo::Vehicle::getEmergencyDecel(id),
            known != s.known.end() ? known->second.number : -1};
}

bool may_drive_on(const string &lane, const string &vehicle_class)
{
    const auto allowed = libsumo::Lane::getAllowed(lane); /* empty: everybody */
    return allowed.empty() || std::find(allowed.begin(), allowed.end(), vehicle_class) != allowed.end();
}

void find_lane_neighbours(const simulation &s, const string &id, sumo_driver &out)
{
    using libsumo::Vehicle;
    const string edge = Vehicle::getRoadID(id), vehicle_class = Vehicle::getVehicleClass(id);
    const int here = Vehicle::getLaneIndex(id), n = edge[0] == ':' ? 0 : libsumo::Edge::getLaneNumber(edge);
    for (int side = 0; side < 2; side++) {
        auto &o = out.side[side];
        const int there = side == 0 ? here + 1 : here - 1;
        o.ahead = o.behind = near_of(s, "", 0, 0);
        o.exists = there >= 0 && there < n && may_drive_on(edge + "_" + std::to_string(there), vehicle_class) ? 1 : 0;
        if (o.exists != 0) {
            for (const auto &who : Vehicle::getNeighbors(id, 2 + side)) { /* bit 0: right, bit 1: those ahead */
                o.ahead = near_of(s, who.first, who.second, Vehicle::getMinGap(id));
            }
            for (const auto &who : Vehicle::getNeighbors(id, side)) {
                o.behind = near_of(s, who.first, who.second, Vehicle::getMinGap(who.first));
            }
        }
    }
}

/* Where it must stop: a red light, a yellow one that it can stop at, the end of a lane that is not on its route. */
double distance_to_stop(simulation &s, const string &id, double speed, double sight_m)
{
    using libsumo::Vehicle;
    double way = INFINITY;
    const auto next = Vehicle::getNextTLS(id);
    if (!next.empty()) {
        const char is = next[0].state;
        const bool must = is == 'r' || is == 'u';
        const bool should = is == 'y' && next[0].dist >= 0.5 * speed * speed / Vehicle::getDecel(id);
        way = must || should ? next[0].dist : way;
    }
    const string lane = Vehicle::getLaneID(id);
    for (const auto &l : Vehicle::getBestLanes(id)) {
        if (l.laneID == lane && !l.allowsContinuation) {
            way = std::min(way, lane_length(s, lane) - Vehicle::getLanePosition(id));
        }
    }
    return way < sight_m ? way : INFINITY;
}

void find_neighbours(simulation &s, const string &id, double sight_m, sumo_driver &out)
{
    using libsumo::Vehicle;
    const double speed = Vehicle::getSpeed(id), dt = Simulation::getDeltaT();
    const auto leader = Vehicle::getLeader(id, sight_m), follower = Vehicle::getFollower(id, sight_m);
    out.ahead = near_of(s, leader.first, leader.second, Vehicle::getMinGap(id));
    out.behind =
        near_of(s, follower.first, follower.second, follower.first.empty() ? 0 : Vehicle::getMinGap(follower.first));
    find_lane_neighbours(s, id, out);
    out.stop_gap = distance_to_stop(s, id, speed, sight_m);
    double next = std::min(Vehicle::getAllowedSpeed(id), speed + Vehicle::getAccel(id) * dt);
    if (!leader.first.empty()) {
        next = std::min(next, Vehicle::getFollowSpeed(id, speed, leader.second, out.ahead.speed,
                                                      Vehicle::getDecel(leader.first), leader.first));
    }
    if (out.stop_gap < INFINITY) {
        next = std::min(next, Vehicle::getStopSpeed(id, speed, std::max(0.0, out.stop_gap - line_gap)));
    }
    out.model_accel = (next - speed) / dt;
}

const string &id_of(simulation &s, int64_t number)
{
    const auto found = s.id_of.find(number);
    if (found == s.id_of.end()) {
        throw std::runtime_error("vehicle number " + std::to_string(number) + " is not on the road");
    }
    return found->second;
}

/* ---- the face ---------------------------------------------------------------------------------------------------- */

const char *shim_error()
{
    return sim().error.c_str();
}

const char *shim_version()
{
    if (sim().version.empty()) {
        sim().version = Simulation::getVersion().second;
    }
    return sim().version.c_str();
}

int shim_acquire()
{
    return guarded([](simulation &s) {
        if (s.is_taken) {
            throw std::runtime_error("this process has a SUMO simulation already");
        }
        s.is_taken = true;
        const char *worker = getenv("DTRAIN_WORKER"); /* its process has nothing else to do */
        if (worker != nullptr && worker == std::to_string(getpid())) {
            guard::run_inline();
        }
    });
}

/* Files that the user's own options name for output: SUMO may write to them, and to those whose names begin so. */
vector<string> named_outputs(const char *const *words, uint32_t n)
{
    vector<string> out;
    for (uint32_t i = 0; i < n; i++) {
        string name = words[i], value = i + 1 < n ? words[i + 1] : "";
        if (name.size() < 2 || name[0] != '-') {
            continue;
        }
        name.erase(0, name[1] == '-' ? 2 : 1);
        const size_t equals = name.find('=');
        if (equals != string::npos) {
            value = name.substr(equals + 1);
            name.erase(equals);
        }
        if (sumo_option_find(name.c_str()).what == SUMO_OPTION_OUTPUT) {
            std::istringstream list(value);
            for (string file; std::getline(list, file, ',');) {
                out.push_back(file);
            }
        }
    }
    out.erase(std::remove(out.begin(), out.end(), ""), out.end());
    return out;
}

string joined(const vector<string> &all)
{
    string out;
    for (const string &one : all) {
        out += (out.empty() ? "" : ", ") + one;
    }
    return out;
}

void list_left_out(simulation &s, const scenario_config &config)
{
    const string options = joined(config.left_out), files = joined(guard::noted());
    s.left_out = options.empty() ? "" : "options " + options;
    s.left_out += files.empty() ? "" : (options.empty() ? "" : "; ") + ("files " + files);
}

int shim_open(const sumo_scenario *scenario, uint32_t seed, const sumo_net **out)
{
    try {
        simulation &s = sim();
        s.config_file.open("sumocfg");
        s.tripinfo_file.open("tripinfo");
        s.state_file.open("state");
        guard::allow({s.tripinfo_file.path, s.state_file.path}, named_outputs(scenario->more, scenario->n_more),
                     scenario->outputs != 0);
    } catch (const std::exception &e) {
        sim().error = e.what();
        return -1;
    }
    return guarded([&](simulation &s) {
        s.scenario = scenario->path;
        const scenario_config config(scenario->path, scenario->outputs != 0);
        s.config_file.write(config.text);
        vector<string> given = {"-c", s.config_file.path};
        given.insert(given.end(), scenario->arg, scenario->arg + scenario->n_args);
        given.insert(given.end(), scenario->more, scenario->more + scenario->n_more);
        vector<string> all = given;
        all.insert(all.end(), {"--seed", std::to_string(seed), "--tripinfo-output", s.tripinfo_file.path,
                               "--tripinfo-output.write-unfinished", "true"});
        given.push_back(config.text);
        s.is_open = false;
        s.known.clear();
        s.id_of.clear();
        s.collided.clear();
        s.n_departed = 0;
        s.warnings.clear();
        s.collision.clear();
        s.braking.clear();
        Simulation::load(all);
        s.is_open = true;
        if (given != s.args) {
            s.args.clear();
            s.version = Simulation::getVersion().second;
            read_net(s);
            s.args = given;
        }
        s.collision.assign(s.signals.size() + 1, 0);
        s.braking.assign(s.signals.size() + 1, 0);
        s.events = {};
        list_left_out(s, config);
        *out = &s.net;
    });
}

const char *shim_left_out()
{
    return sim().left_out.c_str();
}

void shim_close()
{
    (void)guarded([](simulation &s) {
        if (s.is_open) {
            s.is_open = false;
            Simulation::close();
        }
    });
}

void shim_release()
{
    shim_close();
    guard::stop();
    sim().is_taken = false;
}

int shim_step(double *time_s)
{
    return guarded([&](simulation &s) {
        using libsumo::Vehicle;
        Simulation::step();
        for (const string &id : Simulation::getDepartedIDList()) {
            s.id_of[s.n_departed] = id;
            s.known[id] = {s.n_departed++, Vehicle::getLength(id), Vehicle::getWidth(id), Vehicle::getTypeID(id),
                           Vehicle::getRouteID(id)};
            s.events.departed++;
        }
        for (const auto &c : Simulation::getCollisions()) {
            const auto p = s.place.find(c.lane);
            s.collision[p != s.place.end() ? p->second : s.signals.size()]++;
            for (const string &id : {c.collider, c.victim}) {
                const auto who = s.known.find(id);
                if (who != s.known.end()) {
                    s.collided.push_back(who->second.number);
                }
            }
        }
        for (const string &id : Simulation::getArrivedIDList()) {
            const auto who = s.known.find(id);
            if (who != s.known.end()) {
                s.id_of.erase(who->second.number);
                s.known.erase(who);
            }
            s.events.arrived++;
        }
        s.events.teleported += static_cast<uint32_t>(Simulation::getStartingTeleportNumber());
        s.events.emergency_stops += static_cast<uint32_t>(Simulation::getEmergencyStoppingVehiclesNumber());
        *time_s = Simulation::getTime();
    });
}

int shim_set_state(uint32_t signal, const char *state)
{
    return guarded([&](simulation &s) { libsumo::TrafficLight::setRedYellowGreenState(s.tables[signal].id, state); });
}

int shim_get_state(uint32_t signal, char *state)
{
    return guarded([&](simulation &s) {
        const string is = libsumo::TrafficLight::getRedYellowGreenState(s.tables[signal].id);
        const size_t n = s.tables[signal].from.size();
        if (is.size() < n) {
            throw std::runtime_error("signal " + s.tables[signal].id + " shows " + std::to_string(is.size()) +
                                     " letters for " + std::to_string(n) + " links");
        }
        memcpy(state, is.c_str(), n);
        state[n] = '\0';
    });
}

int shim_halting(uint32_t lane, uint32_t *n)
{
    return guarded(
        [&](simulation &s) { *n = static_cast<uint32_t>(libsumo::Lane::getLastStepHaltingNumber(s.lanes[lane].id)); });
}

int shim_vehicles(const sumo_vehicle **out, uint32_t *n)
{
    return guarded([&](simulation &s) {
        const auto ids = libsumo::Vehicle::getIDList();
        s.frame.resize(ids.size());
        uint32_t count = 0;
        for (const string &id : ids) {
            if (read_vehicle(s, id, s.frame[count])) {
                count++;
            }
        }
        s.frame.resize(count);
        *out = s.frame.data();
        *n = count;
    });
}

int shim_driver(int64_t number, double sight_m, sumo_driver *out)
{
    return guarded([&](simulation &s) { find_neighbours(s, id_of(s, number), sight_m, *out); });
}

int shim_take(int64_t number, int32_t speed_mode, int32_t lane_mode)
{
    return guarded([&](simulation &s) {
        const string &id = id_of(s, number);
        libsumo::Vehicle::setSpeedMode(id, speed_mode);
        if (lane_mode >= 0) {
            libsumo::Vehicle::setLaneChangeMode(id, lane_mode);
        }
    });
}

int shim_drive(int64_t number, double speed, int32_t change)
{
    return guarded([&](simulation &s) {
        const string &id = id_of(s, number);
        libsumo::Vehicle::setSpeed(id, speed);
        if (change != 0) {
            libsumo::Vehicle::changeLaneRelative(id, change, Simulation::getDeltaT());
        }
    });
}

int shim_pending(uint32_t *n)
{
    return guarded([&](simulation &s) {
        std::fill(n, n + s.signals.size() + 1, 0u);
        for (const string &id : Simulation::getPendingVehicles()) {
            const uint32_t signal = first_signal_of(s, id);
            n[signal != SUMO_NONE ? signal : s.signals.size()]++;
        }
    });
}

int shim_events(sumo_events *out)
{
    static vector<uint32_t> collision, braking; /* what is handed out */
    static vector<int64_t> collided;
    return guarded([&](simulation &s) {
        collision = s.collision;
        braking = s.braking;
        collided = s.collided;
        s.collided.clear();
        s.events_warnings = join_lines(s.warnings);
        *out = s.events;
        out->collision = collision.data();
        out->braking = braking.data();
        out->collided = collided.data();
        out->n_collided = static_cast<uint32_t>(collided.size());
        out->warnings = s.events_warnings.c_str();
        s.events = {};
        s.warnings.clear();
        std::fill(s.collision.begin(), s.collision.end(), 0u);
        std::fill(s.braking.begin(), s.braking.end(), 0u);
    });
}

int shim_finish(sumo_result *out)
{
    return guarded([&](simulation &s) {
        list_late(s);
        s.is_open = false;
        Simulation::close();
        s.tripinfo = s.tripinfo_file.text();
        *out = {};
        out->tripinfo = s.tripinfo.c_str();
        out->late = s.late.data();
        out->n_late = static_cast<uint32_t>(s.late.size());
    });
}

int shim_roads(sumo_roads *out)
{
    return guarded([&](simulation &s) {
        if (!s.has_roads && !s.is_open) {
            throw std::runtime_error("no simulation is open");
        }
        if (!s.has_roads) {
            read_roads(s);
        }
        *out = {s.road_points.data(), s.road_lines.data(), static_cast<uint32_t>(s.road_points.size()), 0};
    });
}

int shim_ahead(int64_t number, double sight_m, sumo_near *out)
{
    return guarded([&](simulation &s) {
        const string &id = id_of(s, number);
        const auto leader = libsumo::Vehicle::getLeader(id, sight_m);
        *out = near_of(s, leader.first, leader.second, libsumo::Vehicle::getMinGap(id));
    });
}

const sumo_api api = {sizeof(sumo_api), SUMO_FACE_VERSION, shim_error, shim_version,   shim_acquire,   shim_release,
                      shim_open,        shim_close,        shim_step,  shim_set_state, shim_get_state, shim_halting,
                      shim_vehicles,    shim_driver,       shim_take,  shim_drive,     shim_pending,   shim_events,
                      shim_finish,      shim_roads,        shim_ahead, shim_left_out};

} // namespace

extern "C" __attribute__((visibility("default"))) const sumo_api *dt_sumo_shim(void);
extern "C" const sumo_api *dt_sumo_shim(void)
{
    return &api;
}
