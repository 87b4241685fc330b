#!/bin/bash
# Installs what the benchmarks measure with on Debian or Ubuntu, as root: nginx and wrk.
set -euo pipefail

command -v nginx >/dev/null && command -v wrk >/dev/null && exit
export DEBIAN_FRONTEND=noninteractive
# The benchmarks start their own nginx: the package's service would only take a port.
policy=/usr/sbin/policy-rc.d
if [[ ! -e $policy ]]; then
  trap 'rm -f "$policy"' EXIT
  printf '#!/bin/sh\nexit 101\n' >"$policy"
  chmod 755 "$policy"
fi
apt-get update -q
apt-get install -q -y --no-install-recommends nginx-light wrk
