#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Builds the site of these pages and of the C interface: docs/site/make.sh FOLDER (`make docs` names site/ of the build
# folder). README.md is its first page. Links that lead nowhere and comments that Doxygen cannot read are errors.
set -eu
src=$(cd "$(dirname "$0")/../.." && pwd)
test $# -eq 1 || { echo "usage: docs/site/make.sh FOLDER" >&2; exit 2; }
for program in mkdocs doxygen; do
    command -v "$program" >/dev/null 2>&1 || {
        echo "error: the site needs $program, which is not here (Debian: apt-get install $program)" >&2
        exit 5
    }
done
mkdir -p "$1"
to=$(cd "$1" && pwd)
work=$to.src
rm -rf "$work" "$to"
mkdir -p "$work/docs/api"

for part in start.md tutorial howto reference explanation img slurm.sh dtrain@.service kubernetes-job.yaml kubernetes-mpijob.yaml; do
    cp -R "$src/docs/$part" "$work/docs/"
done
cp -R "$src/examples" "$work/docs/"
chmod -R u+w "$work"
for page in "$work"/docs/*.md "$work"/docs/*/*.md; do # examples/ is next to docs/ in the source, in it here
    sed 's|](../../examples/|](../examples/|g; s|](../docs/|](../|g' "$page" >"$work/page" && mv "$work/page" "$page"
done
sed 's|](../examples/|](examples/|g' "$src/docs/start.md" >"$work/docs/start.md"
for page in README.md README.zh.md; do
    sed 's|](docs/|](|g; s|\[LICENSE\](LICENSE)|LICENSE|; s|\[[^]]*\](CONTRIBUTING.md)|CONTRIBUTING.md|; s|(README.md)|(index.md)|' "$src/$page" >"$work/docs/$page"
done
mv "$work/docs/README.md" "$work/docs/index.md"
cp "$src/docs/site/mkdocs.yml" "$work/"
cp "$src/docs/site/tables.css" "$work/docs/"
chmod -R u+w "$work"

version=$(sed -n 's/^AC_INIT(\[dtrain\], \[\([^]]*\)\].*/\1/p' "$src/configure.ac")
{
    cat "$src/docs/site/Doxyfile"
    echo "PROJECT_NUMBER = $version"
    echo "INPUT = \"$src/docs/site/api.dox\" \"$src/include/dtrain\""
    echo "INCLUDE_PATH = \"$src/include\""
    echo "STRIP_FROM_PATH = \"$src/include\""
    echo "INPUT_FILTER = \"python3 '$src/docs/site/comments.py'\""
    echo "OUTPUT_DIRECTORY = \"$work/docs/api\""
} >"$work/Doxyfile"
doxygen "$work/Doxyfile"
mkdocs build --strict --config-file "$work/mkdocs.yml" --site-dir "$to"
rm -rf "$work"
echo "$to/index.html"
