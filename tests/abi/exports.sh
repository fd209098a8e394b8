#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Every built plugin exports its entry point and nothing else, and needs nothing but the C library; env_traffic, which
# reads networks by expat and zlib, these too.
set -eu
command -v nm >/dev/null || { echo "skipped: no nm"; exit 77; }
status=0
for plugin in $DT_PLUGINS; do
    id=$(basename "$plugin" .la)
    so=$DT_BUILDDIR/$(dirname "$plugin")/.libs/$id.so
    exported=$(nm -D --defined-only "$so" | awk '{ print $3 }' | tr '\n' ' ')
    if [ "$exported" != "${id}_LTX_dt_plugin_entry " ]; then
        echo "$id: exports '$exported', expected ${id}_LTX_dt_plugin_entry alone"
        status=1
    fi
    if nm -D --undefined-only "$so" | grep -qE ' __([at]|ub)san_'; then
        continue # a sanitizer stands between the plugin and the C library
    fi
    own='^$'
    [ "$id" != env_traffic ] || own='^(XML_|gz)'
    # weak ones are the compiler's own
    foreign=$(nm -D --undefined-only "$so" | awk -v own="$own" '$1 != "w" && $2 !~ /@GLIBC_/ && $2 !~ own')
    if [ -n "$foreign" ]; then
        echo "$id: needs symbols that are not the C library's:"
        echo "$foreign"
        status=1
    fi
done
exit $status
