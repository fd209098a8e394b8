/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests of core/comm/peers.c over a transport that only notes what is sent and returns what is to be received: ranks
 * that leave, ask, answer, are gone or never came, and what a rank says that waited in vain for them.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fault.h"
#include "base/mem.h"
#include "comm/peers.h"

enum { RANKS = 2, MOST = 16 };

/* ---- a transport of words ---------------------------------------------------------------------------------------- */

static struct {
    uint32_t from;
    char text[512];
} inbox[MOST];
static uint32_t n_in, n_heard, n_sent;
static char sent_text[MOST][512];

static void words_reset(void)
{
    n_in = n_heard = n_sent = 0;
}

static void will_hear(uint32_t from, const char *text)
{
    inbox[n_in].from = from;
    snprintf(inbox[n_in++].text, sizeof(inbox[0].text), "%s", text);
}

static void notify(const char *text)
{
    assert_true(n_sent < MOST);
    snprintf(sent_text[n_sent++], sizeof(sent_text[0]), "%s", text);
}

static bool received(uint32_t *from_p, char *text, size_t bytes)
{
    if (n_heard == n_in) {
        return false;
    }
    *from_p = inbox[n_heard].from;
    snprintf(text, bytes, "%s", inbox[n_heard++].text);
    return true;
}

static const dt_transport_ops words = {
    .struct_size = sizeof(words), .version = DT_TRANSPORT_VERSION, .notify = notify, .received = received};

/* ---- two ranks that met ------------------------------------------------------------------------------------------ */

typedef struct pair {
    dt_comm *comm[RANKS];
    dt_peers *peers[RANKS];
    dt_status st[RANKS];
} pair;

typedef struct meeting {
    pair *all;
    uint32_t rank;
} meeting;

static dt_peers *peers_of(uint32_t rank, uint32_t size, dt_board *board)
{
    dt_peers *p = NULL;
    const dt_transport_info info = {.rank = rank, .size = size, .local_rank = rank, .local_size = size};
    assert_int_equal(dt_peers_create(&words, &info, board, &p), DT_OK);
    return p;
}

static void *meet(void *arg)
{
    const meeting *m = arg;
    m->all->st[m->rank] = dt_peers_exchange_hosts(m->all->peers[m->rank], m->all->comm[m->rank]);
    return NULL;
}

static void pair_meet(pair *a)
{
    pthread_t threads[RANKS];
    meeting m[RANKS];
    words_reset();
    assert_int_equal(dt_comm_create_simulated(RANKS, 10, a->comm), DT_OK);
    for (uint32_t r = 0; r < RANKS; r++) {
        m[r] = (meeting){.all = a, .rank = r};
        a->peers[r] = peers_of(r, RANKS, NULL);
        assert_int_equal(pthread_create(&threads[r], NULL, meet, &m[r]), 0);
    }
    for (uint32_t r = 0; r < RANKS; r++) {
        pthread_join(threads[r], NULL);
        assert_int_equal(a->st[r], DT_OK);
    }
}

static void pair_part(pair *a)
{
    for (uint32_t r = 0; r < RANKS; r++) {
        dt_peers_destroy(a->peers[r]);
        dt_comm_destroy(a->comm[r]);
    }
}

/* "rank 1 (process 4711 on node1)" */
static const char *name_of(uint32_t rank)
{
    static char text[128];
    struct utsname host;
    uname(&host);
    snprintf(text, sizeof(text), "rank %u (process %d on %.63s)", rank, (int)getpid(), host.nodename);
    return text;
}

static void says(const char *text)
{
    if (strstr(dt_error_text(), text) == NULL) {
        fail_msg("\"%s\" is not in \"%s\"", text, dt_error_text());
    }
}

static void begin(const pair *a, uint32_t rank, uint64_t number)
{
    dt_board_call_begin(dt_peers_board(a->peers[rank]), rank,
                        &(dt_board_call){.number = number, .op = "barrier", .root = UINT32_MAX});
}

static void test_ranks_of_a_machine_share_a_board(void **state)
{
    const uint64_t live = dt_alloc_live_bytes();
    pair a;
    pair_meet(&a);
    assert_int_equal(dt_peers_n_hosts(a.peers[0]), 1);
    assert_int_equal(dt_peers_n_hosts(a.peers[1]), 1);
    assert_string_equal(dt_board_path(dt_peers_board(a.peers[1])), dt_board_path(dt_peers_board(a.peers[0])));
    dt_board_rank seen;
    dt_board_read_rank(dt_peers_board(a.peers[0]), 1, &seen);
    assert_true(seen.state == DT_BOARD_HERE && seen.process == (int)getpid());
    assert_int_equal(dt_peers_check_local(a.peers[0]), DT_OK);
    assert_int_equal(dt_peers_poll(a.peers[0]), DT_OK);
    pair_part(&a);
    dt_peers_destroy(NULL);
    assert_true(dt_alloc_live_bytes() == live);
}

/* ---- words ------------------------------------------------------------------------------------------------------- */

static void test_who_leaves_says_why_once(void **state)
{
    words_reset();
    dt_peers *p = peers_of(0, 3, NULL);
    dt_peers_announce_exit(p, "the loss is not finite");
    dt_peers_announce_exit(p, "and again");
    assert_int_equal(n_sent, 1);
    assert_string_equal(sent_text[0], "!the loss is not finite");
    dt_peers_destroy(p);
}

static void test_who_hears_that_a_rank_left_says_so(void **state)
{
    static const struct {
        const char *word, *want;
    } cases[] = {{"!the disk is full", "rank 2 left: the disk is full"},
                 {"!", "rank 2 left: it gave no reason"},
                 {"", "rank 2 left: it gave no reason"},
                 {"#it waited in vain for rank 1", "rank 2 left: it waited in vain for rank 1"}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        words_reset();
        dt_peers *p = peers_of(0, 3, NULL);
        will_hear(2, cases[i].word);
        assert_int_equal(dt_peers_poll(p), DT_EPEER);
        assert_string_equal(dt_error_text(), cases[i].want);
        assert_int_equal(dt_peers_poll(p), DT_OK); /* nothing more came */
        dt_peers_destroy(p);
    }
    words_reset();
    dt_peers *p = peers_of(0, 3, NULL);
    will_hear(3, "!a rank that is none");
    assert_int_equal(dt_peers_poll(p), DT_OK);
    dt_peers_destroy(p);
}

static void test_who_is_asked_answers_once(void **state)
{
    words_reset();
    dt_peers *p = peers_of(0, 3, NULL);
    will_hear(1, "?");
    will_hear(2, "?");
    will_hear(2, ".");
    for (int i = 0; i < 4; i++) {
        assert_int_equal(dt_peers_poll(p), DT_OK);
    }
    assert_int_equal(n_sent, 1);
    assert_string_equal(sent_text[0], ".");
    dt_peers_destroy(p);
    words_reset();
    p = peers_of(0, 3, NULL);
    dt_peers_announce_exit(p, "enough");
    will_hear(1, "?");
    assert_int_equal(dt_peers_poll(p), DT_OK);
    assert_int_equal(n_sent, 1); /* who has left answers nothing */
    dt_peers_destroy(p);
}

/* ---- looking ----------------------------------------------------------------------------------------------------- */

/* Another process joins as rank 1, calls once, and ends without a word. */
static void lose_rank_1(const pair *a)
{
    int how = 0;
    const pid_t child = fork();
    if (child == 0) {
        dt_board_mark_joined(dt_peers_board(a->peers[1]), 1);
        begin(a, 1, 5);
        _exit(0);
    }
    assert_true(child > 0);
    assert_int_equal(waitpid(child, &how, 0), child);
}

static void test_a_process_that_is_gone_is_named(void **state)
{
    pair a;
    pair_meet(&a);
    lose_rank_1(&a);
    assert_int_equal(dt_peers_check_local(a.peers[0]), DT_EPEER);
    says(name_of(1));
    says(" is gone; it is in collective 5 (barrier), begun ");
    assert_int_equal(dt_peers_check_local(a.peers[1]), DT_OK); /* nobody misses itself */
    dt_board_mark_left(dt_peers_board(a.peers[1]), 1, 0);
    assert_int_equal(dt_peers_check_local(a.peers[0]), DT_OK); /* it left in order */
    pair_part(&a);
}

/* ---- waiting in vain --------------------------------------------------------------------------------------------- */

static void test_a_rank_that_has_not_come_is_blamed(void **state)
{
    pair a;
    pair_meet(&a);
    begin(&a, 0, 7);
    begin(&a, 1, 6);
    dt_board_call_end(dt_peers_board(a.peers[1]), 1, 6);
    assert_int_equal(dt_peers_diagnose_timeout(a.peers[0], 7, "rank 0 called barrier", 0.5), DT_ECOMM);
    says("collective 7: rank 0 called barrier and timed out after 0.5 s waiting for ");
    says(name_of(1));
    says("; its last was collective 6 (barrier), which ended ");
    assert_int_equal(n_sent, 2);
    assert_string_equal(sent_text[0], "?");
    assert_true(strncmp(sent_text[1], "#collective 7: rank 0 called barrier", 36) == 0);
    dt_peers_announce_exit(a.peers[0], "it has told by now");
    assert_int_equal(n_sent, 2);
    pair_part(&a);
}

static void test_a_gone_or_held_rank_is_blamed(void **state)
{
    pair a;
    pair_meet(&a);
    lose_rank_1(&a);
    assert_int_equal(dt_peers_diagnose_timeout(a.peers[0], 5, "rank 0 called barrier", 2), DT_ECOMM);
    says("timed out after 2 s waiting for rank 1");
    pair_part(&a);
    pair_meet(&a);
    int how = 0;
    const pid_t child = fork();
    if (child == 0) {
        dt_board_mark_joined(dt_peers_board(a.peers[1]), 1);
        begin(&a, 1, 5);
        raise(SIGSTOP);
        _exit(0);
    }
    assert_int_equal(waitpid(child, &how, WUNTRACED), child);
    assert_true(WIFSTOPPED(how));
    assert_int_equal(dt_peers_diagnose_timeout(a.peers[0], 5, "rank 0 called barrier", 2), DT_ECOMM);
    says(", which is stopped by a signal; it is in collective 5 (barrier), begun ");
    kill(child, SIGKILL);
    assert_int_equal(waitpid(child, &how, 0), child);
    pair_part(&a);
}

static void test_where_all_are_there_nothing_arrives(void **state)
{
    pair a;
    pair_meet(&a);
    begin(&a, 0, 7);
    begin(&a, 1, 7);
    will_hear(1, ".");
    assert_int_equal(dt_peers_diagnose_timeout(a.peers[0], 7, "rank 0 called barrier", 120), DT_ECOMM);
    says("timed out after 120 s, although every rank is present: messages do not arrive");
    pair_part(&a);
}

static void test_ranks_that_left_are_reported_instead(void **state)
{
    pair a;
    pair_meet(&a);
    begin(&a, 1, 7);
    will_hear(1, "#it asked, too"); /* who asks for itself knows no more than this rank */
    will_hear(1, "!the disk is full");
    assert_int_equal(dt_peers_diagnose_timeout(a.peers[0], 8, "rank 0 called barrier", 1),
                     DT_ECOMM); /* it is behind anyhow */
    pair_part(&a);
    pair_meet(&a);
    begin(&a, 1, 7);
    will_hear(1, "!the disk is full");
    assert_int_equal(dt_peers_diagnose_timeout(a.peers[0], 7, "rank 0 called barrier", 1), DT_EPEER);
    says("rank 1 left: the disk is full");
    pair_part(&a);
}

/* Of other machines is known what they say: a second is left for it. */
static void test_ranks_that_are_not_seen(void **state)
{
    words_reset();
    dt_peers *p = peers_of(0, 5, NULL);
    will_hear(3, ".");
    assert_int_equal(dt_peers_diagnose_timeout(p, 1, "rank 0 called all_gather of 8 bytes", 3), DT_ECOMM);
    says("rank 0 called all_gather of 8 bytes and timed out after 3 s waiting for rank 1; rank 2; and 1 more");
    dt_peers_destroy(p);
}

/* ---- failures ---------------------------------------------------------------------------------------------------- */

static void test_too_little_memory(void **state)
{
    const uint64_t live = dt_alloc_live_bytes();
    const dt_transport_info info = {.size = 1};
    dt_peers *p = NULL;
    for (int k = 1; k <= 2; k++) {
        dt_board *board = NULL;
        assert_int_equal(dt_board_create(1, &board), DT_OK);
        dt_fault_reset(k == 1 ? "alloc:1" : "alloc:2");
        assert_int_equal(dt_peers_create(&words, &info, board, &p), DT_ENOMEM); /* and the board is closed */
        dt_fault_reset(NULL);
        assert_null(p);
    }
    assert_true(dt_alloc_live_bytes() == live);
    dt_comm *c = NULL;
    assert_int_equal(dt_comm_create_null(&c), DT_OK);
    p = peers_of(0, 1, NULL);
    dt_fault_reset("alloc:1");
    assert_int_equal(dt_peers_exchange_hosts(p, c), DT_ENOMEM);
    says("out of memory for the names of 1 ranks");
    dt_fault_reset(NULL);
    dt_peers_destroy(p);
    dt_comm_destroy(c);
    assert_true(dt_alloc_live_bytes() == live);
}

static void test_a_meeting_that_fails(void **state)
{
    dt_comm *c[RANKS];
    assert_int_equal(dt_comm_create_simulated(RANKS, 10, c), DT_OK);
    dt_comm_abandon(c[1], "it never came");
    dt_peers *p = peers_of(0, RANKS, NULL);
    assert_int_equal(dt_peers_exchange_hosts(p, c[0]), DT_EPEER);
    says("it never came");
    assert_int_equal(dt_peers_n_hosts(p), 0); /* nobody is known */
    dt_peers_destroy(p);
    dt_comm_destroy(c[0]);
    dt_comm_destroy(c[1]);
}

static void test_without_shared_memory(void **state)
{
    dt_comm *c = NULL;
    assert_int_equal(dt_comm_create_null(&c), DT_OK);
    words_reset();
    dt_peers *p = peers_of(0, 1, NULL);
    dt_fault_reset("alloc:2"); /* the board's; names come first */
    assert_int_equal(dt_peers_exchange_hosts(p, c), DT_OK);
    dt_fault_reset(NULL);
    assert_null(dt_peers_board(p));
    assert_int_equal(dt_peers_check_local(p), DT_OK);
    assert_int_equal(dt_peers_n_hosts(p), 1);
    dt_peers_destroy(p);
    dt_comm_destroy(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ranks_of_a_machine_share_a_board),
        cmocka_unit_test(test_who_leaves_says_why_once),
        cmocka_unit_test(test_who_hears_that_a_rank_left_says_so),
        cmocka_unit_test(test_who_is_asked_answers_once),
        cmocka_unit_test(test_a_process_that_is_gone_is_named),
        cmocka_unit_test(test_a_rank_that_has_not_come_is_blamed),
        cmocka_unit_test(test_a_gone_or_held_rank_is_blamed),
        cmocka_unit_test(test_where_all_are_there_nothing_arrives),
        cmocka_unit_test(test_ranks_that_left_are_reported_instead),
        cmocka_unit_test(test_ranks_that_are_not_seen),
        cmocka_unit_test(test_too_little_memory),
        cmocka_unit_test(test_a_meeting_that_fails),
        cmocka_unit_test(test_without_shared_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
