/* SPDX-License-Identifier: Apache-2.0
 *
 * The op table. See op.h.
 */
#ifdef HAVE_CONFIG_H
#    include "config.h"
#endif

#include "engine/graph/op.h"

const dt_op_info *dt_op_find(uint32_t op)
{
    switch (op) {
#define DT_OP(ID, number, name)                                                                                        \
    case number:                                                                                                       \
        return &dt_op_##name;
#include "engine/backend/ops.def"
#undef DT_OP
    default:
        return NULL;
    }
}

const char *dt_op_name(uint32_t op)
{
    switch (op) {
#define DT_OP(ID, number, name)                                                                                        \
    case number:                                                                                                       \
        return #name;
#include "engine/backend/ops.def"
#undef DT_OP
    default:
        return "?";
    }
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
