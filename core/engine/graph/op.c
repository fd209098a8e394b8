/* SPDX-License-Identifier: Apache-2.0
 *
 * The op table. See op.h.
 */
#include <config.h>

#include "engine/graph/op.h"
#include "engine/backend/user.h"
#include "engine/graph/op_user.h"

static const struct {
    uint32_t op;
    const char *name;
    const dt_op_info *info;
    bool is_view, is_product;
} rows[] = {
#define DT_OP(ID, number, name)         {number, #name, &dt_op_##name, false, false},
#define DT_OP_VIEW(ID, number, name)    {number, #name, &dt_op_##name, true, false},
#define DT_OP_PRODUCT(ID, number, name) {number, #name, &dt_op_##name, false, true},
#include "engine/backend/ops.def"
    {0, "?", NULL, false, false}};
enum { N_OPS = sizeof(rows) / sizeof(rows[0]) - 1 };

static size_t find_row(uint32_t op)
{
    size_t i = 0;
    while (i < N_OPS && rows[i].op != op) {
        i++;
    }
    return i;
}

const dt_op_info *dt_op_find(uint32_t op)
{
    return op < DT_USER_OP_FIRST ? rows[find_row(op)].info : dt_user_op_info(op);
}

const char *dt_op_name(uint32_t op)
{
    const dt_user_op *user = dt_user_op_at(op);
    return user != NULL ? user->name : rows[find_row(op)].name;
}

bool dt_op_is_view(uint32_t op)
{
    return rows[find_row(op)].is_view;
}

bool dt_op_is_product(uint32_t op)
{
    return rows[find_row(op)].is_product;
}

dt_op_storage dt_op_storage_of(uint32_t op)
{
    static const dt_op_storage full = {.kind = DT_STORAGE_F32, .full_in = UINT32_MAX, .full_out = UINT32_MAX};
    const dt_op_storage *s = &dt_op_find(op)->storage;
    return s->kind == DT_STORAGE_HALF ? *s : full;
}

uint32_t dt_op_results(uint32_t op)
{
    const uint32_t n = dt_op_find(op)->results;
    return n == 0 ? 1 : n;
}

double dt_flops_zero(const dt_view *in, const dt_view *out, const dt_attr *attr)
{
    (void)in, (void)out, (void)attr;
    return 0;
}

double dt_flops_elements(const dt_view *in, const dt_view *out, const dt_attr *attr)
{
    (void)out, (void)attr;
    return (double)dt_view_count(&in[0]);
}

double dt_flops_ten(const dt_view *in, const dt_view *out, const dt_attr *attr)
{
    return 10 * dt_flops_elements(in, out, attr);
}
