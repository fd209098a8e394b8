/* SPDX-License-Identifier: Apache-2.0
 *
 * A road network as data: edges of parallel lanes, links from lane to lane, junctions whose links run over lanes of
 * their own ("via") and may cross. It is built once, by scenario.c, and does not change. Lane 0 of an edge is the
 * rightmost one; traffic keeps to the right. Threads: any, after it is built.
 */
#ifndef DTRAIN_ENV_TRAFFIC_NET_H
#define DTRAIN_ENV_TRAFFIC_NET_H

#include "dtrain/helpers.h"

#define NET_LANE_M    3.2 /* width of a lane */
#define NET_VISIBLE_M 4.5 /* net_link.visible, where a file does not have it */

enum {
    NET_NONE = -1, /* no lane, edge, link, junction; as the way of a vehicle: its lane does not lead there */
    NET_EXIT = -2, /* as the way of a vehicle: out of the network */
    NET_MAX_OUT = 3,
    NET_LINK_WORDS = 4,
    NET_MAX_LINKS = 64 * NET_LINK_WORDS, /* of a junction, one bit each: as many as SUMO takes */
    NET_MAX_PHASES = 64,
    NET_MAX_ARMS = 64, /* of a junction */
    NET_NO_NUMBER = UINT16_MAX
};

/* A time on the clock of the files, not since the start of an episode (sim.h: sim_since_begin). A type of its own, so
 * that compilers reject a mix of the two. */
typedef struct file_time {
    double s;
} file_time;

/* Links of a junction, or of one in a file: bit k is its link k. */
typedef struct net_links {
    uint64_t word[NET_LINK_WORDS];
} net_links;

static inline int net_has(const net_links *l, int32_t k)
{
    return (uint32_t)k < NET_MAX_LINKS && (l->word[(uint32_t)k / 64] >> ((uint32_t)k % 64) & 1) != 0;
}

static inline void net_include(net_links *l, int32_t k)
{
    l->word[k / 64] |= (uint64_t)1 << (k % 64);
}

static inline net_links net_bit(int32_t k)
{
    net_links l = {0};
    net_include(&l, k);
    return l;
}

static inline net_links net_union(net_links a, net_links b)
{
    for (int i = 0; i < NET_LINK_WORDS; i++) {
        a.word[i] |= b.word[i];
    }
    return a;
}

static inline net_links net_common(net_links a, net_links b)
{
    for (int i = 0; i < NET_LINK_WORDS; i++) {
        a.word[i] &= b.word[i];
    }
    return a;
}

/* Links of a that are not in b. */
static inline net_links net_without(net_links a, net_links b)
{
    for (int i = 0; i < NET_LINK_WORDS; i++) {
        a.word[i] &= ~b.word[i];
    }
    return a;
}

static inline int net_any(net_links a)
{
    uint64_t any = 0;
    for (int i = 0; i < NET_LINK_WORDS; i++) {
        any |= a.word[i];
    }
    return any != 0;
}

static inline int net_equal(net_links a, net_links b)
{
    uint64_t differs = 0;
    for (int i = 0; i < NET_LINK_WORDS; i++) {
        differs |= a.word[i] ^ b.word[i];
    }
    return differs == 0;
}

static inline int32_t net_count(net_links a)
{
    int32_t n = 0;
    for (int i = 0; i < NET_LINK_WORDS; i++) {
        n += __builtin_popcountll(a.word[i]);
    }
    return n;
}

/* The first link from k on, NET_NONE where there is none. */
static inline int32_t net_next(const net_links *l, int32_t k)
{
    uint32_t from = (uint32_t)k;
    for (uint32_t i = from / 64; i < NET_LINK_WORDS; from = 64 * ++i) {
        const uint64_t rest = l->word[i] >> (from % 64);
        if (rest != 0) {
            return (int32_t)from + __builtin_ctzll(rest);
        }
    }
    return NET_NONE;
}

/* A straight piece of a centre line: from s on, a metre along the lane is (dx, dy). */
typedef struct net_piece {
    double s, x, y, dx, dy, heading;
} net_piece;

/* A centre line is an arc: start, heading there, curvature (left positive, 0: straight); or it is made of pieces. */
typedef struct net_lane {
    double length, limit; /* m, m/s */
    double x0, y0, heading, bend;
    const net_piece *piece;
    int32_t n_pieces;
    int32_t edge, left, right; /* neighbours in the edge; a via has no edge */
    int32_t link, n_links;     /* ways out of it, a range of net.link; none for a via, which leads to its target */
    int32_t via_of;            /* the link that runs over this lane */
    int32_t before;            /* the one lane that leads here without a junction, or NET_NONE */
} net_lane;

typedef struct net_edge {
    int32_t lane, n_lanes;    /* a range of net.lane */
    int32_t out[NET_MAX_OUT]; /* edges that follow; none: traffic leaves the network at its end */
    double share[NET_MAX_OUT];
    int32_t n_out;
    int32_t junction; /* at its end, or NET_NONE */
} net_edge;

typedef struct net_link {
    int32_t from, via, to; /* lanes; via NET_NONE: joined end to end */
    int32_t edge;          /* of to */
    int32_t junction, bit; /* NET_NONE without a junction */
    int32_t rank;          /* which yields where two paths cross: the lower one */
    double hold;           /* m along the via: a turn yields there, inside the junction; 0: at its line */
    double visible;        /* m before the place where it yields: others are seen from there on */
} net_link;

typedef struct net_area {
    double in, out; /* m along the via: where its path is closer to the other one than vehicles are wide */
} net_area;

/* What a signal shows: green, among them those that yield to all other green (minor); red to pass after a stop. */
typedef struct net_show {
    net_links green, minor, stop, yellow;
} net_show;

typedef struct net_step { /* of a program from a file */
    double duration_s;
    net_show show;
    int32_t phase; /* that it is, or leads to */
} net_step;

typedef struct net_junction {
    int32_t link, n_links; /* a range of net.link; bit k is link + k */
    /* [n_links], ranges of the net's */
    net_links *crosses;                /* links whose paths meet this one's, without those from the same lane */
    net_links *yields;                 /* those of them that go first */
    net_links *foes;                   /* as in the net, whether or not their paths come close: links whose way */
    net_links *responds;               /* meets this one's, and those of them that this one yields to */
    uint8_t *best;                     /* the most that a phase shows the link: net_letter_of */
    uint16_t *number;                  /* of a link among those of the signal, as its file counts them; NET_NO_NUMBER */
    int32_t is_equal;                  /* none of its roads goes first, as with right before left */
    net_links stops;                   /* links at which all stop first, without a light */
    net_links goes[NET_MAX_PHASES];    /* those that go first in a phase: net_letter is NET_GO */
    int32_t conflicts[NET_MAX_PHASES]; /* net_conflicts of each phase */
    net_links lonely;                  /* green in phases, but in none without conflicts */
    int32_t n_numbers;                 /* of links in the file, unused ones included */
    net_area *area;                    /* [n_links, n_links] */
    net_show phase[NET_MAX_PHASES];    /* without yellow */
    double green_s[NET_MAX_PHASES];    /* of the fixed program, where it has no steps */
    const net_step *step;              /* of the fixed program from a file, or NULL */
    int32_t n_steps;
    int32_t n_phases; /* 0: no signals, ranks alone decide */
    int32_t n_arms;
    int32_t arm[NET_MAX_ARMS];       /* edges that lead in */
    int32_t slot[NET_MAX_ARMS];      /* of the arm's rightmost lane in what signals observe */
    int32_t neighbour[NET_MAX_ARMS]; /* junction with signals at the other end of an arm, or NET_NONE */
    file_time start;                 /* a cycle of the fixed program starts then */
    int32_t starts_with_episode;     /* or, instead of that, when the episode begins */
} net_junction;

typedef struct net {
    net_lane *lane;
    net_edge *edge;
    net_link *link;
    net_junction *junction;                        /* those with signals first */
    net_links *crosses, *yields, *foes, *responds; /* by link, as are best and number: of junctions */
    uint8_t *best;
    uint16_t *number;
    net_area *area;
    net_piece *piece;
    net_step *step;
    int32_t n_lanes, n_edges, n_links, n_junctions, n_areas, n_pieces, n_steps;
    int32_t n_signals;
    int32_t most_phases, most_slots, most_numbers; /* of a signal */
    int64_t n_compared;                            /* pairs of points, while it was found out where paths meet */
} net;

typedef struct net_size {
    int32_t lanes, edges, links, junctions, areas; /* areas: the sum of n_links^2 of all junctions, or 0: made
                                                    * by the caller once that is known */
    int32_t pieces, steps;
} net_size;

/* What net_init requires, without the areas; false where that is more than NET_BYTES_MOST. */
#define NET_BYTES_MOST ((size_t)1 << 30)
int net_size_bytes(const net_size *size, size_t *bytes_p);
/* Room for so many of each. The arrays belong to the net; net_fini frees them. Errors: DT_ENOMEM. */
dt_status net_init(net *n, const dt_host *h, net_size size);
void net_fini(net *n, const dt_host *h);

/* An edge of n_lanes straight lanes, length m long; x, y, heading: start of the rightmost one. Returns its number.
 * bend: curvature of all of its lanes. */
int32_t net_add_edge(net *n, int32_t n_lanes, double length, double limit, double x, double y, double heading,
                     double bend);
/* Traffic of `from` goes to `to` with this share of all. */
void net_add_way(net *n, int32_t from, int32_t to, double share);
/* Joins two lanes end to end; links of a lane are added one after another, lane by lane. */
void net_join_lanes(net *n, int32_t from, int32_t to);
int32_t net_add_junction(net *n);
/* The links of a junction begin with this one of the net. */
void net_begin_links(net *n, int32_t junction, int32_t link);
/* A link over the junction: a via from the end of one lane to the start of another, as an arc or a straight line. */
void net_add_turn(net *n, int32_t junction, int32_t from, int32_t to, double limit, int32_t rank);
/* Once all links of the junction are there: room for the areas where their paths meet. */
void net_make_areas(net *n, int32_t junction);
/* Do the paths of two links of a junction meet? Then the area of a is kept. */
int net_find_conflict_area(net *n, int32_t junction, int32_t a, int32_t b);
/* Where all paths of a junction meet, and which yields. */
void net_find_conflicts(net *n, int32_t junction);

/* What is shown to a link: red; red to pass after a stop; green that yields; green that goes first. */
enum { NET_RED, NET_STOP, NET_YIELD, NET_GO };
int net_letter(const net *n, const net_junction *j, const net_show *show, int32_t bit);
/* Once all phases of the signals are there: what follows from them, and foes, responds and numbers where code built
 * the scenario. */
void net_finish_signals(net *n);
/* Do the ways of two links come together in one lane? Else those of foes cross. */
int net_merge(const net *n, const net_junction *j, int32_t a, int32_t b);
/* net_letter of phase p, once the signals are finished. */
static inline int net_letter_of(const net_junction *j, int32_t p, int32_t bit)
{
    const net_show *show = &j->phase[p];
    if (net_has(&show->green, bit)) {
        return net_has(&j->goes[p], bit) ? NET_GO : NET_YIELD;
    }
    return net_has(&show->stop, bit) ? NET_STOP : NET_RED;
}

/* Does phase p let the link do the most that any phase does? */
static inline int net_serves(const net_junction *j, int32_t p, int32_t bit)
{
    return j->best[bit] != NET_RED && net_letter_of(j, p, bit) == j->best[bit];
}

/* Where the path of link a of a junction meets that of link b. */
static inline const net_area *net_area_of(const net_junction *j, int32_t a, int32_t b)
{
    return &j->area[a * j->n_links + b];
}

/* Point of a lane's centre line at s (outside [0, length]: straight on). */
void net_point(const net_lane *l, double s, double *x_p, double *y_p, double *heading_p);

#endif
