/* SPDX-License-Identifier: Apache-2.0
 *
 * CONV2D and its two derivatives. See ref.h.
 */
#include "engine/backend/ref/ref.h"

typedef struct conv {
    int64_t R, H, W, C, P, Q, M, I, J, G;
    const int64_t *attr; /* stride, padding of H, padding of W, dilation */
} conv;

static conv conv_geometry(const dt_kernel_args *a, const dt_view *x, const dt_view *w, const dt_view *y)
{
    const int64_t *from = x->dim + x->rank - 3, *to = y->dim + y->rank - 3;
    return (conv){.R = dt_view_rows(x, 3),
                  .H = from[0],
                  .W = from[1],
                  .C = from[2],
                  .P = to[0],
                  .Q = to[1],
                  .M = to[2],
                  .I = w->dim[1],
                  .J = w->dim[2],
                  .G = w->dim[3],
                  .attr = a->attr->i};
}

/* The pixel of x that place (i,j) of the kernel reads for position (p,q) of row r, -1 in the padding. */
static int64_t input_pixel(const conv *c, int64_t r, int64_t p, int64_t q, int64_t i, int64_t j)
{
    const int64_t h = p * c->attr[0] + i * c->attr[3] - c->attr[1], w = q * c->attr[0] + j * c->attr[3] - c->attr[2];
    return h >= 0 && h < c->H && w >= 0 && w < c->W ? (r * c->H + h) * c->W + w : -1;
}

/* The first channel of x that output m reads. */
static int64_t first_channel(const conv *c, int64_t m)
{
    return m / (c->M / (c->C / c->G)) * c->G;
}

/* Element m of y at a position, without its bias. */
static double output_value(const conv *c, const real *x, const real *w, int64_t r, int64_t p, int64_t q, int64_t m)
{
    double sum = 0;
    for (int64_t i = 0; i < c->I; i++) {
        for (int64_t j = 0; j < c->J; j++) {
            const int64_t pixel = input_pixel(c, r, p, q, i, j);
            for (int64_t g = 0; g < c->G && pixel >= 0; g++) {
                sum += (double)x[pixel * c->C + first_channel(c, m) + g] * w[((m * c->I + i) * c->J + j) * c->G + g];
            }
        }
    }
    return sum;
}

void REF(conv2d)(const dt_kernel_args *a)
{
    const real *b = real_in(a, 2);
    real *y = real_out(a, 0);
    const conv c = conv_geometry(a, &a->in[0], &a->in[1], &a->out[0]);
    for (int64_t r = 0; r < c.R; r++) {
        for (int64_t p = 0; p < c.P; p++) {
            for (int64_t q = 0; q < c.Q; q++) {
                for (int64_t m = 0; m < c.M; m++) {
                    const double sum = output_value(&c, real_in(a, 0), real_in(a, 1), r, p, q, m);
                    *y++ = (real)(sum + (b != NULL ? b[m] : 0));
                }
            }
        }
    }
}

/* dy of one element of y to all that it read, in double */
static void add_to_inputs(const conv *c, double dy, const real *w, int64_t r, int64_t p, int64_t q, int64_t m,
                          double *dx)
{
    for (int64_t i = 0; i < c->I; i++) {
        for (int64_t j = 0; j < c->J; j++) {
            const int64_t pixel = input_pixel(c, r, p, q, i, j);
            for (int64_t g = 0; g < c->G && pixel >= 0; g++) {
                dx[pixel * c->C + first_channel(c, m) + g] += dy * w[((m * c->I + i) * c->J + j) * c->G + g];
            }
        }
    }
}

void REF(conv2d_dx)(const dt_kernel_args *a)
{
    const real *dy = real_in(a, 0);
    double *sum = a->scratch;
    const conv c = conv_geometry(a, &a->out[0], &a->in[1], &a->in[0]);
    const int64_t n = dt_view_count(&a->out[0]);
    for (int64_t k = 0; k < n; k++) {
        sum[k] = 0;
    }
    for (int64_t r = 0; r < c.R; r++) {
        for (int64_t p = 0; p < c.P; p++) {
            for (int64_t q = 0; q < c.Q; q++) {
                for (int64_t m = 0; m < c.M; m++) {
                    add_to_inputs(&c, *dy++, real_in(a, 1), r, p, q, m, sum);
                }
            }
        }
    }
    for (int64_t k = 0; k < n; k++) {
        real_out(a, 0)[k] = (real)sum[k];
    }
}

/* Over all positions: dy of output m and what place (i,j) of the kernel reads of channel `channel`. */
static double sum_of_positions(const conv *c, const real *x, const real *dy, int64_t m, int64_t i, int64_t j,
                               int64_t channel)
{
    double sum = 0;
    for (int64_t r = 0; r < c->R; r++) {
        for (int64_t p = 0; p < c->P; p++) {
            for (int64_t q = 0; q < c->Q; q++) {
                const int64_t pixel = input_pixel(c, r, p, q, i, j);
                if (pixel >= 0) {
                    sum += (double)dy[((r * c->P + p) * c->Q + q) * c->M + m] * x[pixel * c->C + channel];
                }
            }
        }
    }
    return sum;
}

void REF(conv2d_dw)(const dt_kernel_args *a)
{
    real *dw = real_out(a, 0);
    const conv c = conv_geometry(a, &a->in[0], &a->out[0], &a->in[1]);
    for (int64_t m = 0; m < c.M; m++) {
        for (int64_t i = 0; i < c.I; i++) {
            for (int64_t j = 0; j < c.J; j++) {
                for (int64_t g = 0; g < c.G; g++, dw++) {
                    const double sum =
                        sum_of_positions(&c, real_in(a, 0), real_in(a, 1), m, i, j, first_channel(&c, m) + g);
                    *dw = (real)(sum + (a->out[0].accum ? *dw : 0));
                }
            }
        }
    }
}
