#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Files that pages and comments name exist: from the root of the source (core/engine/graph/plan.c), by the end of a path
# (graph/plan.c, svc/rollout.h), or by name alone (plan.c). A * stands for any part of a name; capitals are
# placeholders. Of other projects' files, those in `foreign` may be named. Needs git: a release has no list of files.
set -u
cd "${1:-${DT_SRCDIR:-.}}" || exit 1
git rev-parse --git-dir >/dev/null 2>&1 || exit 0
pages=$(mktemp) || exit 1
trap 'rm -f "$pages"' EXIT INT TERM
files() {
    git ls-files --cached --others --exclude-standard "$@" | while read -r file; do [ ! -f "$file" ] || echo "$file"; done
}
files -- ':!CHANGELOG.md' ':!bench/results' ':!tests/fixtures' ':!tests/fuzz/corpus' ':!tests/mutants/*.txt' \
    ':!m4' ':!debian' | grep -E '\.([ch]|cu|def|sh|inc|py|mk|am|ac|md)$|^\.ci/|^bench/run$' >"$pages"
files | LC_ALL=C awk -v list="$pages" '
function learn(path, n, part, i, tail) {
    full[path] = 1
    n = split(path, part, "/")
    for (i = n; i >= 1; i--) {
        tail = i == n ? part[n] : part[i] "/" tail
        known[tail] = 1
    }
}
function matches(glob, whole, path) { # the end of a path unless whole
    gsub(/[.]/, "[.]", glob)
    gsub(/[*]/, "[^/]*", glob)
    glob = (whole ? "^" : "(^|/)") glob "$"
    for (path in full) if (path ~ glob) return 1
    return 0
}
function check(word, whole, is_folder, part) {
    split(word, part, "/")
    is_folder = word ~ /[a-z]\/[a-z_]+\/$/ && ("core/" part[1]) in full
    sub(/[.\/-]+$/, "", word)
    if (word ~ /[A-Z][A-Z]|[$<>]|^[.\/-]|(^|\/).[.][a-z]+$|[.](la|libs)$/ || word in ours || index(foreign, " " word " ")) return
    whole = word ~ /^(core|include|phases|models|plugins|tests|bench|docs|examples)\//
    if (!whole && !is_folder && word !~ /[.](c|h|cu|def|sh|py|mk|inc|md)$/) return
    if (word ~ /[*]/ ? matches(word, whole) : whole ? word in full || word ".c" in full : word in known) {
        ours[word] = 1
    } else {
        printf "FAIL: %s:%d names %s, which is not there\n", file, line, word
        failed = 1
    }
}
function words(text, n, part, i) {
    gsub(/[^A-Za-z0-9_.*\/+<>$-]/, " ", text)
    n = split(text, part, " ")
    for (i = 1; i <= n; i++) check(part[i])
}
# the comments of a line of C; in_comment is kept from line to line
function comments(text, out, i) {
    while (text != "") {
        if (in_comment) {
            i = index(text, "*/")
            out = out " " (i ? substr(text, 1, i - 1) : text)
            text = i ? substr(text, i + 2) : ""
            in_comment = !i
        } else {
            i = index(text, "/*")
            if (!i && match(text, /(^|[^:"])\/\//)) out = out " " substr(text, RSTART + RLENGTH)
            text = i ? substr(text, i + 2) : ""
            in_comment = i > 0
        }
    }
    return out
}
BEGIN {
    foreign = " room/file.c cmocka.h execinfo.h linux/magic.h elf/dl-load.c dl-lookup.c dl-version.c dl-reloc.c" \
        " doc/xxhash_spec.md xxhash_spec.md src/ucs/type/status.h k_cos.c k_sin.c" \
        " env/snakes.py rl_trainer/common.py numpy/lib/format.py traffic_sign.py xml2csv.py tests/kat_vectors" \
        " docs/Vehicle_Type_Parameter_Defaults gpu-bundle/measure.sh my_a2c.c corridor.py "
}
{
    learn($0)
    while (sub(/\/[^\/]*$/, "")) learn($0)
}
END {
    while ((getline file <list) > 0) {
        line = in_comment = 0
        c = file ~ /[.]([ch]|cu|def)$/
        page = file ~ /[.]md$/
        while ((getline text <file) > 0) {
            line++
            if (c) words(comments(text))
            else if (page) words(text)
            else if (match(text, /(^| )#( |$)/)) words(substr(text, RSTART + RLENGTH))
        }
        close(file)
    }
    exit failed
}'
