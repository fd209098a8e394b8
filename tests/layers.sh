#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Holds the direction of the arrows: every include line of core, phases, models, plugins and include/dtrain is read
# against the table below. With a folder as argument it checks that tree; the test first proves on small wrong trees
# that it does refuse.
set -eu
LC_ALL=C
export LC_ALL

# room: the rooms it may include besides itself (dtrain = the public headers, libc only where nothing is named)
table='
base:
config: base
tensor: base
device: base tensor
backend: base tensor device
graph: base tensor device backend
amp: base tensor backend graph
optim: base tensor backend graph
collective: base tensor backend optim
checkpoint: base config tensor
data: base config tensor
rollout: base tensor backend
export: base tensor backend graph checkpoint data rollout train service experience
metrics: base config
report: base
train: base tensor device backend graph amp optim collective
porting: base config
loader: base config
machine: base backend device
service: base config tensor backend graph collective data metrics rollout train loader device machine
policy: base service
experience: base config graph collective checkpoint metrics rollout train service policy
tensorboard: base config metrics train service
run: base config tensor backend device collective checkpoint data rollout metrics report train loader machine service experience tensorboard
launch: base collective
trial: base config tensor graph data rollout loader service
cli: *
'
# foreign headers and the only places that may see them
foreign='
libconfig.h core/config/
ltdl.h core/loader/
dnnl core/backend/cpu/
zlib.h core/data/|core/metrics/png|plugins/env_traffic/xml
expat.h core/data/xml_in|plugins/env_traffic/xml
lzma.h core/data/
zstd.h core/data/blocks
hdf5.h core/data/hdf5/
yaml.h core/porting/yaml
mpi.h core/collective/mpi
nccl core/collective/nccl
cuda core/backend/cuda/|core/collective/nccl
cublas core/backend/cuda/
cudnn core/backend/cuda/
'

check() { # tree
    (cd "$1" && find core phases models plugins include/dtrain -type f \
        \( -name '*.c' -o -name '*.h' -o -name '*.def' -o -name '*.cu' -o -name '*.cuh' \) 2>/dev/null | sort |
        xargs grep -HnE '^[[:space:]]*#[[:space:]]*include' 2>/dev/null || true) |
    awk -v table="$table" -v foreign="$foreign" '
    BEGIN {
        n = split(table, line, "\n")
        for (i = 1; i <= n; i++) {
            if (split(line[i], half, ":") == 2) {
                may[half[1]] = " " half[2] " "
            }
        }
        n_foreign = split(foreign, line, "\n")
        for (i = 1; i <= n_foreign; i++) {
            split(line[i], half, " ")
            lib[i] = half[1]; place[i] = half[2]
        }
    }
    function bad(why) { printf "%s: %s: %s\n", where, text, why; n_bad++ }
    {
        split($0, part, ":")
        file = part[1]; where = part[1] ":" part[2]
        text = substr($0, length(where) + 2)
        sub(/^[ \t]*/, "", text)
        name = text
        sub(/^#[ \t]*include[ \t]*/, "", name)
        quoted = substr(name, 1, 1) == "\""
        if (!quoted && substr(name, 1, 1) != "<") {
            next # a macro, as in generated lists
        }
        name = substr(name, 2); sub(/[">].*/, "", name)
        split(file, dir, "/")
        n_part = split(name, to, "/")

        for (i = 1; i <= n_foreign; i++) {
            if (lib[i] != "" && index(name, lib[i]) == 1 && file !~ ("^(" place[i] ")")) {
                bad(lib[i] " belongs to " place[i] " alone")
            }
        }
        if (dir[1] == "core") {
            room = dir[2]
            if (!(room in may)) {
                bad("core/" room " is not in the table of tests/layers.sh")
            } else if (name == "config.h" || (!quoted && to[1] != "dtrain" && !(to[1] in may))) {
                next # the build configuration, the system
            } else if (to[1] == "dtrain") {
                if (room == "base" && name !~ /^dtrain\/(status|shapes|random|checked)\.h$/) {
                    bad("base sees dtrain/status.h, shapes.h, random.h and checked.h only")
                }
            } else if (n_part < 2 || !(to[1] in may)) {
                bad("write it as \"<room>/<file>\"")
            } else if (to[1] != room && may[room] !~ /\*/ && index(may[room], " " to[1] " ") == 0) {
                bad(room " may not look into " to[1])
            }
        } else if (dir[1] == "include") {
            if (quoted && to[1] != "dtrain") {
                bad("a public header includes public headers and standard C alone")
            } else if (!quoted && name !~ /^(std[a-z]*|string|math|float|limits|inttypes)\.h$/) {
                bad("a public header includes public headers and standard C alone")
            }
        } else if ((quoted && to[1] != "dtrain" && n_part > 1) || to[1] in may || name == "config.h") {
            bad(dir[1] " may include dtrain/ and files of its own folder alone")
        }
    }
    END { exit n_bad > 0 }'
}

if [ $# -gt 0 ]; then
    check "$1"
    exit
fi

# a tree with this one line must be refused with this text, and accepted without it
tmp=$(mktemp -d ./layers-XXXXXX)
trap 'rm -rf "$tmp"' EXIT
refuse() { # file line text
    rm -rf "$tmp/t"
    mkdir -p "$tmp/t/$(dirname "$1")"
    printf '#include <stdio.h>\n#include "dtrain/status.h"\n' >"$tmp/t/$1"
    check "$tmp/t" || { echo "layers: refuses a clean $1"; exit 1; }
    printf '%s\n' "$2" >>"$tmp/t/$1"
    if check "$tmp/t" >"$tmp/out"; then
        echo "layers: does not see '$2' in $1"
        exit 1
    fi
    if ! grep -qF "$1:3: $2" "$tmp/out" || ! grep -qF "$3" "$tmp/out"; then
        echo "layers: '$2' in $1 is refused, but not with '$3':"
        cat "$tmp/out"
        exit 1
    fi
}
refuse core/base/x.c '#include "config/config.h"' 'base may not look into config'
refuse core/base/x.h '#include "dtrain/plugin.h"' 'status.h'
refuse core/graph/x.h '#  include "run/run.h"' 'graph may not look into run'
refuse core/data/x.c '#include "graph/graph.h"' 'data may not look into graph'
refuse core/data/x.c '#include "store.h"' 'write it as'
refuse core/tensor/x.c '#include <backend/backend.h>' 'tensor may not look into backend'
mkdir -p "$tmp/new/core/elsewhere"
echo '#include <stdio.h>' >"$tmp/new/core/elsewhere/x.c"
if check "$tmp/new" >"$tmp/out" || ! grep -q 'core/elsewhere is not in the table' "$tmp/out"; then
    echo "layers: does not see a room that the table lacks"
    exit 1
fi
refuse core/data/x.c '#include <libconfig.h>' 'core/config/'
refuse core/run/x.c '#include <ltdl.h>' 'core/loader/'
refuse core/graph/x.c '#include <dnnl.h>' 'core/backend/cpu/'
refuse core/backend/cpu/x.c '#include <cuda_runtime.h>' 'core/backend/cuda/'
refuse include/dtrain/x.h '#include "base/str.h"' 'public headers'
refuse include/dtrain/x.h '#include <unistd.h>' 'public headers'
refuse phases/x.c '#include "base/str.h"' 'phases may include'
refuse models/m/x.c '#include "../../core/base/str.h"' 'models may include'
refuse plugins/p/x.c '#include <config.h>' 'plugins may include'

check "${DT_SRCDIR:-$(dirname "$0")/..}"
