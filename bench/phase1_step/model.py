# SPDX-License-Identifier: Apache-2.0
"""The models of phase 1 in PyTorch, with the parameter names of dtrain's checkpoints.

Two ways to run the graph layers: dense (every frame padded to V vehicles, attention over a masked [V,V]) and scatter
(edge lists with index_select and scatter_add, the operations of PyG's layers). The rest is shared. Shapes: G frames, V
vehicles of a padded frame, N rows, E edges, S sequences, T history, F future, H heads, D width of a head.
"""
import torch
import torch.nn.functional as fn

HEADS = 8
SLOPE = 0.2
EPS = 1e-5
SIGMA_FLOOR = 0.05
CORRECTION = 5.0
lstm = torch.lstm


def linear(p, name, x):
    return fn.linear(x, p[name + ".w"], p[name + ".b"])


def norm(p, name, x):
    return fn.layer_norm(x, x.shape[-1:], p[name + ".gamma"], p[name + ".beta"], EPS)


def gat_dense(p, name, x, e, batch):
    """x [G,V,C] -> [G,V,C]; logits [G,H,V,V], target before source."""
    g, v, c = x.shape
    heads = x.view(g, v, HEADS, c // HEADS)
    dst = (heads * p[name + ".a_dst"].view(HEADS, -1)).sum(-1).transpose(1, 2)
    src = (heads * p[name + ".a_src"].view(HEADS, -1)).sum(-1).transpose(1, 2)
    edge = fn.linear(e, p[name + ".w_e"]).permute(0, 3, 1, 2)
    logit = fn.leaky_relu(dst.unsqueeze(3) + src.unsqueeze(2) + edge, SLOPE) + batch["mask"]
    return (logit.softmax(-1) @ heads.transpose(1, 2)).transpose(1, 2).reshape(g, v, c)


def qk_dense(p, name, q, k, v, e, batch):
    g, n, c = q.shape
    cut = lambda x: x.view(g, n, HEADS, c // HEADS).transpose(1, 2)
    bias = fn.linear(e, p[name + ".w_e"]).permute(0, 3, 1, 2) + batch["mask"]
    out = fn.scaled_dot_product_attention(cut(q), cut(k), cut(v), attn_mask=bias)
    return out.transpose(1, 2).reshape(g, n, c)


def scatter_sum(x, index, n):
    """Sum of rows by target, as torch_geometric.utils.scatter does it: an expanded index and scatter_add."""
    index = index.view([-1] + [1] * (x.dim() - 1)).expand_as(x)
    return x.new_zeros(n, *x.shape[1:]).scatter_add_(0, index, x)


def edge_softmax(logit, row, n):
    """[E,H] normalised over the edges of each target, as torch_geometric.utils.softmax does it."""
    index = row.view(-1, 1).expand_as(logit)
    top = logit.new_zeros(n, logit.shape[1]).scatter_reduce_(0, index, logit.detach(), "amax", include_self=False)
    e = (logit - top.index_select(0, row)).exp()
    return e / (scatter_sum(e, row, n) + 1e-16).index_select(0, row)


def gat_scatter(p, name, x, e, batch):
    n, c = x.shape
    row, col = batch["row"], batch["col"]
    heads = x.view(n, HEADS, c // HEADS)
    dst = (heads * p[name + ".a_dst"].view(HEADS, -1)).sum(-1)
    src = (heads * p[name + ".a_src"].view(HEADS, -1)).sum(-1)
    logit = dst.index_select(0, row) + src.index_select(0, col) + fn.linear(e, p[name + ".w_e"])
    weight = edge_softmax(fn.leaky_relu(logit, SLOPE), row, n)
    message = heads.index_select(0, col) * weight.unsqueeze(-1)
    return scatter_sum(message, row, n).reshape(n, c)


def qk_scatter(p, name, q, k, v, e, batch):
    n, c = q.shape
    row, col = batch["row"], batch["col"]
    cut = lambda x, index: x.view(n, HEADS, c // HEADS).index_select(0, index)
    logit = (cut(q, row) * cut(k, col)).sum(-1) / (c // HEADS) ** 0.5 + fn.linear(e, p[name + ".w_e"])
    message = cut(v, col) * edge_softmax(logit, row, n).unsqueeze(-1)
    return scatter_sum(message, row, n).reshape(n, c)


def slot_logits(edges):
    """[...,4] -> [...,8]: to which neighbour slot an edge belongs (models/risk_gnn/slots.h)."""
    gap, side = edges[..., 0], edges[..., 1]
    ramp = lambda x, scale, shift: (scale * x + shift).clamp(0, 1)
    self = 4 * ramp(gap.abs() + side.abs(), -1000, 1)
    pull = 12 * ramp(gap.abs(), -0.4, 1) + 6
    ahead, behind = ramp(gap, 20, 0), ramp(gap, -20, 0)
    lane = ramp(side.abs(), -10, 5.5)
    left, right = ramp(side, 10, -4.5) * ramp(side, -10, 15), ramp(side, -10, -4.5) * ramp(side, 10, 15)
    slots = [m * pull + self for m in (lane * ahead, lane * behind, left * ahead, right * ahead, left * behind,
                                       right * behind)]
    return torch.stack(slots + [6 * ahead + self, torch.zeros_like(self)], -1)


def slot_values(edges):
    """-> closeness and closing speed, zeros on a vehicle's edge to itself"""
    gap, side = edges[..., 0].abs(), edges[..., 1].abs()
    other = 1 - (1 - 1000 * (gap + side)).clamp(0, 1)
    return (1 - 0.4 * gap).clamp(0, 1) * other, edges[..., 2]


def perception(p, batch, dense):
    """-> embedding, risk over rows [N] (scatter) or padded frames [G,V] (dense)."""
    edges = batch["edges_dense" if dense else "edges"]
    e = fn.elu(linear(p, "perception.edge", edges))
    logits = slot_logits(edges)
    w = (logits[..., :7] - 18).exp()
    if dense:
        nodes = batch["nodes_dense"]
        mean = lambda x: torch.einsum("gij,gijk->gik", batch["share"], x)
    else:
        nodes, row = batch["nodes"], batch["row"]
        mean = lambda x: scatter_sum(x, row, nodes.shape[0]) / batch["degree"]
    total = mean(w) + 1e-12
    nearest = [mean(w * v.unsqueeze(-1)) / total for v in slot_values(edges)]
    h = fn.elu(linear(p, "perception.in", torch.cat([nodes, mean(e)] + nearest, -1)))
    e = torch.cat([logits, e], -1)
    layer = 0
    while f"perception.layer.{layer}.w_e" in p:
        name = f"perception.layer.{layer}"
        if name + ".w" in p:
            attend = gat_dense if dense else gat_scatter
            x = attend(p, name, linear(p, name, h), e, batch)
            h = h + fn.elu(norm(p, name, x))
        else:
            attend = qk_dense if dense else qk_scatter
            x = norm(p, name + ".norm0", h)
            q, k, v = (linear(p, f"{name}.{i}", x) for i in "qkv")
            h = h + linear(p, name + ".o", attend(p, name, q, k, v, e, batch))
            x = fn.gelu(linear(p, name + ".ffn0", norm(p, name + ".norm1", h)))
            h = h + linear(p, name + ".ffn1", x)
        layer += 1
    if "perception.norm.gamma" in p:
        h = norm(p, "perception.norm", h)
    return h, linear(p, "perception.risk.1", fn.elu(linear(p, "perception.risk.0", h))).squeeze(-1)


def world(p, history, batch):
    """history [T,S,C], left-aligned like everything of the sequences here -> future, log sigma [S,F,2]"""
    motion = batch["motion"]
    x = torch.cat([motion[..., :2] / 2, motion[..., 2:4], motion[..., 4:5] / 5, motion[..., 5:] / 2], -1)
    width = p["world.lstm.0.h.w"].shape[1]
    flat, layers = [], 0
    while f"world.lstm.{layers}.x.w" in p:
        name = f"world.lstm.{layers}"
        b = p[name + ".x.b"]
        flat += [p[name + ".x.w"], p[name + ".h.w"], b, batch["zero_bias"][: b.shape[0]]]
        layers += 1
    zero = torch.zeros(layers, x.shape[1], width, device=x.device)
    out = lstm(x, (zero, zero), flat, True, layers, 0.0, True, False, False)[0]
    if out.dtype == torch.float16:  # cuDNN's LSTM is in fp16 under any autocast, and some operations reject fp16 with bf16
        out = out.float()
    at = batch["last"].view(1, -1, 1)  # the aligned step of the anchor
    pick = lambda y: y.gather(0, at.expand(1, -1, y.shape[2])).squeeze(0)
    seen = torch.cat([pick(out), pick(history), pick(x), batch["lags"]], 1)
    z = linear(p, "world.head.1", fn.relu(linear(p, "world.head.0", seen)))
    s, f = z.shape[0], z.shape[1] // 4
    z = z.view(s, 4, f)
    speed = batch["speed"].view(-1, 1)
    future = torch.stack([CORRECTION * z[:, 0] + speed, CORRECTION * z[:, 1]], 2) * batch["dt"]
    sigma = fn.softplus(torch.stack([z[:, 2], z[:, 3]], 2)).cumsum(1) * batch["dt"] + SIGMA_FLOOR
    return future.cumsum(1), sigma.log()


def loss(p, batch, dense):
    """-> likelihood + squared distance + cross-entropy of the risk, with the weights that are dtrain's defaults"""
    h, risk = perception(p, batch, dense)
    rows = h.reshape(-1, h.shape[-1])
    zero = torch.zeros(1, rows.shape[1], device=rows.device)
    seq = batch["seq_dense" if dense else "seq_row"]
    future, spread = world(p, torch.cat([rows, zero])[seq], batch)
    error = batch["target"] - future
    e = error * (-spread).exp()
    nll = ((spread + 0.5 * e * e + 0.9189385332046727).sum(-1) * batch["weight"]).sum() / batch["n_seq"]
    square = ((error * error).sum(-1) * batch["weight"]).sum() / batch["n_seq"]
    label, weight = (batch[k + ("_dense" if dense else "")] for k in ("risk_label", "risk_weight"))
    bce = fn.binary_cross_entropy_with_logits(risk, label, weight, reduction="sum") / batch["n_rows"]
    return nll + square + bce
