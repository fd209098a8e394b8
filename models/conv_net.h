/* SPDX-License-Identifier: Apache-2.0
 *
 * What the models of images have in common: which observation is the image, its layout, and the convolutions over it.
 * Included by the models next to it; not installed, not part of the contract.
 *
 *   x_0     = image [A, H, W, C], bytes divided by 255
 *   x_{i+1} = relu(conv2d(x_i, w_i [M_i, k_i, k_i, M_{i-1}], stride s_i) + b_i)
 *   h       = relu(W (x_L, more) + b)      more: the agent's row of numbers, where there is one; of a critic, actions
 *
 * The image is the first observation with two to four sizes after "A": rows and columns; with channels, which come
 * first if they are fewer than the columns (layout); or frames, rows, columns and channels, whose channels are those of
 * all frames. Source: Mnih et al. 2015 (32 of 8 x 8 / 4, 64 of 4 x 4 / 2, 64 of 3 x 3 / 1, 512). First values:
 * controller_net.h. Parameters of a net <net>: <net>.conv<i>.{w,b}, <net>.hidden.{w,b}. Threads: as dt_model_ops.
 */
#ifndef DTRAIN_MODELS_CONV_NET_H
#define DTRAIN_MODELS_CONV_NET_H

#include "controller_net.h"

#include <stdlib.h>

enum { CONV_MAX_LAYERS = 8, CONV_MAX_SIZES = 4, CONV_MAX_CHANNELS = 4096, CONV_MAX_KERNEL = 256 };
enum { CONV_AUTO, CONV_FIRST, CONV_LAST };
static const char *const conv_layouts[] = {"auto", "channels_first", "channels_last", NULL};

/* Rows of the option table of a configuration T with these members. */
#define CONV_OPTIONS(T)                                                                                                \
    DT_OPTION(T, channels, DT_OPT_STR, "32 64 64", "1", 0, 0, NULL, "channels of each convolution"),                   \
        DT_OPTION(T, kernels, DT_OPT_STR, "8 4 3", "1", 0, 0, NULL, "rows and columns of each kernel"),                \
        DT_OPTION(T, strides, DT_OPT_STR, "4 2 1", "1", 0, 0, NULL, "stride of each convolution"),                     \
        DT_OPTION(T, padding, DT_OPT_BOOL, "false", NULL, 0, 0, NULL,                                                  \
                  "surround images by zeros, so that kernels also cover their border"),                                \
        DT_OPTION(T, hidden, DT_OPT_I64, "512", "1", 1, 8192, NULL, "width of the layer after the convolutions"),      \
        DT_OPTION(T, layout, DT_OPT_ENUM, "auto", NULL, 0, 0, conv_layouts,                                            \
                  "of images with three sizes; auto: channels are first where they are fewer than the columns")

typedef struct conv_config {
    const char *channels, *kernels, *strides;
    int64_t hidden;
    uint32_t layout;
    bool has_padding;
} conv_config;

/* Those members of a configuration. */
#define CONV_CONFIG(c)                                                                                                 \
    {                                                                                                                  \
        (c)->channels, (c)->kernels, (c)->strides, (c)->hidden, (c)->layout, (c)->padding != 0                         \
    }

typedef struct conv_net {
    const char *id; /* of the model, for messages */
    char port[CONTROLLER_TEXT], dims[CONTROLLER_TEXT], row_dims[CONTROLLER_TEXT];
    int64_t size[CONV_MAX_SIZES], n_sizes; /* of the port */
    int64_t H, W, C, D;                    /* D: columns of the row that comes with it, or 0 */
    int64_t flat, hidden, n_layers;        /* flat: numbers after the convolutions */
    int64_t channels[CONV_MAX_LAYERS], kernel[CONV_MAX_LAYERS], stride[CONV_MAX_LAYERS], padding[CONV_MAX_LAYERS];
    bool is_bytes, is_first;
} conv_net;

/* ---- configuration ----------------------------------------------------------------------------------------------- */

static inline dt_status conv_read_list(const dt_host *h, const char *id, const char *key, const char *text,
                                       int64_t most, int64_t *out, int64_t *n_p)
{
    *n_p = 0;
    for (const char *at = text + strspn(text, " ,"); *at != '\0'; at += strspn(at, " ,")) {
        char *end = NULL;
        const long long v = strtoll(at, &end, 10);
        if (end == at || v < 1 || v > most || *n_p == CONV_MAX_LAYERS) {
            return DT_FAIL_H(h, DT_ECONFIG, "%s.%s = \"%s\": expected at most %d numbers from 1 to %lld", id, key, text,
                             CONV_MAX_LAYERS, (long long)most);
        }
        out[(*n_p)++] = v;
        at = end;
    }
    return DT_OK;
}

/* Of a configuration, and the layers it describes. Errors: DT_ECONFIG. */
static inline dt_status conv_read(conv_net *n, const dt_host *h, const char *id, const conv_config *c)
{
    int64_t n_kernels = 0, n_strides = 0;
    n->id = id;
    n->hidden = c->hidden;
    DT_TRY_H(conv_read_list(h, id, "channels", c->channels, CONV_MAX_CHANNELS, n->channels, &n->n_layers));
    DT_TRY_H(conv_read_list(h, id, "kernels", c->kernels, CONV_MAX_KERNEL, n->kernel, &n_kernels));
    DT_TRY_H(conv_read_list(h, id, "strides", c->strides, CONV_MAX_KERNEL, n->stride, &n_strides));
    if (n->n_layers < 1 || n_kernels != n->n_layers || n_strides != n->n_layers) {
        return DT_FAIL_H(h, DT_ECONFIG,
                         "%s.channels = \"%s\", kernels = \"%s\" and strides = \"%s\" name %lld, %lld and %lld "
                         "convolutions; expected the same number, at least 1",
                         id, c->channels, c->kernels, c->strides, (long long)n->n_layers, (long long)n_kernels,
                         (long long)n_strides);
    }
    for (int64_t i = 0; i < n->n_layers; i++) {
        n->padding[i] = c->has_padding ? n->kernel[i] / 2 : 0;
    }
    return DT_OK;
}

/* ---- the image --------------------------------------------------------------------------------------------------- */

static inline int64_t conv_size(const char *port, const char *what, const dt_dim *dims, uint32_t n_dims)
{
    char name[2 * CONTROLLER_TEXT];
    snprintf(name, sizeof(name), "%s_%s", port, what);
    return controller_dim(dims, n_dims, name, 0);
}

/* The first port of two sizes to four: the host gives them as NAME_dim1, NAME_dim2 ... */
static inline bool conv_find_port(conv_net *n, const dt_dim *dims, uint32_t n_dims)
{
    static const char *const which[CONV_MAX_SIZES + 1] = {"dim1", "dim2", "dim3", "dim4", "dim5"};
    for (uint32_t i = 0; i < n_dims; i++) {
        const char *end = strstr(dims[i].name, "_dim1");
        if (end == NULL || end[5] != '\0' || end - dims[i].name >= CONTROLLER_TEXT) {
            continue;
        }
        snprintf(n->port, sizeof(n->port), "%.*s", (int)(end - dims[i].name), dims[i].name);
        int at = snprintf(n->dims, sizeof(n->dims), "A");
        for (n->n_sizes = 0; n->n_sizes < CONV_MAX_SIZES; n->n_sizes++) {
            int64_t *size = &n->size[n->n_sizes];
            *size = conv_size(n->port, which[n->n_sizes], dims, n_dims);
            if (*size < 1 || *size > INT32_MAX) {
                break;
            }
            at += snprintf(n->dims + at, sizeof(n->dims) - (size_t)at, " %d", (int)*size);
        }
        n->is_bytes = conv_size(n->port, "bytes", dims, n_dims) == 1;
        if (n->n_sizes >= 2 && conv_size(n->port, which[CONV_MAX_SIZES], dims, n_dims) == 0) {
            return true;
        }
    }
    return false;
}

static inline void conv_lay_out(conv_net *n, uint32_t layout)
{
    const int64_t *s = n->size;
    n->is_first = n->n_sizes == 3 && (layout == CONV_FIRST || (layout == CONV_AUTO && s[0] < s[2]));
    n->H = n->n_sizes == 4 || n->is_first ? s[1] : s[0];
    n->W = n->n_sizes == 4 || n->is_first ? s[2] : s[1];
    n->C = n->n_sizes == 2 ? 1 : n->n_sizes == 4 ? s[0] * s[3] : n->is_first ? s[0] : s[2];
}

/* After conv_read: of the sizes that the phase gives. n must not move afterwards. Errors: DT_ESHAPE. */
static inline dt_status conv_init(conv_net *n, const dt_host *h, uint32_t layout, const dt_dim *dims, uint32_t n_dims)
{
    if (!conv_find_port(n, dims, n_dims)) {
        return DT_FAIL_H(h, DT_ESHAPE,
                         "the environment has no image, an observation per agent of two to four sizes, which %s reads; "
                         "env_gym keeps images with env_gym.ports = \"images\"",
                         n->id);
    }
    conv_lay_out(n, layout);
    n->D = controller_dim(dims, n_dims, "D", 0);
    snprintf(n->row_dims, sizeof(n->row_dims), "A %lld", (long long)n->D);
    int64_t rows = n->H, columns = n->W;
    for (int64_t i = 0; i < n->n_layers; i++) {
        const int64_t k = n->kernel[i], p = n->padding[i];
        if (k > rows + 2 * p || k > columns + 2 * p) {
            return DT_FAIL_H(h, DT_ESHAPE,
                             "%s: kernel %lld of %lld x %lld is larger than the %lld x %lld numbers that enter it; the "
                             "image is [%s]: choose smaller kernels and strides, or enlarge it",
                             n->id, (long long)i + 1, (long long)k, (long long)k, (long long)rows, (long long)columns,
                             n->dims);
        }
        rows = (rows + 2 * p - k) / n->stride[i] + 1;
        columns = (columns + 2 * p - k) / n->stride[i] + 1;
    }
    n->flat = rows * columns * n->channels[n->n_layers - 1];
    return DT_OK;
}

/* image, and the row where there is one; returns how many */
static inline uint32_t conv_inputs(const conv_net *n, dt_port *in)
{
    in[0] = (dt_port){n->port, n->dims, n->is_bytes ? DT_U8 : DT_F32, 0};
    in[1] = (dt_port){"obs", n->row_dims, DT_F32, 0};
    return n->D > 0 ? 2 : 1;
}

/* ---- layers ------------------------------------------------------------------------------------------------------ */

/* more: columns that enter the hidden layer in addition to the image */
static inline dt_status conv_params(const conv_net *n, dt_params *reg, const char *net, int64_t more)
{
    char name[CONTROLLER_TEXT];
    int64_t from = n->C;
    for (int64_t i = 0; i < n->n_layers; i++) {
        const int64_t w[4] = {n->channels[i], n->kernel[i], n->kernel[i], from};
        snprintf(name, sizeof(name), "%.16s.conv%d.w", net, (int)i);
        DT_TRY_H(reg->add(reg, name, w, 4, DT_INIT_ORTHO, CONTROLLER_HIDDEN_GAIN));
        snprintf(name, sizeof(name), "%.16s.conv%d.b", net, (int)i);
        DT_TRY_H(reg->add(reg, name, w, 1, DT_INIT_ZERO, 0.0));
        from = n->channels[i];
    }
    snprintf(name, sizeof(name), "%.16s.hidden", net);
    return controller_add(reg, name, n->hidden, n->flat + more, CONTROLLER_HIDDEN_GAIN);
}

/* [A, H, W, C] of numbers in [0, 1] */
static inline dt_tensor *conv_image(const conv_net *n, dt_graph *g, dt_tensor *x)
{
    x = n->is_bytes ? dt_affine(g, dt_cast(g, x), 1.0 / 255, 0.0) : x;
    if (n->n_sizes == 2) {
        return dt_split(g, x, n->W);
    }
    if (n->n_sizes == 4) { /* frames, rows, columns, channels */
        return dt_merge(g, dt_permute_dims(g, x, 2314));
    }
    return n->is_first ? dt_permute_dims(g, x, 231) : x;
}

/* image as conv_image returns it; more: what else enters the hidden layer, [A, ...] each */
static inline dt_tensor *conv_record(const conv_net *n, dt_graph *g, const char *net, dt_tensor *image,
                                     dt_tensor *const *more, uint32_t n_more)
{
    char name[CONTROLLER_TEXT];
    dt_tensor *x = image, *part[4];
    for (int64_t i = 0; i < n->n_layers; i++) {
        snprintf(name, sizeof(name), "%.16s.conv%d.w", net, (int)i);
        dt_tensor *w = g->api->param(g, name);
        snprintf(name, sizeof(name), "%.16s.conv%d.b", net, (int)i);
        x = dt_relu(g, dt_conv2d(g, x, w, g->api->param(g, name), n->stride[i], n->padding[i], n->padding[i], 1));
    }
    part[0] = dt_merge(g, dt_merge(g, x));
    for (uint32_t i = 0; i < n_more; i++) {
        part[i + 1] = more[i];
    }
    snprintf(name, sizeof(name), "%.16s.hidden", net);
    return dt_relu(g, controller_linear(g, n_more > 0 ? dt_concat(g, part, n_more + 1) : part[0], name));
}

#endif
