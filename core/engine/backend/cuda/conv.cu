/* SPDX-License-Identifier: Apache-2.0
 *
 * CONV2D and its two derivatives as tiled products whose factors are read where they are: what an element of a patch is
 * of x (or of dy) is computed while a tile is loaded into shared memory, so patches are stored nowhere. Sums are f32
 * along taps; those of dw run over positions, in pieces of a length that depends on capacities alone, and pieces are
 * added in f64 in their order. See cuda.h; engine/backend/ref/conv.c has the plain loops.
 */
#include "engine/backend/cuda/stored.h"

namespace
{

enum { SIDE = 16, THREADS = SIDE * SIDE, DEPTH = 16, PER_THREAD = 4, TILE = SIDE * PER_THREAD };

struct conv {
    int H, W, C, P, Q, M, I, J, G;
    int stride, padding_h, padding_w, dilation;
    int groups, M_group;
    dt_cuda_span rows; /* of the leading dims: D is what one of them holds of the output */

    __device__ bool is_inside(int h, int w) const
    {
        return h >= 0 && h < H && w >= 0 && w < W;
    }
};

conv conv_geometry(const dt_device_args *a, const dt_device_view *x, const dt_device_view *w, const dt_device_view *y)
{
    const int64_t *from = x->dim + x->rank - 3, *to = y->dim + y->rank - 3, *attr = a->attr->i;
    conv c = {};
    c.H = (int)from[0];
    c.W = (int)from[1];
    c.C = (int)from[2];
    c.P = (int)to[0];
    c.Q = (int)to[1];
    c.M = (int)to[2];
    c.I = (int)w->dim[1];
    c.J = (int)w->dim[2];
    c.G = (int)w->dim[3];
    c.stride = (int)attr[0];
    c.padding_h = (int)attr[1];
    c.padding_w = (int)attr[2];
    c.dilation = (int)attr[3];
    c.groups = c.C / c.G;
    c.M_group = c.M / c.groups;
    c.rows = dt_cuda_rows(a, x, 3);
    return c;
}

/* A pixel of x or a position of y, in row r of the leading dims; r is -1 where it is not live. */
struct place {
    int r, h, w;
};

__device__ place decode_position(const dt_cuda_span &rows, int leaf, int at, int height, int width)
{
    const int r = at / (height * width);
    const bool is_live = r < rows.R && rows.has(r, rows.extent(leaf));
    return {is_live ? r : -1, at / width % height, at % width};
}

struct tap { /* of a kernel; i is -1 past its end */
    int i, j, g;
};

__device__ tap decode_tap(int at, int n, int J, int G)
{
    return {at < n ? at / (J * G) : -1, at / G % J, at % G};
}

/* ---- the product ------------------------------------------------------------------------------------------------- */

/* result [n,m] = left [n,k] right [k,m], for each group and piece of k. A factor is loaded by its decoded coordinates:
 *   row(i), column(j), step(k)      what an index is of, decoded once for many loads
 *   left(row, step), right(step, column)
 *   LEFT_BY_STEP, RIGHT_BY_STEP     neighbouring threads load neighbouring steps, else rows (columns)
 *   write(i, j, sum) */
template <typename F> __global__ void __launch_bounds__(THREADS) multiply(F f, int n, int m, int k, int piece)
{
    __shared__ float left[DEPTH][TILE + 1], right[DEPTH][TILE + 1];
    const int t = (int)threadIdx.x, x = t % SIDE, y = t / SIDE;
    const int tiles_n = (n + TILE - 1) / TILE, tiles_m = (m + TILE - 1) / TILE;
    const int i0 = (int)blockIdx.x % tiles_n * TILE, j0 = (int)blockIdx.x / tiles_n % tiles_m * TILE;
    f.begin((int)blockIdx.y, (int)blockIdx.x / (tiles_n * tiles_m));
    const int step_left = F::LEFT_BY_STEP ? x : y, lane_left = F::LEFT_BY_STEP ? y : x;
    const int step_right = F::RIGHT_BY_STEP ? x : y, lane_right = F::RIGHT_BY_STEP ? y : x;
    const int first = f.piece * piece, end = first + piece < k ? first + piece : k;
    typename F::row_type row[PER_THREAD];
    typename F::column_type column[PER_THREAD];
    float sum[PER_THREAD][PER_THREAD] = {};
    for (int q = 0; q < PER_THREAD; q++) {
        row[q] = f.row(i0 + lane_left + SIDE * q);
        column[q] = f.column(j0 + lane_right + SIDE * q);
    }
    for (int at = first; at < end; at += DEPTH) {
        const typename F::step_type to_left = f.step(at + step_left < end ? at + step_left : k);
        const typename F::step_type to_right = f.step(at + step_right < end ? at + step_right : k);
        for (int q = 0; q < PER_THREAD; q++) {
            left[step_left][lane_left + SIDE * q] = f.left(row[q], to_left);
            right[step_right][lane_right + SIDE * q] = f.right(to_right, column[q]);
        }
        __syncthreads();
        for (int d = 0; d < DEPTH && at + d < end; d++) {
            float a[PER_THREAD], b[PER_THREAD];
            for (int q = 0; q < PER_THREAD; q++) {
                a[q] = left[d][y + SIDE * q];
                b[q] = right[d][x + SIDE * q];
            }
            for (int p = 0; p < PER_THREAD; p++) {
                for (int q = 0; q < PER_THREAD; q++) {
                    sum[p][q] = fmaf(a[p], b[q], sum[p][q]);
                }
            }
        }
        __syncthreads();
    }
    for (int p = 0; p < PER_THREAD; p++) {
        for (int q = 0; q < PER_THREAD; q++) {
            const int i = i0 + y + SIDE * p, j = j0 + x + SIDE * q;
            if (i < n && j < m) {
                f.write(i, j, sum[p][q]);
            }
        }
    }
}

template <typename F>
dt_status launch(const dt_device_args *a, F f, int64_t n, int64_t m, int64_t k, int64_t piece, int pieces)
{
    if (n == 0) {
        return DT_OK;
    }
    const dim3 grid(dt_cuda_blocks(n, TILE) * dt_cuda_blocks(m, TILE) * (unsigned)(f.c.groups * pieces), a->leaves);
    multiply<F><<<grid, THREADS, 0, dt_cuda_stream(a)>>>(f, (int)n, (int)m, (int)k, (int)piece);
    return DT_CUDA_LAUNCHED();
}

/* ---- y: rows are positions, steps taps, columns outputs of the group --------------------------------------------- */

struct forward {
    static const bool LEFT_BY_STEP = true, RIGHT_BY_STEP = true;
    using row_type = place;
    using step_type = tap;
    using column_type = int;
    conv c;
    dt_cuda_floats x, w, b, y;
    int leaf, group, piece;

    __device__ void begin(int l, int g)
    {
        leaf = l;
        group = g;
        piece = 0;
    }
    __device__ place row(int i) const
    {
        return decode_position(c.rows, leaf, i, c.P, c.Q);
    }
    __device__ int column(int j) const
    {
        return j < c.M_group ? group * c.M_group + j : -1;
    }
    __device__ tap step(int k) const
    {
        return decode_tap(k, c.I * c.J * c.G, c.J, c.G);
    }
    __device__ float left(place at, tap t) const
    {
        const int h = at.h * c.stride + t.i * c.dilation - c.padding_h;
        const int v = at.w * c.stride + t.j * c.dilation - c.padding_w;
        return at.r >= 0 && t.i >= 0 && c.is_inside(h, v)
                   ? x.get(leaf, (((int64_t)at.r * c.H + h) * c.W + v) * c.C + group * c.G + t.g)
                   : 0.0f;
    }
    __device__ float right(tap t, int to) const
    {
        return to >= 0 && t.i >= 0 ? w.get(leaf, (((int64_t)to * c.I + t.i) * c.J + t.j) * c.G + t.g) : 0.0f;
    }
    __device__ void write(int i, int j, float sum) const
    {
        const int to = group * c.M_group + j;
        const bool is_live = decode_position(c.rows, leaf, i, c.P, c.Q).r >= 0;
        y.put(leaf, (int64_t)i * c.M + to, is_live ? sum + (b.data != nullptr ? b.get(leaf, to) : 0.0f) : 0.0f);
    }
};

dt_status conv2d(const dt_device_args *a)
{
    forward f = {};
    f.c = conv_geometry(a, &a->in[0], &a->in[1], &a->out[0]);
    f.x = dt_cuda_in_floats(a, 0);
    f.w = dt_cuda_in_floats(a, 1);
    f.b = dt_cuda_in_floats(a, 2);
    f.y = dt_cuda_out_floats(a, 0);
    const int64_t k = (int64_t)f.c.I * f.c.J * f.c.G;
    return launch(a, f, (int64_t)f.c.rows.R * f.c.P * f.c.Q, f.c.M_group, k, k, 1);
}

/* ---- dx: rows are pixels, steps taps of outputs of the group, columns channels of the group ---------------------- */

struct by_input {
    static const bool LEFT_BY_STEP = true, RIGHT_BY_STEP = false;
    using row_type = place;
    using step_type = tap; /* its g is an output */
    using column_type = int;
    conv c;
    dt_cuda_floats dy, w, dx;
    int leaf, group, piece;

    __device__ void begin(int l, int g)
    {
        leaf = l;
        group = g;
        piece = 0;
    }
    __device__ place row(int i) const
    {
        return decode_position(c.rows, leaf, i, c.H, c.W);
    }
    __device__ int column(int j) const
    {
        return j < c.G ? j : -1;
    }
    __device__ tap step(int k) const
    {
        return decode_tap(k, c.I * c.J * c.M_group, c.J, c.M_group);
    }
    __device__ float left(place at, tap t) const
    {
        const int h = at.h + c.padding_h - t.i * c.dilation, v = at.w + c.padding_w - t.j * c.dilation;
        const int p = h / c.stride, q = v / c.stride;
        const bool is_read =
            at.r >= 0 && t.i >= 0 && h >= 0 && v >= 0 && p < c.P && q < c.Q && p * c.stride == h && q * c.stride == v;
        return is_read ? dy.get(leaf, (((int64_t)at.r * c.P + p) * c.Q + q) * c.M + group * c.M_group + t.g) : 0.0f;
    }
    __device__ float right(tap t, int to) const
    {
        return to >= 0 && t.i >= 0
                   ? w.get(leaf, (((int64_t)(group * c.M_group + t.g) * c.I + t.i) * c.J + t.j) * c.G + to)
                   : 0.0f;
    }
    __device__ void write(int i, int j, float sum) const
    {
        dx.put(leaf, (int64_t)i * c.C + group * c.G + j, sum); /* of what is not live the sum of zeros */
    }
};

dt_status conv2d_dx(const dt_device_args *a)
{
    by_input f = {};
    f.c = conv_geometry(a, &a->out[0], &a->in[1], &a->in[0]);
    f.dy = dt_cuda_in_floats(a, 0);
    f.w = dt_cuda_in_floats(a, 1);
    f.dx = dt_cuda_out_floats(a, 0);
    const int64_t k = (int64_t)f.c.I * f.c.J * f.c.M_group;
    return launch(a, f, (int64_t)f.c.rows.R * f.c.H * f.c.W, f.c.G, k, k, 1);
}

/* ---- dw: rows are outputs of the group, steps positions, columns taps -------------------------------------------- */

struct by_weights {
    static const bool LEFT_BY_STEP = false, RIGHT_BY_STEP = false;
    using row_type = int;
    using step_type = place;
    using column_type = tap;
    conv c;
    dt_cuda_floats x, dy;
    dt_cuda_ptr<float> part; /* [pieces,M,I*J*G] of a leaf */
    int leaf, group, piece;

    __device__ void begin(int l, int g)
    {
        leaf = l;
        group = g % c.groups;
        piece = g / c.groups;
    }
    __device__ int row(int i) const
    {
        return i < c.M_group ? group * c.M_group + i : -1;
    }
    __device__ tap column(int j) const
    {
        return decode_tap(j, c.I * c.J * c.G, c.J, c.G);
    }
    __device__ place step(int k) const
    {
        return decode_position(c.rows, leaf, k, c.P, c.Q);
    }
    __device__ float left(int m, place at) const
    {
        return m >= 0 && at.r >= 0 ? dy.get(leaf, (((int64_t)at.r * c.P + at.h) * c.Q + at.w) * c.M + m) : 0.0f;
    }
    __device__ float right(place at, tap t) const
    {
        const int h = at.h * c.stride + t.i * c.dilation - c.padding_h;
        const int v = at.w * c.stride + t.j * c.dilation - c.padding_w;
        return at.r >= 0 && t.i >= 0 && c.is_inside(h, v)
                   ? x.get(leaf, (((int64_t)at.r * c.H + h) * c.W + v) * c.C + group * c.G + t.g)
                   : 0.0f;
    }
    __device__ void write(int i, int j, float sum) const
    {
        const int64_t K = (int64_t)c.I * c.J * c.G;
        part.at(leaf)[((int64_t)piece * c.M + group * c.M_group + i) * K + j] = sum;
    }
};

struct pieces_of { /* of the positions of a leaf */
    int64_t positions, length;
    int n;
};

pieces_of split_positions(const dt_device_args *a)
{
    const int64_t least = 1024, most = 32;
    const dt_cuda_span rows = dt_cuda_rows(a, &a->in[1], 1);
    const int64_t even = (rows.R + most - 1) / most, length = even < least ? least : even;
    return {rows.R, length, (int)dt_cuda_blocks(rows.R, length)};
}

size_t conv2d_dw_scratch(const dt_device_args *a)
{
    return dt_cuda_aligned_bytes(split_positions(a).n * dt_cuda_count(&a->out[0]) * a->leaves);
}

__global__ void __launch_bounds__(THREADS)
    add_pieces(dt_cuda_floats dw, dt_cuda_ptr<const float> part, int n, int pieces, bool adds)
{
    const int i = (int)(blockIdx.x * THREADS + threadIdx.x), leaf = (int)blockIdx.y;
    if (i < n) {
        double sum = adds ? dw.get(leaf, i) : 0.0;
        for (int p = 0; p < pieces; p++) {
            sum += part.at(leaf)[(int64_t)p * n + i];
        }
        dw.put(leaf, i, (float)sum);
    }
}

dt_status conv2d_dw(const dt_device_args *a)
{
    const pieces_of pieces = split_positions(a);
    const int64_t n = dt_cuda_count(&a->out[0]);
    by_weights f = {};
    f.c = conv_geometry(a, &a->in[0], &a->out[0], &a->in[1]);
    f.x = dt_cuda_in_floats(a, 0);
    f.dy = dt_cuda_in_floats(a, 1);
    f.part = {(float *)a->scratch, pieces.n * n};
    DT_CUDA_TRY(launch(a, f, pieces.n > 0 ? f.c.M_group : 0, (int64_t)f.c.I * f.c.J * f.c.G, pieces.positions,
                       pieces.length, pieces.n));
    const dim3 grid(dt_cuda_blocks(n, THREADS), a->leaves);
    const dt_cuda_ptr<const float> part = {f.part.data, f.part.stride};
    add_pieces<<<grid, THREADS, 0, dt_cuda_stream(a)>>>(dt_cuda_out_floats(a, 0), part, (int)n, pieces.n,
                                                        a->out[0].accum != 0);
    return DT_CUDA_LAUNCHED();
}

} // namespace

DT_CUDA_KERNEL(CONV2D, conv2d, conv2d);
DT_CUDA_KERNEL(CONV2D_DX, conv2d_dx, conv2d_dx);
DT_CUDA_KERNEL_WITH(CONV2D_DW, conv2d_dw, conv2d_dw, conv2d_dw_scratch, nullptr, nullptr);
