#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# dtrain config import: guides/ holds every key of the guides' YAML files, a file for each phase and profile, and the
# one of all phases. Each becomes a configuration that dtrain accepts, in which each of its keys is named; values are
# those that are meant. What is wrong with a file is reported with its line and column.
set -u

dtrain=${DT_BUILDDIR:-.}/dtrain
src=$(cd "${DT_SRCDIR:-.}" && pwd)
work=$(mktemp -d ./test-import-XXXXXX) || exit 1
trap 'rm -rf "$work"' EXIT INT TERM
failed=0
fail() {
    echo "FAIL: $*"
    failed=$((failed + 1))
}

. "${DT_SRCDIR:-.}/tests/run/half.inc"
half='--set amp.dtype=bf16' # on the CPU halves are bf16, where it has them
has_bf16 || half='--set amp.enabled=false'

echo 'training: { num_epochs: 3 }' >"$work/small.yaml"
"$dtrain" config import "$work/small.yaml" >"$work/out" 2>"$work/err"
code=$?
if [ $code -eq 5 ] && grep -q "built without libyaml" "$work/err"; then
    echo "built without libyaml: skipped"
    exit 77
fi
[ $code -eq 0 ] || fail "a small file: $(cat "$work/err")"

# --- every file, every key ---
# the dotted path of each leaf: blocks by two blanks, flow mappings in one line
leaves() {
    awk '{
        depth = 0
        while (substr($0, 2 * depth + 1, 2) == "  ") depth++
        key = $0; sub(/^ */, "", key); value = key
        sub(/:.*/, "", key); sub(/^[^:]*: */, "", value)
        name[depth] = key
        path = name[0]
        for (i = 1; i <= depth; i++) path = path "." name[i]
        if ($0 ~ /:$/) next
        if (value !~ /^{/) { print path; next }
        while (match(value, /\047[a-z_]+\047:/)) {
            print path "." substr(value, RSTART + 1, RLENGTH - 3)
            value = substr(value, RSTART + RLENGTH)
        }
    }' "$1"
}
: >"$work/all"
for yaml in "$src"/tests/config/port/guides/*.yaml; do
    name=$(basename "$yaml" .yaml)
    phase=${name%%_*}
    phase=${phase#phase}
    [ "$name" = hybrid ] && phase= || phase="--phase $phase"
    cfg=$work/$name.cfg
    "$dtrain" config import "$yaml" $phase --out "$cfg" -q 2>"$work/err" || fail "$name: $(cat "$work/err")"
    world=
    grep -q 'id = "env_sumo"' "$cfg" && world="--set env.id=env_traffic --set env_traffic.scenario=merge"
    # a scenario of SUMO is not there; phase 3 takes the controller of phase 2, which has to see the same environment
    [ "$name" = hybrid ] && world="--set env.id=env_traffic"
    "$dtrain" --config "$cfg" --dry-run $half $world >"$work/out" 2>&1 || fail "$name is refused: $(tail -n 3 "$work/out")"
    leaves "$yaml" >"$work/leaves"
    cat "$work/leaves" >>"$work/all"
    while read -r key; do
        key=$(echo "$key" | sed -E 's/^phase[123]\.(distributed|batch_size|amp|ray|rllib|memory)\./\1./; s/^phase[123]\./phase./')
        grep -qE "^#   $key = |# $key, line [0-9]+\$" "$cfg" || fail "$name: what became of $key is not said"
    done <"$work/leaves"
    grep -q "0 are unknown" "$cfg" || tr '\n' ' ' <"$cfg" | sed 's/ # / /g' | grep -q "0 are unknown" || fail "$name has unknown keys"
done
grep -v '^phase[123]\|^global' "$work/all" | sort -u >"$work/of_guides"
[ "$(wc -l <"$work/of_guides")" -eq 163 ] || fail "$(wc -l <"$work/of_guides") keys in guides/, there are 163"
[ "$(grep -c '^phase[123]\|^global' "$work/all")" -eq 43 ] || fail "$(grep -c '^phase[123]\|^global' "$work/all") keys in hybrid.yaml, there are 43"

# --- values ---
# of a file: section.key=value as a phase of it has them
value() { # cfg plugin section.key
    if [ "${3%%.*}" = "$2" ]; then
        "$dtrain" show "$2" --config "$1" | sed -n "s/^  ${3#*.} = \(.*\)    from .*/\1/p"
    else
        "$dtrain" show "$2" --config "$1" | sed -n "s/^  $3 = \(.*\)    from .*\.cfg:[0-9]*\$/\1/p"
    fi
}
expect() { # file plugin key value
    got=$(value "$work/$1.cfg" "$2" "$3")
    [ "$got" = "$4" ] || fail "$1: $3 is \"$got\", expected \"$4\""
}
expect phase1_normal phase1_world_model data.batch 64
expect phase1_normal phase1_world_model training.epochs 50
expect phase1_vram phase1_world_model amp.initial_scale 16384.0
expect phase1_vram phase1_world_model amp.growth_interval 500
expect phase1_vram phase1_world_model memory.vram_gb 16.0
expect phase1_complete phase1_world_model comm.timeout_s 1800.0
expect phase1_complete phase1_world_model training.beta2 0.999
expect phase1_complete phase1_world_model training.optimizer adam
expect phase1_complete phase1_world_model log.every 10
expect phase2_normal phase2_ppo phase2_ppo.train_batch 4000
expect phase2_normal phase2_ppo phase2_ppo.fragment 167
expect phase2_normal phase2_ppo env.instances 12
expect phase2_normal phase2_ppo data.batch 128
expect phase2_vram phase2_ppo env.instances 2
expect phase2_complete phase2_ppo env.instances 6
expect phase2_complete phase2_ppo phase2_ppo.lambda 0.95
expect phase2_complete phase2_ppo phase2_ppo.value_clip_mode '"error"'
expect phase2_complete phase2_ppo models.controller controller_influence
expect phase2_complete phase2_ppo checkpoint.best_by return/mean
expect phase3_complete phase3_constrained data.batch 48
expect phase3_complete phase3_constrained training.accumulation 2
expect phase3_complete phase3_constrained phase3_constrained.iterations 100
expect phase3_complete phase3_constrained training.warmup_epochs 100
expect phase3_complete phase3_constrained training.t_max 1000
expect phase3_complete phase3_constrained phase3_constrained.max_violations 5
expect hybrid phase2_ppo phase2_ppo.iterations 200
expect hybrid phase3_constrained data.batch 48
grep -q '^ *freeze = ( "controller", "shield" );' "$work/phase1_complete.cfg" || fail "what phase 1 freezes"
grep -q '^ *recompute_roles = ( "world" );' "$work/phase3_complete.cfg" || fail "what phase 3 recomputes"
grep -q 'phases = ( { plugin = "phase1_world_model"; }, { plugin = "phase2_ppo"; }, { plugin = "phase3_constrained"; } );' \
    "$work/hybrid.cfg" || fail "phases of hybrid.yaml: $(grep phases "$work/hybrid.cfg")"
# two files together
"$dtrain" --config "$work/phase1_complete.cfg" --config "$work/hybrid.cfg" --dry-run $half --set env.id=env_traffic >"$work/out" 2>&1 ||
    fail "two files together: $(tail -n 3 "$work/out")"

# --- what contradicts itself ---
said() { # file text
    tr -d '\n' <"$work/$1.cfg" | sed 's/#     / /g' | grep -qF -e "$2" || fail "$1 does not say: $2"
}
said phase2_complete "6 workers of 2 environments are more than the 6 there may be"
said phase2_complete "200 steps of 6 environments do not divide a round of 4000"
said phase2_complete "rllib.num_gpus_per_worker = 1"
said phase2_vram "3 workers of 1 environments are more than the 2 there may be"
said phase1_complete "time_shift.range = (-10, 10)"
cat >"$work/drift.yaml" <<'END'
training: { save_interval: 7 }
checkpoint: { save_interval: 3 }
batch_size: { per_gpu: 8, effective: 64, accumulation_steps: 1 }
distributed: { world_size: 2 }
base: &base { weight_decay: 0.5, learning_rate: 0.1 }
optimizer: { betas: (0.8, 0.9) }
scheduler: { <<: *base, type: None }
"x\ny": "1 } ; seed = 3; # \e[31m"
END
"$dtrain" config import "$work/drift.yaml" --out "$work/drift.cfg" 2>"$work/err" || fail "drift: $(cat "$work/err")"
grep -q "^warn .* 5 unknown" "$work/err" || fail "no warning of unknown keys: $(cat "$work/err")"
said drift "training.save_interval = 7 (line 1): checkpoint.save_interval in line 2 differs and is used"
said drift "batch_size.per_gpu = 8 (line 3): it does not follow"
said drift "x?y = 1 } ; seed = 3; # ?[31m"
grep -q "^seed" "$work/drift.cfg" && fail "a value became another setting"
"$dtrain" --config "$work/drift.cfg" --dry-run >/dev/null 2>"$work/err" || fail "drift is refused: $(cat "$work/err")"

printf 'batch_size: { auto: true, per_gpu: 8, accumulation_steps: 2 }\n' >"$work/fits.yaml"
"$dtrain" config import "$work/fits.yaml" --out "$work/fits.cfg" 2>"$work/err" || fail "fits: $(cat "$work/err")"
expect fits phase1_world_model data.batch auto
expect fits phase1_world_model training.accumulation 2
said fits "batch_size.per_gpu = 8 (line 1): batch_size.auto chooses the batch"
"$dtrain" --config "$work/fits.cfg" --dry-run >"$work/out" 2>"$work/err" || fail "fits is refused: $(cat "$work/err")"
grep -q 'data.batch = auto takes [0-9]* samples' "$work/out" || fail "fits: nothing is chosen"

# --- files that are wrong ---
refuse() { # yaml text [code]
    printf '%b' "$1" >"$work/bad.yaml"
    "$dtrain" config import "$work/bad.yaml" >"$work/out" 2>"$work/err"
    code=$?
    [ $code -eq "${3:-2}" ] || fail "code $code of: $1"
    grep -qF -e "bad.yaml$2" "$work/err" || fail "'$1' is refused, but not with '$2': $(cat "$work/err")"
    [ ! -s "$work/out" ] || fail "half a configuration of: $1"
}
refuse '' ':1:1: expected a mapping'
refuse '- a\n' ':1:1: expected a mapping'
refuse 'a: [1, 2\n' ':2:1: no YAML'
refuse 'training:\n\tnum_epochs: 5\n' ':2:1: no YAML'
refuse 'training:\n  learning_rate: fast\n' ':2:18: training.learning_rate = fast: training.learning_rate takes a number in'
refuse 'training:\n  learning_rate: -1\n' ':2:18: '
refuse 'training:\n  num_epochs: 2.5\n' ':2:15: '
refuse 'amp: { enabled: maybe }\n' ':1:17: amp.enabled = maybe: amp.enabled takes true or false'
refuse 'amp: { enabled: [1] }\n' ':1:17: amp.enabled is one value, but the file has a list'
refuse 'amp: { enabled: { a: 1 } }\n' ':1:17: amp.enabled is one value, but the file has a mapping'
refuse 'training: 5\n' ':1:11: training is a group of keys, but the file has a value'
refuse 'phase2: 5\n' ':1:9: phase2 is a group of keys'
refuse 'phase1: { enabled: false }\n' ':1:1: no phase is enabled'
refuse 'enabled: false\ntraining: { num_epochs: 2 }\n' ':1:10: enabled: false, and no other phase is there'
refuse 'data: { phase: 4 }\n' ':1:16: data.phase: expected 1, 2 or 3'
refuse 'optimizer: { type: rmsprop }\n' ':1:20: optimizer.type = rmsprop: expected one of adam'
refuse 'optimizer: { betas: [0.9] }\n' ':1:21: optimizer.betas: expected 2 values, found 1'
refuse 'memory: { freeze_parameters: [gnnn] }\n' ':1:30: memory.freeze_parameters = [gnnn]: expected names of models'
refuse 'batch_size: { effective: 65, accumulation_steps: 2 }\n' ':1:26: batch_size.effective = 65 is not a multiple'
refuse 'batch_size: { auto: 8 }\n' ':1:21: batch_size.auto = 8: expected true or false'
refuse 'batch_size: { per_gpu: 99999999999999999999 }\n' ':1:24: batch_size.per_gpu = 99999999999999999999: expected a whole'
refuse 'training:\n  num_epochs: 5\n  num_epochs: 6\n' ':3:3: num_epochs appears twice in one mapping, first in line 2'
refuse 'a: 1\n---\nb: 2\n' ':2:1: a second document'
refuse '? [1]\n: 2\n' ':1:3: a key is a plain word'
refuse 'a: *x\n' ':1:4: *x has no anchor before it'
refuse 'a: &x [*x]\n' ':1:8: *x is inside the node that it names'
refuse 'a: !!python/object:os.system x\n' ':1:4: the tag tag:yaml.org,2002:python/object:os.system is not read'
refuse 'a: "\\0"\n' ':1:4: a string that contains a NUL byte'
refuse '<<: 5\n' ':1:1: << takes a mapping'
refuse "$(awk 'BEGIN { for (i = 0; i < 200; i++) printf "[" }')" ':1:33: nested deeper than 32'
refuse "$(awk 'BEGIN { for (i = 0; i < 70; i++) print "a" i ": &x" i " 1" }')" ':65:6: more than 64 anchors'
refuse "$(awk 'BEGIN { for (i = 0; i < 1100; i++) print "a" i ": 1" }')" ':1001:1: more than 1000 keys'
refuse "$(awk 'BEGIN { for (i = 0; i < 200; i++) printf "k"; print ": 1" }')" ':1:1: a key of 200 bytes'
refuse "$(awk 'BEGIN { print "a0: &a0 [x,x,x,x,x,x,x,x,x,x]"
    for (i = 1; i < 9; i++) { printf "a%d: &a%d [", i, i; for (k = 0; k < 10; k++) printf "*a%d,", i - 1; print "]" } }')" \
    ':5:10: more than 20000 values'
refuse "$(awk 'BEGIN { for (i = 0; i < 20; i++) { printf "%*s", i, ""; for (k = 0; k < 30; k++) printf "k"; print ":" } }')" \
    ':10:10: the keys down to here have more than 255 bytes'
head -c 300000 /dev/zero | tr '\0' x >"$work/long.yaml"
"$dtrain" config import "$work/long.yaml" >/dev/null 2>"$work/err"
[ $? -eq 4 ] || fail "a long file: $(cat "$work/err")"
"$dtrain" config import "$work/none.yaml" >/dev/null 2>"$work/err"
[ $? -eq 2 ] || fail "no file: $(cat "$work/err")"
"$dtrain" config import "$work/small.yaml" --phase 4 >/dev/null 2>"$work/err" && fail "--phase 4 is accepted"
"$dtrain" config import "$work/small.yaml" --set seed=3 >/dev/null 2>"$work/err" && fail "--set is accepted"
"$dtrain" config import "$work/small.yaml" --out "$work/drift.cfg" >/dev/null 2>"$work/err" && fail "a file is replaced"
"$dtrain" config >/dev/null 2>"$work/err" && fail "no word is accepted"

[ "$failed" -eq 0 ] && echo "ok: 163 and 43 keys, and what is wrong with files"
exit $((failed > 0))
