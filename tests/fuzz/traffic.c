/* SPDX-License-Identifier: Apache-2.0 */
#include <config.h>

#include "fuzz/fuzz.h"
#include "fuzz/traffic.h"

#include "base/err.h"
#include "base/mem.h"

#include <string.h>

enum { MOST_METRES = 20000, MOST_LANES = 400 }; /* of lanes that are simulated */

static dt_status host_fail(const dt_host *h, dt_status st, const char *where, const char *msg)
{
    return DT_FAIL(st, "%s", msg);
}

static void host_log(const dt_host *h, int32_t level, const char *msg)
{
    fuzz_touch_text(msg);
}

static void *host_alloc(const dt_host *h, uint64_t bytes)
{
    return dt_alloc(bytes);
}

static void host_release(const dt_host *h, void *p)
{
    dt_free(p);
}

static const void *host_service(const dt_host *h, const char *id)
{
    return NULL;
}

const dt_host traffic_host = {.struct_size = sizeof(dt_host),
                              .abi_major = DT_ABI_MAJOR,
                              .abi_minor = DT_ABI_MINOR,
                              .fail = host_fail,
                              .log = host_log,
                              .alloc = host_alloc,
                              .release = host_release,
                              .service = host_service};

const traffic_config traffic_values = {.scenario = SCENARIO_NET,
                                       .control = CONTROL_SIGNALS,
                                       .limit_mps = 13.9,
                                       .max_vehicles = 64,
                                       .agents = 8,
                                       .levels = 5,
                                       .dt_s = 0.5,
                                       .action_s = 5,
                                       .episode_s = 600,
                                       .headway_s = 1.5,
                                       .accel_mps2 = 1.5,
                                       .decel_mps2 = 1.67,
                                       .gap_m = 2,
                                       .vehicle_m = 4.5,
                                       .speed_dev = 0.1,
                                       .politeness = 0.2,
                                       .change_threshold = 0.1,
                                       .safe_decel_mps2 = 4,
                                       .green_s = 30,
                                       .left_green_s = 10,
                                       .yellow_s = 3,
                                       .all_red_s = 2,
                                       .min_green_s = 5,
                                       .max_green_s = 60,
                                       .detector_m = 50,
                                       .near_m = 20,
                                       .penetration = 1,
                                       .low_mps2 = -4.5,
                                       .high_mps2 = 2.6,
                                       .ttc_s = 1.5,
                                       .hard_mps2 = 4.5,
                                       .starvation_s = 90,
                                       .radius_m = 50,
                                       .net_file = "",
                                       .routes_file = "",
                                       .signals = 1};

const char traffic_net[] =
    "<net><edge id=':c' function='internal'><lane id=':c_0_0' index='0' speed='9' length='10' shape='95,0 105,0'/>"
    "<lane id=':c_1_0' index='1' speed='5' length='12' shape='100,-5 105,0'/></edge>"
    "<edge id='w' from='a' to='c'><lane id='w_0' index='0' speed='13.9' length='95' shape='0,0 95,0'/></edge>"
    "<edge id='s' from='b' to='c'><lane id='s_0' index='0' speed='13.9' length='95' shape='100,-100 100,-5'/></edge>"
    "<edge id='e' from='c' to='d'><lane id='e_0' index='0' speed='13.9' length='95' shape='105,0 200,0'/></edge>"
    "<tlLogic id='c' type='static' programID='0' offset='0'><phase duration='30' state='Gr'/><phase duration='3' "
    "state='yr'/><phase duration='30' state='rg'/></tlLogic>"
    "<junction id='c' type='traffic_light' intLanes=':c_0_0 :c_1_0' x='100' y='0'><request index='0' response='00' "
    "foes='10'/><request index='1' response='01' foes='01'/></junction>"
    "<connection from='w' to='e' fromLane='0' toLane='0' via=':c_0_0' tl='c' linkIndex='0' dir='s' state='o'/>"
    "<connection from='s' to='e' fromLane='0' toLane='0' via=':c_1_0' tl='c' linkIndex='1' dir='r' state='o'/></net>";

const char traffic_routes[] = "<routes><flow id='f' from='w' to='e' begin='0' end='600' period='4'/><trip id='t' "
                              "from='s' to='e' depart='1'/></routes>";

/* ---- sim_create, from texts ------------------------------------------------------------------------------------- */

static const xml_text *texts[2];
static netfile *kept;

void traffic_keep_netfile(netfile *keep)
{
    kept = keep;
}

void __real_netfile_fini(netfile *f);
void __wrap_netfile_fini(netfile *f);
void __wrap_netfile_fini(netfile *f)
{
    if (kept != NULL) {
        *kept = *f;
        kept = NULL;
    } else {
        __real_netfile_fini(f);
    }
}

dt_status __wrap_scenario_build(sim *s);
dt_status __wrap_scenario_build(sim *s)
{
    double metres = 0;
    DT_TRY(scenario_build_from(s, texts[0], texts[1]));
    for (int32_t k = 0; k < s->net.n_lanes; k++) {
        metres += s->net.lane[k].length;
    }
    return metres <= MOST_METRES && s->net.n_lanes <= MOST_LANES
               ? DT_OK
               : DT_FAIL(DT_EUNSUPPORTED, "%.0f m of lanes: more than there is time for", metres);
}

dt_status traffic_create(sim *s, const xml_text *roads, const xml_text *routes)
{
    texts[0] = roads;
    texts[1] = routes;
    return sim_create(s, &traffic_host, &traffic_values);
}
