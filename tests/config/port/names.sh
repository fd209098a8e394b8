#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# The guides' names in a configuration of ours are refused with our names for them; docs/reference/guide-keys.md holds
# the table of `dtrain config keys`; the targets there are keys that dtrain shows; a template is accepted, and gives the
# defaults with and without its comment marks.
set -u

dtrain=${DT_BUILDDIR:-.}/dtrain
src=$(cd "${DT_SRCDIR:-.}" && pwd)
work=$(mktemp -d ./test-names-XXXXXX) || exit 1
trap 'rm -rf "$work"' EXIT INT TERM
failed=0
fail() {
    echo "FAIL: $*"
    failed=$((failed + 1))
}

# --- names ---
refuse() { # configuration text
    echo "$1" >"$work/theirs.cfg"
    "$dtrain" --plugin phase1_world_model --config "$work/theirs.cfg" --dry-run >/dev/null 2>"$work/err"
    [ $? -eq 2 ] || fail "accepted: $1"
    grep -qF -e "theirs.cfg:1: $2" "$work/err" || fail "'$1' is refused, but not with '$2': $(cat "$work/err")"
}
none="neither a section nor the id of a component; "
refuse 'dataloader = { prefetch_factor = 4; };' "${none}dataloader.prefetch_factor: a key of the guides; here it is data.prefetch"
refuse 'dataloader = { };' "${none}a key of the guides; see data.batch, data.prefetch"
refuse 'rllib = { lr = 0.1; foo = 3; };' "${none}rllib.lr: a key of the guides; here it is training.learning_rate. dtrain config import"
refuse 'optimizer = { };' "${none}a key of the guides; see training.optimizer, training.beta1, training.beta2, training.eps"
refuse 'wsl2 = { };' "${none}a key of the guides without a counterpart here"
refuse 'training = { num_epochs = 5; };' "unknown key; a key of the guides; here it is training.epochs"
refuse 'amp = { loss_scale = { }; };' "unknown key; a key of the guides; see amp.scaling"
refuse 'data = { chunk_size = 3; };' "unknown key; a key of the guides without a counterpart here: chunks"
"$dtrain" --plugin phase1_world_model --set training.num_epochs=5 --dry-run >/dev/null 2>"$work/err" && fail "--set takes a name of the guides"
grep -q "training.epochs" "$work/err" || fail "--set: $(cat "$work/err")"
# every group of the guides that is no section of ours
"$dtrain" config keys --json | grep -o '"key":"[a-z0-9_]*' | cut -d'"' -f4 | sort -u >"$work/groups"
[ "$(wc -l <"$work/groups")" -ge 20 ] || fail "groups: $(cat "$work/groups")"
while read -r group; do
    "$dtrain" show "$group" >/dev/null 2>&1 && continue
    [ "$group" = phase ] || refuse "$group = { };" "${none}a key of the guides"
done <"$work/groups"

# --- the table ---
"$dtrain" config keys >"$work/keys"
[ "$(wc -l <"$work/keys")" -ge 172 ] || fail "$(wc -l <"$work/keys") rows of keys"
sed -n '/^| key of the guides/,$p' "$src/docs/reference/guide-keys.md" | diff - "$work/keys" >"$work/diff" ||
    fail "docs/reference/guide-keys.md differs from dtrain config keys: $(cat "$work/diff")"
"$dtrain" config keys --json | grep -o '"target":"[^"]*"' | cut -d'"' -f4 | tr ' ' '\n' | sed 's/=.*//' | sort -u >"$work/targets"
while read -r target; do
    case $target in
        @.*) ids="phase2_ppo phase3_constrained" ;;
        *.*) ids=${target%%.*} ;;
        *) continue ;; # seed, phases
    esac
    for id in $ids; do
        "$dtrain" show "$id" --json | grep -q "{\"name\":\"${target#*.}\"," || fail "no key $id.${target#*.}"
    done
done <"$work/targets"

# --- templates ---
# an option a line, without where its value came from
lines() { "$dtrain" show "$@" --json | tr '{' '\n' | sed -e 's/"origin":"[^"]*",//' -e 's/}.*//' | grep '^"name"' |
    grep -v '"type":"list"' | sort -u; } # a list is shown as it was written
for phase in 1 2 3; do
    "$dtrain" config template $phase --out "$work/t$phase.cfg" || fail "template $phase"
    id=$(sed -n 's/.*plugin = "\(.*\)";/\1/p' "$work/t$phase.cfg")
    sed 's/^\( \{0,4\}\)#\([a-z_0-9]* = .*;\)$/\1\2/' "$work/t$phase.cfg" >"$work/u$phase.cfg"
    [ "$(diff "$work/t$phase.cfg" "$work/u$phase.cfg" | grep -c '^>')" -ge 100 ] || fail "template $phase has hardly a key"
    for cfg in "$work/t$phase.cfg" "$work/u$phase.cfg"; do
        "$dtrain" --config "$cfg" --dry-run >/dev/null 2>"$work/err" || fail "$cfg is refused: $(cat "$work/err")"
        lines "$id" >"$work/want"
        lines "$id" --config "$cfg" >"$work/got"
        comm -23 "$work/want" "$work/got" >"$work/lost"
        [ -s "$work/want" ] && [ ! -s "$work/lost" ] || fail "$cfg changes values: $(cat "$work/lost")"
        "$dtrain" --config "$cfg" --dry-run --json 2>/dev/null | grep -o '"parameters":[0-9]*\|"steps":[0-9]*' >"$work/got"
        "$dtrain" --plugin "$id" --dry-run --json 2>/dev/null | grep -o '"parameters":[0-9]*\|"steps":[0-9]*' | cmp -s - "$work/got" ||
            fail "$cfg plans otherwise"
    done
done
"$dtrain" config template --out "$work/all.cfg" || fail "a template of all"
"$dtrain" --config "$work/all.cfg" --dry-run >/dev/null 2>"$work/err" || fail "a template of all is refused: $(cat "$work/err")"
for id in $("$dtrain" list | awk 'NR > 1 { print $2 }') models training log; do
    "$dtrain" show "$id" --json | sed 's/"sections".*//' | grep -o '{"name":"[a-z0-9_]*","type"' | cut -d'"' -f4 >"$work/want"
    [ -s "$work/want" ] || continue
    sed -n "/^$id = {/,/^};/s/^    #\([a-z0-9_]*\) = .*/\1/p" "$work/all.cfg" | cmp -s - "$work/want" || fail "a template of all lacks keys of $id"
done
"$dtrain" config template nosuch >/dev/null 2>"$work/err" && fail "a template of nothing"
grep -q "no plugin nosuch" "$work/err" || fail "a template of nothing: $(cat "$work/err")"

[ "$failed" -eq 0 ] && echo "ok: names, the table, templates"
exit $((failed > 0))
