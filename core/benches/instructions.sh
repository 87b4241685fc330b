#!/usr/bin/env bash
# Counts the instructions of the core's hot paths under callgrind and holds them to those in
# instructions.txt. With `update` they are written there instead. Installs valgrind where it is
# missing, as root on Debian or Ubuntu.
set -euo pipefail
cd "$(dirname "$0")/../.."

counts=core/benches/instructions.txt
# How many more there may be, in percent. Fewer should be written down, so that they stay.
tolerance=3

# The scanner, and libraries below it, choose their instructions by the processor.
if ! grep -qw avx2 /proc/cpuinfo; then
  echo "the counts in $counts are those of a processor with AVX2, which this one lacks" >&2
  exit 1
fi
if ! command -v valgrind >/dev/null; then
  apt-get update -q
  apt-get install -q -y --no-install-recommends valgrind
fi

binary=$(cargo bench --quiet -p pdbmux-core --bench instructions --no-run --message-format=json |
  sed -n 's/.*"executable":"\([^"]*instructions[^"]*\)".*/\1/p')

count() {
  valgrind --tool=callgrind --callgrind-out-file=/dev/null --toggle-collect='*instructions::measured*' \
    "$binary" "$1" 2>&1 | sed -n 's/.*Collected : \([0-9]*\).*/\1/p'
}

measured=$(for name in $("$binary"); do printf '%s %s\n' "$name" "$(count "$name")"; done)

if [ "${1:-}" = update ]; then
  echo "$measured" >"$counts"
fi
echo "$measured" | awk -v tolerance="$tolerance" '
  NR == FNR { known[$1] = $2; next }
  $2 == "" { print $1 ": nothing was counted"; failed = 1; next }
  !($1 in known) { print $1 ": " $2 ", but nothing to compare with"; failed = 1; next }
  {
    more = ($2 / known[$1] - 1) * 100
    printf "%-20s %12d %+6.2f%%\n", $1, $2, more
    if (more > tolerance) { print $1 ": more than " tolerance "% above " known[$1]; failed = 1 }
    if (more < -tolerance) print $1 ": write it down, by `make instructions-update`"
  }
  END { exit failed }
' "$counts" -
