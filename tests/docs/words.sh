#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The language of README.md, CONTRIBUTING.md, SECURITY.md, examples/README.md and docs/: sentences of at most 25 words, no house words, one claim of
# bit-identical results a page. Code, targets of links and the generated table of guide-keys.md are not read.
# Usage: words.sh [PAGE]...
set -eu
src=${DT_SRCDIR:-.}
# shellcheck disable=SC2046 # a list of pages
[ $# -gt 0 ] || set -- "$src/README.md" "$src/CONTRIBUTING.md" "$src/SECURITY.md" "$src/examples/README.md" $(find "$src/docs" -name '*.md' ! -name guide-keys.md | sort)
awk '
function fail(what) { printf "%s:%d: %s\n", file, from, what; failed = 1 }
# one paragraph, list item or table cell
function check(text, sentences, n, i, words, w) {
    gsub(/`[^`]*`/, "X", text)
    gsub(/\]\([^)]*\)/, "]", text)
    gsub(/[][*|]/, " ", text)
    n = split(text, sentences, /[.!?:;] +|[.!?:;]$/)
    for (i = 1; i <= n; i++) {
        w = split(sentences[i], words, " ")
        if (w > 25) fail(w " words: " substr(sentences[i], 1, 70) " ...")
    }
    text = tolower(" " text " ")
    gsub(/[^a-z-]+/, " ", text)
    for (i = 1; i <= bans; i++)
        if (index(text, " " banned[i] " ")) fail("\"" banned[i] "\": see the terms in tests/docs/words.sh")
    claims += gsub(/bit-identical|bit for bit/, "", text)
    if (claims > 1 && file !~ /reproducibility|README/) { fail("bit-identical results are claimed twice: link reproducibility.md"); claims = -99 }
}
function flush() { if (paragraph != "") check(paragraph); paragraph = "" }
BEGIN {
    # write instead: target network; shard; evaluate or check; prints, reports; again, from scratch; after; next to or
    # compared with; is, is located at; the agent, the user, the process; off by default; third-party; missing; requires
    bans = split("shadow|shadows|leaf|leafs|judge|judged|judges|told|tell|tells|anew|behind|beside|whoever|nobody|somebody|" \
        "lies|aside|owed|strangers|a stranger|goes on|go on|hands on|handed on|without a word|with a sentence|so many words|" \
        "the bits|same bits|other bits|equal bits|no bit|is wanted|are wanted|there is none|learns nothing|learn nothing|" \
        "its word|your word|reckoned|foretells|holds by", banned, "|")
}
FNR == 1 { flush(); file = FILENAME; code = claims = 0 }
/^ *```/ { flush(); code = !code; next }
code || /^    / { flush(); next }
/^<!--/ || /^ *$/ || /^#/ { flush(); next }
/^\|/ { flush(); from = FNR; n = split($0, cells, / \| /); for (c = 1; c <= n; c++) check(cells[c]); next }
/^ *([-*]|[0-9]+\.) / { flush(); sub(/^ *([-*]|[0-9]+\.) /, "") }
{ if (paragraph == "") from = FNR; paragraph = paragraph " " $0 }
END { flush(); exit failed }
' "$@"
