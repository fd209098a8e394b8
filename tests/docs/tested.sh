# shellcheck shell=sh
# SPDX-License-Identifier: Apache-2.0
# For the tests of documents, read by "."; not a test by itself.

# tested_commands FILE [MARK]: the commands of its sh blocks after a "tested" mark (or MARK), as a script
tested_commands() {
    # sh -e does not stop at "! command": say it as a condition
    awk -v mark="<!-- ${2:-tested} -->" '$0 == mark { want = 1; next }
        want && /^```sh$/ { on = 1; want = 0; next }
        /^```$/ { on = 0 }
        on' "$1" | sed 's/^! \([^#]*\).*$/if \1; then echo "was accepted: \1"; exit 1; fi/'
}

# A folder like a clone after ./quickstart, but for what was trained: sources and what was built, by links.
like_a_clone() { # folder
    mkdir -p "$1"
    ln -s "$(cd "$DT_SRCDIR" && pwd)/share" "$1/share"
    ln -s "$(cd "${DT_BUILDDIR:-.}" && pwd)" "$1/build"
}
