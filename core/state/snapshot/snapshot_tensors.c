/* SPDX-License-Identifier: Apache-2.0 */
#include <config.h>

#include "state/snapshot/snapshot_tensors.h"

#include "base/err.h"
#include "base/mem.h"

#include <math.h>
#include <string.h>

void dt_tensor_list_fini(dt_tensor_list *l)
{
    if (l->name != NULL) {
        for (uint32_t i = 0; i < l->cap; i++) {
            dt_str_fini(&l->name[i]);
        }
    }
    dt_free(l->name);
    dt_free(l->t);
}

/* Of shadows there are values alone. */
static dt_status add_arena(dt_tensor_list *l, const dt_param_table *table, const char *prefix, float *arena)
{
    const bool are_moments = prefix[0] != '\0';
    if (arena != NULL) {
        for (uint32_t i = 0; i < table->n; i++) {
            const dt_param *p = &table->param[i];
            if (p->is_shadow && are_moments) {
                continue;
            }
            dt_str_addf(&l->name[l->n], "%s%s", prefix, p->name);
            DT_TRY(dt_str_status(&l->name[l->n]));
            l->t[l->n] = (dt_ckpt_tensor){
                .name = dt_str_text(&l->name[l->n]), .dim = p->dim, .n_dims = p->n_dims, .data = arena + p->offset};
            l->n++;
        }
    }
    return DT_OK;
}

static dt_status list_init(dt_tensor_list *l, uint32_t cap)
{
    memset(l, 0, sizeof(*l));
    l->cap = cap;
    l->t = dt_alloc_n(cap > 0 ? cap : 1, sizeof(*l->t));
    l->name = dt_alloc_n(cap > 0 ? cap : 1, sizeof(*l->name));
    return l->t != NULL && l->name != NULL ? DT_OK : DT_FAIL(DT_ENOMEM, "out of memory for a checkpoint's tensors");
}

dt_status dt_tensors_list_model(dt_stage *s, dt_tensor_list *l)
{
    DT_TRY(list_init(l, s->params.n));
    DT_TRY(dt_trainer_synchronize(s->trainer));
    return add_arena(l, &s->params, "", dt_trainer_params(s->trainer));
}

dt_status dt_tensors_list_optim(dt_stage *s, dt_tensor_list *l)
{
    DT_TRY(list_init(l, 2 * s->params.n));
    DT_TRY(dt_trainer_synchronize(s->trainer));
    DT_TRY(add_arena(l, &s->params, "m.", dt_trainer_moment(s->trainer, 0)));
    return add_arena(l, &s->params, "v.", dt_trainer_moment(s->trainer, 1));
}

dt_status dt_tensors_check_finite(const dt_tensor_list *l)
{
    for (uint32_t i = 0; i < l->n; i++) {
        int64_t count = 1;
        for (uint32_t k = 0; k < l->t[i].n_dims; k++) {
            count *= l->t[i].dim[k];
        }
        for (int64_t k = 0; k < count; k++) {
            if (!isfinite(l->t[i].data[k])) {
                return DT_FAIL(DT_EDIVERGED, "%s is %g at element %lld: nothing of it is saved", l->t[i].name,
                               (double)l->t[i].data[k], (long long)k);
            }
        }
    }
    return DT_OK;
}
