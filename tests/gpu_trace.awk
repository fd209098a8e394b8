# SPDX-License-Identifier: Apache-2.0
#
# What a GPU did in the second half of a run, of the table that `nsys stats --report cuda_gpu_trace --format csv` writes,
# in the order of time: one line, "K kernels and C copies a step, S us from step to step, of which B % at work; G gaps
# over 10 us a step, the longest L us". Each step has one kernel `decide`: a step is what lies from one to the next. Ends
# with 1 and the reason when the table has no such steps.
BEGIN { FS = "," }
function die(text) {
    print text
    has_failed = 1
    exit 1
}
!has_header {
    if ($0 !~ /^Start \(ns\),/) {
        next
    }
    for (i = 1; i <= NF; i++) {
        column[$i] = i
    }
    start = column["Start (ns)"]
    length_ns = column["Duration (ns)"]
    grid = column["GrdX"]
    label = column["Name"]
    has_header = 1
    if (!start || !length_ns || !grid || !label) {
        die("the table of nsys has other columns: " $0)
    }
    next
}
NF >= label {
    if ($start !~ /^[0-9]+$/ || $length_ns !~ /^[0-9]+$/) {
        die("the table of nsys has no time in: " $0)
    }
    if (n > 0 && $start + 0 < from[n] - 0) {
        die("the table of nsys is not in the order of time: " $0)
    }
    n++
    from[n] = $start + 0
    to[n] = $start + $length_ns
    is_kernel[n] = $grid != ""
    name = $0
    if (is_kernel[n] && name ~ /decide\(/) {
        step[++n_steps] = n
    }
}
END {
    if (has_failed) {
        exit 1
    }
    if (!has_header) {
        print "nsys wrote no table"
        exit 1
    }
    if (n_steps < 4) {
        printf "the GPU began %d steps, of %d pieces of work: too few to look at\n", n_steps, n
        exit 1
    }
    first = step[int(n_steps / 2) + 1]
    last = step[n_steps]
    n_looked = n_steps - int(n_steps / 2) - 1
    busy_until = from[first]
    for (i = first; i < last; i++) {
        kernels += is_kernel[i]
        copies += !is_kernel[i]
        gap = from[i] - busy_until
        if (gap > 10000) {
            gaps++
            longest = gap > longest ? gap : longest
        }
        begin = gap > 0 ? from[i] : busy_until
        if (to[i] > begin) {
            busy += to[i] - begin
            busy_until = to[i]
        }
    }
    gap = from[last] - busy_until
    if (gap > 10000) {
        gaps++
        longest = gap > longest ? gap : longest
    }
    whole = from[last] - from[first]
    printf "%.1f kernels and %.1f copies a step, %.0f us from step to step, of which %.0f %% at work; ", \
        kernels / n_looked, copies / n_looked, whole / n_looked / 1000, 100 * (busy < whole ? busy : whole) / whole
    printf "%.1f gaps over 10 us a step, the longest %.0f us\n", gaps / n_looked, longest / 1000
}
