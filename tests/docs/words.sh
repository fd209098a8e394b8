#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The language of README.md, CONTRIBUTING.md, SECURITY.md, examples/README.md and docs/: sentences of at most 25 words,
# no house words, one claim of bit-identical results a page. Code, targets of links and the generated table of
# guide-keys.md are not read. Of source files: no house words in comments, and in string literals of several words, which
# users read as messages, logs and help. Usage: words.sh [PAGE|SOURCE]...
set -eu
src=${DT_SRCDIR:-.}
# of pages and messages. Write instead: target network; shard; evaluate or check; prints, reports; again, from scratch;
# after; next to or compared with; is, is located at; the agent, the user, the process; off by default; third-party;
# missing; requires; truncated; must be; desired; continues; timed out
banned="shadow|shadows|leaf|leafs|judge|judged|judges|judging|told|tell|tells|anew|behind|beside|whoever|nobody|somebody|\
everybody|anybody|lies|aside|owed|strangers|a stranger|goes on|go on|going on|went on|hands on|handed on|without a word|\
with a sentence|so many words|the bits|same bits|other bits|equal bits|no bit|is wanted|are wanted|wanted|wished|\
learns nothing|learn nothing|its word|your word|reckoned|foretells|holds by|shall|teach|teaches|taught|learnt|begun|in vain|\
for ever|from here on|give back|gives back|gave back|cut short|belongs into|worth nothing|once more|has to be|have to be|\
is there twice|are not there|to a tenth|learns by acting|so much|says|whom"
# of messages alone: text for a string of a configuration, holds for contains and the like are left to the reader
in_messages="want|wants|who|whom|knows|at once|so many|look at|looks at|alike|say|says|stand|stands|is not there|\
whatever comes|are no"
# of comments in the product's sources; "behind" is a place in traffic alone
in_comments="told|tell|tells|telling|beside|nobody|somebody|everybody|anybody|whoever|who|whom|owed|says|wish|wishes|wished|\
anew|judged|judges|judging|goes on|go on|going on|went on|gone on|in vain|once more|foretells|gave back|give back|gives back|\
given back|hands on|handed on|let go|lets go|without a word|so many words|of one's own|its word|shall|learnt nothing"
# of comments in tests, benches and examples
in_tests="told|tell|tells|telling|somebody|everybody|anybody|whoever|whomever|whom|owed|anew|judge|judged|judges|judging|\
stranger|strangers"
# of identifiers, word by word; "behind" and "beside" are places in traffic
in_identifiers="told|tell|tells|telling|nobody|somebody|everybody|anybody|whoever|whom|owed|owes|anew|judge|judged|judges|\
judging|stranger|strangers|shadow|shadows|wish|wished|wishes|reckon|reckoned"
code="$src/core $src/include $src/models $src/phases $src/plugins"
# shellcheck disable=SC2046,SC2086 # lists of pages and folders
[ $# -gt 0 ] || set -- "$src/README.md" "$src/CONTRIBUTING.md" "$src/SECURITY.md" "$src/examples/README.md" \
    $(find "$src/docs" -name '*.md' ! -name guide-keys.md | sort) \
    $(find $code "$src/tests" "$src/bench" "$src/examples" -name '*.[ch]' -o -name '*.cu' -o -name '*.def' | sort) \
    $(find "$src/tests" "$src/bench" "$src/examples" -name '*.sh' ! -name words.sh -o -name '*.py' -o -name '*.mk' | sort)
pages='' sources='' named='' scripts=''
for file in "$@"; do
    case $file in
        *.sh | *.py | *.mk) scripts="$scripts $file" ;;
        *.md) pages="$pages $file" ;;
        "$src"/tests/* | "$src"/bench/* | "$src"/examples/*) named="$named $file" ;;
        *) sources="$sources $file" ;;
    esac
done
failed=0
[ -z "$pages" ] || awk -v banned="$banned|there is none" '
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
        if (index(text, " " ban[i] " ")) fail("\"" ban[i] "\": see the terms in tests/docs/words.sh")
    claims += gsub(/bit-identical|bit for bit/, "", text)
    if (claims > 1 && file !~ /reproducibility|README/) { fail("bit-identical results are claimed twice: link reproducibility.md"); claims = -99 }
}
function flush() { if (paragraph != "") check(paragraph); paragraph = "" }
BEGIN { bans = split(banned, ban, "|") }
FNR == 1 { flush(); file = FILENAME; code = claims = 0 }
/^ *```/ { flush(); code = !code; next }
code || /^    / { flush(); next }
/^<!--/ || /^ *$/ || /^#/ { flush(); next }
/^\|/ { flush(); from = FNR; n = split($0, cells, / \| /); for (c = 1; c <= n; c++) check(cells[c]); next }
/^ *([-*]|[0-9]+\.) / { flush(); sub(/^ *([-*]|[0-9]+\.) /, "") }
{ if (paragraph == "") from = FNR; paragraph = paragraph " " $0 }
END { flush(); exit failed }
' $pages || failed=1

# adjacent literals are one; tags, numbers of printf and escapes are not words
[ -z "$sources" ] || awk -v banned="$banned|$in_messages" '
function check(    text, i) {
    text = literal
    literal = ""
    if (text !~ / /) return
    gsub(/<[^>]*>|%[-+ 0-9.*]*[a-z]+|\\./, " ", text)
    text = tolower(text)
    gsub(/[^a-z0-9_.\047-]+/, " ", text)
    gsub(/\.+ /, " ", text)
    text = " " text " "
    gsub(/ no longer /, " not ", text)
    for (i = 1; i <= bans; i++)
        if (index(text, " " ban[i] " ")) fail(ban[i])
    if (match(text, / (is|are) no [a-z]+/) && text !~ / there (is|are) no /) fail(substr(text, RSTART + 1, RLENGTH - 1))
}
function fail(what) { printf "%s:%d: \"%s\" in a message: see the terms in tests/docs/words.sh\n", file, from, what; failed = 1 }
function between(text) { gsub(/PRI[a-zA-Z0-9]+|[ \t\\]/, "", text); return text != "" }
BEGIN { bans = split(banned, ban, "|") }
FNR == 1 { check(); file = FILENAME; comment = 0 }
comment { if ((i = index($0, "*/")) == 0) next; $0 = substr($0, i + 2); comment = 0 }
/^[ \t]*#[ \t]*include/ { check(); next }
/_Static_assert/ { check(); next }
{
    line = $0
    while (match(line, /"([^"\\]|\\.)*"|\047([^\047\\]|\\.)+\047|\/\*|\/\//)) {
        before = substr(line, 1, RSTART - 1); token = substr(line, RSTART, RLENGTH); line = substr(line, RSTART + RLENGTH)
        if (between(before)) check()
        if (token == "//") { line = ""; break }
        if (token == "/*") {
            if ((i = index(line, "*/")) == 0) { comment = 1; line = ""; break }
            line = substr(line, i + 2)
        } else if (token ~ /^"/) {
            if (literal == "") from = FNR
            literal = literal substr(token, 2, length(token) - 2)
        } else check()
    }
    if (between(line)) check()
}
END { check(); exit failed }
' $sources || failed=1
# names of ports, parameters and members, and texts in quotes are not words
in_code='
function check(text, i) {
    gsub(/beside +"A 4 7"|"[^"]*"|`[^`]*`|beside +\[|(ahead|next_ahead), (next_)?beside|beside:|who:/, " ", text)
    text = tolower(text)
    gsub(/[^a-z0-9_.\047-]+/, " ", text)
    gsub(/[.]+ /, " ", text)
    text = " " text " "
    for (i = 1; i <= bans; i++)
        if (index(text, " " ban[i] " ")) fail(ban[i])
    if (general && index(text, " behind ")) fail("behind")
}
function fail(what) { printf "%s:%d: \"%s\" in a comment: see the terms in tests/docs/words.sh\n", FILENAME, FNR, what; failed = 1 }
BEGIN { bans = split(banned, ban, "|") }
FNR == 1 { comment = 0; general = FILENAME ~ /(^|\/)(core|include)\// && FILENAME !~ /\/traffic\// }
FILENAME ~ /\.(sh|py|mk)$/ { if (match($0, /(^|[ \t])#/)) check(substr($0, RSTART)); next }
{
    line = $0
    while (1) {
        if (comment) {
            if ((i = index(line, "*/")) == 0) { check(line); break }
            check(substr(line, 1, i - 1)); line = substr(line, i + 2); comment = 0
        }
        if (!match(line, /"([^"\\]|\\.)*"|\047([^\047\\]|\\.)+\047|\/\*|\/\//)) break
        token = substr(line, RSTART, RLENGTH); line = substr(line, RSTART + RLENGTH)
        if (token == "//") { check(line); break }
        if (token == "/*") comment = 1
    }
}
END { exit failed }
'
[ -z "$sources" ] || awk -v banned="$in_comments" "$in_code" $sources || failed=1
[ -z "$named$scripts" ] || awk -v banned="$in_tests" "$in_code" $named $scripts || failed=1
[ -z "$sources$named" ] || awk -v banned="$in_identifiers" '
function check(text, general) {
    text = tolower(text)
    if (text ~ pattern || (general && text ~ /(^|[^a-z])(behind|beside)([^a-z]|$)/)) {
        printf "%s:%d: an identifier of a word that is none of the terms in tests/docs/words.sh: %s\n", FILENAME, FNR, text
        failed = 1
    }
}
BEGIN { pattern = "(^|[^a-z])(" banned ")([^a-z]|$)" }
FNR == 1 { comment = 0; general = FILENAME ~ /(^|\/)core\// }
/^[ \t]*#[ \t]*include/ { next }
{
    line = $0
    if (comment) {
        if ((i = index(line, "*/")) == 0) next
        line = substr(line, i + 2); comment = 0
    }
    while (match(line, /"([^"\\]|\\.)*"|\047([^\047\\]|\\.)+\047|\/\*|\/\//)) {
        check(substr(line, 1, RSTART - 1), general)
        token = substr(line, RSTART, RLENGTH); line = substr(line, RSTART + RLENGTH)
        if (token == "//") next
        if (token == "/*") {
            if ((i = index(line, "*/")) == 0) { comment = 1; next }
            line = substr(line, i + 2)
        }
    }
    check(line, general)
}
END { exit failed }
' $sources $named || failed=1
exit $failed
