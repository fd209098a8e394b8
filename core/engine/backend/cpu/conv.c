/* SPDX-License-Identifier: Apache-2.0
 *
 * CONV2D and its two derivatives as products of a block of patches and w: what each output position reads of x,
 * [positions, I*J*G], is copied (or, of dx, added back) for as many positions at a time as stay in the second-level
 * cache. y has the bits of LINEAR of all patches, as a row of a product does not depend on how many rows there are
 * (gemm.h). Reference: engine/backend/ref/conv.c.
 */
#include "engine/backend/cpu/gemm.h"
#include "engine/backend/cpu/scratch.h"

typedef struct conv {
    int64_t H, W, C, P, Q, M, I, J, G;
    int64_t stride, padding_h, padding_w, dilation;
    int64_t groups, K, M_group; /* K: of a patch of one group; M_group: outputs of one group */
    int64_t n, block;           /* positions of y in all rows, and at a time */
    bool is_plain;              /* a patch is one pixel: x is the patches */
} conv;

static conv conv_geometry(const dt_kernel_args *a, const dt_view *x, const dt_view *w, const dt_view *y)
{
    const int64_t *from = x->dim + x->rank - 3, *to = y->dim + y->rank - 3, *attr = a->attr->i;
    conv c = {.H = from[0],
              .W = from[1],
              .C = from[2],
              .P = to[0],
              .Q = to[1],
              .M = to[2],
              .I = w->dim[1],
              .J = w->dim[2],
              .G = w->dim[3],
              .stride = attr[0],
              .padding_h = attr[1],
              .padding_w = attr[2],
              .dilation = attr[3],
              .n = dt_view_rows(y, 1)};
    c.groups = c.C / c.G;
    c.K = c.I * c.J * c.G;
    c.M_group = c.M / c.groups;
    c.block = dt_scratch_conv_positions(c.K);
    c.is_plain = c.I == 1 && c.J == 1 && c.stride == 1 && c.padding_h == 0 && c.padding_w == 0;
    return c;
}

typedef struct position {
    int64_t r, p, q;
} position;

static position position_at(const conv *c, int64_t at)
{
    return (position){.r = at / (c->P * c->Q), .p = at / c->Q % c->P, .q = at % c->Q};
}

static void advance_position(const conv *c, position *at)
{
    if (++at->q == c->Q) {
        at->q = 0;
        if (++at->p == c->P) {
            at->p = 0;
            at->r++;
        }
    }
}

/* Places of a row of the kernel that lie inside x: j from *from_p to *end_p - 1. */
static ALWAYS_INLINE void find_inside(const conv *c, int64_t w, int64_t *from_p, int64_t *end_p)
{
    const int64_t d = c->dilation;
    const int64_t from = w >= 0 ? 0 : (-w + d - 1) / d, end = w >= c->W ? 0 : (c->W - w + d - 1) / d;
    *end_p = end < c->J ? end : c->J;
    *from_p = from < *end_p ? from : *end_p;
}

static ALWAYS_INLINE void copy_floats(float *to, const float *from, int64_t n)
{
    VF_FOR (i, k, n) {
        vf_put(to + i, vf_get(from + i, k), k);
    }
}

static ALWAYS_INLINE void clear_floats(float *to, int64_t n)
{
    VF_FOR (i, k, n) {
        vf_put(to + i, vf_set(0), k);
    }
}

static ALWAYS_INLINE void add_floats(float *to, const float *from, int64_t n)
{
    VF_FOR (i, k, n) {
        vf_put(to + i, vf_get(to + i, k) + vf_get(from + i, k), k);
    }
}

/* Row i of the patch of group g at a position: where in x its first place is, NULL where the row is in the padding. */
static ALWAYS_INLINE int64_t row_of_patch(const conv *c, const position *at, int64_t i, int64_t group, int64_t *w_p)
{
    const int64_t h = at->p * c->stride + i * c->dilation - c->padding_h;
    *w_p = at->q * c->stride - c->padding_w;
    return h < 0 || h >= c->H ? -1 : (at->r * c->H + h) * c->W * c->C + group * c->G;
}

/* n patches of a group from position `first` on, [n,I,J,G] */
static void gather_patches(const conv *c, const float *x, int64_t group, int64_t first, int64_t n, float *patch)
{
    const int64_t row = c->J * c->G, step = c->dilation * c->C;
    const bool is_joined = step == c->G; /* all places of a row are neighbours */
    position at = position_at(c, first);
    for (int64_t k = 0; k < n; k++, advance_position(c, &at)) {
        for (int64_t i = 0; i < c->I; i++, patch += row) {
            int64_t w = 0, from = 0, end = 0;
            const int64_t base = row_of_patch(c, &at, i, group, &w);
            if (base < 0) {
                clear_floats(patch, row);
                continue;
            }
            find_inside(c, w, &from, &end);
            clear_floats(patch, from * c->G);
            if (is_joined) {
                copy_floats(patch + from * c->G, x + base + (w + from) * c->C, (end - from) * c->G);
            } else {
                for (int64_t j = from; j < end; j++) {
                    copy_floats(patch + j * c->G, x + base + w * c->C + j * step, c->G);
                }
            }
            clear_floats(patch + end * c->G, row - end * c->G);
        }
    }
}

/* The converse: n patches are added to dx, in their order. */
static void scatter_patches(const conv *c, const float *patch, int64_t group, int64_t first, int64_t n, float *dx)
{
    const int64_t row = c->J * c->G, step = c->dilation * c->C;
    const bool is_joined = step == c->G;
    position at = position_at(c, first);
    for (int64_t k = 0; k < n; k++, advance_position(c, &at)) {
        for (int64_t i = 0; i < c->I; i++, patch += row) {
            int64_t w = 0, from = 0, end = 0;
            const int64_t base = row_of_patch(c, &at, i, group, &w);
            if (base < 0) {
                continue;
            }
            find_inside(c, w, &from, &end);
            if (is_joined) {
                add_floats(dx + base + (w + from) * c->C, patch + from * c->G, (end - from) * c->G);
            } else {
                for (int64_t j = from; j < end; j++) {
                    add_floats(dx + base + w * c->C + j * step, patch + j * c->G, c->G);
                }
            }
        }
    }
}

/* Patches of a group: copied, or x itself. */
static const float *patches_at(const conv *c, const float *x, int64_t group, int64_t first, int64_t n, float *patch,
                               int64_t *row_p)
{
    if (c->is_plain) {
        *row_p = c->C;
        return x + first * c->C + group * c->G;
    }
    gather_patches(c, x, group, first, n, patch);
    *row_p = c->K;
    return patch;
}

static int64_t length_of_block(const conv *c, int64_t first)
{
    return c->n - first < c->block ? c->n - first : c->block;
}

void CPU(conv2d)(const dt_kernel_args *a)
{
    const conv c = conv_geometry(a, &a->in[0], &a->in[1], &a->out[0]);
    const float *b = f32_in(a, 2);
    float *patch = a->scratch, *rest = patch + dt_scratch_conv_patches(c.K);
    const size_t packed_floats = dt_gemm_packed_floats(c.M_group, c.K);
    float *packed = a->kept != NULL ? a->kept : rest;
    rest += (size_t)c.groups * packed_floats;
    bool is_packed = a->kept != NULL && a->run->is_kept != 0;
    for (int64_t first = 0; first < c.n; first += c.block, is_packed = true) {
        for (int64_t group = 0; group < c.groups; group++) {
            dt_gemm g = {.M = length_of_block(&c, first),
                         .N = c.M_group,
                         .K = c.K,
                         .a_k = 1,
                         .b = f32_in(a, 1) + group * c.M_group * c.K,
                         .b_k = 1,
                         .b_col = c.K,
                         .c = f32_out(a, 0) + first * c.M + group * c.M_group,
                         .c_row = c.M,
                         .bias = b != NULL ? b + group * c.M_group : NULL};
            g.a = patches_at(&c, f32_in(a, 0), group, first, g.M, patch, &g.a_row);
            CPU(gemm_kept)(&g, packed + (size_t)group * packed_floats, is_packed, rest);
        }
    }
}

void CPU(conv2d_dx)(const dt_kernel_args *a)
{
    const conv c = conv_geometry(a, &a->out[0], &a->in[1], &a->in[0]);
    float *patch = a->scratch, *packed = patch + dt_scratch_conv_patches(c.K), *dx = f32_out(a, 0);
    const size_t packed_floats = dt_gemm_packed_floats(c.K, c.M_group);
    float *rest = packed + (size_t)c.groups * packed_floats;
    memset(dx, 0, (size_t)dt_view_count(&a->out[0]) * sizeof(float));
    for (int64_t first = 0; first < c.n; first += c.block) {
        for (int64_t group = 0; group < c.groups; group++) {
            const dt_gemm g = {.M = length_of_block(&c, first),
                               .N = c.K,
                               .K = c.M_group,
                               .a = f32_in(a, 0) + first * c.M + group * c.M_group,
                               .a_row = c.M,
                               .a_k = 1,
                               .b = f32_in(a, 1) + group * c.M_group * c.K,
                               .b_k = c.K,
                               .b_col = 1,
                               .c = patch,
                               .c_row = c.K};
            CPU(gemm_kept)(&g, packed + (size_t)group * packed_floats, first > 0, rest);
            scatter_patches(&c, patch, group, first, g.M, dx);
        }
    }
}

void CPU(conv2d_dw)(const dt_kernel_args *a)
{
    const conv c = conv_geometry(a, &a->in[0], &a->out[0], &a->in[1]);
    float *patch = a->scratch, *rest = patch + dt_scratch_conv_patches(c.K);
    if (c.n == 0) {
        start_sum(a, 0);
    }
    for (int64_t first = 0; first < c.n; first += c.block) {
        for (int64_t group = 0; group < c.groups; group++) {
            dt_gemm g = {.M = c.M_group,
                         .N = c.K,
                         .K = length_of_block(&c, first),
                         .a = f32_in(a, 1) + first * c.M + group * c.M_group,
                         .a_row = 1,
                         .a_k = c.M,
                         .b_col = 1,
                         .c = f32_out(a, 0) + group * c.M_group * c.K,
                         .c_row = c.K,
                         .accum = a->out[0].accum != 0 || first > 0};
            g.b = patches_at(&c, f32_in(a, 0), group, first, g.K, patch, &g.b_k);
            CPU(gemm)(&g, rest);
        }
    }
}
