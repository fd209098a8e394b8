# SPDX-License-Identifier: Apache-2.0
# What binds in preprocessed headers (cc -E -P), a line each: "M struct number member|type" of every member of a struct
# dt_*, with types of functions but without names of parameters, and "E NAME" of every enumerator DT_*.
{ text = text " " $0 }

# s, at each comma or semicolon that stands in no bracket: part[1..n]
function split_top(s, at, part,    i, n, depth, c, from)
{
    n = 0
    from = 1
    depth = 0
    for (i = 1; i <= length(s); i++) {
        c = substr(s, i, 1)
        depth += (c == "(" || c == "{" || c == "[") - (c == ")" || c == "}" || c == "]")
        if (c == at && depth == 0) {
            part[++n] = substr(s, from, i - from)
            from = i + 1
        }
    }
    part[++n] = substr(s, from)
    return n
}

function tidy(s)
{
    gsub(/[ \t]+/, " ", s)
    gsub(/^ | $/, "", s)
    gsub(/ ?\* ?/, "*", s)
    gsub(/ ?\( ?/, "(", s)
    gsub(/ ?\) ?/, ")", s)
    gsub(/ ?, ?/, ",", s)
    return s
}

# "const dt_host *h" as "const dt_host*": what a parameter is called binds nobody
function nameless(p,    before)
{
    if (p ~ /\(\*[A-Za-z0-9_]+\)/) {
        sub(/\(\*[A-Za-z0-9_]+\)/, "(*)", p)
        return p
    }
    before = p
    sub(/[A-Za-z0-9_]+$/, "", before)
    sub(/ $/, "", before)
    return before == "" || before == p || before ~ /(^|[ *])(const|struct|enum|unsigned|signed)$/ ? p : before
}

function types(list,    p, n, i, s)
{
    n = split_top(list, ",", p)
    s = ""
    for (i = 1; i <= n; i++) {
        s = s (i > 1 ? "," : "") nameless(p[i])
    }
    return s
}

function member(name, number, base, d,    call, what)
{
    call = ""
    if (match(d, /\(\*[A-Za-z0-9_]+\)\(/)) { # a function
        call = "(*)(" types(substr(d, RSTART + RLENGTH, length(d) - RSTART - RLENGTH)) ")"
        what = substr(d, RSTART + 2, RLENGTH - 4)
        d = substr(d, 1, RSTART - 1)
    } else {
        match(d, /[A-Za-z0-9_]+(\[[^]]*\])*$/)
        what = substr(d, RSTART)
        d = substr(d, 1, RSTART - 1)
        if (match(what, /\[/)) {
            call = substr(what, RSTART)
            what = substr(what, 1, RSTART - 1)
        }
    }
    print "M " name " " number " " what "|" tidy(base " " d) call
}

function members(name, body,    declaration, part, n, k, i, j, d, base, number)
{
    number = 0
    n = split_top(body, ";", declaration)
    for (i = 1; i < n; i++) {
        d = tidy(declaration[i])
        if (match(d, /[*(]/) && (base = substr(d, 1, RSTART - 1)) != "") {
            d = substr(d, RSTART)
        } else {
            match(d, /[A-Za-z0-9_]+(\[[^]]*\])*(,|$)/)
            base = substr(d, 1, RSTART - 1)
            d = substr(d, RSTART)
        }
        k = split_top(d, ",", part)
        for (j = 1; j <= k; j++) {
            member(name, number++, tidy(base), part[j])
        }
    }
}

# The bracket that begins at s, without its ends.
function body_of(s,    i, depth, c)
{
    depth = 0
    for (i = 1; i <= length(s); i++) {
        c = substr(s, i, 1)
        depth += (c == "{") - (c == "}")
        if (depth == 0) {
            return substr(s, 2, i - 2)
        }
    }
    return ""
}

END {
    gsub(/__attribute__ *\(\([^;{}]*\)\)\)?/, "", text)
    rest = text
    while (match(rest, /struct dt_[a-z0-9_]+ *\{/)) {
        name = substr(rest, RSTART + 7, RLENGTH - 8)
        sub(/ *$/, "", name)
        rest = substr(rest, RSTART + RLENGTH - 1)
        members(name, body_of(rest))
    }
    rest = text
    while (match(rest, /enum( [a-z0-9_]+)? *\{/)) {
        rest = substr(rest, RSTART + RLENGTH - 1)
        n = split_top(body_of(rest), ",", part)
        for (i = 1; i <= n; i++) {
            d = tidy(part[i])
            sub(/[ =].*/, "", d)
            if (d ~ /^DT_/) {
                print "E " d
            }
        }
    }
}
