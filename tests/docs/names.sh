#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What README.md, CONTRIBUTING.md, SECURITY.md and docs/ name is there: pages and headings that links lead to, targets
# of make, rooms, keys of the configuration, components, and benches. Files: tests/docs/paths.sh.
set -u
dtrain=${DT_BUILDDIR:-.}/dtrain
src=${DT_SRCDIR:-.}
work=$(mktemp -d "$PWD/test-names-XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT INT TERM
failed=0
fail() {
    echo "FAIL: $*"
    failed=$((failed + 1))
}
pages() {
    printf '%s\n' "$src/README.md" "$src/README.zh.md" "$src/CONTRIBUTING.md" "$src/SECURITY.md"
    find "$src/docs" -name '*.md' | sort
}

# found PATTERN: "page what" for everything in the pages that the pattern of grep finds, without backquotes
found() {
    pages | while read -r page; do
        grep -o -e "$1" "$page" | tr -d '`' | sort -u | sed "s|^|$page |"
    done
}

# --- links ---
# a heading's name in links: lower case, no marks, "-" for blanks
anchors() { sed -n 's/^##* //p' "$1" | tr '[:upper:]' '[:lower:]' | sed 's/[^a-z0-9 _-]//g; s/ /-/g'; }

found ']([^)]*)' | sed 's/ \](/ /; s/)$//' | grep -v ' https\{0,1\}:' >"$work/links"
while read -r page link; do
    to=$(dirname "$page")/${link%%#*}
    [ -n "${link%%#*}" ] || to=$page
    [ -e "$to" ] || fail "$page links $link, which is not there"
    case $link in
        *#*) anchors "$to" | grep -qxF -e "${link#*#}" || fail "$page links $link: no such heading" ;;
    esac
done <"$work/links"
for readme in README.md README.zh.md; do
    grep -q '(docs/start.md)' "$src/$readme" || fail "$readme does not link docs/start.md"
done
for page in $(cd "$src/docs" && find . -name '*.md' ! -name start.md | sed 's|^\./||' | sort); do
    grep -q "(${page}[)#]" "$src/docs/start.md" || fail "docs/start.md does not link $page"
    grep -q "docs/$page\( \|$\)" "$src/docs/local.mk" || fail "docs/local.mk does not install docs/$page"
    grep -q ": $page$" "$src/docs/site/mkdocs.yml" || fail "docs/site/mkdocs.yml lacks $page"
done

# --- targets of make, rooms of make check-ROOM ---
found 'make \(-j[0-9]* \)*\(check\|lint\|format\|tidy\|fuzz\|benches\)[a-z-]*' | sed 's/make \(-j[0-9]* \)*//' >"$work/targets"
[ "$(wc -l <"$work/targets")" -ge 8 ] || fail "hardly a target of make is named"
while read -r page target; do
    grep -q -e "^$target *:" "${DT_BUILDDIR:-.}/Makefile" || [ -d "$src/tests/${target#check-}" ] || [ "$target" = check- ] ||
        fail "$page names make $target, which is no target"
done <"$work/targets"

# --- rooms, benches ---
for room in "$src"/core/*/; do
    grep -q "^|.*\`$(basename "$room")\`.*|" "$src/docs/explanation/architecture.md" || fail "docs/explanation/architecture.md lacks the room $room"
done
sh "$src/bench/run" --list | cut -d' ' -f1 >"$work/benches"
found 'bench/run [a-z0-9_][a-z0-9_]*' | cut -d' ' -f3 >"$work/named"
while read -r name; do
    grep -qx "$name" "$work/benches" || fail "docs name the bench $name, which is not there"
done <"$work/named"

# --- keys of the configuration: those of every section and component that the program shows ---
"$dtrain" list | awk 'NR > 1 { print $2 }' >"$work/ids"
sections="models data training amp checkpoint engine memory comm env opponents rollouts evaluation metrics log report import store hdf5 split sample cut"
for id in $(cat "$work/ids") $sections; do
    "$dtrain" show "$id" --json >"$work/shown" || fail "dtrain does not show $id"
    grep -o '{"name":"[a-z0-9_]*","type"' "$work/shown" | sed "s/.*\"name\":\"\(.*\)\",.*/$id.\1/"
done | sort -u >"$work/keys"
for kind in host phase model environment data; do
    page=docs/reference/options-$kind.md
    "${DT_BUILDDIR:-.}/options_doc" $kind | diff "$src/$page" - || fail "$page is not what the program has: make options"
done
# every port of an environment is described: a line on its columns follows its own
described() { # ID [--set KEY=VALUE]...
    "$dtrain" show "$@" | awk '/^  sees/ { if (port) print port; port = $2; next } /^           / { port = "" }
        /^  [a-z]/ { if (port) print port; port = "" }' >"$work/bare"
    [ ! -s "$work/bare" ] || fail "$* has ports without a description: $(cat "$work/bare")"
}
grep '^env_' "$work/ids" >"$work/environments"
while read -r id; do
    described "$id"
done <"$work/environments"
described env_traffic --set env_traffic.scenario=grid --set env_traffic.control=both
described env_traffic --set env_traffic.scenario=grid --set env_traffic.control=signals --set env_traffic.right_of_way=true
described env_snakes --set env_snakes.advice=true
described env_ipp --set env_ipp.state=true
# roles of all models there are, and the configuration knows each of them
"$dtrain" list --json | grep -o '"role":"[a-z0-9_]*"' | cut -d'"' -f4 | sort -u >"$work/roles"
[ "$(wc -l <"$work/roles")" -ge 6 ] || fail "hardly a role: $(wc -l <"$work/roles")"
while read -r role; do
    echo "models.$role" >>"$work/keys"
    "$dtrain" --plugin phase1_world_model --dry-run -q --set "phases.0.fresh=$role" --set "training.freeze_loaded=$role" \
        >/dev/null 2>"$work/err" || fail "the role $role is not known: $(cat "$work/err")"
    case $role in
        perception | world) continue ;; # phase 1 needs them
    esac
    "$dtrain" --plugin phase1_world_model --dry-run -q --set "models.$role=" >/dev/null 2>"$work/err" ||
        fail "models.$role cannot be empty: $(cat "$work/err")"
done <"$work/roles"
[ "$(wc -l <"$work/keys")" -ge 200 ] || fail "hardly a key: $(wc -l <"$work/keys")"
found '`[a-z0-9_]*\.[a-z0-9_]*\(=[^`]*\| = [^`]*\)\{0,1\}`' >"$work/named"
"$dtrain" config keys --json | grep -o '"key":"[^"]*"' | cut -d'"' -f4 >"$work/theirs"
while read -r page key; do
    key=${key%%[ =]*}
    case $page in
        */porting.md | */guide-keys.md) ! grep -qxF -e "$key" "$work/theirs" || continue ;; # of the guides
    esac
    case ${key##*.} in
        log | json | jsonl | cfg | dockerignore | sumocfg | html | md | sh | py | c | h | def | mk) continue ;; # files
        a | so | la | pc | safetensors | h5 | hdf5 | npy | onnx | osm | svg | csv | txt) continue ;;
    esac
    case $key in
        vm.* | memory.max | pids.max | torch.compile) continue ;; # of the kernel, and of PyTorch
        dtrain.*) # the Python package
            ! grep -q "\"${key#dtrain.}\": \"" "$src/python/dtrain/__init__.py" || continue ;;
    esac
    grep -qxF -e "$key" "$work/keys" || fail "$page names the key $key, which is not known"
done <"$work/named"

# --- components ---
first=$(sed 's/_.*//' "$work/ids" | sort -u | paste -s -d '|' | sed 's/|/\\|/g') # env, controller, critic, ...
found "\`\\($first\\)_[a-z0-9_]*\`" | cut -d' ' -f2 | sort -u >"$work/named"
while read -r name; do
    case $name in
        data_wait | env_options | env_steps) continue ;; # of results and records
    esac
    grep -qxF -e "$name" "$work/ids" || grep -q "\.$name\$" "$work/keys" ||
        fail "docs name the component $name, which is not there"
done <"$work/named"
[ $failed -eq 0 ]
