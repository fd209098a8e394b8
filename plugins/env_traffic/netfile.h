/* SPDX-License-Identifier: Apache-2.0
 *
 * A SUMO network file (.net.xml, SUMO's manual, "SUMO Road Networks") as it is written: edges, lanes, junctions with
 * their right of way, programs of signals, connections. scenario_net.c makes a network of it. What does not fit is
 * either refused or left out; what was left out is said once per kind. Threads: one.
 */
#ifndef DTRAIN_ENV_TRAFFIC_NETFILE_H
#define DTRAIN_ENV_TRAFFIC_NETFILE_H

#include "net.h"
#include "xml.h"

typedef struct file_lane {
    int32_t line, edge;
    int32_t point, n_points; /* a range of netfile.points, x and y each */
    int32_t after;           /* of a lane inside a junction: the one that continues inside, or NET_NONE */
    int32_t is_open;         /* to cars */
    int32_t lane;            /* of the network, or NET_NONE; scenario_net.c fills it in */
    int32_t inside_of;       /* the junction in whose intLanes it is, or NET_NONE */
    int32_t inside_at;       /* its place there: a link of the junction */
    double length, speed;
} file_lane;

typedef struct file_edge {
    int32_t line, lane, n_lanes; /* a range of netfile.lanes */
    int32_t is_inside;           /* a junction */
    int32_t is_walked;           /* by pedestrians alone: a crossing, a walking area */
    int32_t from, to;            /* junctions */
    int32_t edge;                /* of the network, or NET_NONE; scenario_net.c fills it in */
} file_edge;

typedef struct file_junction {
    int32_t line, is_there;
    int32_t is_rail;             /* its signal has no program in the file */
    int32_t is_unregulated;      /* not checked */
    int32_t is_equal;            /* none of its roads goes first */
    int32_t request, n_requests; /* a range of netfile.requests */
    int32_t group, signal;       /* junction and signal of the network; scenario_net.c fills them in */
} file_junction;

typedef struct file_request { /* of one link; links count those of pedestrians, bicycles and trams, too */
    net_links yields, meets;
} file_request;

typedef struct file_step {
    double duration_s;
    int32_t state; /* in netfile.text */
} file_step;

typedef struct file_signal {
    int32_t line, step, n_steps; /* a range of netfile.steps */
    int32_t is_rail;             /* a light for trains: links are as if it were not there */
    int32_t is_used, junction;   /* by a connection; of the network. scenario_net.c fills them in */
    file_time start;             /* of a cycle of its program; or, with starts_with_episode, the begin of the episode */
    int32_t starts_with_episode;
} file_signal;

typedef struct file_connection {
    int32_t line, from, to, via; /* lanes of the file */
    int32_t signal, index;       /* NET_NONE without one */
    int32_t is_first;            /* it never yields ("pass") */
    int32_t is_stop;             /* a stop sign (state s or w) */
    double visible;              /* m, from where it sees others */
    int32_t group, request;      /* junction of the network, link of the file's junction; scenario_net.c */
    int32_t bit;
} file_connection;

/* What was left out, once per kind. */
typedef struct file_note {
    const char *what;
    int32_t line, n;
    char element[32], path[256];
} file_note;

typedef struct netfile {
    const dt_host *h;
    const char *path;
    names edge_names, lane_names, junction_names, signal_names;
    list edges, lanes, junctions, signals; /* numbered as their names are */
    list points, requests, steps, connections, notes, text;
    int32_t program; /* the signal whose program is being read, or NET_NONE */
    int32_t junction;
} netfile;

/* Errors: those of xml_read; DT_EDATA with file, line and element. netfile_fini after any result. */
dt_status netfile_read(netfile *f, const dt_host *h, const xml_text *text);
void netfile_fini(netfile *f);

/* Counts an element that is left out; `what` is a sentence's end and lives on. Few kinds are distinguished. */
dt_status file_leave_out(list *notes, const xml *x, const char *what);
/* Logs what was left out. */
void file_report_notes(const dt_host *h, const list *notes);

#define FILE_ITEM(f, kind, k) (&((file_##kind *)(f)->kind##s.items)[k])

#endif
