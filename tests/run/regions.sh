#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# A store that was cut by place: trained on it ends in one set of bits on any number of threads and after a resume, and
# a model is evaluated on it as on the store that was cut, of which each vehicle counts once.
set -u

dtrain=${DT_BUILDDIR:-.}/dtrain
demo=$(cd "${DT_BUILDDIR:-.}/share" && pwd)/demo.store
command -v python3 >/dev/null 2>&1 || { echo "no python3"; exit 77; }
work=$(mktemp -d ./test-regions-XXXXXX) || exit 1
trap 'rm -rf "$work"' EXIT INT TERM
failed=0

fail() {
    echo "FAIL: $*"
    failed=$((failed + 1))
}

"$dtrain" data sample "$demo" --out "$work/whole" -q --set sample.scenes=8 || fail "no sample"
"$dtrain" data cut "$work/whole" --out "$work/cut" --set cut.tile_m=100 --set cut.halo_m=100 >"$work/out" 2>&1 ||
    fail "no cut: $(cat "$work/out")"
grep -q "regions of 8 scenes" "$work/out" || fail "cut says: $(cat "$work/out")"
"$dtrain" data inspect "$work/cut" >"$work/out" || fail "a store of regions is not inspected"
grep -q "vehicles within 2 neighbourhoods" "$work/out" || fail "inspect says: $(cat "$work/out")"

# graph networks of one layer that look at their neighbours' edges before: two neighbourhoods of 50 m
cat >"$work/base.cfg" <<'END'
data = { batch = 4; };
engine = { device = "cpu"; };
risk_gnn = { layers = 1; hidden = 16; heads = 2; };
world_lstm = { hidden = 16; };
metrics = { tensorboard = false; };
report = { enabled = false; };
phases = ( { plugin = "phase1_world_model"; stop = { steps = 4; }; } );
END

# train NAME [options]
train() {
    name=$1
    shift
    "$dtrain" run --config "$work/base.cfg" --set "data.store=$(pwd)/$work/cut" --run-dir "$work/$name" -q "$@" \
        >"$work/out" 2>&1 || fail "$name: $(cat "$work/out")"
}

# same A B: weights, to the bit
same() {
    a=$(find "$work/$1" -name 'model*.safetensors' | sort | tail -1)
    b=$(find "$work/$2" -name 'model*.safetensors' | sort | tail -1)
    [ -n "$a" ] && [ -n "$b" ] && cmp -s "$a" "$b" || fail "$1 and $2 end in other weights"
}

train one --threads 1
train two --threads 2
train begun --threads 1 --max-steps 2
"$dtrain" run --resume "$work/begun" --threads 2 -q >"$work/out" 2>&1 || fail "resume: $(cat "$work/out")"
same one two
same one begun

# --- each vehicle is evaluated once, by the same figures ---
for store in whole cut; do
    "$dtrain" eval --checkpoint "$work/one" --set "data.store=$(pwd)/$work/$store" --set evaluation.folds=all --json -q \
        >"$work/$store.json" 2>"$work/err" || fail "eval of $store: $(cat "$work/err")"
done
python3 - "$work/whole.json" "$work/cut.json" <<'END' || fail "a store and its regions are judged differently"
import json, sys
whole, cut = (json.load(open(p)) for p in sys.argv[1:])
def flat(x, at=""):
    if isinstance(x, dict):
        for k, v in x.items():
            yield from flat(v, at + "." + k)
    elif isinstance(x, list):
        for i, v in enumerate(x):
            yield from flat(v, "%s.%d" % (at, i))
    elif isinstance(x, (int, float)) and not isinstance(x, bool):
        yield at, x
a, b = dict(flat(whole)), dict(flat(cut))
shared = [k for k in a if k in b and not k.endswith("_s")]
bad = [(k, a[k], b[k]) for k in shared if abs(a[k] - b[k]) > 1e-9 * max(1, abs(a[k]))]
print(len(shared), "figures,", bad)
sys.exit(len(shared) < 20 or "samples" not in str(shared) or bool(bad))
END

# --- what reaches beyond the halo is refused ---
"$dtrain" run --config "$work/base.cfg" --set "data.store=$(pwd)/$work/cut" --set data_trajectory.lanes=true \
    --set phase1_world_model.history_s=30 --dry-run >"$work/out" 2>&1 && fail "windows of 30 s are taken"
grep -q "history_s reaches .* beyond the halo of 10" "$work/out" || fail "a long window says: $(cat "$work/out")"

[ "$failed" -eq 0 ] || exit 1
echo "ok"
