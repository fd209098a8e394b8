/* SPDX-License-Identifier: Apache-2.0 */
#include <config.h>

#include "state/snapshot/snapshot_state.h"

#include "base/err.h"
#include "base/mem.h"

#include <stdio.h>
#include <string.h>

typedef struct shard_summary { /* of a shard, to all */
    uint64_t bytes;
    uint32_t n_crc;
    char sha256[68];
} shard_summary;

typedef struct exchange { /* [ranks] each */
    shard_summary *all;
    dt_comm_out *out;
    dt_comm_in *in;
} exchange;

static dt_status exchange_init(exchange *x, uint32_t ranks)
{
    *x = (exchange){.all = dt_alloc_n(ranks, sizeof(*x->all)),
                    .out = dt_alloc_n(ranks, sizeof(*x->out)),
                    .in = dt_alloc_n(ranks, sizeof(*x->in))};
    return x->all != NULL && x->out != NULL && x->in != NULL
               ? DT_OK
               : DT_FAIL(DT_ENOMEM, "out of memory for the checksums of %u ranks", ranks);
}

static void exchange_fini(exchange *x)
{
    dt_free(x->all);
    dt_free(x->out);
    dt_free(x->in);
}

/* Room for what others send, at rank 0: shard r of rank r. */
static dt_status allocate_shards(const exchange *x, dt_ckpt_shard *others, uint32_t n_shards)
{
    for (uint32_t r = 1; r < n_shards; r++) {
        dt_ckpt_shard *s = &others[r - 1];
        *s = (dt_ckpt_shard){.bytes = x->all[r].bytes,
                             .n_crc = x->all[r].n_crc,
                             .crc = dt_alloc_n(x->all[r].n_crc + (size_t)1, sizeof(*s->crc))};
        memcpy(s->sha256, x->all[r].sha256, sizeof(s->sha256));
        if (s->crc == NULL) {
            return DT_FAIL(DT_ENOMEM, "out of memory for the checksums of shard %u", r);
        }
        x->in[r] = (dt_comm_in){.data = s->crc, .bytes = s->n_crc * sizeof(*s->crc)};
    }
    return DT_OK;
}

/* All shards are on the disk: what they are, to rank 0. own: of this rank, NULL at rank 0 and where it wrote none;
 * others: at rank 0 [n_shards - 1]. */
static dt_status gather_shards(dt_comm *c, exchange *x, const dt_ckpt_shard *own, dt_ckpt_shard *others,
                               uint32_t n_shards)
{
    shard_summary mine = {.bytes = 0};
    if (own != NULL) {
        mine = (shard_summary){.bytes = own->bytes, .n_crc = own->n_crc};
        memcpy(mine.sha256, own->sha256, sizeof(own->sha256));
        x->out[0] = (dt_comm_out){.data = own->crc, .bytes = own->n_crc * sizeof(*own->crc)};
    }
    DT_TRY(dt_comm_all_gather(c, &mine, sizeof(mine), x->all));
    const dt_status st = others != NULL ? allocate_shards(x, others, n_shards) : DT_OK;
    DT_TRY(dt_comm_agree(c, st));
    return dt_comm_all_to_all(c, x->out, x->in);
}

/* st: the result of this rank's writing. On all ranks the same status. */
static dt_status collect_shards(dt_comm *c, dt_status st, const dt_ckpt_shard *own, dt_ckpt_shard *others,
                                uint32_t n_shards)
{
    exchange x = {.all = NULL};
    if (st == DT_OK) {
        st = exchange_init(&x, dt_comm_size(c));
    }
    st = dt_comm_agree(c, st);
    if (st == DT_OK) {
        st = gather_shards(c, &x, own, others, n_shards);
    }
    exchange_fini(&x);
    return st;
}

static dt_status broadcast_name(dt_comm *c, const char *from, char name[DT_CKPT_NAME_BYTES])
{
    memset(name, 0, DT_CKPT_NAME_BYTES);
    snprintf(name, DT_CKPT_NAME_BYTES, "%s", from);
    return dt_comm_broadcast(c, 0, name, DT_CKPT_NAME_BYTES);
}

static void free_shards(dt_ckpt_shard *others, uint32_t n)
{
    for (uint32_t i = 1; i < n && others != NULL; i++) {
        dt_free(others[i - 1].crc);
    }
    dt_free(others);
}

/* The folder is there, and the others know it. */
static dt_status write_and_commit(dt_comm *c, dt_ckpt_saver *saver, const dt_ckpt_save_desc *d, dt_ckpt_info *info_p)
{
    const uint32_t n_shards = d->n_shards > 1 ? d->n_shards : 1, n_parts = d->part.n > 1 ? d->part.n : 1;
    dt_ckpt_shard *shards = dt_alloc_n(n_shards, sizeof(*shards)), *parts = dt_alloc_n(n_parts, sizeof(*parts));
    dt_status st = shards != NULL && parts != NULL
                       ? dt_ckpt_saver_write_files(saver)
                       : DT_FAIL(DT_ENOMEM, "out of memory for %u shards and %u parts", n_shards, n_parts);
    st = collect_shards(c, st, NULL, shards, n_shards);
    st = collect_shards(c, st, NULL, parts, n_parts);
    if (st == DT_OK) {
        dt_ckpt_save_add_parts(saver, parts);
        st = dt_ckpt_saver_commit(saver, shards, info_p);
    } else {
        dt_ckpt_saver_abandon(saver);
    }
    free_shards(shards, n_shards);
    free_shards(parts, n_parts);
    return st;
}

dt_status dt_shards_save_first(dt_comm *c, dt_status st, const dt_ckpt_save_desc *d, dt_ckpt_info *info_p)
{
    char name[DT_CKPT_NAME_BYTES];
    dt_ckpt_saver *saver = NULL;
    dt_error why;
    if (st == DT_OK) {
        st = dt_ckpt_saver_create(d, &saver);
    }
    dt_error_save(&why, st);
    const dt_status name_st = broadcast_name(c, st == DT_OK ? dt_ckpt_saver_folder_name(saver) : "", name);
    if (st < 0) {
        return dt_error_restore(&why);
    }
    if (name_st < 0) {
        dt_ckpt_saver_abandon(saver);
        return name_st;
    }
    return write_and_commit(c, saver, d, info_p);
}

dt_status dt_shards_save_other(dt_comm *c, dt_status st, const dt_ckpt_save_desc *d)
{
    char name[DT_CKPT_NAME_BYTES];
    dt_ckpt_shard own = {.bytes = 0}, part = {.bytes = 0};
    dt_error why;
    dt_error_save(&why, st);
    DT_TRY(broadcast_name(c, "", name));
    name[DT_CKPT_NAME_BYTES - 1] = '\0';
    if (name[0] == '\0') {
        return DT_OK;
    }
    (void)!dt_error_restore(&why);
    const uint32_t rank = dt_comm_rank(c);
    const bool has_shard = st == DT_OK && rank < d->n_shards, has_part = st == DT_OK && d->part.n > 1;
    if (has_shard) {
        st = dt_ckpt_save_shard(d, name, rank, &own);
    }
    if (st == DT_OK && has_part) {
        st = dt_ckpt_save_part(d, name, &part);
    }
    st = collect_shards(c, st, has_shard ? &own : NULL, NULL, 0);
    st = collect_shards(c, st, has_part ? &part : NULL, NULL, 0);
    dt_free(own.crc);
    dt_free(part.crc);
    return st == DT_EPEER || st == DT_ECOMM ? st : DT_OK;
}
