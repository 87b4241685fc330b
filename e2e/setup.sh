#!/bin/bash
# Installs what the end-to-end rig needs on Debian or Ubuntu, as root: PuppetDB,
# PostgreSQL, a second, newer PuppetDB in a folder of its own, the clients, and a browser.
# Idempotent; everything that is already there is left alone.
#
#   PDBMUX_RIG_DIR        the rig's folder (default: .rig in the repository)
#   PDBMUX_E2E_BACKENDS   set: PuppetDBs come from outside, only Puppetboard and the browser are installed
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
rig=${PDBMUX_RIG_DIR:-$(dirname "$here")/.rig}
newer=$rig/trixie
packages=(nginx-light puppetdb postgresql locales debootstrap python3 python3-venv chromium puppet-terminus-puppetdb)
# Whoever has a newer node than the distribution's has its npm too, which excludes the package.
command -v npm >/dev/null || packages+=(npm)
export DEBIAN_FRONTEND=noninteractive

say() { printf 'e2e setup: %s\n' "$*"; }

installed() {
  local states
  states=$(dpkg-query -W -f '${db:Status-Status}\n' "$@" 2>/dev/null) &&
    ! grep -qvx installed <<<"$states"
}

# A package lists no candidate until the package lists have been fetched once.
refresh_lists() {
  if [[ $(apt-cache policy "$@") != *"Candidate: "[0-9]* ]]; then
    apt-get update -q
  fi
}

# The rig starts its own servers: a package's default one would only take a port.
policy=/usr/sbin/policy-rc.d
without_services() {
  if [[ -e $policy ]]; then
    "$@"
    return
  fi
  trap 'rm -f "$policy"' EXIT
  printf '#!/bin/sh\nexit 101\n' >"$policy"
  chmod 755 "$policy"
  "$@"
  rm -f "$policy"
  trap - EXIT
}

install_packages() {
  installed "${packages[@]}" && return
  say "installing ${packages[*]}"
  for package in "${packages[@]}"; do refresh_lists "$package"; done >"$rig/install.log" 2>&1
  # The package's own database set-up fails without a running server; the rig does not use it.
  without_services apt-get install -q -y --no-install-recommends "${packages[@]}" \
    >>"$rig/install.log" 2>&1 || true
  installed "${packages[@]}" || {
    say "apt-get could not install ${packages[*]} (see $rig/install.log)"
    exit 1
  }
}

# The text order that most PuppetDBs' databases have; the rig's own is by bytes.
generate_locale() {
  locale -a | grep -qx 'en_US.utf8' && return
  say "generating the locale en_US.UTF-8"
  localedef -i en_US -f UTF-8 en_US.UTF-8
}

# The mirror this machine itself uses, whatever it is.
mirror() {
  apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 'Origin: Debian' 'Label: Debian' 2>/dev/null |
    head -n 1
}

bootstrap_newer() {
  local from build=$newer.part
  from=$(mirror)
  [[ -n $from ]] || return 1
  rm -rf "$build"
  debootstrap --variant=minbase trixie "$build" "$from" || return 1
  printf '#!/bin/sh\nexit 101\n' >"$build/usr/sbin/policy-rc.d"
  chmod 755 "$build/usr/sbin/policy-rc.d"
  # A mount namespace of its own, so that no mount outlives the installation.
  unshare --mount sh -ec '
    mount -t proc proc "$1/proc"
    chroot "$1" apt-get install -q -y --no-install-recommends puppetdb default-jre-headless || true
  ' sh "$build"
  [[ -e $build/usr/share/puppetdb/puppetdb.jar && -e $build/usr/bin/java ]] || return 1
  rm -rf "$build/var/cache/apt" "$build/var/lib/apt/lists"
  mv "$build" "$newer"
}

install_newer() {
  [[ -d $newer || -e $rig/no-newer ]] && return
  say "bootstrapping the newer PuppetDB into $newer"
  mkdir -p "$rig"
  if ! (bootstrap_newer) >"$rig/bootstrap.log" 2>&1; then
    rm -rf "$newer.part"
    say "no newer PuppetDB to be had from this machine's mirror (see $rig/bootstrap.log): both backends run the packaged one"
    : >"$rig/no-newer"
  fi
}

# Debian's PuppetDB compiles its Clojure sources at every start, half a minute of work on
# each of three. The rig puts these classes before the package's jar.
#   compile_puppetdb CLASSES [PREFIX COMMAND ...]
compile_puppetdb() {
  local classes=$1
  shift
  "$@" sh -ec '
    services=$(sed -n "s,^\([a-z][^/]*\)/.*,\1,p" /etc/puppetdb/bootstrap.cfg | sort -u)
    rm -rf "$0.part"
    mkdir -p "$0.part"
    java -Xmx1g -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -Dclojure.compile.path="$0.part" \
      -cp "$0.part:/usr/share/puppetdb/puppetdb.jar" clojure.main \
      -e "(run! compile (quote [puppetlabs.puppetdb.core $(echo $services)]))"
    mv "$0.part" "$0"
  ' "$classes"
}

compile_all() {
  if [[ ! -d $rig/classes ]]; then
    say "compiling the packaged PuppetDB"
    compile_puppetdb "$rig/classes" >"$rig/compile.log" 2>&1
  fi
  if [[ -d $newer && ! -d $newer/srv/pdbmux/classes ]]; then
    say "compiling the newer PuppetDB"
    compile_puppetdb /srv/pdbmux/classes unshare --mount sh -ec \
      'mount -t proc proc "$0/proc"; exec chroot "$0" "$@"' "$newer" >>"$rig/compile.log" 2>&1
  fi
}

# Python programs of one requirements file in a folder of their own.
#   install_python FOLDER FILE
install_python() {
  local venv=$rig/$1 wanted=$here/$2
  cmp -s "$wanted" "$venv/requirements.txt" && return
  say "installing $(grep -v '^#' "$wanted" | head -n 1 | cut -d= -f1) into $venv"
  rm -rf "$venv"
  /usr/bin/python3 -m venv "$venv"
  "$venv/bin/pip" install -r "$wanted" >>"$rig/install.log" 2>&1 || {
    say "pip could not install $2 (see $rig/install.log)"
    exit 1
  }
  cp "$wanted" "$venv/requirements.txt"
}

install_backstage() {
  local wanted=$here/requirements-backstage.json modules=$rig/backstage
  if cmp -s "$wanted" "$modules/package.json" || [[ -e $rig/no-backstage ]]; then return; fi
  say "installing the Backstage module into $modules"
  rm -rf "$modules" "$modules.part"
  mkdir -p "$modules.part"
  cp "$wanted" "$modules.part/package.json"
  if (cd "$modules.part" && npm install --ignore-scripts --omit=dev --omit=optional --omit=peer \
    --no-audit --no-fund --no-package-lock --fetch-retries=1 --fetch-timeout=60000) >>"$rig/install.log" 2>&1; then
    mv "$modules.part" "$modules"
  else
    say "npm could not install the Backstage module (see $rig/install.log): it is not run"
    rm -rf "$modules.part"
    : >"$rig/no-backstage"
  fi
}

if [[ $EUID -ne 0 ]]; then
  say "must run as root"
  exit 1
fi
mkdir -p "$rig"
if [[ -n ${PDBMUX_E2E_BACKENDS:-} ]]; then
  packages=(python3 python3-venv chromium)
  install_packages
else
  install_packages
  # Mostly waiting, which the compilers need not.
  install_backstage &
  generate_locale
  install_newer
  compile_all
fi
install_python venv requirements.txt
install_python exporter requirements-exporter.txt
wait
say "ready in $rig"
