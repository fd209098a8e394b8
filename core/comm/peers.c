/* SPDX-License-Identifier: Apache-2.0 */
#include <config.h>

#include "comm/peers.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"

#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

typedef struct peer {
    char host[64], board[DT_BOARD_PATH_BYTES]; /* board: one that this rank made; "": none */
    int process;
} peer;

struct dt_peers {
    const dt_transport_ops *t;
    uint32_t rank, n;
    bool leads; /* the first of this machine */
    dt_board *board;
    peer *all;      /* [n]; NULL until they have met */
    bool *received; /* [n] which have sent anything */
    bool has_left, has_answered, is_asking;
};

enum { NAME_BYTES = 112, DOING_BYTES = 192 };

/* Messages between ranks besides collectives begins with one of these. */
enum {
    LEAVES = '!',  /* and why */
    ASKS = '?',    /* it timed out: which ranks are there? */
    ANSWERS = '.', /* a waiting one, too */
    BLAMES = '#'   /* it leaves, and which it waited for */
};

static void notify_ranks(const dt_peers *p, char kind, const char *text)
{
    char word[512];
    snprintf(word, sizeof(word), "%c%s", kind, text);
    p->t->notify(word);
}

/* ---- meeting ----------------------------------------------------------------------------------------------------- */

static void describe_self(const dt_peers *p, bool has_made, peer *out)
{
    struct utsname host;
    memset(out, 0, sizeof(*out));
    memset(&host, 0, sizeof(host));
    uname(&host);
    snprintf(out->host, sizeof(out->host), "%.*s", (int)sizeof(out->host) - 1, host.nodename);
    out->process = (int)getpid();
    if (has_made) {
        snprintf(out->board, sizeof(out->board), "%s", dt_board_path(p->board));
    }
}

/* The board of the first rank of this machine. Without one, ranks of this machine are as those of others. */
static void open_board(dt_peers *p)
{
    for (uint32_t r = 0; r < p->n && p->board == NULL; r++) {
        peer *o = &p->all[r];
        if (o->board[0] != '\0' && strcmp(o->host, p->all[p->rank].host) == 0 &&
            dt_board_open(o->board, &p->board) < 0) {
            p->board = NULL;
        }
    }
    if (p->board == NULL) {
        dt_log(DT_LOG_DEBUG, "no shared memory with the other ranks of this machine: %s", dt_error_text());
    }
    dt_error_clear();
}

dt_status dt_peers_exchange_hosts(dt_peers *p, dt_comm *c)
{
    const bool makes = p->board == NULL && p->leads;
    peer mine, *all = dt_alloc_n(p->n, sizeof(*all));
    if (makes && dt_board_create(p->n, &p->board) < 0) {
        p->board = NULL;
    }
    describe_self(p, makes && p->board != NULL, &mine);
    dt_status st = all != NULL ? DT_OK : DT_FAIL(DT_ENOMEM, "out of memory for the names of %u ranks", p->n);
    if (st == DT_OK) {
        st = dt_comm_all_gather(c, &mine, sizeof(mine), all);
    }
    if (st < 0) {
        dt_free(all);
        return st;
    }
    for (uint32_t r = 0; r < p->n; r++) {
        all[r].host[sizeof(mine.host) - 1] = all[r].board[sizeof(mine.board) - 1] = '\0';
    }
    p->all = all;
    if (p->board == NULL) {
        open_board(p);
    }
    dt_board_mark_joined(p->board, p->rank);
    return DT_OK;
}

static dt_status create_peers(dt_peers *p, const dt_transport_info *info)
{
    p->rank = info->rank;
    p->n = info->size;
    p->leads = info->local_rank == 0;
    p->received = dt_alloc_n(p->n, sizeof(*p->received));
    return p->received != NULL ? DT_OK : DT_FAIL(DT_ENOMEM, "out of memory for %u ranks", p->n);
}

dt_status dt_peers_create(const dt_transport_ops *t, const dt_transport_info *info, dt_board *board, dt_peers **out_p)
{
    dt_peers *p = dt_alloc(sizeof(*p));
    if (p == NULL) {
        dt_board_close(board);
        return DT_FAIL(DT_ENOMEM, "out of memory for %u ranks", info->size);
    }
    p->t = t;
    p->board = board;
    const dt_status st = create_peers(p, info);
    if (st < 0) {
        dt_peers_destroy(p);
        return st;
    }
    *out_p = p;
    return DT_OK;
}

void dt_peers_destroy(dt_peers *p)
{
    if (p != NULL) {
        dt_board_close(p->board);
        dt_free(p->all);
        dt_free(p->received);
        dt_free(p);
    }
}

dt_board *dt_peers_board(const dt_peers *p)
{
    return p->board;
}

uint32_t dt_peers_n_hosts(const dt_peers *p)
{
    uint32_t n = 0;
    for (uint32_t r = 0; r < p->n && p->all != NULL; r++) {
        bool is_new = true;
        for (uint32_t o = 0; o < r && is_new; o++) {
            is_new = strcmp(p->all[o].host, p->all[r].host) != 0;
        }
        n += is_new;
    }
    return n;
}

/* ---- looking ----------------------------------------------------------------------------------------------------- */

/* "rank 1 (process 4711 on node1)" */
static void format_rank(const dt_peers *p, uint32_t rank, char out[NAME_BYTES])
{
    if (p->all == NULL) {
        snprintf(out, NAME_BYTES, "rank %u", rank);
    } else {
        snprintf(out, NAME_BYTES, "rank %u (process %d on %s)", rank, p->all[rank].process, p->all[rank].host);
    }
}

/* false: it is of another machine, or was never seen here. */
static bool read_process(const dt_peers *p, uint32_t rank, dt_board_rank *out)
{
    if (p->board == NULL || p->all == NULL || strcmp(p->all[rank].host, p->all[p->rank].host) != 0) {
        return false;
    }
    dt_board_read_rank(p->board, rank, out);
    return out->state != DT_BOARD_NEVER;
}

/* "; its last was collective 7 (barrier), which ended 3.2 s ago" */
static void describe_last_call(const dt_board_rank *seen, char out[DOING_BYTES])
{
    char what[80];
    const bool is_over = seen->last.end_s > 0;
    out[0] = '\0';
    if (seen->has_called) {
        dt_board_describe_call(&seen->last, what, sizeof(what));
        snprintf(out, DOING_BYTES, "%s; %s collective %llu (%s), %s %.1f s ago",
                 seen->is_stopped ? ", which is stopped by a signal" : "", is_over ? "its last was" : "it is in",
                 (unsigned long long)seen->last.number, what, is_over ? "which ended" : "begun",
                 dt_clock_s() - (is_over ? seen->last.end_s : seen->last.begin_s));
    }
}

dt_status dt_peers_check_local(const dt_peers *p)
{
    for (uint32_t r = 0; r < p->n && p->board != NULL; r++) {
        dt_board_rank seen;
        char name[NAME_BYTES], doing[DOING_BYTES];
        if (r != p->rank && read_process(p, r, &seen) && seen.state == DT_BOARD_GONE) {
            format_rank(p, r, name);
            describe_last_call(&seen, doing);
            return DT_FAIL(DT_EPEER, "%s is gone%s", name, doing);
        }
    }
    return DT_OK;
}

/* ---- sending and receiving -----------------------------------------------------------------------------------------
 * */

void dt_peers_announce_exit(dt_peers *p, const char *why)
{
    if (!p->has_left) {
        p->has_left = true;
        notify_ranks(p, LEAVES, why);
    }
}

dt_status dt_peers_poll(dt_peers *p)
{
    uint32_t from = 0;
    char text[512];
    if (!p->t->received(&from, text, sizeof(text)) || from >= p->n) {
        return DT_OK;
    }
    p->received[from] = true;
    if (text[0] == ASKS && !p->has_answered && !p->is_asking && !p->has_left) {
        p->has_answered = true;
        notify_ranks(p, ANSWERS, "");
    }
    if (text[0] == ASKS || text[0] == ANSWERS || (text[0] == BLAMES && p->is_asking)) {
        return DT_OK; /* the querying rank reports the result */
    }
    const bool has_reason = text[0] != '\0' && text[1] != '\0';
    return DT_FAIL(DT_EPEER, "rank %u left: %s", from, has_reason ? text + 1 : "it gave no reason");
}

typedef enum presence { ABSENT, UNKNOWN, THERE } presence;

/* A rank that has arrived polls what others send, and so answers. */
static presence read_presence(const dt_peers *p, uint32_t rank, uint64_t number)
{
    dt_board_rank seen;
    if (rank == p->rank || !read_process(p, rank, &seen)) {
        return rank == p->rank || p->received[rank] ? THERE : UNKNOWN;
    }
    const bool is_able = seen.state == DT_BOARD_LEFT || (seen.state == DT_BOARD_HERE && !seen.is_stopped);
    if (!is_able || !seen.has_called || seen.last.number < number) {
        return ABSENT;
    }
    return p->received[rank] || seen.state == DT_BOARD_LEFT ? THERE : UNKNOWN;
}

static dt_status query_peers(dt_peers *p, uint64_t number)
{
    const double begin = dt_clock_s();
    bool is_open = true;
    p->is_asking = true;
    notify_ranks(p, ASKS, "");
    while (is_open && dt_clock_s() - begin < 1) {
        const struct timespec nap = {.tv_nsec = 2000000};
        is_open = false;
        DT_TRY(dt_peers_poll(p));
        for (uint32_t r = 0; r < p->n && !is_open; r++) {
            is_open = read_presence(p, r, number) == UNKNOWN;
        }
        if (is_open) {
            nanosleep(&nap, NULL);
        }
    }
    return DT_OK;
}

/* "rank 1 (process 4711 on node1; its last was ...), rank 3 (...) and 2 more" */
static uint32_t format_missing_ranks(const dt_peers *p, uint64_t number, char *out, size_t bytes)
{
    enum { MOST_NAMED = 2 };
    uint32_t n = 0;
    size_t used = 0;
    out[0] = '\0';
    for (uint32_t r = 0; r < p->n; r++) {
        dt_board_rank seen;
        char name[NAME_BYTES], doing[DOING_BYTES] = "";
        if (read_presence(p, r, number) == THERE || n++ >= MOST_NAMED) {
            continue;
        }
        format_rank(p, r, name);
        if (read_process(p, r, &seen)) {
            describe_last_call(&seen, doing);
        }
        used += (size_t)snprintf(out + used, bytes - used, "%s%s%s", used > 0 ? "; " : "", name, doing);
        used = used < bytes ? used : bytes - 1;
    }
    if (n > MOST_NAMED) {
        snprintf(out + used, bytes - used, "; and %u more", n - MOST_NAMED);
    }
    return n;
}

dt_status dt_peers_diagnose_timeout(dt_peers *p, uint64_t number, const char *mine, double waited_s)
{
    char missing[400];
    DT_TRY(query_peers(p, number));
    const uint32_t n = format_missing_ranks(p, number, missing, sizeof(missing));
    const dt_status st = DT_FAIL(DT_ECOMM, "collective %llu: %s and timed out after %.3g s%s%s",
                                 (unsigned long long)number, mine, waited_s, n > 0 ? " waiting for " : "",
                                 n > 0 ? missing : ", although every rank is present: messages do not arrive");
    notify_ranks(p, BLAMES, dt_error_text());
    p->has_left = true;
    return st;
}
