# SPDX-License-Identifier: Apache-2.0
"""What this GPU reaches at most, by PyTorch: copies, products in bf16, and dependent launches within a CUDA graph."""
import sys

try:
    import torch
except ImportError as e:
    print(f"skipped: {e}")
    sys.exit(77)
if not torch.cuda.is_available():
    print("skipped: PyTorch sees no GPU")
    sys.exit(77)


def seconds(f, n):
    for _ in range(5):
        f()
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    begin.record()
    for _ in range(n):
        f()
    end.record()
    torch.cuda.synchronize()
    return begin.elapsed_time(end) / n * 1e-3


x = torch.randn(1 << 30, device="cuda")
y = torch.empty_like(x)
print(f"= ceiling copy: {8 * x.numel() / seconds(lambda: y.copy_(x), 10) / 1e12:.2f} TB/s", flush=True)
del x, y
for n in (8192, 2048, 1024):
    a, b = (torch.randn(n, n, device="cuda", dtype=torch.bfloat16) for _ in range(2))
    print(f"= ceiling bf16 product {n}: {2 * n ** 3 / seconds(lambda: a @ b, 20) / 1e12:.0f} TFLOP/s", flush=True)
graph, z = torch.cuda.CUDAGraph(), torch.zeros(1024, device="cuda")
z.add_(1)
torch.cuda.synchronize()
with torch.cuda.graph(graph):
    for _ in range(300):
        z.add_(1)
print(f"= ceiling launch: {seconds(graph.replay, 20) / 300 * 1e6:.2f} us for a small dependent kernel in a graph", flush=True)
