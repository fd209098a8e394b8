/* SPDX-License-Identifier: Apache-2.0
 *
 * The common part of every communicator, and the one of a single rank. See comm.h.
 */
#ifdef HAVE_CONFIG_H
#    include "config.h"
#endif

#include "collective/comm_impl.h"
#include "base/err.h"
#include "base/mem.h"

#include <stdio.h>
#include <string.h>

/* What a rank tells the others when they agree. */
typedef struct message {
    dt_status status;
    char text[508];
} message;

dt_status dt_comm_init(dt_comm *c, const dt_comm_ops *ops, uint32_t rank, uint32_t size)
{
    c->ops = ops;
    c->rank = rank;
    c->size = size;
    c->agreeing = dt_alloc_n(size + (size_t)1, sizeof(message));
    if (c->agreeing == NULL) {
        return DT_FAIL(DT_ENOMEM, "out of memory for a communicator of %u ranks", size);
    }
    return DT_OK;
}

void dt_comm_fini(dt_comm *c)
{
    dt_free(c->agreeing);
    c->agreeing = NULL;
}

void dt_comm_destroy(dt_comm *c)
{
    if (c != NULL) {
        c->ops->destroy(c);
    }
}

uint32_t dt_comm_rank(const dt_comm *c)
{
    return c->rank;
}

uint32_t dt_comm_size(const dt_comm *c)
{
    return c->size;
}

dt_status dt_comm_all_gather(dt_comm *c, const void *mine, size_t bytes, void *all)
{
    return c->ops->all_gather(c, mine, bytes, all);
}

dt_status dt_comm_exchange(dt_comm *c, uint32_t peer, const void *mine, void *theirs, size_t bytes)
{
    if (peer >= c->size) {
        return DT_FAIL(DT_EINVAL, "exchange with rank %u, there are ranks 0 to %u", peer, c->size - 1);
    }
    return c->ops->exchange(c, peer, mine, theirs, bytes);
}

dt_status dt_comm_broadcast(dt_comm *c, uint32_t root, void *data, size_t bytes)
{
    if (root >= c->size) {
        return DT_FAIL(DT_EINVAL, "broadcast from rank %u, there are ranks 0 to %u", root, c->size - 1);
    }
    return c->ops->broadcast(c, root, data, bytes);
}

dt_status dt_comm_barrier(dt_comm *c)
{
    return c->ops->barrier(c);
}

void dt_comm_abandon(dt_comm *c, const char *why)
{
    c->ops->abandon(c, why);
}

dt_status dt_comm_agree(dt_comm *c, dt_status mine)
{
    if (c->size == 1) {
        return mine;
    }
    message *all = c->agreeing, *own = all + c->size;
    memset(own, 0, sizeof(*own));
    own->status = mine;
    if (mine < 0) {
        snprintf(own->text, sizeof(own->text), "%s", dt_error_text());
    }
    DT_TRY(dt_comm_all_gather(c, own, sizeof(*own), all));
    uint32_t worst = 0;
    for (uint32_t r = 1; r < c->size; r++) {
        worst = all[r].status < all[worst].status ? r : worst;
    }
    dt_status st = all[worst].status;
    if (st < 0 && mine > st) {
        return DT_FAIL(st, "rank %u: %s", worst, all[worst].text);
    }
    return st;
}

/* ---- one rank ---- */

static dt_status null_all_gather(dt_comm *c, const void *mine, size_t bytes, void *all)
{
    (void)c;
    if (bytes > 0) {
        memmove(all, mine, bytes);
    }
    return DT_OK;
}

static dt_status null_exchange(dt_comm *c, uint32_t peer, const void *mine, void *theirs, size_t bytes)
{
    (void)peer;
    return null_all_gather(c, mine, bytes, theirs);
}

static dt_status null_broadcast(dt_comm *c, uint32_t root, void *data, size_t bytes)
{
    (void)c;
    (void)root;
    (void)data;
    (void)bytes;
    return DT_OK;
}

static dt_status null_barrier(dt_comm *c)
{
    (void)c;
    return DT_OK;
}

static void null_abandon(dt_comm *c, const char *why)
{
    (void)c;
    (void)why;
}

static void null_destroy(dt_comm *c)
{
    dt_comm_fini(c);
    dt_free(c);
}

dt_status dt_comm_null(dt_comm **out_p)
{
    static const dt_comm_ops ops = {"null",       null_all_gather, null_exchange, null_broadcast,
                                    null_barrier, null_abandon,    null_destroy};
    dt_comm *c = dt_alloc(sizeof(*c));
    if (c == NULL) {
        return DT_FAIL(DT_ENOMEM, "out of memory for a communicator");
    }
    dt_status st = dt_comm_init(c, &ops, 0, 1);
    if (st != DT_OK) {
        dt_free(c);
        return st;
    }
    *out_p = c;
    return DT_OK;
}
