/* SPDX-License-Identifier: Apache-2.0 */
#include <config.h>

#include "state/checkpoint/shards.h"
#include "state/checkpoint/sealed.h"
#include "base/err.h"
#include "base/json.h"
#include "base/mem.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void dt_shard_file_name(uint32_t i, uint32_t n, dt_shard_name out)
{
    if (n <= 1) {
        snprintf(out, sizeof(dt_shard_name), "optim.safetensors");
    } else {
        snprintf(out, sizeof(dt_shard_name), "optim-%05u-of-%05u.safetensors", (i + 1) % 100000, n % 100000);
    }
}

void dt_part_file_name(const char *blob, uint32_t i, uint32_t n, dt_part_name out)
{
    if (n <= 1) {
        snprintf(out, sizeof(dt_part_name), "plugin-%.63s.bin", blob);
    } else {
        snprintf(out, sizeof(dt_part_name), "plugin-%.63s-%05u-of-%05u.bin", blob, (i + 1) % 100000, n % 100000);
    }
}

uint32_t dt_manifest_count_shards(const dt_manifest *m)
{
    dt_shard_name name;
    uint32_t n = 0;
    for (uint32_t i = 0; i < m->n_files; i++) {
        const char *file = m->file[i].name;
        n += strncmp(file, "optim", 5) == 0 && strcmp(file, DT_SHARDS_INDEX) != 0;
    }
    if (n > DT_CKPT_MAX_SHARDS) {
        return 0;
    }
    for (uint32_t i = 0; i < n; i++) {
        dt_shard_file_name(i, n, name);
        if (dt_manifest_find(m, name) == NULL) {
            return 0;
        }
    }
    return n;
}

/* ---- ownership ---------------------------------------------------------------------------------------------- */

typedef struct sized {
    const dt_ckpt_tensor *t;
    size_t bytes;
    uint32_t at; /* in the list */
} sized;

static int compare_sizes(const void *a, const void *b)
{
    const sized *x = a, *y = b;
    if (x->bytes != y->bytes) {
        return x->bytes > y->bytes ? -1 : 1;
    }
    return strcmp(x->t->name, y->t->name);
}

static uint64_t sum_tensor_bytes(const dt_ckpt_tensor *t, uint32_t n)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < n; i++) {
        size_t bytes = 0;
        (void)dt_ckpt_tensor_bytes(&t[i], &bytes);
        sum += bytes;
    }
    return sum;
}

static uint32_t find_smallest_shard(const uint64_t *load, uint32_t n)
{
    uint32_t least = 0;
    for (uint32_t i = 1; i < n; i++) {
        least = load[i] < load[least] ? i : least;
    }
    return least;
}

dt_status dt_shard_map_make(const dt_ckpt_save_desc *d, dt_shard_map *out)
{
    uint64_t load[DT_CKPT_MAX_SHARDS] = {sum_tensor_bytes(d->model, d->n_model)};
    sized *order = dt_alloc_n(d->n_optim + (size_t)1, sizeof(*order));
    *out = (dt_shard_map){.n = d->n_shards > 1 ? d->n_shards : 1,
                          .shard = dt_alloc_n(d->n_optim + (size_t)1, sizeof(*out->shard))};
    if (order == NULL || out->shard == NULL) {
        dt_free(order);
        dt_shard_map_fini(out);
        return DT_FAIL(DT_ENOMEM, "out of memory for the order of %u tensors", d->n_optim);
    }
    for (uint32_t i = 0; i < d->n_optim; i++) {
        order[i] = (sized){.t = &d->optim[i], .at = i};
        (void)dt_ckpt_tensor_bytes(order[i].t, &order[i].bytes);
    }
    if (d->n_optim > 0) {
        qsort(order, d->n_optim, sizeof(*order), compare_sizes);
    }
    for (uint32_t i = 0; i < d->n_optim; i++) {
        const uint32_t shard = find_smallest_shard(load, out->n);
        out->shard[order[i].at] = shard;
        load[shard] += order[i].bytes;
    }
    dt_free(order);
    return DT_OK;
}

void dt_shard_map_fini(dt_shard_map *m)
{
    dt_free(m->shard);
    *m = (dt_shard_map){.n = 0};
}

uint32_t dt_shard_list_tensors(const dt_ckpt_save_desc *d, const dt_shard_map *m, uint32_t shard,
                               const dt_ckpt_tensor **out)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < d->n_optim; i++) {
        if (m->shard[i] == shard) {
            out[n++] = &d->optim[i];
        }
    }
    return n;
}

void dt_shard_index_print(const dt_ckpt_save_desc *d, const dt_shard_map *m, dt_str *out)
{
    dt_shard_name name;
    dt_json_out o = {.s = out};
    dt_json_obj(&o, NULL);
    dt_json_obj(&o, "metadata");
    dt_json_i64(&o, "total_size", (int64_t)sum_tensor_bytes(d->optim, d->n_optim));
    dt_json_end(&o, '}');
    dt_json_obj(&o, "weight_map");
    for (uint32_t i = 0; i < d->n_optim; i++) {
        dt_shard_file_name(m->shard[i], m->n, name);
        dt_json_str(&o, d->optim[i].name, name);
    }
    dt_json_end(&o, '}');
    dt_json_end(&o, '}');
    dt_str_add(out, "\n");
}
