#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What verbs print may hold words of others: it goes through core/base/print.h, which lets nothing drive a terminal.
# watch draws its screen itself, and masks what it shows (tests/telemetry/report/test_watch.c).
set -eu
cd "${DT_SRCDIR:-$(dirname "$0")/..}"
printf '    printf("%%s", name);\n    fputs(name, stdout);\n    dt_print("%%s", name);\n    fprintf(f, name);\n' |
    grep -cE '(^|[^a-z_])(printf|puts)\(|, stdout\)' | grep -qx 2 || { echo "raw_print: does not see"; exit 1; }
found=$(find core -name '*.c' | grep -vE 'core/cli/(cfg_doc|cli_doc|options_doc|verb_watch)\.c|core/base/print\.c' |
    xargs grep -nE '(^|[^a-z_])(printf|vprintf|puts|putchar)\(|, stdout\)|fprintf\(stdout' || true)
[ -z "$found" ] || { echo "$found"; echo "print it by base/print.h"; exit 1; }
