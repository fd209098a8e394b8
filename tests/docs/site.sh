#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What `make docs` builds: every page, every heading that a link leads to, every header as a group with an introduction;
# and what it says where a program is missing.
set -eu
make=$DT_SRCDIR/docs/site/make.sh
work=$(mktemp -d "$PWD/test-site-XXXXXX")
trap 'rm -rf "$work"' EXIT

# --- a program is missing ---
mkdir "$work/bin"
for program in sh sed dirname; do
    ln -s "$(command -v $program)" "$work/bin/$program"
done
code=0
PATH=$work/bin sh "$make" "$work/none" 2>"$work/err" || code=$?
test $code -eq 5 && grep -q 'apt-get install mkdocs' "$work/err" || { echo "without mkdocs: $code"; cat "$work/err"; exit 1; }
test ! -e "$work/none" || { echo "it begins before it looks"; exit 1; }

for program in mkdocs doxygen; do
    command -v $program >/dev/null || { echo "no $program here"; exit 77; }
done
sh "$make" "$work/site"

# --- pages, and what links lead to ---
for page in $(cd "$DT_SRCDIR/docs" && find . -name '*.md' | sed 's|^\./||; s|\.md$||'); do
    grep -q '</html>' "$work/site/$page.html" || { echo "no page of $page.md"; exit 1; }
    grep -q "href=\"$page.html\"" "$work/site/index.html" || { echo "the menu lacks $page.html"; exit 1; }
done
(cd "$work/site" && grep -o 'href="[./a-z0-9-]*\.html#[^"]*"' index.html start.html ./*/*.html) | grep -v '^\./api/' |
    sed 's/:href="/ /; s/"$//' | sort -u >"$work/links"
test "$(wc -l <"$work/links")" -ge 20 || { echo "hardly a link into a page"; exit 1; }
while read -r page link; do
    grep -q "id=\"${link#*#}\"" "$work/site/$(dirname "$page")/${link%%#*}" || { echo "$page links $link, which is not there"; exit 1; }
done <"$work/links"

# --- nothing is loaded from another server ---
if grep -rhoE '<(script|img|link)[^>]*(src|href)="(https?:)?//[^"]*"' "$work/site" --include='*.html' ||
    grep -rhE '@import|url\((https?:)?//[a-z]' "$work/site" --include='*.css'; then
    echo "pages load the above from another server"
    exit 1
fi

# --- the reference ---
(cd "$DT_SRCDIR/include/dtrain" && find . -name '*.h') | sed 's|^\./||; s|\.h$||' >"$work/headers"
test "$(wc -l <"$work/headers")" -ge 15 || { echo "hardly a header"; exit 1; }
while read -r header; do
    group=$work/site/api/group__dtrain__$(echo "$header" | sed 's|/|__|; s|_|__|g; s|____|__|g').html
    # its first words, behind the name of a service
    begin=$(sed -n '3s/^ \* //;3s/^.*[0-9]"\{0,1\}: //;3s/^\([A-Za-z-]*\( [A-Za-z-]*\)\{0,2\}\).*/\1/p' "$DT_SRCDIR/include/dtrain/$header.h")
    test -n "$begin" && grep -qF "$begin" "$group" || { echo "$header.h has no introduction: $group"; exit 1; }
done <"$work/headers"
grep -q 'dt_policy_load' "$work/site/api/group__dtrain__policy.html"

# --- a comment that cannot be read, and a link that leads nowhere, are errors ---
mkdir "$work/src"
(cd "$DT_SRCDIR" && cp -R README.md README.zh.md configure.ac docs examples include "$work/src/")
chmod -R u+w "$work/src"
echo '[x](nowhere.md)' >>"$work/src/docs/howto/gpu.md"
sh "$work/src/docs/site/make.sh" "$work/bad" >"$work/err" 2>&1 && { echo "a link to nowhere is fine"; exit 1; }
grep -q 'nowhere.md' "$work/err" || { echo "and nobody says so:"; cat "$work/err"; exit 1; }
